#pragma once
/// What an evaluation says about speed: the ratio to the incumbent, and whether it is proven.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/loop/search.hpp>

#include <cmath>

namespace mtmc::inline MTMC_ABI::detail {

/// A candidate against another kernel.
struct Gain {
  SpeedUp ratio{};
  /// `not_timed`: nothing is known of the ratio.
  Comparison comparison = Comparison::not_timed;

  [[nodiscard]] bool timed() const noexcept { return comparison != Comparison::not_timed; }
  [[nodiscard]] bool faster() const noexcept { return comparison == Comparison::faster; }
};

/// What an interval proves; where there is none, what the ratio alone says.
[[nodiscard]] inline Comparison compare(const SpeedUp& ratio) noexcept {
  if (ratio.low > 1 + near_tie) return Comparison::faster;
  if (ratio.high < 1 - near_tie) return Comparison::slower;
  return Comparison::undecided;
}

/// A correct candidate against the incumbent it was judged with. An evaluator need not fill everything in:
/// without a comparison the interval decides, without a speed-up the ratio of the seconds, which then has no
/// interval.
[[nodiscard]] inline Gain gain_of(const Evaluation& evaluation, double incumbent_seconds) noexcept {
  Gain gain;
  if (!evaluation.correct()) return gain;
  if (evaluation.speed_up) {
    gain.ratio = *evaluation.speed_up;
  } else if (evaluation.seconds > 0 && incumbent_seconds > 0) {
    gain.ratio = SpeedUp::without_interval(incumbent_seconds / evaluation.seconds);
  } else {
    return gain;
  }
  if (!std::isfinite(gain.ratio.value) || gain.ratio.value <= 0) return {};
  gain.comparison =
      evaluation.comparison != Comparison::not_timed ? evaluation.comparison : compare(gain.ratio);
  return gain;
}

/// a over b and b over c make a over c; of an unknown interval and another comes an unknown one.
[[nodiscard]] inline SpeedUp product(const SpeedUp& first, const SpeedUp& second) {
  SpeedUp result;
  result.value = first.value * second.value;
  result.low = first.low * second.low;
  result.high = first.high * second.high;
  result.confidence = first.confidence < second.confidence ? first.confidence : second.confidence;
  return result;
}

/// A gain over one kernel as a gain over another that is `factor` times slower than it, which is taken as
/// known.
[[nodiscard]] inline Gain scaled(Gain gain, double factor) noexcept {
  gain.ratio.value *= factor;
  gain.ratio.low *= factor;
  gain.ratio.high *= factor;
  if (gain.timed()) gain.comparison = compare(gain.ratio);
  return gain;
}

} // namespace mtmc::detail
