#pragma once
/// The whole trust protocol on a backend, in its type-erased form.

#include <mtmc/core/any.hpp>
#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// The task whose start kernel is `slow_add`.
[[nodiscard]] inline Task evaluated_task(const BackendProbe& probe) {
  auto task = probe_task(probe, probe.slow_add);
  task.sizes = {{.symbols = {{"n", 8192}, {"repeats", 5000}}},
                {.symbols = {{"n", 1001}, {"repeats", 3}}, .weight = 0}};
  return task;
}

/// A verdict in words, with its first reason.
[[nodiscard]] inline std::string in_words(const Evaluation& evaluation) {
  std::string text(to_string(evaluation.verdict));
  if (!evaluation.diagnostics.empty()) text += " (" + evaluation.diagnostics.front().message + ")";
  return text;
}

/// What a fresh evaluator says of a candidate, with the start kernel as its incumbent or alone.
[[nodiscard]] inline Evaluation judged(Trial& trial, const std::string& candidate, bool compared) {
  const auto& probe = trial.probe();
  // Time enough for a clear answer on a busy machine; it ends as soon as there is one.
  KernelEvaluatorOptions options;
  options.explore_seconds = options.explore_overhead_seconds = 30;
  auto evaluator = kernel_evaluator(AnyBackend(std::ref(trial.backend())), options);
  EvaluationRequest request;
  request.task = evaluated_task(probe);
  request.candidate = {probe.language, candidate, {}};
  if (compared) request.incumbent = request.task.kernel;
  return evaluator.evaluate(request, {});
}

inline constexpr std::string_view all_else_passed =
    "Look at the message; every call that the evaluator makes has passed a check of its own";

} // namespace detail

/// The verdicts that `KernelEvaluator` comes to with this backend.
inline void check_evaluator(Trial& trial) {
  const auto& probe = trial.probe();
  trial.check("evaluator.right", "KernelEvaluator finds a right kernel correct", {"run.offsets", "time.cold"},
              [&]() -> Finding {
                const auto answer = detail::judged(trial, trial.unseen(probe.slow_add), false);
                if (answer.correct() && answer.seconds > 0) return {};
                return unexpected("the verdict correct, with seconds", detail::in_words(answer),
                                  detail::all_else_passed);
              });
  trial.check("evaluator.wrong", "KernelEvaluator refuses a kernel that writes nothing",
              {"evaluator.right", "run.writes_nothing"}, [&]() -> Finding {
                const auto answer = detail::judged(trial, probe.writes_nothing, false);
                if (answer.verdict == Verdict::wrong_result) return {};
                return unexpected("the verdict wrong_result", detail::in_words(answer),
                                  detail::all_else_passed);
              });
  trial.check("evaluator.faster", "KernelEvaluator finds the faster of two kernels faster",
              {"evaluator.right", "time.more_work"}, [&]() -> Finding {
                const auto answer = detail::judged(trial, probe.vector_add, true);
                if (answer.correct() && answer.comparison == Comparison::faster) return {};
                return unexpected(
                    "the verdict correct and the comparison faster",
                    detail::in_words(answer) + ", " + std::string(to_string(answer.comparison)) +
                        (answer.speed_up ? " by " + std::to_string(answer.speed_up->value) : ""),
                    "Look at what `time` measures: `slow_add` does far more work");
              });
}

} // namespace mtmc::test
