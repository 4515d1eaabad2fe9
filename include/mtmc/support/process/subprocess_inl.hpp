#pragma once
/// Definitions of support/process/subprocess.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/subprocess.hpp>

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

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE FileDescriptor memory_file(const std::string& text) {
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

MTMC_INLINE bool OutputStream::open() noexcept {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  reading_.reset(ends[0]);
  writing_.reset(ends[1]);
  return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

MTMC_INLINE bool OutputStream::take() {
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

MTMC_INLINE void OutputStream::take_rest() {
  const int capacity = reading_ ? ::fcntl(reading_.get(), F_GETPIPE_SZ) : 0;
  for (int taken = 0; taken <= capacity; taken += 4096)
    if (!take()) break;
}

MTMC_INLINE StopSignal::StopSignal(const std::stop_token& stop)
    : event_{stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1},
      callback_{stop, Raise{event_.get()}} {}

MTMC_INLINE void StopSignal::Raise::operator()() const noexcept {
  if (event >= 0) ::eventfd_write(event, 1);
}

MTMC_INLINE std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count % 1000 == 0) return std::to_string(count / 1000) + " s";
  return std::to_string(count) + " ms";
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ProcessResult run_process(const ProcessOptions& options) {
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
      if (!options.input.empty()) input = detail::memory_file(options.input);
      if (!options.input.empty() && !input) detail::throw_start_failure(child_options, errno);
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
    // Without a descriptor for the end or for the stop request, look now and then.
    const bool blind = options.stop.stop_possible() && stop_signal.descriptor() < 0;
    const int timeout =
        detail::poll_timeout(deadline, blind ? ChildProcess::blind_interval : child->longest_poll());
    if (timeout == 0) {
      ended_by_us = ProcessStatus::timed_out;
      break;
    }
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
