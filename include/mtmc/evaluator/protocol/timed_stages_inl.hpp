#pragma once
/// Definitions of evaluator/protocol/timed_stages.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/correctness_stage.hpp>
#include <mtmc/evaluator/protocol/plausibility.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/evaluator/protocol/timed_stages.hpp>
#include <mtmc/evaluator/timing/launch_times.hpp>
#include <mtmc/evaluator/timing/speed_up.hpp>
#include <mtmc/evaluator/timing/timing_conditions.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Puts what the timing found into the evaluation.
inline void record_times(const PreparedTask& task, const TimingStage& timing, Evaluation& evaluation) {
  double weights = 0;
  for (const auto& times : timing.times()) {
    auto& size = evaluation.sizes[times.size];
    add_tally(size, timing.tally(times.size));
    size.samples = static_cast<int>(times.candidate.size());
    size.seconds = median(times.candidate);
    weights += times.weight;
    evaluation.seconds += times.weight * size.seconds;
    if (!timing.compared()) continue;
    size.incumbent_seconds = median(times.incumbent);
    const auto logarithms = times.logarithms();
    auto interval = median_interval(logarithms, timing.answer().error);
    interval.confidence = std::min(interval.confidence, timing.answer().interval.confidence);
    size.speed_up = speed_up_of(interval);
  }
  if (weights > 0) evaluation.seconds /= weights;
  if (timing.compared()) {
    evaluation.speed_up = speed_up_of(timing.answer().interval);
    evaluation.comparison = comparison_of(timing.answer().decision);
  }
  if (timing.incumbent_failure().empty()) return;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.message = "the incumbent failed while it was timed, so the candidate was not compared: " +
                    timing.incumbent_failure();
  warning.remedy = "Compare the candidate with another kernel; task " + task.task.name;
  evaluation.diagnostics.push_back(std::move(warning));
}

MTMC_INLINE std::optional<Refusal> time_candidate(EvaluationContext& context) {
  auto& backend = context.shared.backend;
  // What the checks left behind in it is not there when times are taken.
  context.judge.start_afresh(*context.candidate);
  auto& timing = context.timing.emplace(context.judge, context.task, *context.candidate,
                                        context.incumbent.get(), context.seconds);
  const auto before = conditions_of(backend);
  auto refusal = timing.run(context.request.purpose, context.until);
  auto& conditions = context.conditions.emplace(conditions_between(before, conditions_of(backend)));
  for (const auto& times : timing.times())
    add_times(conditions, times.incumbent.empty() ? times.candidate : times.incumbent);
  record_times(context.task, timing, context.evaluation);
  context.evaluation.environment["memory"] = timing.has_exchanged_memory() ? "exchanged" : "not exchanged";
  return refusal;
}

MTMC_INLINE std::optional<Refusal> check_times(EvaluationContext& context) {
  for (const auto& times : context.timing->times())
    if (auto refusal = check_plausibility(context.judge, context.task, times.size,
                                          context.evaluation.sizes[times.size].seconds))
      return refusal;
  return std::nullopt;
}

MTMC_INLINE std::optional<Refusal> divide_time(EvaluationContext& context) {
  // Of what checks and times took.
  constexpr double share = 0.05;
  auto& evaluation = context.evaluation;
  if (!context.shared.options.launch_times || evaluation.comparison == Comparison::slower)
    return std::nullopt;
  const auto* size = context.task.task.main_size();
  for (const auto& times : context.timing->times()) {
    if (&context.task.task.sizes[times.size] != size) continue;
    const double spent = evaluation.cost.check + evaluation.cost.time;
    const LaunchTiming timing{times.size, times.group, evaluation.sizes[times.size].seconds, share * spent};
    // What has no memory left to be known is not known.
    const auto shortage = shortage_in([&] {
      evaluation.launches = time_launches(context.judge, context.task, *context.candidate, timing);
      // Compiling costs as much as a small evaluation, so only what a search surely goes on from is divided.
      if (context.request.purpose == Purpose::promote || context.incumbent == nullptr)
        time_parts(context.judge, context.task, *context.candidate, timing, evaluation.launches);
    });
    if (shortage) context.judge.make_room(context.task, {context.candidate.get(), context.incumbent.get()});
  }
  return std::nullopt;
}

MTMC_INLINE std::optional<Refusal> take_profile(EvaluationContext& context) {
  if (context.shared.options.profile)
    context.evaluation.profile = context.judge.profile(context.task, *context.candidate);
  return std::nullopt;
}

} // namespace mtmc::detail
