#pragma once
/// The judge's side of a runner: the process in which one program's code runs.

#include <mtmc/backend/cpu/runner_protocol.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/child_process.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/packet_socket.hpp>

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
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::detail {

/// What every runner of one backend is started with.
struct RunnerSetup {
  std::string executable;
  std::vector<std::string> environment;
  /// Bytes of its own memory the process may use, and of address space in all.
  std::uint64_t memory_limit = 0;
  std::uint64_t address_space_limit = 0;
  /// See `CpuLocks`.
  bool sandbox = true;
  bool freeze = true;
};

/// One argument of a call as the runner gets it: a value's bits, or a place in a mapped buffer.
struct RunnerArgument {
  std::uint64_t kind = runner_protocol::argument_value;
  std::uint64_t value = 0;
  std::uint64_t offset = 0;
};
/// One call of one trampoline.
struct RunnerLaunch {
  std::uint64_t trampoline = 0;
  std::vector<RunnerArgument> arguments;
};

/// What a runner answered, or how it failed to.
struct RunnerReply {
  RunStatus status{};
  /// False if the runner could not do what it was asked; it can be asked on.
  bool accepted = true;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::string text{};
};

/// How a runner's end reads to a coder.
[[nodiscard]] inline std::string describe_end(const ProcessExit& exit) {
  if (exit.kind == ProcessExit::Kind::exited)
    return "the kernel ended its process (exit code " + std::to_string(exit.code) +
           "), which a kernel must not do";
  if (exit.kind == ProcessExit::Kind::lost) return "the kernel's process ended for an unknown reason";
  const char* const name = ::sigabbrev_np(exit.code);
  std::string text = "the kernel was killed by SIG" + std::string(name == nullptr ? "?" : name);
  switch (exit.code) {
  case SIGSEGV:
  case SIGBUS:
    return text + ": it used a wild address (an index far out of bounds, a null pointer, or more stack than "
                  "there is)";
  case SIGFPE:
    return text + ": an integer was divided by zero";
  case SIGILL:
    return text +
           ": it ran an instruction this processor does not have, or reached code declared unreachable";
  case SIGABRT:
    return text +
           ": it called abort, threw an exception (std::bad_alloc where memory ran out), or its heap was "
           "found corrupted";
  case SIGSYS:
    return text + ": it made a system call that a kernel must not make (files, processes, sockets, signals, "
                  "clocks and timers are none of its business)";
  case SIGXFSZ:
    return text + ": it wrote to a file, which a kernel must not do";
  case SIGKILL:
    return text + ": it was out of memory, or it killed itself";
  default:
    return text;
  }
}

/// A live runner. Its process group is stopped (SIGSTOP) whenever no command is in flight: a candidate's code
/// runs only while the judge waits for it, so threads it leaves behind can neither prepare the next call nor
/// finish the last one late, nor disturb the timing of another program. One thread at a time.
class Runner {
public:
  using Clock = std::chrono::steady_clock;

  /// Starts the process. Throws `Error` (`mtmc.backend.003`) if that is impossible.
  explicit Runner(const RunnerSetup& setup)
      : child_(start(setup, socket_, lifeline_)), freeze_(setup.freeze) {}

  /// Maps, in the runner, those of `buffers` it has not mapped yet, and unmaps those that are gone.
  [[nodiscard]] RunnerReply map(const std::map<std::uint64_t, std::shared_ptr<const SharedMemory>>& buffers,
                                Deadline deadline) {
    RunnerReply reply;
    std::erase_if(mapped_, [&](const auto& entry) {
      if (!reply.status.finished() || !entry.second.expired()) return false;
      reply = ask(runner_protocol::command_unmap, {{entry.first}}, deadline);
      return true;
    });
    for (const auto& [handle, memory] : buffers) {
      if (!reply.status.finished() || !reply.accepted) break;
      if (mapped_.contains(handle)) continue;
      shown_.push_back(memory->showing());
      const std::array<std::uint64_t, 2> payload{handle, memory->mapped_bytes()};
      reply = ask(runner_protocol::command_map, payload, deadline, memory->descriptor());
      if (reply.status.finished() && reply.accepted) mapped_.emplace(handle, memory);
    }
    return reply;
  }

  /// Loads the program, a shared object with that many trampolines.
  [[nodiscard]] RunnerReply load(const std::string& path, std::size_t trampolines, Deadline deadline) {
    std::vector<std::uint64_t> payload(2 + (path.size() + 7) / 8);
    payload[0] = trampolines;
    payload[1] = path.size();
    std::memcpy(payload.data() + 2, path.data(), path.size());
    return ask(runner_protocol::command_load, payload, deadline);
  }

  /// Says which calls the next `go` makes.
  [[nodiscard]] RunnerReply prepare(std::span<const RunnerLaunch> launches, Deadline deadline) {
    RunnerReply reply;
    std::vector<std::uint64_t> payload{1, 0};
    const auto flush = [&] {
      reply = ask(runner_protocol::command_prepare, payload, deadline);
      payload.assign({0, 0});
      return reply.status.finished() && reply.accepted;
    };
    for (const auto& launch : launches) {
      const auto words = 2 + 3 * launch.arguments.size();
      if (payload.size() + words > runner_protocol::largest_question - 8 && !flush()) return reply;
      ++payload[1];
      payload.insert(payload.end(), {launch.trampoline, launch.arguments.size()});
      for (const auto& argument : launch.arguments) {
        payload.insert(payload.end(), {argument.kind, argument.value});
        if (argument.kind == runner_protocol::argument_buffer) payload.push_back(argument.offset);
      }
    }
    flush();
    return reply;
  }

  /// Whether code of the program has run.
  [[nodiscard]] bool called() const noexcept { return called_; }

  /// Has the calls of a program without threads take place on one processor; negative = on any that this
  /// process may use. Programs with threads stay where these are bound, and so does one that has not been
  /// called yet, since it may be about to start them.
  void keep_to(int processor) {
    if (processor == kept_to_ || !called_) return;
    struct stat threads {};
    const auto folder = "/proc/" + std::to_string(child_.pid()) + "/task";
    constexpr int entries_of_one_thread = 3; // the folder itself, its parent, the thread
    if (::stat(folder.c_str(), &threads) != 0 || threads.st_nlink > entries_of_one_thread) return;
    cpu_set_t processors;
    CPU_ZERO(&processors);
    if (processor >= 0 && processor < CPU_SETSIZE)
      CPU_SET(static_cast<std::size_t>(processor), &processors);
    else if (::sched_getaffinity(0, sizeof processors, &processors) != 0)
      return;
    if (::sched_setaffinity(child_.pid(), sizeof processors, &processors) == 0) kept_to_ = processor;
  }

  /// Makes the prepared calls, each after a look whether its values fit their parameters' types, and
  /// measures, with the judge's clock, the seconds from just before the runner learns of it to just after its
  /// answer is there.
  [[nodiscard]] RunnerReply go(Deadline deadline, double& seconds) {
    auto reply = ask(runner_protocol::command_go, {}, deadline);
    called_ = true;
    seconds = std::chrono::duration<double>(answered_ - asked_).count();
    return reply;
  }

  /// See `ChildProcess::cpu_seconds`.
  [[nodiscard]] std::optional<double> cpu_seconds() const noexcept { return child_.cpu_seconds(); }

private:
  static ChildProcess start(const RunnerSetup& setup, FileDescriptor& socket, FileDescriptor& lifeline) {
    auto [judges, runner_socket] = packet_pair();
    if (!judges) cannot_start(std::strerror(errno));
    socket = std::move(judges);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(std::strerror(errno));
    const FileDescriptor runner_lifeline{ends[0]};
    lifeline.reset(ends[1]);
    try {
      return ChildProcess{
          {.arguments = {setup.executable, std::to_string(setup.memory_limit),
                         std::to_string(setup.address_space_limit), setup.sandbox ? "1" : "0"},
           .working_folder = "/",
           .environment = setup.environment,
           .descriptors = {{runner_socket.get(), runner_protocol::socket_number},
                           {runner_lifeline.get(), runner_protocol::lifeline_number}}}};
    } catch (const ProcessStartError& error) {
      cannot_start(error.what());
    }
  }

  [[noreturn]] static void cannot_start(const std::string& reason) {
    throw Error(
        error_id::backend_runner, "the runner process cannot be started: " + reason,
        "Check CpuBackendOptions::temporary_folder and cache_folder (they must allow execution), and the "
        "limits on processes and open files");
  }

  [[nodiscard]] static RunnerReply failure(RunOutcome outcome, std::string message) {
    RunnerReply reply;
    reply.status = {outcome, std::move(message)};
    return reply;
  }

  // Sends one question, lets the runner run, waits for its answer and stops it again.
  [[nodiscard]] RunnerReply ask(std::uint64_t command, std::span<const std::uint64_t> payload,
                                Deadline deadline, int descriptor = -1) {
    question_.assign({runner_protocol::magic, command, ++sequence_});
    question_.insert(question_.end(), payload.begin(), payload.end());
    // Nobody speaks unasked; and an answer given in advance would shorten the time that is measured.
    char unasked = 0;
    if (::recv(socket_.get(), &unasked, 1, MSG_DONTWAIT | MSG_PEEK) > 0)
      return failure(RunOutcome::faulted, "the kernel wrote to its process's connection with the judge");
    asked_ = Clock::now();
    if (!send_question(descriptor)) return fault();
    ::kill(-child_.pid(), SIGCONT);
    std::array<std::uint64_t, runner_protocol::largest_reply> words{};
    ssize_t size = -1;
    const bool in_time = wait_for_answer(deadline);
    if (in_time) size = ::recv(socket_.get(), words.data(), sizeof words, MSG_DONTWAIT | MSG_TRUNC);
    answered_ = Clock::now();
    if (freeze_) ::kill(-child_.pid(), SIGSTOP);
    if (!in_time) {
      child_.kill_group();
      return failure(RunOutcome::timed_out, "the kernel did not end before its deadline");
    }
    if (size <= 0) return fault();
    return read_reply(words, static_cast<std::size_t>(size));
  }

  [[nodiscard]] bool send_question(int descriptor) {
    const std::string_view bytes(reinterpret_cast<const char*>(question_.data()),
                                 question_.size() * sizeof(std::uint64_t));
    return descriptor >= 0 ? send_packet(socket_.get(), bytes, {descriptor})
                           : send_packet(socket_.get(), bytes);
  }

  // True as soon as there is an answer or the process has ended, false at the deadline.
  [[nodiscard]] bool wait_for_answer(Deadline deadline) {
    for (;;) {
      int timeout = poll_timeout(deadline);
      const bool last = timeout == 0;
      // Without a descriptor for its end, which a forked child can hide by keeping the socket, look now and
      // then.
      if (child_.exit_descriptor() < 0) timeout = std::min(timeout, 20);
      std::array<pollfd, 2> watched{{{socket_.get(), POLLIN, 0}, {child_.exit_descriptor(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), timeout) > 0) return true;
      if (last) return false;
      if (child_.exit_descriptor() < 0 && !child_.alive()) return true;
    }
  }

  // The runner is gone, or it speaks no more.
  [[nodiscard]] RunnerReply fault() {
    // An end that is under way is worth a moment, because the signal says what happened.
    auto exit = child_.wait(std::chrono::milliseconds{200});
    if (exit) return failure(RunOutcome::faulted, describe_end(*exit));
    child_.kill_group();
    return failure(RunOutcome::faulted, "the kernel closed its process's connection with the judge");
  }

  [[nodiscard]] RunnerReply read_reply(const std::array<std::uint64_t, runner_protocol::largest_reply>& words,
                                       std::size_t size) const {
    namespace protocol = runner_protocol;
    constexpr std::size_t word = sizeof(std::uint64_t);
    if (size < protocol::reply_header * word || size > words.size() * word || size % word != 0 ||
        words[0] != protocol::magic || words[1] != sequence_ || words[2] > protocol::status_misfit)
      return failure(RunOutcome::faulted, "the kernel wrote to its process's connection with the judge");
    RunnerReply reply;
    reply.accepted = words[2] == protocol::status_ok;
    reply.first = words[3];
    reply.second = words[4];
    const auto* const text = reinterpret_cast<const char*>(words.data() + protocol::reply_header);
    reply.text.assign(text, ::strnlen(text, size - protocol::reply_header * word));
    return reply;
  }

  // Outlives the process, as all that stands before it does.
  std::vector<std::shared_ptr<const void>> shown_;
  FileDescriptor socket_;
  // Closes when this process ends in whatever way, which kills the runner's whole group.
  FileDescriptor lifeline_;
  ChildProcess child_;
  bool freeze_ = true;
  std::vector<std::uint64_t> question_;
  std::uint64_t sequence_ = 0;
  int kept_to_ = -1;
  bool called_ = false;
  Clock::time_point asked_{};
  Clock::time_point answered_{};
  std::map<std::uint64_t, std::weak_ptr<const SharedMemory>> mapped_;
};

} // namespace mtmc::detail
