#pragma once
/// The same as a `FileFence` for a process that compiles nothing but one text and starts nothing, where there
/// is no Landlock: the system refuses it to open anything (seccomp), and another process opens for it what it
/// may have.

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/packet_socket.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

namespace open_broker {

inline constexpr std::size_t longest_path = 4096;

/// The registers of a system call that was stopped.
#if defined(__x86_64__)
inline constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
[[nodiscard]] inline greg_t& argument(ucontext_t& context, int number) {
  constexpr std::array<int, 4> places{REG_RDI, REG_RSI, REG_RDX, REG_R10};
  return context.uc_mcontext.gregs[places[static_cast<std::size_t>(number)]];
}
inline void answer(ucontext_t& context, long value) { context.uc_mcontext.gregs[REG_RAX] = value; }
#else
inline constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
[[nodiscard]] inline unsigned long long& argument(ucontext_t& context, int number) {
  return context.uc_mcontext.regs[number];
}
inline void answer(ucontext_t& context, long value) {
  context.uc_mcontext.regs[0] = static_cast<unsigned long long>(value);
}
#endif

/// Opens a file for reading if it lies below one of `folders` (without links and dots, with a slash behind);
/// otherwise gives the error number.
[[nodiscard]] inline std::uint8_t open_below(const std::vector<std::string>& folders, const char* path,
                                             FileDescriptor& file) {
  std::array<char, PATH_MAX> real{};
  struct stat facts{};
  if (::realpath(path, real.data()) == nullptr) return static_cast<std::uint8_t>(errno);
  if (std::none_of(folders.begin(), folders.end(), [&](const std::string& folder) {
        return std::string_view(real.data()).starts_with(folder);
      }))
    return EACCES;
  file.reset(::open(real.data(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return static_cast<std::uint8_t>(errno);
  return ::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) ? 0 : EACCES;
}

/// Opens what is asked for on `socket` as `open_below` does, until the other end is closed.
inline void serve(int socket, const std::vector<std::string>& folders) {
  std::array<char, longest_path> path{};
  pollfd watched{socket, POLLIN, 0};
  while (::poll(&watched, 1, -1) >= 0 || errno == EINTR) {
    const auto packet = receive_packet(socket, path.data(), path.size() - 1);
    if (packet.size == 0 || (packet.size < 0 && errno != EAGAIN)) return;
    if (packet.size < 0) continue;
    path[static_cast<std::size_t>(packet.size)] = '\0';
    FileDescriptor file;
    const auto error = open_below(folders, path.data(), file);
    const std::string_view word(reinterpret_cast<const char*>(&error), 1);
    const bool sent = error == 0 ? send_packet(socket, word, {file.get()}) : send_packet(socket, word);
    if (!sent) return;
  }
}

/// Where a process behind the broker finds it.
inline constexpr int asking_descriptor = 4;

/// Asks for a file: its descriptor, or an error number below 0. What it wants to write anew is a file in
/// memory, under no name.
[[nodiscard]] inline long ask(const char* path, long flags) {
  if ((flags & (O_CREAT | O_TRUNC)) == (O_CREAT | O_TRUNC)) return ::memfd_create("written", MFD_CLOEXEC);
  if ((flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_DIRECTORY)) != O_RDONLY) return -EACCES;
  // Nothing lies where it runs.
  if (path == nullptr || path[0] != '/') return -ENOENT;
  const auto size = ::strnlen(path, longest_path);
  if (size >= longest_path) return -ENAMETOOLONG;
  // Several threads take turns.
  static std::atomic_flag busy = ATOMIC_FLAG_INIT;
  while (busy.test_and_set(std::memory_order_acquire)) (void)::syscall(SYS_sched_yield);
  long result = -EACCES;
  std::uint8_t error = EACCES;
  pollfd watched{asking_descriptor, POLLIN, 0};
  if (send_packet(asking_descriptor, {path, size})) {
    while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    auto packet = receive_packet(asking_descriptor, reinterpret_cast<char*>(&error), 1);
    if (packet.size == 1 && !packet.descriptors.empty())
      result = packet.descriptors.front().release();
    else if (packet.size == 1)
      result = -static_cast<long>(error);
  }
  busy.clear(std::memory_order_release);
  return result;
}

/// Stands in for the system call that was stopped.
inline void on_stopped_call(int, siginfo_t* info, void* given) {
  const int saved = errno;
  auto& context = *static_cast<ucontext_t*>(given);
  const auto word = [&](int number) { return static_cast<long>(argument(context, number)); };
  const auto path = [&](int number) {
    const char* text = nullptr;
    const auto address = argument(context, number);
    std::memcpy(static_cast<void*>(&text), &address, sizeof text);
    return text;
  };
#ifdef SYS_open
  if (info->si_syscall == SYS_open)
    answer(context, ask(path(0), word(1)));
  else
#endif
    answer(context, info->si_syscall == SYS_openat ? ask(path(1), word(2)) : -EACCES);
  errno = saved;
}

/// Has `SYS_open` and `SYS_openat` stopped, and refuses whatever else opens, mounts, starts or reaches into
/// other processes.
[[nodiscard]] inline bool forbid_opening() {
  std::vector<sock_filter> program;
  const auto add = [&](int code, std::uint32_t value, int yes = 0, int no = 0) {
    program.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(yes),
                       static_cast<std::uint8_t>(no), value});
  };
  const auto on = [&](long call, std::uint32_t action) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, action);
  };
  constexpr std::uint32_t refuse = SECCOMP_RET_ERRNO | EACCES;
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
  add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  // The numbers of x32.
  add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000U, 0, 1);
  add(BPF_RET | BPF_K, refuse);
  on(SYS_open, SECCOMP_RET_TRAP);
  on(SYS_creat, refuse);
#endif
  on(SYS_openat, SECCOMP_RET_TRAP);
  constexpr long openat2 = 437;
  constexpr long io_uring_setup = 425;
  constexpr long open_tree = 428;
  for (const long call :
       {openat2, io_uring_setup, open_tree, long{SYS_open_by_handle_at}, long{SYS_execve}, long{SYS_execveat},
        long{SYS_mount}, long{SYS_chroot}, long{SYS_ptrace}, long{SYS_process_vm_readv},
        long{SYS_process_vm_writev}, long{SYS_socket}, long{SYS_connect}, long{SYS_unlinkat},
        long{SYS_renameat2}, long{SYS_linkat}, long{SYS_symlinkat}})
    on(call, refuse);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

} // namespace open_broker

/// From now on this process, which must have one thread, reads files below `folders` and opens nothing else;
/// a file that it makes is one of its own memory, which nobody finds. Takes the handler of SIGSYS and
/// descriptor 4, and forks: the other process ends with this one. False if the system does not let it.
[[nodiscard]] inline bool open_by_broker(const std::vector<std::string>& folders) {
  std::vector<std::string> real_folders;
  for (const auto& folder : folders)
    if (std::array<char, PATH_MAX> real{}; ::realpath(folder.c_str(), real.data()) != nullptr)
      real_folders.push_back(std::string(real.data()) + '/');
  auto [asking, serving] = packet_pair();
  if (!asking) return false;
  const pid_t asker = ::getpid();
  const pid_t broker = ::fork();
  if (broker < 0) return false;
  if (broker == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != asker) ::_exit(0);
    asking.reset();
    open_broker::serve(serving.get(), real_folders);
    ::_exit(0);
  }
  serving.reset();
  if (asking.get() != open_broker::asking_descriptor &&
      ::dup3(asking.get(), open_broker::asking_descriptor, O_CLOEXEC) < 0)
    return false;
  if (asking.get() == open_broker::asking_descriptor) (void)asking.release();
  struct sigaction action{};
  action.sa_sigaction = open_broker::on_stopped_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
  return ::sigaction(SIGSYS, &action, nullptr) == 0 && open_broker::forbid_opening();
}

} // namespace mtmc::detail
