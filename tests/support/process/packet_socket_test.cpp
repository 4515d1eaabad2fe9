#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/packet_socket.hpp>
#include <mtmc/support/process/subprocess.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <utility>

using namespace mtmc;
using namespace mtmc::detail;

TEST_CASE("packets stay apart, and descriptors come along as copies that do not survive exec") {
  auto [here, there] = packet_pair();
  REQUIRE(here);
  std::array<char, 16> buffer{};
  CHECK(receive_packet(there.get(), buffer.data(), buffer.size()).size == -1);
  CHECK(errno == EAGAIN);
  const auto first = memory_file("first");
  const auto second = memory_file("second");
  CHECK(send_packet(here.get(), "one"));
  CHECK(send_packet(here.get(), "two", {first.get(), second.get()}));
  const auto one = receive_packet(there.get(), buffer.data(), buffer.size());
  CHECK(std::string(buffer.data(), 3) == "one");
  CHECK(one.size == 3);
  CHECK(one.descriptors.empty());
  const auto two = receive_packet(there.get(), buffer.data(), buffer.size());
  CHECK(two.size == 3);
  REQUIRE(two.descriptors.size() == 2);
  CHECK(content_of(two.descriptors[0].get()) == "first");
  CHECK(content_of(two.descriptors[1].get()) == "second");
  CHECK((::fcntl(two.descriptors[1].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("an end that is closed is the end of the connection, and no signal") {
  auto [here, there] = packet_pair();
  there.reset();
  char nothing = 0;
  CHECK(receive_packet(here.get(), &nothing, 1).size == 0);
  CHECK_FALSE(send_packet(here.get(), "x"));
  CHECK(errno == EPIPE);
}
