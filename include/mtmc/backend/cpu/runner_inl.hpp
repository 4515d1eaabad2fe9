#pragma once
/// Definitions of backend/cpu/runner.hpp.

#include <mtmc/backend/cpu/process_settings.hpp>
#include <mtmc/backend/cpu/runner.hpp>
#include <mtmc/backend/cpu/runner_protocol.hpp>
#include <mtmc/backend/cpu/shared_memory.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/packet_socket.hpp>

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

/// Whether a process has ended within `patience`; `end`: its descriptor.
[[nodiscard]] inline bool ends_within(const FileDescriptor& end,
                                      std::chrono::milliseconds patience) noexcept {
  pollfd ended{end.get(), POLLIN, 0};
  return poll_until({&ended, 1}, time_after(patience));
}

/// What waitpid said of a process's end.
[[nodiscard]] inline ProcessExit exit_of_status(int status) noexcept {
  ProcessExit exit;
  exit.kind = WIFSIGNALED(status) ? ProcessExit::Kind::signalled : ProcessExit::Kind::exited;
  exit.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return exit;
}

/// How the end of a runner or a caller reads to a coder.
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
    return text + ": it made a system call that a kernel must not make (for files, processes, sockets, "
                  "signals, clocks or timers)";
  case SIGXFSZ:
    return text + ": it wrote to a file, which a kernel must not do";
  case SIGKILL:
    return text + ": it was out of memory, or it killed itself";
  default:
    return text;
  }
}

MTMC_INLINE Runner::Runner(const RunnerSetup& setup)
    : child_(start(setup, socket_, lifeline_)), freeze_(setup.freeze) {
  const auto greeting = greet();
  program_ = static_cast<pid_t>(greeting.first);
  program_end_.reset(static_cast<int>(::syscall(SYS_pidfd_open, program_, 0)));
  alone_ = greeting.second == 1;
  why_not_alone_ = greeting.text;
  settings_.emplace(program_);
}

MTMC_INLINE RunnerReply
Runner::map(const std::map<std::uint64_t, std::shared_ptr<const SharedMemory>>& buffers, Deadline deadline) {
  std::vector<ShortQuestion> gone;
  std::erase_if(mapped_, [&](const auto& entry) {
    if (entry.second.expired()) gone.push_back({entry.first});
    return entry.second.expired();
  });
  auto reply = ask_all(runner_protocol::command_unmap, gone, deadline);
  std::vector<ShortQuestion> news;
  for (const auto& [handle, memory] : buffers) {
    if (mapped_.contains(handle)) continue;
    shown_.push_back(memory->showing());
    news.push_back({handle, memory->mapped_bytes(), memory->descriptor()});
    mapped_.emplace(handle, memory);
  }
  // What is refused ends the runner, so nobody looks up what it has not mapped.
  if (reply.status.finished() && reply.accepted)
    reply = ask_all(runner_protocol::command_map, news, deadline);
  return reply;
}

MTMC_INLINE RunnerReply Runner::ask_all(std::uint64_t command, std::span<const ShortQuestion> questions,
                                        Deadline deadline) {
  // So many fit into the buffer of a socket.
  constexpr std::size_t at_once = 32;
  RunnerReply reply;
  while (!questions.empty() && reply.status.finished() && reply.accepted) {
    const auto now = questions.first(std::min(at_once, questions.size()));
    questions = questions.subspan(now.size());
    if (spoke_unasked(socket_)) return failure(RunOutcome::faulted, spoken_for);
    for (const auto& question : now)
      if (!send_question(socket_.get(), command, {{question.mapping, question.bytes}}, question.descriptor))
        return fault();
    reply = hear(socket_, socket_, deadline, now.size());
  }
  return reply;
}

MTMC_INLINE RunnerReply Runner::load(const std::string& path, std::size_t trampolines, Deadline deadline) {
  std::vector<std::uint64_t> payload(2 + (path.size() + 7) / 8);
  payload[0] = trampolines;
  payload[1] = path.size();
  std::memcpy(payload.data() + 2, path.data(), path.size());
  return ask(runner_protocol::command_load, payload, deadline);
}

MTMC_INLINE RunnerReply Runner::prepare(std::span<const RunnerLaunch> launches, Deadline deadline) {
  RunnerReply reply;
  std::vector<std::uint64_t> payload{1, 0};
  const auto flush = [&] {
    reply = ask(runner_protocol::command_prepare, payload, deadline);
    payload.assign({0, 0});
    return reply.status.finished() && reply.accepted;
  };
  for (const auto& launch : launches) {
    const auto words = 2 + 4 * launch.arguments.size();
    if (payload.size() + words > runner_protocol::largest_question - 8 && !flush()) return reply;
    ++payload[1];
    payload.insert(payload.end(), {launch.trampoline, launch.arguments.size()});
    for (const auto& argument : launch.arguments) {
      payload.insert(payload.end(), {argument.kind, argument.value});
      if (argument.kind != runner_protocol::argument_value) payload.push_back(argument.offset);
      if (argument.kind == runner_protocol::argument_zeroed) payload.push_back(argument.bytes);
    }
  }
  flush();
  return reply;
}

MTMC_INLINE void Runner::keep_to(int processor) {
  if (processor == kept_to_ || threads_ != 1) return;
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (processor >= 0 && processor < CPU_SETSIZE)
    CPU_SET(static_cast<std::size_t>(processor), &processors);
  else if (::sched_getaffinity(0, sizeof processors, &processors) != 0)
    return;
  if (settings_->place(processors)) kept_to_ = processor;
}

MTMC_INLINE RunnerReply Runner::begin(Deadline deadline) {
  end_caller();
  auto [judges, callers] = packet_pair();
  const int on = 1;
  if (!judges || ::setsockopt(judges.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    cannot_fork(std::strerror(errno));
  channel_ = std::move(judges);
  const std::array<std::uint64_t, 1> payload{threads_ > 1 ? 1u : 0u};
  const int descriptor = callers.get();
  auto reply = converse(socket_, channel_, runner_protocol::command_begin, payload, deadline, descriptor,
                        std::move(callers));
  if (reply.status.outcome == RunOutcome::faulted) cannot_fork(reply.status.message);
  if (!reply.accepted) cannot_fork(std::strerror(static_cast<int>(reply.first)));
  if (reply.status.finished()) {
    caller_end_.reset(static_cast<int>(::syscall(SYS_pidfd_open, caller_, 0)));
    settings_->remember();
  }
  return reply;
}

MTMC_INLINE RunnerReply Runner::go(Deadline deadline, double& seconds, bool stay) {
  auto reply = converse(channel_, channel_, runner_protocol::command_go, {}, deadline, -1);
  seconds = std::chrono::duration<double>(answered_ - asked_).count();
  if (reply.status.finished()) {
    threads_ = threads_of(caller_).size();
    if (stay) return reply;
    const auto used = cpu_seconds_of(caller_);
    callers_seconds_ = callers_seconds_ && used ? std::optional(*callers_seconds_ + *used) : std::nullopt;
  }
  end_caller();
  return reply;
}

MTMC_INLINE std::optional<double> Runner::cpu_seconds() const noexcept {
  const auto own = cpu_seconds_of(program_);
  return own && callers_seconds_ ? std::optional(*own + *callers_seconds_) : std::nullopt;
}

MTMC_INLINE ChildProcess Runner::start(const RunnerSetup& setup, FileDescriptor& socket,
                                       FileDescriptor& lifeline) {
  auto [judges, runner_socket] = packet_pair();
  if (!judges) cannot_start(std::strerror(errno));
  socket = std::move(judges);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(std::strerror(errno));
  const FileDescriptor runner_lifeline{ends[0]};
  lifeline.reset(ends[1]);
  try {
    return ChildProcess{{.arguments = {setup.executable, std::to_string(setup.memory_limit),
                                       std::to_string(setup.address_space_limit), setup.sandbox ? "1" : "0",
                                       setup.process_namespace ? "1" : "0"},
                         .working_folder = "/",
                         .environment = setup.environment,
                         .descriptors = {{runner_socket.get(), runner_protocol::socket_number},
                                         {runner_lifeline.get(), runner_protocol::lifeline_number}}}};
  } catch (const ProcessStartError& error) {
    cannot_start(error.what());
  }
}

MTMC_INLINE RunnerReply Runner::greet() {
  constexpr std::chrono::seconds patience{20};
  std::array<std::uint64_t, runner_protocol::largest_reply> words{};
  ssize_t size = -1;
  if (wait_for_answer(socket_, Clock::now() + patience)) size = receive_answer(socket_.get(), words);
  auto greeting = size <= 0 ? fault() : read_reply(words, static_cast<std::size_t>(size), sequence_);
  if (!greeting.status.finished()) cannot_start("it ended before it was ready: " + greeting.status.message);
  return greeting;
}

MTMC_INLINE void Runner::cannot_start(const std::string& reason) {
  throw Error(error_id::backend_runner, "the runner process cannot be started: " + reason,
              "Check the folders for temporary and cached files, which must allow execution, and the limits "
              "on processes and open files")
      .about("CpuBackendOptions::temporary_folder");
}

MTMC_INLINE void Runner::cannot_fork(const std::string& reason) {
  throw Error(error_id::backend_runner, "no process can be made for the calls of a kernel: " + reason,
              "Raise the limits on processes (ulimit -u) and open files (ulimit -n), or free memory");
}

MTMC_INLINE RunnerReply Runner::failure(RunOutcome outcome, std::string message) {
  RunnerReply reply;
  reply.status = {outcome, std::move(message)};
  return reply;
}

MTMC_INLINE RunnerReply Runner::ask(std::uint64_t command, std::span<const std::uint64_t> payload,
                                    Deadline deadline, int descriptor) {
  return converse(socket_, socket_, command, payload, deadline, descriptor);
}

MTMC_INLINE RunnerReply Runner::converse(const FileDescriptor& questions, const FileDescriptor& answers,
                                         std::uint64_t command, std::span<const std::uint64_t> payload,
                                         Deadline deadline, int descriptor, FileDescriptor passed) {
  if (spoke_unasked(answers)) return failure(RunOutcome::faulted, spoken_for);
  const bool of_caller = answers.get() == channel_.get();
  asked_ = Clock::now();
  if (!send_question(questions.get(), command, payload, descriptor))
    return of_caller ? fault_of_caller() : fault();
  passed.reset();
  return hear(questions, answers, deadline, 1);
}

MTMC_INLINE bool Runner::spoke_unasked(const FileDescriptor& answers) {
  char unasked = 0;
  return ::recv(answers.get(), &unasked, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
}

MTMC_INLINE RunnerReply Runner::hear(const FileDescriptor& questions, const FileDescriptor& answers,
                                     Deadline deadline, std::size_t count) {
  const bool of_caller = answers.get() == channel_.get();
  // While a caller is at work, nobody else is woken beside it.
  ::kill(-(answers.get() == questions.get() && of_caller ? caller_ : child_.pid()), SIGCONT);
  RunnerReply reply;
  bool in_time = true;
  bool heard = true;
  for (std::size_t left = count; left > 0 && in_time && heard; --left) {
    std::array<std::uint64_t, runner_protocol::largest_reply> words{};
    ssize_t size = -1;
    in_time = wait_for_answer(answers, deadline);
    if (in_time) size = receive_answer(answers.get(), words);
    answered_ = Clock::now();
    heard = size > 0;
    if (!heard) break;
    auto next = read_reply(words, static_cast<std::size_t>(size), sequence_ - left + 1);
    // The first that is not as it should be is what counts.
    if (reply.status.finished() && reply.accepted) reply = std::move(next);
  }
  if (freeze_) {
    if (caller_ > 0) ::kill(-caller_, SIGSTOP);
    if (questions.get() == socket_.get()) ::kill(-child_.pid(), SIGSTOP);
  }
  if (!in_time) {
    end();
    return failure(RunOutcome::timed_out, "the kernel did not end before its deadline");
  }
  if (!heard) return of_caller ? fault_of_caller() : fault();
  return reply;
}

MTMC_INLINE ssize_t Runner::receive_answer(int socket,
                                           std::array<std::uint64_t, runner_protocol::largest_reply>& words) {
  iovec place{words.data(), sizeof words};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  // The system itself says who a caller is, in this process's numbers, with its first answer.
  if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS && caller_ < 0) {
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    caller_ = sender.pid;
  }
  return size;
}

MTMC_INLINE bool Runner::send_question(int socket, std::uint64_t command,
                                       std::span<const std::uint64_t> payload, int descriptor) {
  question_.assign({runner_protocol::magic, command, ++sequence_});
  question_.insert(question_.end(), payload.begin(), payload.end());
  const std::string_view bytes(reinterpret_cast<const char*>(question_.data()),
                               question_.size() * sizeof(std::uint64_t));
  return descriptor >= 0 ? send_packet(socket, bytes, {descriptor}) : send_packet(socket, bytes);
}

MTMC_INLINE bool Runner::wait_for_answer(const FileDescriptor& answers, Deadline deadline) {
  for (;;) {
    int timeout = poll_timeout(deadline);
    const bool last = timeout == 0;
    // Without a descriptor for its end, which a forked child can hide by keeping the socket, look now and
    // then.
    if (child_.exit_descriptor() < 0) timeout = std::min(timeout, 20);
    // poll() leaves out what is negative.
    std::array<pollfd, 3> watched{{{answers.get(), POLLIN, 0},
                                   {child_.exit_descriptor(), POLLIN, 0},
                                   {caller_end_ ? caller_end_.get() : -1, POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), timeout) > 0) return true;
    if (last) return false;
    if (child_.exit_descriptor() < 0 && !child_.alive()) return true;
  }
}

MTMC_INLINE void Runner::end() noexcept {
  end_caller();
  if (watched_over() && program_end_) {
    constexpr std::chrono::seconds patience{5};
    (void)::syscall(SYS_pidfd_send_signal, program_end_.get(), SIGKILL, nullptr, 0);
    ::kill(-child_.pid(), SIGCONT);
    (void)child_.wait(patience);
  }
  child_.kill_group();
}

MTMC_INLINE bool Runner::watched_over() const noexcept {
  return program_ > 0 && child_.pid() > 0 && program_ != child_.pid();
}

MTMC_INLINE void Runner::end_caller() noexcept {
  constexpr std::chrono::seconds patience{10};
  const pid_t caller = std::exchange(caller_, -1);
  const auto end = std::move(caller_end_);
  channel_.reset();
  if (caller <= 0) return;
  ::kill(-caller, SIGKILL);
  if (end) {
    (void)::syscall(SYS_pidfd_send_signal, end.get(), SIGKILL, nullptr, 0);
    (void)ends_within(end, patience);
  } else {
    ::kill(caller, SIGKILL);
    if (child_.pid() > 0) (void)ask(runner_protocol::command_ended, {}, Clock::now() + patience);
  }
}

MTMC_INLINE RunnerReply Runner::fault_of_caller() {
  constexpr std::chrono::milliseconds moment{200};
  constexpr std::chrono::seconds patience{10};
  const bool ended = !caller_end_ || ends_within(caller_end_, moment);
  end_caller();
  if (!ended)
    return failure(RunOutcome::faulted, "the kernel closed its process's connection with the judge");
  auto reply = ask(runner_protocol::command_ended, {}, Clock::now() + patience);
  if (!reply.status.finished()) return reply;
  return failure(RunOutcome::faulted, describe_end(exit_of_status(static_cast<int>(reply.first))));
}

MTMC_INLINE RunnerReply Runner::fault() {
  // An end that is under way is worth a moment, because the signal says what happened.
  constexpr std::chrono::milliseconds moment{200};
  auto exit = wait_for_end(moment);
  if (exit) return failure(RunOutcome::faulted, describe_end(*exit));
  end();
  return failure(RunOutcome::faulted, "the kernel closed its process's connection with the judge");
}

MTMC_INLINE std::optional<ProcessExit> Runner::wait_for_end(std::chrono::milliseconds patience) {
  if (!watched_over() || !program_end_) return child_.wait(patience);
  if (!ends_within(program_end_, patience)) return std::nullopt;
  // The one that watches over it has been stopped, too, and needs a processor.
  constexpr std::chrono::seconds handing_on{10};
  ::kill(child_.pid(), SIGCONT);
  return child_.wait(handing_on);
}

MTMC_INLINE RunnerReply
Runner::read_reply(const std::array<std::uint64_t, runner_protocol::largest_reply>& words, std::size_t size,
                   std::uint64_t sequence) {
  namespace protocol = runner_protocol;
  constexpr std::size_t word = sizeof(std::uint64_t);
  if (size < protocol::reply_header * word || size > words.size() * word || size % word != 0 ||
      words[0] != protocol::magic || words[1] != sequence || words[2] > protocol::status_misfit)
    return failure(RunOutcome::faulted, spoken_for);
  RunnerReply reply;
  reply.accepted = words[2] == protocol::status_ok;
  reply.first = words[3];
  reply.second = words[4];
  const auto* const text = reinterpret_cast<const char*>(words.data() + protocol::reply_header);
  reply.text.assign(text, ::strnlen(text, size - protocol::reply_header * word));
  return reply;
}

MTMC_INLINE std::string describe_isolation(const RunnerSetup& setup, const std::string& why_not_alone) {
  std::string text = setup.sandbox ? "system call filter, " : "no system call filter, ";
  if (why_not_alone.empty() && setup.process_namespace) return text + "process namespace";
  text += "no process namespace";
  return setup.process_namespace ? text + " (" + why_not_alone + ')' : text;
}

MTMC_INLINE std::string why_no_process_namespace() {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) ::_exit(0);
    const int error = errno;
    ::_exit(::unshare(CLONE_NEWPID) == 0 ? 0 : error);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int error = child < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  return error == 0 ? std::string{} : std::generic_category().message(error);
}

} // namespace mtmc::detail
