#pragma once
/// Definitions of evaluator/timing/timing_statistics.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

MTMC_INLINE double sign_test_error(int count, int rank) {
  if (rank <= 0 || 2 * rank > count) return 1;
  double term = std::ldexp(1.0, -count);
  double sum = 0;
  for (int heads = 0; heads < rank; ++heads) {
    sum += term;
    term *= static_cast<double>(count - heads) / (heads + 1);
  }
  return 2 * sum;
}

MTMC_INLINE int sign_test_rank(int count, double error) {
  int rank = 0;
  while (sign_test_error(count, rank + 1) <= error) ++rank;
  return rank;
}

MTMC_INLINE MedianInterval median_interval(std::span<const double> values, double error) {
  MedianInterval result;
  if (values.empty()) return result;
  const auto count = static_cast<int>(values.size());
  const int rank = std::max(1, sign_test_rank(count, error));
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  result.value = median(values);
  result.low = sorted[static_cast<std::size_t>(rank - 1)];
  result.high = sorted[static_cast<std::size_t>(count - rank)];
  result.confidence = count == 1 ? 0 : 1 - sign_test_error(count, rank);
  return result;
}

MTMC_INLINE double TimingLooks::error_of(std::size_t look, double confidence) const {
  double total = 0;
  for (const double share : shares) total += share;
  return look < shares.size() && total > 0 ? (1 - confidence) * shares[look] / total : 0;
}

MTMC_INLINE double TimingLooks::error_left(int count, double confidence) const {
  double left = 1 - confidence;
  for (std::size_t look = 0; look < pairs.size(); ++look)
    if (pairs[look] < count) left -= error_of(look, confidence);
  return std::max(left, 0.0);
}

MTMC_INLINE TimingDecision decide(const MedianInterval& interval) noexcept {
  if (interval.low > 0) return TimingDecision::faster;
  if (interval.high < 0) return TimingDecision::slower;
  return TimingDecision::undecided;
}

MTMC_INLINE TimingAnswer assess(std::span<const double> logarithms, const StoppingRule& rule, bool last) {
  const auto count = static_cast<int>(logarithms.size());
  TimingAnswer answer;
  const auto& pairs = rule.looks.pairs;
  const auto look = static_cast<std::size_t>(std::find(pairs.begin(), pairs.end(), count) - pairs.begin());
  if (look < pairs.size()) {
    // Each look is judged at what it may spend alone; the union bound then covers any order of stopping.
    answer.error = rule.looks.error_of(look, rule.confidence);
    answer.interval = median_interval(logarithms, answer.error);
    answer.interval.confidence = std::min(answer.interval.confidence, rule.confidence);
    const auto decision = decide(answer.interval);
    const bool precise =
        answer.interval.half_width() <= std::max(rule.precision, std::abs(answer.interval.value) / 10);
    const bool decided = decision == TimingDecision::slower ||
                         (decision == TimingDecision::faster && (rule.stop_when_decided || precise));
    const bool equal =
        decision == TimingDecision::undecided && answer.interval.half_width() <= rule.precision;
    // Looks and their errors are set before the first pair, so one more way to stop at a look costs nothing:
    // the interval covers the true ratio as often as it says at every look, whatever is done there.
    const bool worthless = decision == TimingDecision::undecided && answer.interval.high < rule.worthwhile;
    if (decided || equal || worthless || last || look + 1 == pairs.size()) answer.decision = decision;
    return answer;
  }
  answer.error = rule.looks.error_left(count, rule.confidence);
  answer.interval = median_interval(logarithms, answer.error);
  const bool covered = 1 - answer.interval.confidence <= answer.error;
  answer.interval.confidence = std::min(answer.interval.confidence, rule.confidence);
  if (count == rule.overwhelming_pairs) {
    const double bound = std::log(rule.overwhelming_ratio);
    if (answer.interval.low >= bound || answer.interval.high <= -bound) {
      answer.decision = decide(answer.interval);
      return answer;
    }
  }
  // Fewer than six pairs cannot have an interval of 95 %: shown, but never decided on.
  if (last) answer.decision = covered ? decide(answer.interval) : TimingDecision::undecided;
  return answer;
}

MTMC_INLINE std::vector<double> combine_rounds(std::span<const std::vector<double>> sizes,
                                               std::span<const double> weights) {
  double total = 0;
  std::size_t rounds = static_cast<std::size_t>(-1);
  for (std::size_t s = 0; s < sizes.size() && s < weights.size(); ++s) {
    if (!(weights[s] > 0)) continue;
    total += weights[s];
    rounds = std::min(rounds, sizes[s].size());
  }
  if (!(total > 0)) return {};
  std::vector<double> combined(rounds, 0.0);
  for (std::size_t s = 0; s < sizes.size() && s < weights.size(); ++s) {
    if (!(weights[s] > 0)) continue;
    for (std::size_t i = 0; i < rounds; ++i) combined[i] += sizes[s][i] * weights[s] / total;
  }
  return combined;
}

MTMC_INLINE std::vector<double> over_both_places(std::span<const double> rounds, std::size_t block) {
  std::vector<double> means;
  for (std::size_t first = 0; first + block < rounds.size(); first += 2 * block)
    for (std::size_t i = first; i < first + block && i + block < rounds.size(); ++i)
      means.push_back((rounds[i] + rounds[i + block]) / 2);
  return means;
}

MTMC_INLINE double drift_of(std::span<const double> seconds) {
  if (seconds.size() < 6) return 1;
  const auto half = seconds.size() / 2;
  const double early = median(seconds.first(half));
  const double late = median(seconds.last(half));
  return early > 0 ? late / early : 1;
}

MTMC_INLINE double relative_spread(std::span<const double> seconds) {
  const double middle = median(seconds);
  if (!(middle > 0)) return 0;
  std::vector<double> deviations;
  for (const double value : seconds) deviations.push_back(std::abs(value - middle));
  return median(deviations) / middle;
}

} // namespace mtmc
