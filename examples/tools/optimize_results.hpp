#pragma once
// What a run of mtmc-optimize leaves behind: files, JSON, and lines on the screen.

#include <mtmc/analysis/python/configured_text.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/net/batch.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>

#include "command_line.hpp"
#include "optimize_arguments.hpp"

namespace command_line {

/// One JSON object. Kernels, and prompts with them, may hold bytes that are no UTF-8.
inline std::string as_text(const nlohmann::json& summary, int indent = -1) {
  return summary.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline void write_launcher(const mtmc::Result& result) {
  const bool cuda = result.best.language == mtmc::languages::cuda;
  try {
    mtmc::write_file_atomic(result.folder + "/launcher." + (cuda ? "hpp" : "cpp"), result.launcher_source());
    if (!cuda) mtmc::write_file_atomic(result.folder + "/launcher.hpp", result.launcher_header());
  } catch (const mtmc::Error& error) { // not every kernel has one
    print_error(error);
  }
}

/// Writes what a person or build system takes away: the kernel, a launcher that needs no library, and the
/// numbers, which get the kernel's path. Nothing if no folder was asked for.
inline void write_result(const mtmc::Result& result, nlohmann::json& summary) {
  if (result.folder.empty()) return;
  const auto kernel_path = result.folder + "/best" + std::string(result.best.language.file_extension());
  mtmc::write_file_atomic(kernel_path, result.best.source);
  if (result.best.language.syntax != mtmc::Syntax::python) write_launcher(result);
  const auto found = result.evaluation.environment.find("configuration");
  if (found != result.evaluation.environment.end()) // of autotuned kernels: nobody need tune again
    mtmc::write_file_atomic(result.folder + "/best_configured.py",
                            mtmc::with_configurations(result.best.source, found->second));
  summary["best"] = kernel_path;
  mtmc::write_file_atomic(result.folder + "/result.json", as_text(summary, 2) + '\n');
}

/// [low, high]; [1, 1] of the start kernel, null where the evaluator gave none.
inline nlohmann::json interval_of(const mtmc::SpeedUp& speed_up) {
  if (!(speed_up.confidence > 0)) return nullptr;
  return {speed_up.low, speed_up.high};
}

/// Of the binary that was judged; null where the backend does not tell.
inline nlohmann::json hash_of(const mtmc::Evaluation& evaluation) {
  return evaluation.binary_hash.empty() ? nlohmann::json() : nlohmann::json(evaluation.binary_hash);
}

/// What each action cost and brought.
inline nlohmann::json account_of(const mtmc::Result& result) {
  auto account = nlohmann::json::array();
  for (const auto& one : result.account)
    account.push_back({{"step", one.step},
                       {"action", one.action_key},
                       {"gain", one.gain},
                       {"drafts", one.drafts},
                       {"tokens", one.usage.tokens()},
                       {"cost", one.usage.cost}});
  return account;
}

inline nlohmann::json summarize(const mtmc::Result& result) {
  auto sizes = nlohmann::json::array();
  for (const auto& size : result.verified_sizes()) sizes.push_back(mtmc::to_string(size));
  return {{"task", result.task.name},
          {"speedup", result.speed_up.value},
          {"interval", interval_of(result.speed_up)},
          {"verdict", to_string(result.evaluation.verdict)},
          {"best", result.best.id()},
          {"best_id", result.best.id()},
          {"source", result.best.source},
          {"binary_hash", hash_of(result.evaluation)},
          {"start_binary_hash", hash_of(result.start)},
          {"stop_reason", to_string(result.stop_reason)},
          {"steps", result.steps},
          {"seconds", result.seconds},
          {"tokens", result.usage.tokens()},
          {"cost", result.usage.cost},
          {"account", account_of(result)},
          {"start_seconds", result.start_seconds()},
          {"best_seconds", result.evaluation.seconds},
          {"verified_sizes", sizes},
          {"measured", result.measured},
          {"error", result.error ? nlohmann::json(result.error->what()) : nlohmann::json()}};
}

/// Whether the endpoint answered no draft at all; the run was too short to end with an error for it.
inline bool nobody_answered(const mtmc::Result& result) {
  const auto& steps = result.trajectory;
  return !result.error && !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const auto& step) {
    return step.draft.failure == mtmc::DraftFailure::endpoint;
  });
}

inline int report(const mtmc::Result& result, const Arguments& arguments) {
  int code = done;
  if (result.stop_reason == mtmc::StopReason::waiting_for_answers) code = waiting_for_answers;
  if (result.stop_reason == mtmc::StopReason::cancelled) code = interrupted_by_user;
  auto summary = summarize(result);
  try {
    write_result(result, summary);
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "error: the result cannot be written: %s\n", error.what());
    code = surroundings_broken;
  }
  const bool unanswered = nobody_answered(result);
  if (result.error || unanswered) code = surroundings_broken;
  if (arguments.json)
    std::printf("%s\n", as_text(summary).c_str());
  else if (!result.improved() && arguments.quiet && result.folder.empty())
    std::printf("%s: nothing faster than the start kernel was proven\n", result.task.name.c_str());
  else if (result.improved() && (result.folder.empty() || code == surroundings_broken))
    std::printf("\n%s\n", result.best.source.c_str());
  std::fflush(stdout);
  if (result.error) print_error(*result.error); // last, where it is seen
  if (unanswered)
    std::fprintf(stderr, "error: the endpoint answered no draft; the last time: %s\n",
                 result.trajectory.back().draft.message.c_str());
  return code;
}

/// What all tasks together came to, a line each.
inline void print_table(std::span<const mtmc::Result> results) {
  double logarithms = 0;
  std::size_t width = 0;
  for (const auto& result : results) {
    logarithms += std::log(result.speed_up.value);
    width = std::max(width, result.task.name.size());
  }
  std::printf("\n%zu tasks, geometric mean %.3gx\n\n", results.size(),
              std::exp(logarithms / static_cast<double>(results.size())));
  for (const auto& result : results)
    std::printf("  %-*s  %9s -> %-9s %s%s\n", static_cast<int>(width), result.task.name.c_str(),
                mtmc::seconds_text(result.start_seconds()).c_str(),
                mtmc::seconds_text(result.evaluation.seconds).c_str(),
                mtmc::speed_up_text(result.speed_up).c_str(),
                result.error ? "  ended by an error, see above" : "");
}

/// Ends a round of a batch: says what is to be carried where.
inline void close_round(mtmc::BatchTransport& batch, const std::string& folder) {
  for (const auto& problem : batch.problems()) std::fprintf(stderr, "warning: %s\n", problem.c_str());
  if (batch.waiting() == 0) return;
  batch.close_round();
  const auto waiting = batch.waiting();
  std::fprintf(
      stderr, waiting == 1 ? "%zu request waits for its answer:\n" : "%zu requests wait for their answers:\n",
      waiting);
  for (const auto& file : batch.files())
    std::fprintf(stderr, "  %s (%zu of %zu answered)\n", file.path.c_str(), file.answered, file.requests);
  std::fprintf(stderr,
               "have them answered (as a batch of OpenAI's, or by vllm run-batch), put the output into "
               "%s/answers, "
               "then type the same command with --resume\n",
               folder.c_str());
}

} // namespace command_line
