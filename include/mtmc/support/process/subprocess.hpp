#pragma once

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>

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

namespace mtmc::inline MTMC_ABI {

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
  /// How it ended.
  ProcessStatus status = ProcessStatus::failed_to_start;
  /// The exit code (`exited`) or the signal (`signalled`); 0 otherwise.
  int code = 0;
  /// What it wrote to its standard output.
  std::string output;
  /// What it wrote to its standard error.
  std::string error;
  /// Whether more than `output_limit` bytes came on that stream.
  bool output_truncated = false;
  /// The same of the standard error.
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
[[nodiscard]] FileDescriptor memory_file(const std::string& text);

/// The reading end of a child's output stream.
class OutputStream {
public:
  OutputStream(std::string& text, bool& truncated, std::size_t limit)
      : text_{text}, truncated_{truncated}, limit_{limit} {}

  /// Opens the pipe; false, with errno set, if that fails.
  [[nodiscard]] bool open() noexcept;
  [[nodiscard]] int writing_end() const noexcept { return writing_.get(); }
  void close_writing_end() noexcept { writing_.reset(); }
  /// -1, which poll() ignores, once the stream has ended.
  [[nodiscard]] int reading_end() const noexcept { return reading_.get(); }

  /// Takes what is there, up to one buffer. False if there was nothing.
  bool take();

  /// Takes what the pipe holds and not more: a process that escaped may go on writing for ever.
  void take_rest();

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
  explicit StopSignal(const std::stop_token& stop);
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

private:
  struct Raise {
    int event;
    void operator()() const noexcept;
  };
  FileDescriptor event_;
  std::stop_callback<Raise> callback_;
};

[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

} // namespace detail

/// Runs a program to its end, at most until its deadline or a stop request, and gives back what it wrote.
///
/// It runs in a process group of its own that is killed as a whole when the program ends or is ended: nothing
/// is left behind, and a grandchild that keeps the streams open delays nothing (see ChildProcess for what can
/// escape). Its signals are at their defaults, and of the files of this process it sees none. Failure to
/// start, crashes and timeouts are values, never exceptions; only std::bad_alloc can be thrown. May be called
/// from several threads.
[[nodiscard]] ProcessResult run_process(const ProcessOptions& options);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/support/process/subprocess_inl.hpp>
#endif
