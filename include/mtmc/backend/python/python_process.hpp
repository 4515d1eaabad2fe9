#pragma once
/// A process of Python that forks for every question, so that what is imported is imported once.

#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// What came of a question.
struct PythonAnswer {
  /// The deadline or a stop request came first.
  bool timed_out = false;
  /// JSON of the answer, as a process wrote it that may have run anything; empty where there is a failure.
  std::string result{};
  /// Why there is none, as one error for whoever wrote the text.
  std::optional<Diagnostic> failure{};
};

/// What is made ready before a question comes, and again after each.
struct PythonReadiness {
  std::string device{}; ///< of this device, as CUDA_VISIBLE_DEVICES names it; nothing is, if it is empty
  int processes = 0;    ///< that a question may use beside its own
};

/// Python with a program of this library (recording_source.hpp, lowering_source.hpp, replaying_source.hpp)
/// loaded. Each question is answered in a process of its own, forked from one that never ran a candidate's
/// text, behind the walls of sandbox_source.hpp, with a folder of its own that is removed afterwards. May be
/// used from several threads.
class PythonProcess {
public:
  /// Starts it. `program`: "recording", "lowering", "replaying" or "judging". Throws `Error`
  /// (`mtmc.backend.001`) where there is no interpreter, a package is missing, or the system cannot fence it
  /// in.
  PythonProcess(const PythonOptions& options, std::string_view program, PythonReadiness ready = {});

  /// Of "python", and of the packages that the program needs.
  [[nodiscard]] const std::map<std::string, std::string>& versions() const noexcept { return versions_; }

  /// Throws `Error` (`mtmc.backend.001`) where the process was lost twice.
  [[nodiscard]] PythonAnswer ask(const std::string& question, std::chrono::milliseconds time,
                                 const std::stop_token& stop);

private:
  struct Process {
    Process(const PythonOptions& options, std::string_view program, const PythonReadiness& ready);

    TemporaryFolder folder;
    FileDescriptor socket;
    std::optional<ChildProcess> child;
    std::map<std::string, std::string> versions;
  };

  [[nodiscard]] std::shared_ptr<Process> running_process();
  void lose(const std::shared_ptr<Process>& process);
  [[nodiscard]] std::optional<PythonAnswer> ask_once(Process& process, const std::string& question,
                                                     std::chrono::milliseconds time,
                                                     const std::stop_token& stop) const;
  [[nodiscard]] static PythonAnswer answer_of(const std::string& end, std::string text);

  PythonOptions options_;
  std::string program_;
  PythonReadiness ready_;
  std::map<std::string, std::string> versions_;
  std::mutex mutex_;
  std::shared_ptr<Process> current_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/python_process_inl.hpp>
#endif
