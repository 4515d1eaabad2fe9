#pragma once
/// From paired times to a speed-up with an honest interval. Pure functions; nothing here measures.
///
/// A pair is one time of the incumbent and one of the candidate on the same inputs, taken directly after one
/// another, so that whatever slows the machine for longer than a pair cancels in their ratio. The statistic
/// is the median of the logarithms of the ratios; its interval is that of the sign test: the k-th smallest
/// and the k-th largest ratio enclose the true median with a probability that is known exactly for whatever
/// distribution the noise has, as long as the pairs are independent (Conover, "Practical Nonparametric
/// Statistics", section 3.2).

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace mtmc {

/// The middle value; the mean of the two middle ones if their number is even; 0 of nothing.
[[nodiscard]] inline double median(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// Probability that the `rank`-th smallest and the `rank`-th largest of `count` independent values do not
/// enclose the median: twice the probability of fewer than `rank` heads in `count` tosses. 1 for rank 0.
[[nodiscard]] inline double sign_test_error(int count, int rank) {
  if (rank <= 0 || 2 * rank > count) return 1;
  double term = std::ldexp(1.0, -count);
  double sum = 0;
  for (int heads = 0; heads < rank; ++heads) {
    sum += term;
    term *= static_cast<double>(count - heads) / (heads + 1);
  }
  return 2 * sum;
}

/// The largest rank whose interval misses the median with a probability of at most `error`; 0 if `count` is
/// too small for any.
[[nodiscard]] inline int sign_test_rank(int count, double error) {
  int rank = 0;
  while (sign_test_error(count, rank + 1) <= error) ++rank;
  return rank;
}

/// A median with its interval.
struct MedianInterval {
  double value = 0;
  double low = 0;
  double high = 0;
  /// Probability with which [low, high] encloses the true median.
  double confidence = 0;

  /// Half the width.
  [[nodiscard]] double half_width() const noexcept { return (high - low) / 2; }
};

/// The narrowest interval of order statistics whose error is at most `error`. Where there are too few values
/// for that, it reaches from the smallest to the largest, and `confidence` says how little that is.
[[nodiscard]] inline MedianInterval median_interval(std::span<const double> values, double error) {
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

/// Numbers of pairs at which one may look whether the answer is clear, and which share of the total error
/// probability each look may spend. Looking as often as one likes would find a winner among equals sooner or
/// later; spending keeps the probability of any wrong interval below the total.
struct TimingLooks {
  std::vector<int> pairs{7, 14, 28, 56};
  /// With these the second look at 95 % is one at the third smallest and third largest of 14, with 0.25 in
  /// place of 0.26 it would be one at the second ones.
  std::vector<double> shares{0.34, 0.26, 0.2, 0.2};

  /// Error probability that the look after `pairs[look]` pairs may spend.
  [[nodiscard]] double error_of(std::size_t look, double confidence) const {
    double total = 0;
    for (const double share : shares) total += share;
    return look < shares.size() && total > 0 ? (1 - confidence) * shares[look] / total : 0;
  }
  /// What the looks before `count` pairs have left over, for a timing that ends there for want of time.
  [[nodiscard]] double error_left(int count, double confidence) const {
    double left = 1 - confidence;
    for (std::size_t look = 0; look < pairs.size(); ++look)
      if (pairs[look] < count) left -= error_of(look, confidence);
    return std::max(left, 0.0);
  }
};

/// When to stop.
struct StoppingRule {
  TimingLooks looks{};
  double confidence = 0.95;
  /// The answer is precise enough if half the interval's width (of the logarithm) is at most this, or at most
  /// a tenth of the logarithm of the speed-up itself.
  double precision = 0.01;
  /// Whether "faster" is answer enough without precision; "slower" always is.
  bool stop_when_decided = true;
  /// A candidate that is not found faster, and whose speed-up is at most this by the interval of a look, ends
  /// there as undecided, however wide the interval is: 0 = only if the interval is precise. A logarithm.
  double worthwhile = 0;
  /// Fewest pairs after which an overwhelming difference ends the timing; 0 = never. The interval then covers
  /// less than `confidence`, and says so.
  int overwhelming_pairs = 3;
  /// What is overwhelming: every single ratio is at least this, or at most its inverse.
  double overwhelming_ratio = 1.5;
};

/// What the pairs so far say.
enum class TimingDecision { go_on, faster, slower, undecided };

/// The answer to "stop?": go on, or a decision; and the interval as of now, in logarithms.
struct TimingAnswer {
  TimingDecision decision = TimingDecision::go_on;
  MedianInterval interval;
  /// Error probability that the interval was made for.
  double error = 0;
};

/// Decision of an interval of logarithms of the ratio incumbent / candidate.
[[nodiscard]] inline TimingDecision decide(const MedianInterval& interval) noexcept {
  if (interval.low > 0) return TimingDecision::faster;
  if (interval.high < 0) return TimingDecision::slower;
  return TimingDecision::undecided;
}

/// Looks at the logarithms of the ratios after as many pairs as there are: `go_on` between two looks and
/// where nothing is clear yet. `last` = there will be no more pairs, decide on what there is.
[[nodiscard]] inline TimingAnswer assess(std::span<const double> logarithms, const StoppingRule& rule,
                                         bool last = false) {
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

/// Of every round, the weighted mean over the sizes of the logarithms: entry i of `sizes[s]` is the logarithm
/// of size s in round i. The median of these and its interval are those of the weighted geometric mean. Sizes
/// without a positive weight do not count; as many rounds come back as every counting size has.
[[nodiscard]] inline std::vector<double> combine_rounds(std::span<const std::vector<double>> sizes,
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

/// How much a time drifted while it was taken: median of the second half over median of the first, 1 for
/// fewer than six times. Far from 1 means that the machine got slower or faster meanwhile, which the pairs
/// cancel but the times themselves do not.
[[nodiscard]] inline double drift_of(std::span<const double> seconds) {
  if (seconds.size() < 6) return 1;
  const auto half = seconds.size() / 2;
  const double early = median(seconds.first(half));
  const double late = median(seconds.last(half));
  return early > 0 ? late / early : 1;
}

/// Spread of times that should be equal: the median absolute deviation from the median, relative to it.
[[nodiscard]] inline double relative_spread(std::span<const double> seconds) {
  const double middle = median(seconds);
  if (!(middle > 0)) return 0;
  std::vector<double> deviations;
  for (const double value : seconds) deviations.push_back(std::abs(value - middle));
  return median(deviations) / middle;
}

} // namespace mtmc
