#pragma once
/// One evaluation under way: what the stages of the protocol hand on to each other.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/evaluator/protocol/evaluator_state.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/timing/timing_conditions.hpp>
#include <mtmc/evaluator/timing/timing_stage.hpp>
#include <mtmc/support/deadline.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Everything that is known of a candidate by now. A stage finds what those before it left here.
struct EvaluationContext {
  EvaluatorState& shared;
  Judge& judge;
  PreparedTask& task;
  const EvaluationRequest& request;
  /// The answer as it grows; its verdict is given at the end.
  Evaluation& evaluation;

  /// The candidate's launches, one plan for each size of the task.
  std::vector<LaunchPlan> plans{};
  std::shared_ptr<Contestant> candidate{};
  /// Null where the request has none.
  std::shared_ptr<Contestant> incumbent{};
  /// When the evaluation's time on the device is over.
  Deadline until{};
  /// Seconds of the candidate's checked calls, by size.
  std::vector<double> seconds{};
  /// The timed pairs, and the conditions they met.
  std::optional<TimingStage> timing{};
  std::optional<TimingConditions> conditions{};
  /// What an audit was made on: its task, and the candidate there. Null where there was none.
  std::unique_ptr<PreparedTask> audit_task{};
  std::unique_ptr<EvaluationContext> audit{};
};

} // namespace mtmc::detail
