#pragma once
/// Packets with descriptors beside them, between two processes of one machine.

#include <mtmc/support/file_descriptor.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Most descriptors beside one packet.
inline constexpr std::size_t max_passed_descriptors = 4;

/// The two ends of a connection that keeps packets apart (SOCK_SEQPACKET); empty, with errno set, if there is
/// none is available.
[[nodiscard]] inline std::pair<FileDescriptor, FileDescriptor> packet_pair() noexcept {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {FileDescriptor{ends[0]}, FileDescriptor{ends[1]}};
}

/// Sends one packet, and copies of at most `max_passed_descriptors` descriptors with it, without waiting.
/// False, with errno set, if it did not go.
[[nodiscard]] inline bool send_packet(int socket, std::string_view bytes,
                                      std::initializer_list<int> descriptors = {}) noexcept {
  iovec place{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_passed_descriptors * sizeof(int))> control{};
  if (descriptors.size() > 0 && descriptors.size() <= max_passed_descriptors) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.begin(), descriptors.size() * sizeof(int));
  }
  ssize_t sent = -1;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

/// What came with one packet.
struct ReceivedPacket {
  /// As recv() gives it: 0 at the end of the connection, -1 (with errno) if nothing is there.
  ssize_t size = -1;
  std::vector<FileDescriptor> descriptors{};
};

/// Takes one packet into `buffer`, without waiting; what is longer is cut. Descriptors are closed on exec.
[[nodiscard]] inline ReceivedPacket receive_packet(int socket, char* buffer, std::size_t capacity) {
  iovec place{buffer, capacity};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_passed_descriptors * sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ReceivedPacket packet;
  do packet.size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (packet.size < 0 && errno == EINTR);
  if (packet.size < 0) return packet;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      packet.descriptors.emplace_back(descriptor);
    }
  }
  return packet;
}

} // namespace mtmc::detail
