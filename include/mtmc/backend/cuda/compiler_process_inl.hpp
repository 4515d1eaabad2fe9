#pragma once
/// Definitions of backend/cuda/compiler_process.hpp.

#include <mtmc/backend/cuda/compiler_process.hpp>
#include <mtmc/backend/cuda/compiler_protocol.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/packet_socket.hpp>
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

MTMC_INLINE CompilerProcess::CompilerProcess(CompilerProcessSetup setup)
    : setup_(std::move(setup)), free_(std::max(setup_.parallel, 1)) {
  current_ = std::make_shared<Process>(setup_);
  version_ = current_->version;
}

MTMC_INLINE NvrtcResult CompilerProcess::compile(const NvrtcRequest& request) {
  const StopSignal stop(request.stop);
  const Turn turn(*this, request);
  for (int attempt = 0; turn.taken && attempt < 2; ++attempt) {
    const auto process = running_process();
    auto result = ask(*process, request, stop);
    // It is gone, or does not answer; the text is not to blame, because it never runs in that process.
    constexpr int max_silences = 3;
    if (!result || process->silences >= max_silences) lose(process);
    if (result) return std::move(*result);
  }
  NvrtcResult result;
  result.timed_out = over(request);
  if (!result.timed_out)
    throw Error(error_id::backend_compiler,
                "the compiler process was lost twice while it compiled one kernel",
                "Check whether the system ends processes for lack of memory");
  return result;
}

MTMC_INLINE CompilerProcess::Process::Process(const CompilerProcessSetup& setup)
    : folder({.base = setup.temporary_folder, .prefix = "mtmc-compiler-", .claimed = true}),
      child(start(setup)), version(greet(setup)) {}

MTMC_INLINE ChildProcess CompilerProcess::Process::start(const CompilerProcessSetup& setup) {
  auto [ours, theirs] = packet_pair();
  if (!ours) cannot_start(std::generic_category().message(errno));
  socket = std::move(ours);
  // Nothing lies where texts are compiled.
  const auto working_folder = folder.path() + "/empty";
  if (::mkdir(working_folder.c_str(), S_IRWXU) != 0) cannot_start(std::generic_category().message(errno));
  ChildOptions options;
  options.arguments = setup.command;
  for (const auto& argument : {std::string(cuda_compiler_argument), setup.library, setup.toolkit,
                               std::to_string(setup.driver_version), folder.path()})
    options.arguments.push_back(argument);
  options.working_folder = working_folder;
  options.environment = loader_environment();
  options.descriptors = {{theirs.get(), 0}};
  try {
    return ChildProcess{options};
  } catch (const ProcessStartError& error) {
    cannot_start(error.what());
  }
}

MTMC_INLINE std::string CompilerProcess::Process::greet(const CompilerProcessSetup& setup) {
  constexpr std::chrono::minutes patience{1};
  pollfd watched{socket.get(), POLLIN, 0};
  std::array<char, longest_compiler_packet> bytes{};
  ReceivedPacket packet;
  if (poll_until({&watched, 1}, time_after(patience)))
    packet = receive_packet(socket.get(), bytes.data(), bytes.size());
  std::optional<CompilerGreeting> greeting;
  try {
    if (packet.size > 0) greeting = read_greeting({bytes.data(), static_cast<std::size_t>(packet.size)});
  } catch (const Error&) { // it is no greeting
  }
  if (greeting && greeting->error) throw *greeting->error;
  if (greeting) return greeting->version;
  child.kill_group();
  const auto exit = child.wait(std::chrono::seconds{5});
  cannot_start(setup.command.front() + " said nothing that was expected" +
               (exit ? " and " + exit->text() : std::string()));
}

MTMC_INLINE void CompilerProcess::Process::cannot_start(const std::string& reason) {
  throw Error(error_id::backend_compiler, "the compiler process cannot be started: " + reason,
              "Check the compiler's command, the folder for temporary files, and the limits on processes and "
              "open files")
      .about("CudaBackendOptions::compiler_command");
}

MTMC_INLINE std::vector<std::string> CompilerProcess::Process::loader_environment() {
  std::vector<std::string> entries;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::string_view(*entry).starts_with("LD_LIBRARY_PATH=")) entries.emplace_back(*entry);
  return entries;
}

MTMC_INLINE CompilerProcess::Turn::Turn(CompilerProcess& of, const NvrtcRequest& request) : owner(of) {
  std::unique_lock lock(owner.mutex_);
  const auto free = [&] { return owner.free_ > 0; };
  // Waiting until the end of time is beyond what some clocks can do.
  const auto until = std::min(request.deadline, Clock::now() + std::chrono::hours{24});
  taken = owner.changed_.wait_until(lock, request.stop, until, free) && !over(request);
  if (taken) --owner.free_;
}

MTMC_INLINE CompilerProcess::Turn::~Turn() {
  if (!taken) return;
  const std::scoped_lock lock(owner.mutex_);
  ++owner.free_;
  owner.changed_.notify_one();
}

MTMC_INLINE bool CompilerProcess::over(const NvrtcRequest& request) {
  return request.stop.stop_requested() || Clock::now() > request.deadline;
}

MTMC_INLINE std::shared_ptr<CompilerProcess::Process> CompilerProcess::running_process() {
  const std::scoped_lock lock(mutex_);
  if (!current_) current_ = std::make_shared<Process>(setup_);
  return current_;
}

MTMC_INLINE void CompilerProcess::lose(const std::shared_ptr<Process>& process) {
  const std::scoped_lock lock(mutex_);
  if (current_ == process) current_.reset();
}

MTMC_INLINE std::optional<NvrtcResult> CompilerProcess::ask(Process& process, const NvrtcRequest& request,
                                                            const StopSignal& stop) {
  const auto question = memory_file(to_bytes(request));
  const FileDescriptor answer{::memfd_create("compiler-result", MFD_CLOEXEC)};
  auto [status, theirs] = packet_pair();
  if (!question || !answer || !status)
    throw Error(error_id::backend_compiler,
                "the compiler process cannot be asked: " + std::generic_category().message(errno),
                "Raise the limit on open files, or free memory");
  if (!send_packet(process.socket.get(), {"\0", 1}, {question.get(), answer.get(), theirs.get()}))
    return std::nullopt;
  theirs.reset();
  // The process kills in time, unless it is in trouble itself.
  constexpr std::chrono::seconds patience{1};
  const auto until = later_by(compiler_grace + patience, request.deadline);
  for (;;) {
    std::array<pollfd, 2> watched{{{status.get(), POLLIN, 0}, {stop.descriptor(), POLLIN, 0}}};
    const int timeout = poll_timeout(until);
    if (timeout > 0 && ::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR)
      return std::nullopt;
    if (timeout == 0) ++process.silences;
    if (timeout == 0 || request.stop.stop_requested()) {
      // Its end of the status socket is closed with this call, and that kills the compilation.
      NvrtcResult given_up;
      given_up.timed_out = true;
      return given_up;
    }
    if (watched[0].revents == 0) continue;
    std::array<char, longest_compiler_packet> bytes{};
    const auto packet = receive_packet(status.get(), bytes.data(), bytes.size());
    if (packet.size <= 0) return std::nullopt;
    process.silences = 0;
    return result_of(request, read_end({bytes.data(), static_cast<std::size_t>(packet.size)}), answer.get());
  }
}

MTMC_INLINE NvrtcResult CompilerProcess::result_of(const NvrtcRequest& request, const CompilerEnd& end,
                                                   int answer) {
  NvrtcResult result;
  if (end.timed_out) {
    result.timed_out = true;
    return result;
  }
  const auto says_so = [](std::string_view error_output) {
    return error_output.find("catastrophic error: out of memory") != std::string_view::npos ||
           error_output.find("LLVM ERROR: out of memory") != std::string_view::npos ||
           error_output.find("emory allocation failure") != std::string_view::npos;
  };
  const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(request.memory_bytes, 0));
  // Who gets no memory for its stack, or does not look whether it got any, is killed by a signal.
  const bool nearly_all = limit > 0 && end.exit.peak_memory > limit - limit / 8;
  const auto ended = [&end](ProcessExit::Kind kind, int code) {
    return end.exit.kind == kind && end.exit.code == code;
  };
  using enum ProcessExit::Kind;
  if (end.exit.succeeded()) {
    result = read_result(content_of(answer));
    if (!result.compiled && !result.timed_out && !result.failure && says_so(result.log))
      result.failure = compiler_out_of_memory(request.memory_bytes);
  } else if (ended(exited, compiler_exit_out_of_memory) || says_so(end.error_output) || nearly_all) {
    result.failure = compiler_out_of_memory(request.memory_bytes);
  } else if (ended(signalled, SIGKILL)) {
    // By the system, which has no other reason.
    result.failure = compiler_out_of_memory(0);
  } else if (ended(signalled, SIGXFSZ)) {
    result.failure = {Severity::error,
                      0,
                      0,
                      "the compiled kernel is larger than 256 MiB",
                      "Use smaller tables, and write less code",
                      {}};
  } else {
    result.failure = {Severity::error,
                      0,
                      0,
                      "the compiler crashed on this kernel: it " + end.exit.text(),
                      "Write it more simply: nest expressions, blocks and templates less deeply",
                      {}};
  }
  return result;
}

} // namespace mtmc::detail
