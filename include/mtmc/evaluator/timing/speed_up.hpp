#pragma once
/// From the interval of a ratio's logarithm to what an evaluation says of it.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>

#include <cmath>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline SpeedUp speed_up_of(const MedianInterval& interval) {
  SpeedUp result;
  result.value = std::exp(interval.value);
  result.low = std::exp(interval.low);
  result.high = std::exp(interval.high);
  result.confidence = interval.confidence;
  return result;
}

[[nodiscard]] inline Comparison comparison_of(TimingDecision decision) noexcept {
  return decision == TimingDecision::faster   ? Comparison::faster
         : decision == TimingDecision::slower ? Comparison::slower
                                              : Comparison::undecided;
}

} // namespace mtmc::detail
