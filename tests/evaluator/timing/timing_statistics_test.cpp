#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/philox.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace mtmc;

namespace {

/// Timing noise as machines have it: most calls close together, a long tail of slow ones, now and then an
/// interruption.
double noisy(double seconds, PhiloxEngine& random, double width) {
  double value = seconds * (1 + width * std::pow(random.uniform(), 4.0));
  if (random.uniform() < 0.03) value *= 1 + 3 * random.uniform();
  return value;
}

struct Simulation {
  int covered = 0;
  int faster = 0;
  int slower = 0;
  int undecided = 0;
  double pairs = 0;
};

/// `runs` whole evaluations of a candidate that is `ratio` times as fast as the incumbent.
Simulation simulate(double ratio, int runs, const StoppingRule& rule, double width, std::uint64_t seed) {
  PhiloxEngine random(seed);
  Simulation result;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> logarithms;
    TimingAnswer answer;
    do {
      // A drift that both sides share.
      const double drift = 1 + 0.1 * std::sin(static_cast<double>(logarithms.size()));
      const double incumbent = noisy(ratio * drift, random, width);
      const double candidate = noisy(drift, random, width);
      logarithms.push_back(std::log(incumbent / candidate));
      answer = assess(logarithms, rule);
    } while (answer.decision == TimingDecision::go_on);
    result.pairs += static_cast<double>(logarithms.size()) / runs;
    result.covered +=
        answer.interval.low <= std::log(ratio) && std::log(ratio) <= answer.interval.high ? 1 : 0;
    result.faster += answer.decision == TimingDecision::faster ? 1 : 0;
    result.slower += answer.decision == TimingDecision::slower ? 1 : 0;
    result.undecided += answer.decision == TimingDecision::undecided ? 1 : 0;
  }
  return result;
}

} // namespace

TEST_CASE("the sign test's errors are those of coin tosses") {
  CHECK(sign_test_error(6, 1) == doctest::Approx(2.0 / 64));
  CHECK(sign_test_error(7, 1) == doctest::Approx(2.0 / 128));
  CHECK(sign_test_error(10, 2) == doctest::Approx(2.0 * 11 / 1024));
  CHECK(sign_test_error(5, 0) == 1);
  CHECK(sign_test_rank(5, 0.05) == 0);
  CHECK(sign_test_rank(6, 0.05) == 1);
  CHECK(sign_test_rank(20, 0.05) == 6);
}

TEST_CASE("a median's interval is made of order statistics") {
  const std::vector<double> values{9, 1, 8, 2, 7, 3, 6, 4, 5, 10};
  const auto interval = median_interval(values, 0.05);
  CHECK(interval.value == 5.5);
  CHECK(interval.low == 2);
  CHECK(interval.high == 9);
  CHECK(interval.confidence == doctest::Approx(1 - 22.0 / 1024));
}

TEST_CASE("too few values give their whole range and an honest, low confidence") {
  const std::vector<double> three{1, 2, 4};
  const auto interval = median_interval(three, 0.05);
  CHECK(interval.low == 1);
  CHECK(interval.high == 4);
  CHECK(interval.confidence == doctest::Approx(0.75));
  CHECK(median_interval(std::vector<double>{2}, 0.05).confidence == 0);
  CHECK(median_interval({}, 0.05).confidence == 0);
}

TEST_CASE("looks spend no more than the whole error probability") {
  const TimingLooks looks;
  double spent = 0;
  for (std::size_t look = 0; look < looks.pairs.size(); ++look) {
    spent += looks.error_of(look, 0.95);
    // Every look can decide.
    CHECK(sign_test_rank(looks.pairs[look], looks.error_of(look, 0.95)) >= 1);
  }
  CHECK(spent == doctest::Approx(0.05));
  CHECK(sign_test_rank(14, looks.error_of(1, 0.95)) == 3);
  CHECK(looks.error_left(7, 0.95) == doctest::Approx(0.05));
  CHECK(looks.error_left(8, 0.95) == doctest::Approx(0.05 - looks.error_of(0, 0.95)));
}

TEST_CASE("the 95 % interval covers the true ratio in at least 95 % of evaluations, whenever it stops") {
  StoppingRule explore;
  StoppingRule promote;
  promote.stop_when_decided = false;
  promote.overwhelming_pairs = 0;
  for (const double width : {0.02, 0.3}) {
    for (const double ratio : {1.0, 1.03, 1.2}) {
      CAPTURE(width);
      CAPTURE(ratio);
      CHECK(simulate(ratio, 2000, explore, width, 1).covered >= 1900);
      CHECK(simulate(ratio, 2000, promote, width, 2).covered >= 1900);
    }
  }
}

TEST_CASE("a kernel against itself is hardly ever called faster or slower") {
  const auto result = simulate(1.0, 2000, {}, 0.05, 3);
  CHECK(result.faster + result.slower <= 100);
  CHECK(result.undecided >= 1900);
}

TEST_CASE("a difference of 3 % is found in the right direction or left undecided") {
  const auto faster = simulate(1.03, 1000, {}, 0.05, 4);
  CHECK(faster.slower <= 10);
  CHECK(faster.faster > 700);
  const auto slower = simulate(1 / 1.03, 1000, {}, 0.05, 5);
  CHECK(slower.faster <= 10);
}

TEST_CASE("an overwhelming difference takes three pairs, and says how sure that is") {
  StoppingRule rule;
  const std::vector<double> twice(3, std::log(2.0));
  CHECK(assess(std::span(twice).first(2), rule).decision == TimingDecision::go_on);
  const auto answer = assess(twice, rule);
  CHECK(answer.decision == TimingDecision::faster);
  CHECK(answer.interval.confidence == doctest::Approx(0.75));
  const std::vector<double> half(3, -std::log(2.0));
  CHECK(assess(half, rule).decision == TimingDecision::slower);
  // One pair in doubt is enough to go on.
  CHECK(assess(std::vector<double>{0.7, 0.7, 0.3}, rule).decision == TimingDecision::go_on);
  rule.overwhelming_pairs = 0;
  CHECK(assess(twice, rule).decision == TimingDecision::go_on);
}

TEST_CASE("equal kernels end as undecided once the interval is narrow enough") {
  StoppingRule rule;
  std::vector<double> logarithms;
  for (int i = 0; i < 7; ++i) logarithms.push_back(i % 2 == 0 ? 0.002 : -0.002);
  CHECK(assess(logarithms, rule).decision == TimingDecision::undecided);
}

TEST_CASE("a candidate that cannot bring what is worthwhile ends at a look, however wide the interval") {
  StoppingRule rule;
  rule.worthwhile = std::log(1.02);
  const std::vector<double> wide{-0.3, -0.2, -0.05, 0.0, 0.005, 0.01, 0.015};
  const auto answer = assess(wide, rule);
  CHECK(answer.decision == TimingDecision::undecided);
  CHECK(answer.interval.low == -0.3);
  CHECK(answer.interval.high == 0.015);
  CHECK(assess(std::span(wide).first(6), rule).decision == TimingDecision::go_on);
  CHECK(assess(wide, {}).decision == TimingDecision::go_on);
  // It may bring more.
  auto promising = wide;
  promising.back() = 0.03;
  CHECK(assess(promising, rule).decision == TimingDecision::go_on);
  // A small gain that is certain is found.
  CHECK(assess(std::vector<double>(7, 0.01), rule).decision == TimingDecision::faster);
}

TEST_CASE("stopping for want of a worthwhile gain keeps the interval honest, and saves pairs") {
  StoppingRule rule;
  rule.worthwhile = std::log(1.02);
  for (const double width : {0.02, 0.1, 0.3})
    for (const double ratio : {0.97, 1.0, 1.015, 1.03}) {
      CAPTURE(width);
      CAPTURE(ratio);
      CHECK(simulate(ratio, 2000, rule, width, 6).covered >= 1900);
    }
  CHECK(simulate(1.0, 500, rule, 0.1, 7).pairs < 0.8 * simulate(1.0, 500, {}, 0.1, 7).pairs);
  CHECK(simulate(1.03, 1000, rule, 0.05, 8).faster > 700);
}

TEST_CASE("the last pair ends in a decision only with full confidence") {
  const StoppingRule rule;
  const std::vector<double> five(5, 0.1);
  CHECK(assess(five, rule, true).decision == TimingDecision::undecided);
  CHECK(assess(five, rule, true).interval.confidence == doctest::Approx(0.9375));
  const std::vector<double> nine(9, 0.1);
  CHECK(assess(nine, rule, false).decision == TimingDecision::go_on);
  CHECK(assess(nine, rule, true).decision == TimingDecision::faster);
}

TEST_CASE("promotion goes on until the figure is precise, except where the candidate is slower") {
  StoppingRule rule;
  rule.stop_when_decided = false;
  const std::vector<double> rough{0.02, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3};
  CHECK(assess(rough, rule).decision == TimingDecision::go_on);
  const std::vector<double> steady{1.99, 2.0, 2.01, 2.0, 2.02, 1.98, 2.0};
  CHECK(assess(steady, rule).decision == TimingDecision::faster);
  std::vector<double> slower;
  for (const double value : rough) slower.push_back(-value);
  CHECK(assess(slower, rule).decision == TimingDecision::slower);
}

TEST_CASE("sizes are combined round by round into a weighted geometric mean") {
  const std::vector<std::vector<double>> sizes{{1, 2, 3}, {4, 5}, {100, 100}};
  const auto combined = combine_rounds(sizes, std::vector<double>{3, 1, 0});
  REQUIRE(combined.size() == 2);
  CHECK(combined[0] == doctest::Approx((3 * 1 + 4) / 4.0));
  CHECK(combined[1] == doctest::Approx((3 * 2 + 5) / 4.0));
  CHECK(combine_rounds(sizes, std::vector<double>{0, 0, 0}).empty());
}

TEST_CASE("means over two places hold nothing of what the places differ by") {
  // A gain of 1, and 0.5 more in the first place than in the second.
  std::vector<double> rounds;
  for (const double place : {0.25, -0.25, 0.25, -0.25})
    for (int i = 0; i < 3; ++i) rounds.push_back(1 + place + 0.01 * i);
  const auto means = over_both_places(rounds, 3);
  REQUIRE(means.size() == 6);
  for (std::size_t i = 0; i < means.size(); ++i)
    CHECK(means[i] == doctest::Approx(1 + 0.01 * static_cast<double>(i % 3)));
  rounds.resize(8); // the second block lacks its counterpart, the first one has its own
  CHECK(over_both_places(rounds, 3).size() == 3);
  rounds.resize(4);
  CHECK(over_both_places(rounds, 3).size() == 1);
  rounds.resize(3);
  CHECK(over_both_places(rounds, 3).empty());
  CHECK(over_both_places({}, 3).empty());
}

TEST_CASE("drift and spread tell a quiet machine from a busy one") {
  CHECK(drift_of(std::vector<double>{1, 1, 1, 2, 2, 2}) == doctest::Approx(2));
  CHECK(drift_of(std::vector<double>{1, 2}) == 1);
  CHECK(relative_spread(std::vector<double>{1, 1.1, 0.9}) == doctest::Approx(0.1));
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK(median({}) == 0);
}
