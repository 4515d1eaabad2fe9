#pragma once
/// What a step of a search is worth to the policy that chose it: grows from "compiles" over "is right" to "is
/// faster", and shrinks with each step (paper, section 4.2, which names the order and no number).

#include <mtmc/requirements.hpp>

#include <mtmc/core/enum_names.hpp>

#include <algorithm>
#include <cmath>

namespace mtmc::inline MTMC_ABI {

/// What came of a step.
enum class StepStage {
  /// The coder had no answer, or it did not compile.
  not_compiled,
  /// It compiled, and its results are wrong, or it crashed, or took too long.
  wrong,
  /// It is right, and its time is known.
  correct
};

namespace detail {
inline constexpr EnumName<StepStage> step_stage_names[] = {
    {StepStage::not_compiled, "not_compiled"}, {StepStage::wrong, "wrong"}, {StepStage::correct, "correct"}};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<StepStage>> enum_names(StepStage) noexcept {
  return detail::step_stage_names;
}

/// Which kernel a new one has to be faster than.
enum class RewardReference {
  /// The fastest one of the episode so far: logarithms of speed-ups add up to that of the episode.
  best_so_far,
  /// The one that the step started from. Slowing down and speeding up in turns is paid each time.
  previous
};

/// When rewards are paid.
enum class RewardTiming {
  /// In each step.
  every_step,
  /// In each step; for compiling and for being right only the first time in an episode.
  first_time,
  /// At the end of the episode: the logarithm of its speed-up, and nothing else.
  at_the_end
};

/// The constants of the reward. Those of the default make a step that gains nothing worth 0 at first and less
/// than 0 later, so that no loop pays, and failures cheap enough that stopping at once is not the best policy
/// (that is what larger `shaping` leads to where few steps succeed).
struct RewardOptions {
  RewardReference reference = RewardReference::best_so_far; ///< what must be beaten
  RewardTiming timing = RewardTiming::every_step;           ///< when it is paid
  /// Scale of what is paid for compiling and being right and taken for failures; 0 or more, and never above
  /// the logarithm to base 2 of the speed-up that is expected of a step.
  double shaping = 0.1;
  /// Rewards of a step are multiplied with 1 - step / step_limit; what is taken is not, since late failures
  /// would be free.
  bool decays = true;
  /// Steps of an episode, above 0.
  int step_limit = 8;
  /// A kernel is faster if its speed-up over the reference is at least 1 plus this, or plus two deviations of
  /// the measurement where that is more.
  double minimum_gain = 0.02;
  /// Largest logarithm to base 2 of a speed-up that is paid for one step.
  double largest_gain = 3;

  friend bool operator==(const RewardOptions&, const RewardOptions&) = default; ///< member by member

  /// Against the previous kernel, as the paper's words say. It can be exploited by a loop.
  [[nodiscard]] static RewardOptions paper_literal() { return {.reference = RewardReference::previous}; }
  /// What is paid for reaching a stage is paid once: a difference of potentials.
  [[nodiscard]] static RewardOptions potential() { return {.timing = RewardTiming::first_time}; }
  /// The logarithm of the episode's speed-up at its end: what evaluations of policies report.
  [[nodiscard]] static RewardOptions terminal_only() {
    return {.timing = RewardTiming::at_the_end, .shaping = 0, .decays = false};
  }
};

/// What a reward remembers of an episode. Speed-ups are logarithms to base 2 over the start kernel.
struct RewardState {
  int step = 0;           ///< steps taken
  double previous = 0;    ///< of the kernel that the next step starts from
  double best = 0;        ///< of the fastest one
  bool compiled = false;  ///< a step has compiled
  bool was_right = false; ///< a step was right

  friend bool operator==(const RewardState&, const RewardState&) = default; ///< member by member
};

/// What a step is judged by.
struct RewardedStep {
  StepStage outcome = StepStage::not_compiled; ///< what came of it
  /// Of a right kernel: logarithm to base 2 of its speed-up over the start kernel.
  double log2_speed_up = 0;
  /// Relative standard deviation of that speed-up.
  double deviation = 0;
};

/// The reward of a step of an episode in that state; the state is then that behind the step (a failed step
/// leaves the kernel as it was). With s = `shaping`, d = 1 - step / step_limit, and g the logarithm of the
/// gain over the reference, cut at `largest_gain`:
///
///     did not compile   -1.0 s
///     wrong              0.1 s d - 0.6 s
///     right, no gain     0.3 s d - 0.3 s (1 + min(1, -g))
///     right, faster      0.3 s d + g d
[[nodiscard]] inline double reward_of(const RewardOptions& options, RewardState& state,
                                      const RewardedStep& step) {
  const double left = 1 - static_cast<double>(state.step) / options.step_limit;
  const double weight = options.decays ? std::max(left, 0.0) : 1;
  const bool compiled = step.outcome != StepStage::not_compiled;
  const bool right = step.outcome == StepStage::correct;
  const double reference = options.reference == RewardReference::best_so_far ? state.best : state.previous;
  const double gain = right ? step.log2_speed_up - reference : 0;
  const double least = std::log2(1 + std::max(options.minimum_gain, 2 * step.deviation));
  const bool faster = right && gain >= least;

  const bool once = options.timing == RewardTiming::first_time;
  double paid = 0, taken = 0;
  if (compiled && !(once && state.compiled)) paid += 0.1 * options.shaping;
  if (right && !(once && state.was_right)) paid += 0.2 * options.shaping;
  if (faster) paid += std::min(gain, options.largest_gain);
  if (!compiled)
    taken = options.shaping;
  else if (!right)
    taken = 0.6 * options.shaping;
  else if (!faster)
    taken = 0.3 * options.shaping * (1 + std::clamp(-gain, 0.0, 1.0));

  ++state.step;
  state.compiled = state.compiled || compiled;
  state.was_right = state.was_right || right;
  if (right) {
    state.previous = step.log2_speed_up;
    state.best = std::max(state.best, step.log2_speed_up);
  }
  return options.timing == RewardTiming::at_the_end ? 0 : weight * paid - taken;
}

/// What the end of an episode in that state is worth.
[[nodiscard]] inline double reward_at_end(const RewardOptions& options, const RewardState& state) {
  return options.timing == RewardTiming::at_the_end ? state.best : 0;
}

} // namespace mtmc
