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
  const Task& task;
  /// Seconds that one call of the start kernel may take; 0 = the evaluator does not say.
  double start_seconds = 0;
};

/// The start kernel has been judged; the first step comes next.
struct RunStarted {
  const Task& task;
  const Device& device;
  const Evaluation& start;
  int max_steps = 0;
  const Budget& budget;
  /// Folder of the journal and the kernels; empty if there is none.
  const std::string& folder;
  /// Whether an earlier session's run is taken up.
  bool resumed = false;
};

/// A piece of work begins or ends: `done` of `total` drafts, evaluations, ... of this phase.
struct Progress {
  Phase phase = Phase::preparing;
  int done = 0;
  int total = 0;
  /// 0-based.
  int step = 0;
  int max_steps = 0;
};

/// The policy has chosen for one kernel of the beam.
struct StepStarted {
  /// 0-based.
  int step = 0;
  int parent_index = 0;
  const Observation& seen;
  std::span<const Action> legal;
  const ActionDistribution& distribution;
  /// First choice first; empty where the policy stopped.
  std::span<const Action> chosen;
};

/// A coder has answered.
struct DraftReady {
  int step = 0;
  const Action& action;
  int sample = 0;
  int repair = 0;
  const Draft& draft;
  /// Whether the journal answered: nothing was paid.
  bool replayed = false;
};

/// A candidate has been judged.
struct CandidateEvaluated {
  int step = 0;
  const Action& action;
  int sample = 0;
  int repair = 0;
  const Kernel& kernel;
  const Evaluation& evaluation;
  /// Whether the journal answered.
  bool replayed = false;
};

/// What one action of a step came to; one for each kernel where several of an action are gone on from.
struct StepOutcome {
  const Action& action;
  int parent_index = 0;
  const HistoryEntry& entry;
  /// Null if there was no kernel to judge.
  const Evaluation* evaluation = nullptr;
  /// It became the best kernel so far.
  bool new_best = false;
  /// Drafts that were asked for, repairs included, and what they cost; of an action's first outcome only.
  int drafts = 0;
  Usage usage{};
};

/// A step is finished and recorded.
struct StepFinished {
  /// 0-based.
  int step = 0;
  int max_steps = 0;
  std::span<const StepOutcome> outcomes;
  /// Of the best so far over the start kernel, by the product of the ratios on the way.
  const SpeedUp& best;
  /// Of the whole run.
  const Usage& usage;
  double seconds = 0;
};

/// Functions that are called while a run goes on, each may be empty. Never two at once, but drafts and
/// evaluations may be reported from other threads than the run's own. They cannot change the run: what they
/// throw is dropped. References are valid during the call only.
struct Observer {
  std::function<void(const RunPreparing&)> preparing{};
  std::function<void(const RunStarted&)> run_started{};
  std::function<void(const Progress&)> progress{};
  std::function<void(const StepStarted&)> step_started{};
  std::function<void(const DraftReady&)> draft_ready{};
  std::function<void(const CandidateEvaluated&)> evaluated{};
  std::function<void(const StepFinished&)> step_finished{};
  /// Also called where the run failed on the way: see the result's error.
  std::function<void(const Result&)> finished{};
  /// Called instead where nothing came of it: the error is about to be thrown.
  std::function<void(const Error&)> failed{};
};

} // namespace mtmc
