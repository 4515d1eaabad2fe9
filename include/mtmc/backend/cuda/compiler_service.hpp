#pragma once
/// The inside of a compiler process: it loads NVRTC once and forks for every text.
///
/// A candidate's text meets a compiler that no other text has touched, with all that is costly (the library,
/// its tables, precompiled headers of the toolkit) already there. What it does to that compiler, crash, hang,
/// eat memory, ends with the forked process, which may open headers of the toolkit and nothing else. This
/// process itself compiles nothing of a candidate's.

#include <mtmc/backend/cuda/compiler_protocol.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/backend/cuda/precompiled_headers.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/open_broker.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/packet_socket.hpp>
#include <mtmc/support/process/process_exit.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <new>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One conversation with a backend, on one socket.
class CompilerService {
public:
  /// `folder`: where precompiled headers go.
  CompilerService(int socket, std::string folder)
      : socket_(socket), folder_(std::move(folder)), scratch_(folder_ + "/scratch") {}

  /// Serves until the other end is closed.
  void run(const std::string& library, const std::string& toolkit, int driver_version) {
    // Where the compiler puts a file while it reads precompiled headers.
    (void)::mkdir(scratch_.c_str(), S_IRWXU);
    (void)::setenv("TMPDIR", scratch_.c_str(), 1);
    try {
      compiler_ = std::make_unique<Nvrtc>(library, toolkit, driver_version);
      headers_ = std::make_unique<PrecompiledHeaders>(*compiler_, folder_);
    } catch (const Error& error) {
      (void)send_packet(socket_, to_bytes(CompilerGreeting{{}, error}));
      return;
    }
    if (!send_packet(socket_, to_bytes(CompilerGreeting{compiler_->version(), {}}))) return;
    compiler_->warm_up();
    while (serve()) {
    }
    for (auto& running : running_) end(running, false);
  }

private:
  using Clock = std::chrono::steady_clock;

  /// A compilation under way.
  struct Running {
    pid_t pid = -1;
    /// Readable when it has ended; -1 where the system has no such descriptors.
    FileDescriptor exit{};
    /// Where its end is told; closed by the other side when nobody wants to know.
    FileDescriptor status{};
    FileDescriptor error_output{};
    Clock::time_point until{};
  };

  /// Waits for the next thing to happen. False at the end of the conversation.
  [[nodiscard]] bool serve() {
    auto until = Clock::time_point::max();
    int longest = INT_MAX;
    for (const auto& running : running_) {
      until = std::min(until, running.until);
      if (!running.exit) longest = ChildProcess::blind_interval;
    }
    return !look(poll_timeout(until, longest)) || take_request();
  }

  /// Waits so many milliseconds, and ends what has ended, is late or is not wanted any more. Whether there is
  /// a request, or the end of the conversation.
  bool look(int timeout) {
    std::vector<pollfd> watched{{socket_, POLLIN, 0}};
    for (const auto& running : running_) {
      watched.push_back({running.exit.get(), POLLIN, 0});
      watched.push_back({running.status.get(), 0, 0});
    }
    // Interrupted, it has seen nothing.
    if (::poll(watched.data(), watched.size(), timeout) < 0)
      for (auto& one : watched) one.revents = 0;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      auto& running = running_[i];
      const bool unwanted = watched[2 + 2 * i].revents != 0;
      const bool late = Clock::now() >= running.until;
      if (unwanted || late || has_ended(running.pid)) end(running, late);
    }
    std::erase_if(running_, [](const Running& running) { return running.pid < 0; });
    return watched[0].revents != 0;
  }

  [[nodiscard]] bool take_request() {
    char nothing = 0;
    auto packet = receive_packet(socket_, &nothing, 1);
    if (packet.size < 0) return errno == EAGAIN;
    if (packet.size == 0) return false;
    if (packet.descriptors.size() == 3)
      start(packet.descriptors[0].get(), packet.descriptors[1].get(), std::move(packet.descriptors[2]));
    return true;
  }

  void start(int request_file, int result_file, FileDescriptor status) {
    NvrtcRequest request;
    try {
      request = read_request(content_of(request_file));
      headers_->make(request, [this] { (void)look(0); });
      headers_->apply(request);
    } catch (const std::exception&) {
      return; // Closing the socket without a word says that the request was not understood.
    }
    Running running;
    running.status = std::move(status);
    running.error_output.reset(::memfd_create("compiler-errors", MFD_CLOEXEC));
    running.until = later_by(compiler_grace, request.deadline);
    const pid_t parent = ::getpid();
    running.pid = ::fork();
    if (running.pid == 0) compile(request, result_file, running.error_output.get(), parent);
    if (running.pid < 0) return;
    running.exit = exit_descriptor_of(running.pid);
    running_.push_back(std::move(running));
  }

  /// The whole life of the forked process.
  [[noreturn]] void compile(const NvrtcRequest& request, int result_file, int error_output,
                            pid_t parent) const {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    constexpr int result_number = 3;
    const int result = ::fcntl(result_file, F_DUPFD, 16);
    const int log = ::fcntl(error_output, F_DUPFD, 16);
    const FileDescriptor nothing{::open("/dev/null", O_RDWR)};
    (void)::dup2(nothing.get(), 0);
    (void)::dup2(nothing.get(), 1);
    (void)::dup2(log, 2);
    (void)::dup2(result, result_number);
    (void)::syscall(SYS_close_range, result_number + 1, ~0U, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, largest_compiler_result);
    if (request.memory_bytes > 0)
      limit(RLIMIT_AS, address_space() + static_cast<std::uint64_t>(request.memory_bytes));
    std::string bytes;
    try {
      try {
        confine(request);
        bytes = to_bytes(compiler_->compile(request));
      } catch (const Error& error) {
        bytes = to_bytes(error);
      }
    } catch (const std::bad_alloc&) {
      ::_exit(compiler_exit_out_of_memory);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(write_all(result_number, bytes) == 0 ? 0 : 1);
  }

  /// Leaves this process the headers, those that were precompiled, and a place for what it writes. Throws
  /// `Error` (`mtmc.backend.001`) if the system has no way to do so.
  void confine(const NvrtcRequest& request) const {
    auto readable = include_folders(request.options);
    readable.push_back(folder_);
    if (request.landlock && landlock_version() > 0) {
      const FileFence fence({.read = readable, .write = {scratch_}});
      if (fence.usable() && fence.enter()) return;
    }
    if (!open_by_broker(readable))
      throw Error(error_id::backend_compiler,
                  "the compiler cannot be kept from the files of this machine: " +
                      std::generic_category().message(errno),
                  "Allow its process Landlock or seccomp, as systems and containers do by default");
  }

  /// Only downwards: a worker's limit is one for what it starts, too.
  static void limit(__rlimit_resource resource, std::uint64_t value) {
    rlimit given{};
    if (::getrlimit(resource, &given) == 0) value = std::min<std::uint64_t>(value, given.rlim_cur);
    (void)limit_process(0, resource, value);
  }

  /// Bytes this process has mapped already, most of them the compiler's own.
  [[nodiscard]] static std::uint64_t address_space() {
    const FileDescriptor file{::open("/proc/self/statm", O_RDONLY)};
    std::array<char, 128> text{};
    std::uint64_t pages = 0;
    if (file && ::read(file.get(), text.data(), text.size() - 1) > 0)
      (void)std::from_chars(text.data(), text.data() + text.size(), pages);
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

  /// Kills it if it has not ended, and tells how it ended whoever still wants to know.
  static void end(Running& running, bool late) {
    CompilerEnd told;
    told.timed_out = late && !has_ended(running.pid);
    ::kill(running.pid, SIGKILL);
    told.exit = reap_child(running.pid, 0);
    running.pid = -1;
    constexpr std::size_t max_error_output = 512;
    told.error_output = content_of(running.error_output.get());
    if (told.error_output.size() > max_error_output)
      told.error_output.erase(0, told.error_output.size() - max_error_output);
    (void)send_packet(running.status.get(), to_bytes(told));
  }

  int socket_;
  std::string folder_;
  std::string scratch_;
  std::unique_ptr<Nvrtc> compiler_;
  std::unique_ptr<PrecompiledHeaders> headers_;
  std::vector<Running> running_;
};

/// How a program becomes a compiler process.
[[nodiscard]] inline ProgramRole cuda_compiler_role() {
  return {std::string(cuda_compiler_argument), [](const std::vector<std::string>& arguments) {
            if (arguments.size() != 4) {
              std::fprintf(stderr, "%s is how mtmc's CUDA backend starts its compiler process\n",
                           std::string(cuda_compiler_argument).c_str());
              return 2;
            }
            CompilerService service(STDIN_FILENO, arguments[3]);
            service.run(arguments[0], arguments[1], std::atoi(arguments[2].c_str())); // NOLINT(cert-err34-c)
            return 0;
          }};
}

} // namespace mtmc::detail
