#pragma once
/// What a host may watch of a run.

#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/loop/budget.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

struct Result;

/// What the run is doing, for a progress bar.
enum class Phase { preparing, deciding, drafting, evaluating, promoting, closing };

namespace detail {
inline constexpr EnumName<Phase> phase_names[] = {
    {Phase::preparing, "preparing"},   {Phase::deciding, "deciding"},   {Phase::drafting, "drafting"},
    {Phase::evaluating, "evaluating"}, {Phase::promoting, "promoting"}, {Phase::closing, "closing"},
};
} // namespace detail
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Phase>> enum_names(Phase) noexcept {
  return detail::phase_names;
}

/// A run begins: the start kernel is about to be compiled, checked and timed, or taken from the journal.
struct RunPreparing {
  /// The task.
  const Task& task;
  /// Seconds that one call of the start kernel may take; 0 = the evaluator does not say.
  double start_seconds = 0;
};

/// The start kernel has been judged; the first step comes next.
struct RunStarted {
  /// The task.
  const Task& task;
  /// The device.
  const Device& device;
  /// What the evaluator said of the start kernel.
  const Evaluation& start;
  /// Largest number of steps.
  int max_steps = 0;
  /// Limits of the run.
  const Budget& budget;
  /// Folder of the journal and the kernels; empty if there is none.
  const std::string& folder;
  /// Whether an earlier session's run is taken up.
  bool resumed = false;
};

/// A piece of work begins or ends: `done` of `total` drafts, evaluations, ... of this phase.
struct Progress {
  /// Which work.
  Phase phase = Phase::preparing;
  /// Pieces that are finished.
  int done = 0;
  /// Pieces there are.
  int total = 0;
  /// 0-based.
  int step = 0;
  int max_steps = 0; ///< largest number of steps
};

/// The policy has chosen for one kernel of the beam.
struct StepStarted {
  /// 0-based.
  int step = 0;
  /// Place of the parent in the beam.
  int parent_index = 0;
  /// What the policy saw.
  const Observation& seen;
  /// The actions it could choose from.
  std::span<const Action> legal;
  /// Its answer.
  const ActionDistribution& distribution;
  /// First choice first; empty where the policy stopped.
  std::span<const Action> chosen;
};

/// A coder has answered.
struct DraftReady {
  /// 0-based.
  int step = 0;
  /// The action that was asked for.
  const Action& action;
  /// Number of the sample.
  int sample = 0;
  /// Number of the repair; 0 = first draft.
  int repair = 0;
  /// The answer.
  const Draft& draft;
  /// Whether the journal answered: nothing was paid.
  bool replayed = false;
};

/// A candidate has been judged.
struct CandidateEvaluated {
  /// 0-based.
  int step = 0;
  /// The action it carries out.
  const Action& action;
  /// Number of the sample.
  int sample = 0;
  /// Number of the repair; 0 = first draft.
  int repair = 0;
  /// The candidate.
  const Kernel& kernel;
  /// The evaluator's answer.
  const Evaluation& evaluation;
  /// Whether the journal answered.
  bool replayed = false;
};

/// What one action of a step came to; one for each kernel where the search continues from several of an
/// action.
struct StepOutcome {
  /// The action.
  const Action& action;
  /// Place of the parent in the beam.
  int parent_index = 0;
  /// As policy and coder will see it later.
  const HistoryEntry& entry;
  /// Null if there was no kernel to judge.
  const Evaluation* evaluation = nullptr;
  /// It became the best kernel so far.
  bool new_best = false;
  /// Drafts that were asked for, repairs included, and what they cost; of an action's first outcome only.
  int drafts = 0;
  Usage usage{}; ///< what the drafts cost
};

/// A step is finished and recorded.
struct StepFinished {
  /// 0-based.
  int step = 0;
  /// Largest number of steps.
  int max_steps = 0;
  /// What its actions came to.
  std::span<const StepOutcome> outcomes;
  /// Of the best so far over the start kernel, by the product of the ratios on the way.
  const SpeedUp& best;
  /// Of the whole run.
  const Usage& usage;
  double seconds = 0; ///< wall-clock time of the run so far
};

/// Functions that are called while a run goes on, each may be empty. Never two at once, but drafts and
/// evaluations may be reported from other threads than the run's own. They cannot change the run: what they
/// throw is dropped. References are valid during the call only.
struct Observer {
  /// Before the start kernel is judged.
  std::function<void(const RunPreparing&)> preparing{};
  /// After it.
  std::function<void(const RunStarted&)> run_started{};
  /// Within a step.
  std::function<void(const Progress&)> progress{};
  /// When the policy has chosen.
  std::function<void(const StepStarted&)> step_started{};
  /// When a coder has answered.
  std::function<void(const DraftReady&)> draft_ready{};
  /// When a candidate has been judged.
  std::function<void(const CandidateEvaluated&)> evaluated{};
  /// When a step is recorded.
  std::function<void(const StepFinished&)> step_finished{};
  /// Also called where the run failed on the way: see the result's error.
  std::function<void(const Result&)> finished{};
  /// Called instead where nothing came of it: the error is about to be thrown.
  std::function<void(const Error&)> failed{};
};

} // namespace mtmc
