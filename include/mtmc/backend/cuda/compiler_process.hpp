#pragma once
/// NVRTC in a process of its own, which forks for every text: the backend's side.

#include <mtmc/backend/cuda/compiler_protocol.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/spawn.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a compiler process is started with.
struct CompilerProcessSetup {
  /// A program that plays `cuda_compiler_role`, and its arguments before the role's own.
  std::vector<std::string> command;
  /// As `Nvrtc` takes them.
  std::string library{};
  std::string toolkit{};
  int driver_version = 0;
  /// Where its folder is made.
  std::string temporary_folder = "/tmp";
  /// Most compilations at once; further ones wait.
  int parallel = 4;
};

/// The compiler, in a process that is started when this object is made and again whenever it is lost. What a
/// text does to the compiler costs that one compilation. May be used from several threads.
class CompilerProcess {
public:
  /// Throws `Error` (`mtmc.backend.001`) where the process cannot be started or finds no compiler.
  explicit CompilerProcess(CompilerProcessSetup setup);

  /// "NVRTC 13.0".
  [[nodiscard]] const std::string& version() const noexcept { return version_; }

  /// As `Nvrtc::compile`, but never longer than a moment past the deadline or a stop request, whatever the
  /// text does. Throws `Error` (`mtmc.backend.001`) where the process is not available any more.
  [[nodiscard]] NvrtcResult compile(const NvrtcRequest& request);

private:
  using Clock = std::chrono::steady_clock;

  /// One started process.
  struct Process {
    explicit Process(const CompilerProcessSetup& setup);

    [[nodiscard]] ChildProcess start(const CompilerProcessSetup& setup);

    [[nodiscard]] std::string greet(const CompilerProcessSetup& setup);

    [[noreturn]] static void cannot_start(const std::string& reason);

    /// What the loader needs to find the libraries of this program and of the toolkit, and nothing else.
    [[nodiscard]] static std::vector<std::string> loader_environment();

    TemporaryFolder folder;
    FileDescriptor socket;
    ChildProcess child;
    std::string version;
    /// Questions in a row that had no answer in time: it is busy with a header, or hangs.
    std::atomic<int> silences{0};
  };

  /// One of the compilations that may be under way at once; not taken if the request is over first.
  struct Turn {
    Turn(CompilerProcess& of, const NvrtcRequest& request);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

    CompilerProcess& owner;
    bool taken = false;
  };

  [[nodiscard]] static bool over(const NvrtcRequest& request);

  [[nodiscard]] std::shared_ptr<Process> running_process();
  void lose(const std::shared_ptr<Process>& process);

  /// Nothing if the process is gone.
  [[nodiscard]] static std::optional<NvrtcResult> ask(Process& process, const NvrtcRequest& request,
                                                      const StopSignal& stop);

  [[nodiscard]] static NvrtcResult result_of(const NvrtcRequest& request, const CompilerEnd& end, int answer);

  CompilerProcessSetup setup_;
  std::string version_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  /// Compilations that may yet begin.
  int free_;
  std::shared_ptr<Process> current_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cuda/compiler_process_inl.hpp>
#endif
