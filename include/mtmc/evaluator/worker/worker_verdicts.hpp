#pragma once
/// What a candidate is told when its worker was lost, and what cannot be sent to a worker at all.

#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// The rule a candidate broke whose worker was lost, or that cannot be sent to one.
inline constexpr std::string_view worker_rule = "worker";

/// "; it last wrote: ..." with the end of what a worker wrote, or nothing if it wrote nothing.
[[nodiscard]] inline std::string error_output_text(std::string_view error_output) {
  constexpr std::size_t most = 600;
  while (!error_output.empty() && (error_output.back() == '\n' || error_output.back() == ' '))
    error_output.remove_suffix(1);
  if (error_output.empty()) return {};
  std::string text = "; it last wrote: ";
  if (error_output.size() > most) {
    error_output.remove_prefix(error_output.size() - most);
    text += "...";
  }
  for (const char c : error_output) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr unsigned char first_printable = 0x20, last_ascii = 0x7e;
    const bool plain = (byte >= first_printable && byte <= last_ascii) || c == '\n' || c == '\t';
    text.push_back(plain ? c : '?');
  }
  return text;
}

[[nodiscard]] inline Evaluation worker_verdict(Verdict verdict, std::string message, std::string remedy) {
  Evaluation evaluation;
  evaluation.verdict = verdict;
  evaluation.rule = worker_rule;
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.remedy = std::move(remedy);
  evaluation.diagnostics.push_back(std::move(diagnostic));
  return evaluation;
}

/// The worker ended, or said what is no message.
[[nodiscard]] inline Evaluation lost_worker_verdict(const std::string& reason,
                                                    std::string_view error_output) {
  return worker_verdict(
      Verdict::crashed, "the process that judged this kernel " + reason + error_output_text(error_output),
      "Check the bounds of every access, use no memory beyond the arguments and the scratch buffers, and "
      "neither print nor end the process");
}
/// The worker gave no answer in time.
[[nodiscard]] inline Evaluation late_worker_verdict(const std::string& limit, std::string_view error_output) {
  return worker_verdict(Verdict::timeout,
                        "the process that judged this kernel gave no answer within " + limit +
                            error_output_text(error_output),
                        "Make sure that every loop ends, and write code that compiles quickly");
}

/// Whether all strings of a value are UTF-8, as JSON must be.
[[nodiscard]] inline bool can_be_sent(const Json& value) {
  try {
    (void)value.dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

/// A candidate that cannot be sent, because it would be another one after it.
[[nodiscard]] inline std::optional<Evaluation> refuse_text(const Kernel& candidate) {
  if (find_malformed_utf8(candidate.source) == std::string::npos) return std::nullopt;
  return worker_verdict(Verdict::refused, "the text of the kernel is not UTF-8",
                        "Write comments and names in UTF-8 or, best, in ASCII");
}

/// Throws `Error` (`mtmc.worker.004`) for a task that cannot be sent.
inline void check_text(const Json& task, const std::string& name) {
  if (!can_be_sent(task))
    throw Error(error_id::worker_request, "a text of the task is not UTF-8, so it cannot be sent to a worker",
                "Store kernel and task as UTF-8", "task " + name);
}

/// Throws `Error` (`mtmc.worker.004`) if the task has hooks and the worker knows none.
inline void check_hooks(const Task& task, bool attaches_hooks) {
  if (attaches_hooks || (!task.generate && !task.compare)) return;
  throw Error(
      error_id::worker_request,
      std::string("the task has a hook (") + (task.generate ? "generate" : "compare") +
          "), which is code of this program and cannot be sent to a worker",
      "Let this program be its own worker, with a function that attaches the hooks by the task's name "
      "(play_role(argc, argv, mtmc::cpu_worker(attach_hooks)) at the start of main), and name no other "
      "command; or judge in this process, with CpuEvaluator",
      "task " + task.name)
      .about("WorkerOptions::command");
}

} // namespace mtmc::detail
