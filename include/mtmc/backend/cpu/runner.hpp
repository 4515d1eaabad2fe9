#pragma once
/// The judge's side of a runner: the process that loads one program and is forked for each of its calls.

#include <mtmc/backend/cpu/process_settings.hpp>
#include <mtmc/backend/cpu/runner_protocol.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What every runner of one backend is started with.
struct RunnerSetup {
  std::string executable;
  std::vector<std::string> environment;
  /// Bytes of its own memory the process may use, and of address space in all.
  std::uint64_t memory_limit = 0;
  std::uint64_t address_space_limit = 0;
  /// See `CpuDefences`.
  bool sandbox = true;
  bool process_namespace = true;
  bool freeze = true;
};

/// One argument of a call as the runner gets it: a value's bits, or a place in a mapped buffer.
struct RunnerArgument {
  std::uint64_t kind = runner_protocol::argument_value;
  std::uint64_t value = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0; ///< of a buffer that is filled with zeros

  friend bool operator==(const RunnerArgument&, const RunnerArgument&) = default;
};
/// One call of one trampoline.
struct RunnerLaunch {
  std::uint64_t trampoline = 0;
  std::vector<RunnerArgument> arguments;

  friend bool operator==(const RunnerLaunch&, const RunnerLaunch&) = default;
};

/// What a runner answered, or how it failed to.
struct RunnerReply {
  RunStatus status{};
  /// False if the runner could not do what it was asked; it still answers further questions.
  bool accepted = true;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::string text{};
};

/// A live runner. It loads a program and runs none of it: every call, or group of calls timed together, is
/// made by a fresh fork, the caller, which is killed as soon as it has answered. So nothing that a call
/// leaves behind in its process, wherever that may be, is met by another one. Both process groups, the
/// runner's and the caller's, are stopped (SIGSTOP) whenever no command to them is in flight: a candidate's
/// code runs only while the judge waits for it, so threads it leaves behind cannot finish a call late. One
/// thread at a time.
class Runner {
public:
  using Clock = std::chrono::steady_clock;

  /// Starts the process. Throws `Error` (`mtmc.backend.003`) if that is impossible.
  explicit Runner(const RunnerSetup& setup);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() { end(); }

  /// Whether programs run in a process namespace of their own, where no other process has a number.
  [[nodiscard]] bool alone() const noexcept { return alone_; }
  /// Why they do not, as the system says it.
  [[nodiscard]] const std::string& why_not_alone() const noexcept { return why_not_alone_; }

  /// Gives the process's threads the processors, priorities and limits back that others took from them. False
  /// if this process may not: another runner is then needed.
  [[nodiscard]] bool restore_settings() const { return settings_->restore(); }

  /// Maps, in the runner, those of `buffers` it has not mapped yet, and unmaps those that are gone.
  [[nodiscard]] RunnerReply map(const std::map<std::uint64_t, std::shared_ptr<const SharedMemory>>& buffers,
                                Deadline deadline);

  /// Loads the program, a shared object with that many trampolines.
  [[nodiscard]] RunnerReply load(const std::string& path, std::size_t trampolines, Deadline deadline);

  /// Says which calls the next callers make.
  [[nodiscard]] RunnerReply prepare(std::span<const RunnerLaunch> launches, Deadline deadline);

  /// Has the calls of a program without threads take place on one processor; negative = on any that this
  /// process may use. Programs with threads stay where these are bound, and so does one that has not been
  /// called yet, since it may be about to start them.
  void keep_to(int processor);

  /// Forks the caller that the next `go` is for, with all pages of the prepared calls' buffers in its page
  /// table and, if an earlier call had threads, with OpenMP's team of them waiting. Throws `Error`
  /// (`mtmc.backend.003`) if the system gives no further process.
  [[nodiscard]] RunnerReply begin(Deadline deadline);

  /// Has the caller make the prepared calls, each after a look whether its values fit their parameters'
  /// types, and measures, with the judge's clock, the seconds from just before it learns of it to just after
  /// its answer is there. The caller is gone afterwards, unless it is to stay for the same calls once more.
  [[nodiscard]] RunnerReply go(Deadline deadline, double& seconds, bool stay = false);

  /// Whether there is a caller for the next `go`.
  [[nodiscard]] bool has_caller() const noexcept { return caller_ > 0; }

  /// Processor time that all threads of the runner and of its callers have used so far. Nothing where the
  /// system does not tell.
  [[nodiscard]] std::optional<double> cpu_seconds() const noexcept;

private:
  static ChildProcess start(const RunnerSetup& setup, FileDescriptor& socket, FileDescriptor& lifeline);

  /// What the runner says when it is ready.
  [[nodiscard]] RunnerReply greet();

  [[noreturn]] static void cannot_start(const std::string& reason);
  [[noreturn]] static void cannot_fork(const std::string& reason);

  [[nodiscard]] static RunnerReply failure(RunOutcome outcome, std::string message);

  // Asks the runner itself.
  [[nodiscard]] RunnerReply ask(std::uint64_t command, std::span<const std::uint64_t> payload,
                                Deadline deadline, int descriptor = -1);

  /// About one buffer, to be mapped (with its descriptor) or unmapped.
  struct ShortQuestion {
    std::uint64_t mapping = 0;
    std::uint64_t bytes = 0;
    int descriptor = -1;
  };
  // The same for many questions, with all processes woken and stopped once for dozens of them. The first
  // answer that is not as it should be, or the last one.
  [[nodiscard]] RunnerReply ask_all(std::uint64_t command, std::span<const ShortQuestion> questions,
                                    Deadline deadline);

  // Sends one question, lets the processes run, waits for the answer on `answers` and stops them again.
  // `passed` goes with the question, and is closed here, so that its end is seen.
  [[nodiscard]] RunnerReply converse(const FileDescriptor& questions, const FileDescriptor& answers,
                                     std::uint64_t command, std::span<const std::uint64_t> payload,
                                     Deadline deadline, int descriptor, FileDescriptor passed = {});

  // Nobody speaks unasked; and an answer given in advance would shorten the time that is measured.
  [[nodiscard]] static bool spoke_unasked(const FileDescriptor& answers);
  static constexpr const char* spoken_for = "the kernel wrote to its process's connection with the judge";

  // Lets the processes run, waits for the answers to the last `count` questions and stops them again.
  [[nodiscard]] RunnerReply hear(const FileDescriptor& questions, const FileDescriptor& answers,
                                 Deadline deadline, std::size_t count);

  [[nodiscard]] bool send_question(int socket, std::uint64_t command, std::span<const std::uint64_t> payload,
                                   int descriptor);
  [[nodiscard]] ssize_t receive_answer(int socket,
                                       std::array<std::uint64_t, runner_protocol::largest_reply>& words);

  // True as soon as there is an answer or the process has ended, false at the deadline.
  [[nodiscard]] bool wait_for_answer(const FileDescriptor& answers, Deadline deadline);

  /// Ends the caller, if there is one, and waits until it is gone. It is stopped, and does not run again.
  void end_caller() noexcept;
  // The caller is gone, or it speaks no more.
  [[nodiscard]] RunnerReply fault_of_caller();

  /// Ends the process. Where another one watches over it, that one is let do so and end by itself, or what is
  /// left of both would be for the system's first process to clear away.
  void end() noexcept;
  [[nodiscard]] bool watched_over() const noexcept;

  // The runner is gone, or it speaks no more.
  [[nodiscard]] RunnerReply fault();

  /// How the process ended, if it does within `patience`.
  [[nodiscard]] std::optional<ProcessExit> wait_for_end(std::chrono::milliseconds patience);

  [[nodiscard]] static RunnerReply
  read_reply(const std::array<std::uint64_t, runner_protocol::largest_reply>& words, std::size_t size,
             std::uint64_t sequence);

  // Outlives the process, as all that stands before it does.
  std::vector<std::shared_ptr<const void>> shown_;
  FileDescriptor socket_;
  // Closes when this process ends in whatever way, which kills the runner's whole group.
  FileDescriptor lifeline_;
  ChildProcess child_;
  /// The process in which programs run: the child, or one that the child watches over.
  pid_t program_ = -1;
  FileDescriptor program_end_;
  bool alone_ = false;
  std::string why_not_alone_;
  std::optional<ProcessSettings> settings_;
  bool freeze_ = true;
  /// The connection with the present caller, its number as this process knows it, and its end.
  FileDescriptor channel_;
  pid_t caller_ = -1;
  FileDescriptor caller_end_;
  /// Processor time of callers that are gone; nothing once that of one was not told.
  std::optional<double> callers_seconds_ = 0;
  /// Threads of the last caller when it answered; 0 before the first one did.
  std::size_t threads_ = 0;
  std::vector<std::uint64_t> question_;
  std::uint64_t sequence_ = 0;
  int kept_to_ = -1;
  Clock::time_point asked_{};
  Clock::time_point answered_{};
  std::map<std::uint64_t, std::weak_ptr<const SharedMemory>> mapped_;
};

/// What stands between a runner's process and all others, for the environment record. `why_not_alone`: why
/// there is no process namespace; empty if there is one.
[[nodiscard]] std::string describe_isolation(const RunnerSetup& setup, const std::string& why_not_alone);

/// Why the system gives runners no process namespace; empty if it does. Tried in a fork of this process, as a
/// runner does it (`leave_other_processes`).
[[nodiscard]] std::string why_no_process_namespace();

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cpu/runner_inl.hpp>
#endif
