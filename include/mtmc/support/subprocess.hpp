#pragma once

#include <mtmc/support/child_process.hpp>
#include <mtmc/support/file_descriptor.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <stop_token>
#include <string>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc {

/// A program to run to its end, with what it reads and the limits it must keep.
struct ProcessOptions {
  /// The program and its arguments, handed over as they are: no shell is involved. A program name without '/'
  /// is looked up in the PATH of this process; a relative path with '/' is relative to `working_folder`.
  std::vector<std::string> arguments{};
  /// Where it runs; empty: where this process runs.
  std::string working_folder{};
  /// Its whole environment as "NAME=value"; nothing: that of this process.
  std::optional<std::vector<std::string>> environment{};
  /// Entries "NAME=value" added to the environment, in place of entries of the same name.
  std::vector<std::string> extra_environment{};
  /// What it finds on its standard input. It need not read it.
  std::string input{};
  /// Wall-clock time after which it is killed; milliseconds::max(): never.
  std::chrono::milliseconds deadline{60'000};
  /// Most bytes kept of each of standard output and standard error. What comes after is read, dropped and
  /// flagged.
  std::size_t output_limit = std::size_t{1} << 20;
  /// Most bytes of address space for it and, each for itself, its descendants; 0: no limit. See ChildOptions.
  std::uint64_t memory_limit = 0;
  /// As in ChildOptions.
  const FileFence* fence = nullptr;
  /// When stop is requested it is killed.
  std::stop_token stop{};
};

/// How a run ended. `lost`: it ended, but its exit status went to somebody else; see ProcessExit.
enum class ProcessStatus { exited, signalled, timed_out, cancelled, failed_to_start, lost };

/// What a run gave.
struct ProcessResult {
  ProcessStatus status = ProcessStatus::failed_to_start;
  /// The exit code (`exited`) or the signal (`signalled`); 0 otherwise.
  int code = 0;
  std::string output;
  std::string error;
  /// Whether more than `output_limit` bytes came on that stream.
  bool output_truncated = false;
  bool error_truncated = false;
  /// Wall-clock time from before the start to after the end.
  double seconds = 0;
  /// As in ProcessExit.
  double cpu_seconds = 0;
  /// As in ProcessExit: bytes, 0 if not known.
  std::uint64_t peak_memory = 0;
  /// One sentence about what went wrong and, where that is known, what to do. Empty after exit code 0.
  std::string message;

  /// Whether it ended by itself with exit code 0.
  [[nodiscard]] bool succeeded() const noexcept { return status == ProcessStatus::exited && code == 0; }
};

namespace detail {

/// A file without a name that holds `text`, to be read from its start. Better than a pipe as standard input:
/// nobody has to feed it while the child runs, and a child that does not read causes no SIGPIPE.
[[nodiscard]] inline FileDescriptor memory_file(const std::string& text) {
  FileDescriptor file{::memfd_create("standard-input", MFD_CLOEXEC)};
  for (std::size_t at = 0; file && at < text.size();) {
    const ssize_t written = ::pwrite(file.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (written > 0)
      at += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      return FileDescriptor{};
  }
  return file;
}

/// The reading end of a child's output stream.
class OutputStream {
public:
  OutputStream(std::string& text, bool& truncated, std::size_t limit)
      : text_{text}, truncated_{truncated}, limit_{limit} {}

  /// Opens the pipe; false, with errno set, if that fails.
  [[nodiscard]] bool open() noexcept {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
    return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
  [[nodiscard]] int writing_end() const noexcept { return writing_.get(); }
  void close_writing_end() noexcept { writing_.reset(); }
  /// -1, which poll() ignores, once the stream has ended.
  [[nodiscard]] int reading_end() const noexcept { return reading_.get(); }

  /// Takes what is there, up to one buffer. False if there was nothing.
  bool take() {
    std::array<char, 16384> buffer;
    const ssize_t got = reading_ ? ::read(reading_.get(), buffer.data(), buffer.size()) : 0;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) reading_.reset();
    if (got <= 0) return false;
    const auto size = static_cast<std::size_t>(got);
    const std::size_t space = limit_ - text_.size();
    text_.append(buffer.data(), size < space ? size : space);
    if (size > space) truncated_ = true;
    return true;
  }

  /// Takes what the pipe holds and not more: a process that escaped may go on writing for ever.
  void take_rest() {
    const int capacity = reading_ ? ::fcntl(reading_.get(), F_GETPIPE_SZ) : 0;
    for (int taken = 0; taken <= capacity; taken += 4096)
      if (!take()) break;
  }

private:
  std::string& text_;
  bool& truncated_;
  std::size_t limit_;
  FileDescriptor reading_;
  FileDescriptor writing_;
};

/// Lets poll() notice a stop request: a descriptor that becomes readable with it.
class StopSignal {
public:
  explicit StopSignal(const std::stop_token& stop)
      : event_{stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1},
        callback_{stop, Raise{event_.get()}} {}
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

private:
  struct Raise {
    int event;
    void operator()() const noexcept {
      if (event >= 0) ::eventfd_write(event, 1);
    }
  };
  FileDescriptor event_;
  std::stop_callback<Raise> callback_;
};

[[nodiscard]] inline std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count % 1000 == 0) return std::to_string(count / 1000) + " s";
  return std::to_string(count) + " ms";
}

} // namespace detail

/// Runs a program to its end, at most until its deadline or a stop request, and gives back what it wrote.
///
/// It runs in a process group of its own that is killed as a whole when the program ends or is ended: nothing
/// is left behind, and a grandchild that keeps the streams open delays nothing (see ChildProcess for what can
/// escape). Its signals are at their defaults, and of the files of this process it sees none. Failure to
/// start, crashes and timeouts are values, never exceptions; only std::bad_alloc can be thrown. May be called
/// from several threads.
[[nodiscard]] inline ProcessResult run_process(const ProcessOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto deadline = detail::time_after(options.deadline);
  const std::string command = options.arguments.empty() ? std::string{} : options.arguments.front();
  ProcessResult result;
  if (options.stop.stop_requested()) {
    result.status = ProcessStatus::cancelled;
    result.message = command + " was not started: stop was requested before";
    return result;
  }

  ChildOptions child_options{.arguments = options.arguments,
                             .working_folder = options.working_folder,
                             .environment = options.environment,
                             .extra_environment = options.extra_environment,
                             .descriptors = {},
                             .memory_limit = options.memory_limit,
                             .fence = options.fence};
  detail::OutputStream output{result.output, result.output_truncated, options.output_limit};
  detail::OutputStream error{result.error, result.error_truncated, options.output_limit};
  const detail::StopSignal stop_signal{options.stop};
  std::optional<ChildProcess> child;
  try {
    FileDescriptor input;
    if (!options.arguments.empty()) {
      if (!options.input.empty() && !(input = detail::memory_file(options.input)))
        detail::throw_start_failure(child_options, errno);
      if (!output.open() || !error.open()) detail::throw_start_failure(child_options, errno);
    }
    child_options.descriptors = {{output.writing_end(), 1}, {error.writing_end(), 2}};
    if (input) child_options.descriptors.push_back({input.get(), 0});
    child.emplace(child_options);
  } catch (const ProcessStartError& failure) {
    result.message = failure.what();
    return result;
  }
  output.close_writing_end();
  error.close_writing_end();

  std::optional<ProcessStatus> ended_by_us;
  while (child->alive()) {
    if (options.stop.stop_requested()) {
      ended_by_us = ProcessStatus::cancelled;
      break;
    }
    int timeout = detail::poll_timeout(deadline);
    if (timeout == 0) {
      ended_by_us = ProcessStatus::timed_out;
      break;
    }
    // Without a descriptor for the end or for the stop request, look now and then.
    const bool blind =
        child->exit_descriptor() < 0 || (options.stop.stop_possible() && stop_signal.descriptor() < 0);
    if (blind && timeout > ChildProcess::blind_interval) timeout = ChildProcess::blind_interval;
    std::array<pollfd, 4> watched{{{output.reading_end(), POLLIN, 0},
                                   {error.reading_end(), POLLIN, 0},
                                   {child->exit_descriptor(), POLLIN, 0},
                                   {stop_signal.descriptor(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), timeout) <= 0) continue;
    if (watched[0].revents != 0) output.take();
    if (watched[1].revents != 0) error.take();
  }

  child->kill_group();
  const std::optional<ProcessExit> exit = child->wait(std::chrono::seconds{5});
  output.take_rest();
  error.take_rest();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (exit) {
    result.cpu_seconds = exit->cpu_seconds;
    result.peak_memory = exit->peak_memory;
  }

  if (ended_by_us) {
    result.status = *ended_by_us;
    result.message = *ended_by_us == ProcessStatus::cancelled
                         ? command + " was killed because stop was requested"
                         : command + " did not end within " + detail::duration_text(options.deadline) +
                               " and was killed; allow more time or give it less to do";
    if (!exit) result.message += "; it has not died yet, perhaps because it waits for a driver or a disk";
  } else if (exit && exit->kind == ProcessExit::Kind::exited) {
    result.status = ProcessStatus::exited;
    result.code = exit->code;
    if (exit->code != 0) result.message = command + " " + exit->text();
  } else if (exit && exit->kind == ProcessExit::Kind::signalled) {
    result.status = ProcessStatus::signalled;
    result.code = exit->code;
    result.message = command + " " + exit->text();
    if (exit->code == SIGKILL) result.message += ", perhaps by the system for lack of memory";
  } else {
    result.status = ProcessStatus::lost;
    result.message = command + " " + ProcessExit{}.text();
  }
  return result;
}

} // namespace mtmc
