#pragma once
/// Definitions of backend/python/python_process.hpp.

#include <mtmc/backend/python/cases_source.hpp>
#include <mtmc/backend/python/comparing_source.hpp>
#include <mtmc/backend/python/contestant_source.hpp>
#include <mtmc/backend/python/descriptors_source.hpp>
#include <mtmc/backend/python/judging_source.hpp>
#include <mtmc/backend/python/lowering_source.hpp>
#include <mtmc/backend/python/measuring_source.hpp>
#include <mtmc/backend/python/noting_source.hpp>
#include <mtmc/backend/python/players_source.hpp>
#include <mtmc/backend/python/python_failure.hpp>
#include <mtmc/backend/python/python_process.hpp>
#include <mtmc/backend/python/recording_source.hpp>
#include <mtmc/backend/python/replaying_source.hpp>
#include <mtmc/backend/python/sandbox_source.hpp>
#include <mtmc/backend/python/sharing_source.hpp>
#include <mtmc/backend/python/standing_in_source.hpp>
#include <mtmc/backend/python/zygote_source.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/find_program.hpp>
#include <mtmc/support/process/packet_socket.hpp>
#include <mtmc/support/process/spawn.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Longest packet that is taken from a process of Python: a greeting, or how a question ended.
inline constexpr std::size_t longest_python_packet = 8192;

[[noreturn]] inline void no_python(const std::string& reason, const std::string& remedy) {
  throw Error(error_id::backend_compiler, "Python cannot be used: " + reason, remedy)
      .about("PythonOptions::interpreter, --python of the tools");
}

[[nodiscard]] inline TemporaryFolder folder_in(const std::string& base) {
  try {
    return TemporaryFolder({.base = base, .prefix = "mtmc-python-", .claimed = true});
  } catch (const std::system_error& error) {
    throw Error(error_id::backend_compiler, error.what(), "Name a folder that this process can write to")
        .about("PythonOptions::temporary_folder");
  }
}

MTMC_INLINE PythonProcess::PythonProcess(const PythonOptions& options, std::string_view program,
                                         PythonReadiness ready)
    : options_(options), program_(program), ready_(std::move(ready)) {
  current_ = std::make_shared<Process>(options_, program_, ready_);
  versions_ = current_->versions;
}

MTMC_INLINE PythonProcess::Process::Process(const PythonOptions& options, std::string_view program,
                                            const PythonReadiness& ready)
    : folder(folder_in(options.temporary_folder)) {
  constexpr std::pair<std::string_view, std::string_view> texts[] = {
      {"sandbox.py", sandbox_text},     {"zygote.py", zygote_text},
      {"recording.py", recording_text}, {"lowering.py", lowering_text},
      {"replaying.py", replaying_text}, {"contestant.py", contestant_text},
      {"measuring.py", measuring_text}, {"sharing.py", sharing_text},
      {"judging.py", judging_text},     {"players.py", players_text},
      {"cases.py", cases_text},         {"descriptors.py", descriptors_text},
      {"noting.py", noting_text},       {"standing_in.py", standing_in_text},
      {"comparing.py", comparing_text}};
  const auto programs = folder.path() + "/programs";
  const auto questions = folder.path() + "/questions";
  if (::mkdir(programs.c_str(), S_IRWXU) != 0 || ::mkdir(questions.c_str(), S_IRWXU) != 0)
    no_python(std::generic_category().message(errno), "Free space in the folder for temporary files");
  for (const auto& [name, text] : texts) write_file_atomic(programs + '/' + std::string(name), text);
  auto [ours, theirs] = packet_pair();
  if (!ours) no_python(std::generic_category().message(errno), "Raise the limit on open files");
  socket = std::move(ours);
  ChildOptions child_options;
  // It runs in another folder, so what is relative to this one is made absolute. Python finds the packages of
  // a virtual environment by the path that it is started with, so a name alone is looked up here.
  const auto absolute = [](const std::string& path) {
    std::error_code ignored;
    const auto whole = std::filesystem::absolute(path, ignored).string();
    return whole.empty() ? path : whole;
  };
  const auto* const search_path = std::getenv("PATH");
  const auto found =
      find_program(options.interpreter, search_path != nullptr ? search_path : "/usr/bin:/bin");
  child_options.arguments = {absolute(found.empty() ? options.interpreter : found),
                             "-I",
                             "-B",
                             programs + "/zygote.py",
                             questions,
                             std::string(program),
                             ready.device,
                             std::to_string(ready.processes)};
  for (const auto& package : options.package_folders) child_options.arguments.push_back(absolute(package));
  child_options.working_folder = folder.path();
  // No device; and warnings about defaults of the day are nobody's.
  child_options.environment = {"LC_ALL=C.UTF-8",
                               "PATH=/usr/bin:/bin",
                               "HOME=" + folder.path(),
                               "CUDA_VISIBLE_DEVICES=",
                               "PYTHONWARNINGS=ignore",
                               "TRITON_DEFAULT_FP_FUSION=1",
                               "TRITON_DISABLE_LINE_INFO=1", // else folders of the day are in binaries
                               "TRITON_CACHE_DIR=" + folder.path() + "/cache"};
  child_options.descriptors = {{theirs.get(), 3}};
  child_options.new_session = true;
  try {
    child.emplace(child_options);
  } catch (const ProcessStartError& error) {
    no_python(error.what(), "Install Python 3.9 or later with torch and triton, and name its interpreter");
  }
  theirs.reset();
  pollfd watched{socket.get(), POLLIN, 0};
  std::array<char, longest_python_packet> bytes{};
  ReceivedPacket packet;
  if (poll_until({&watched, 1}, time_after(options.start_timeout)))
    packet = receive_packet(socket.get(), bytes.data(), bytes.size());
  const auto greeting =
      packet.size > 0 ? parse_text({bytes.data(), static_cast<std::size_t>(packet.size)}, false) : Json();
  if (!greeting.is_object()) {
    const auto exit = child->wait(std::chrono::milliseconds{packet.size == 0 ? 1000 : 0});
    no_python(options.interpreter +
                  (exit ? " " + exit->text() + " before it said anything"
                        : " did not start the program within " + duration_text(options.start_timeout)),
              exit ? "Name an interpreter of Python 3.9 or later"
                   : "Give it more time (start_timeout), or name another one");
  }
  if (greeting.contains("error")) {
    const auto missing = text_of(greeting, "missing");
    no_python(options.interpreter + " says " + text_of(greeting, "error"),
              missing.empty() ? "Name another interpreter, or repair its packages"
                              : "Install the package with `" + options.interpreter + " -m pip install " +
                                    missing + "`, or name an interpreter that has it");
  }
  if (!greeting.value("fenced", false) && !options.unfenced)
    no_python("this system has no Landlock, so that a candidate's text could read the files of this user",
              "Use Linux 5.13 or later, or accept that with PythonOptions::unfenced");
  for (const auto& item : greeting.items())
    if (item.value().is_string()) versions[item.key()] = item.value().get<std::string>();
}

MTMC_INLINE PythonAnswer PythonProcess::ask(const std::string& question, std::chrono::milliseconds time,
                                            const std::stop_token& stop) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto process = running_process();
    if (auto answer = ask_once(*process, question, time, stop)) return std::move(*answer);
    lose(process);
  }
  throw Error(error_id::backend_compiler,
              "the process of Python was lost twice while it answered one question",
              "Check whether the system ends processes for lack of memory");
}

MTMC_INLINE std::shared_ptr<PythonProcess::Process> PythonProcess::running_process() {
  const std::scoped_lock lock(mutex_);
  if (!current_) current_ = std::make_shared<Process>(options_, program_, ready_);
  return current_;
}

MTMC_INLINE void PythonProcess::lose(const std::shared_ptr<Process>& process) {
  const std::scoped_lock lock(mutex_);
  if (current_ == process) current_.reset();
}

MTMC_INLINE std::optional<PythonAnswer> PythonProcess::ask_once(Process& process, const std::string& question,
                                                                std::chrono::milliseconds time,
                                                                const std::stop_token& stop) const {
  PythonAnswer given_up;
  given_up.timed_out = true;
  if (time.count() <= 0 || stop.stop_requested()) return given_up;
  const auto text = memory_file(question);
  const FileDescriptor answer{::memfd_create("python-answer", MFD_CLOEXEC)};
  auto [status, theirs] = packet_pair();
  if (!text || !answer || !status)
    no_python(std::generic_category().message(errno), "Raise the limit on open files, or free memory");
  const auto limits =
      Json{{"seconds", static_cast<double>(time.count()) * 1e-3}, {"memory_bytes", options_.memory_limit}}
          .dump();
  if (!send_packet(process.socket.get(), limits, {text.get(), answer.get(), theirs.get()}))
    return std::nullopt;
  theirs.reset();
  const StopSignal stop_signal(stop);
  // The process ends the question in time, unless it is in trouble itself.
  constexpr std::chrono::seconds patience{5};
  const auto until = time_after(time + patience);
  for (;;) {
    std::array<pollfd, 2> watched{{{status.get(), POLLIN, 0}, {stop_signal.descriptor(), POLLIN, 0}}};
    const int timeout = poll_timeout(until);
    // Closing our end of the status socket, as every return does, ends the question there.
    if (timeout == 0) return std::nullopt;
    if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) return std::nullopt;
    if (stop.stop_requested()) return given_up;
    if (watched[0].revents == 0) continue;
    std::array<char, longest_python_packet> bytes{};
    const auto packet = receive_packet(status.get(), bytes.data(), bytes.size());
    if (packet.size <= 0) return std::nullopt;
    return answer_of({bytes.data(), static_cast<std::size_t>(packet.size)}, content_of(answer.get()));
  }
}

MTMC_INLINE PythonAnswer PythonProcess::answer_of(const std::string& end, std::string text) {
  PythonAnswer answer;
  const auto how = parse_text(end, false);
  answer.timed_out = how.is_object() && how.value("timed_out", false);
  if (answer.timed_out) return answer;
  const auto failed = [&](int line, std::string message, std::string remedy) {
    answer.failure = Diagnostic{Severity::error, line, 0, std::move(message), std::move(remedy), {}};
    return answer;
  };
  if (integer_of(how, "signal") > 0)
    return failed(0, "the process ended with signal " + std::to_string(integer_of(how, "signal")),
                  "A module may only compute: no crash, no endless recursion, no more memory than it needs");
  const auto said = parse_text(text, false);
  if (said.is_object() && said.contains("result")) {
    answer.result = std::move(text);
    return answer;
  }
  if (!said.is_object() || !said.contains("failure"))
    return failed(0, "the process ended without an answer", "A module may not end the process that runs it");
  const auto& failure = said["failure"];
  const auto line = std::clamp<std::int64_t>(integer_of(failure, "line"), 0, 1 << 30);
  auto [message, remedy] = explained_python_failure(text_of(failure, "kind"), text_of(failure, "message"));
  return failed(static_cast<int>(line), std::move(message), std::move(remedy));
}

} // namespace mtmc::detail
