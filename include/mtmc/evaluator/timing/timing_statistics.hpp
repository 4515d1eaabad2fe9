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

namespace mtmc::inline MTMC_ABI {

/// The middle value; the mean of the two middle ones if their number is even; 0 of nothing.
[[nodiscard]] double median(std::span<const double> values);

/// Probability that the `rank`-th smallest and the `rank`-th largest of `count` independent values do not
/// enclose the median: twice the probability of fewer than `rank` heads in `count` tosses. 1 for rank 0.
[[nodiscard]] double sign_test_error(int count, int rank);

/// The largest rank whose interval misses the median with a probability of at most `error`; 0 if `count` is
/// too small for any.
[[nodiscard]] int sign_test_rank(int count, double error);

/// A median with its interval.
struct MedianInterval {
  /// The median.
  double value = 0;
  /// Lower end of the interval.
  double low = 0;
  /// Upper end of the interval.
  double high = 0;
  /// Probability with which [low, high] encloses the true median.
  double confidence = 0;

  /// Half the width.
  [[nodiscard]] double half_width() const noexcept { return (high - low) / 2; }
};

/// The narrowest interval of order statistics whose error is at most `error`. Where there are too few values
/// for that, it reaches from the smallest to the largest, and `confidence` says how little that is.
[[nodiscard]] MedianInterval median_interval(std::span<const double> values, double error);

/// Numbers of pairs at which one may look whether the answer is clear, and which share of the total error
/// probability each look may spend. Looking as often as one likes would find a winner among equals sooner or
/// later; spending keeps the probability of any wrong interval below the total.
struct TimingLooks {
  /// Rising.
  std::vector<int> pairs{7, 14, 28, 56};
  /// With these the second look at 95 % is one at the third smallest and third largest of 14, with 0.25 in
  /// place of 0.26 it would be one at the second ones.
  std::vector<double> shares{0.34, 0.26, 0.2, 0.2};

  /// Error probability that the look after `pairs[look]` pairs may spend.
  [[nodiscard]] double error_of(std::size_t look, double confidence) const;
  /// What the looks before `count` pairs have left over, for a timing that ends there because its time is
  /// over.
  [[nodiscard]] double error_left(int count, double confidence) const;
};

/// When to stop.
struct StoppingRule {
  /// When one may look.
  TimingLooks looks{};
  /// Probability that the interval covers the true ratio.
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
  /// What the pairs say.
  TimingDecision decision = TimingDecision::go_on;
  /// Of the ratio's logarithm.
  MedianInterval interval;
  /// Error probability that the interval was made for.
  double error = 0;
};

/// Decision of an interval of logarithms of the ratio incumbent / candidate.
[[nodiscard]] TimingDecision decide(const MedianInterval& interval) noexcept;

/// Looks at the logarithms of the ratios after as many pairs as there are: `go_on` between two looks and
/// where nothing is clear yet. `last` = there will be no more pairs, decide on what there is.
[[nodiscard]] TimingAnswer assess(std::span<const double> logarithms, const StoppingRule& rule,
                                  bool last = false);

/// Of every round, the weighted mean over the sizes of the logarithms: entry i of `sizes[s]` is the logarithm
/// of size s in round i. The median of these and its interval are those of the weighted geometric mean. Sizes
/// without a positive weight do not count; as many rounds come back as every counting size has.
[[nodiscard]] std::vector<double> combine_rounds(std::span<const std::vector<double>> sizes,
                                                 std::span<const double> weights);

/// The means of rounds that were taken in two places by turns: of the i-th round of the first `block`, all in
/// one place, and the i-th of the next `block`, all in the other, then of the third and fourth, and so on.
/// What the places differ by is in none of them. A last round without its counterpart does not count.
[[nodiscard]] std::vector<double> over_both_places(std::span<const double> rounds, std::size_t block);

/// How much a time drifted while it was taken: median of the second half over median of the first, 1 for
/// fewer than six times. Far from 1 means that the machine got slower or faster meanwhile, which the pairs
/// cancel but the times themselves do not.
[[nodiscard]] double drift_of(std::span<const double> seconds);

/// Spread of times that should be equal: the median absolute deviation from the median, relative to it.
[[nodiscard]] double relative_spread(std::span<const double> seconds);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/timing/timing_statistics_inl.hpp>
#endif
