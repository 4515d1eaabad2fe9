// What steps are worth: the order of the stages, and the traps of each preset.

#include <mtmc/train/reward.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace mtmc;
using doctest::Approx;

namespace {
const RewardedStep no_compile{StepStage::not_compiled};
const RewardedStep wrong{StepStage::wrong};
RewardedStep right(double speed_up, double deviation = 0) {
  return {StepStage::correct, std::log2(speed_up), deviation};
}
/// Of the first step of an episode.
double first(const RewardedStep& step, const RewardOptions& options = {}) {
  RewardState state;
  return reward_of(options, state, step);
}
/// Of slowing down by a factor and speeding up again, in turns to the end of the episode.
double of_a_loop(const RewardOptions& options, double factor) {
  RewardState state;
  double sum = 0;
  while (state.step < options.step_limit)
    sum += reward_of(options, state, right(state.step % 2 == 0 ? 1 / factor : 1));
  return sum + reward_at_end(options, state);
}
} // namespace

TEST_CASE("stages are worth more from step to step of quality") {
  CHECK(first(no_compile) == Approx(-0.1));
  CHECK(first(wrong) == Approx(-0.05));
  CHECK(first(right(1)) == Approx(0).epsilon(1e-12));
  CHECK(first(right(1.2)) == Approx(0.293).epsilon(1e-3));
  CHECK(first(right(2)) == Approx(1.03));
  CHECK(first(right(64)) == Approx(3.03));
  CHECK(first(right(0.5)) == Approx(-0.03));
}

TEST_CASE("what lies within the noise of a measurement is no gain") {
  CHECK(first(right(1.03)) > 0.04);
  CHECK(first(right(1.03, 0.02)) < 1e-12);
  CHECK(first(right(1.01)) < 1e-12);
}

TEST_CASE("rewards shrink with each step, what failures take does not") {
  RewardState late;
  late.step = 6;
  CHECK(reward_of({}, late, right(2)) == Approx(0.25 * 1.03));
  late.step = 6;
  CHECK(reward_of({}, late, no_compile) == Approx(-0.1));
}

TEST_CASE("no loop pays where the best kernel so far is the reference") {
  for (const double factor : {1.03, 1.5, 2.0, 4.0}) CHECK(of_a_loop({}, factor) < 0);
  CHECK(of_a_loop(RewardOptions::potential(), 2) < 0);
  CHECK(of_a_loop(RewardOptions::terminal_only(), 2) == 0);
}

TEST_CASE("the trap of the paper's words: slowing down and speeding up in turns pays") {
  CHECK(of_a_loop(RewardOptions::paper_literal(), 2) > 0);
  CHECK(of_a_loop(RewardOptions::paper_literal(), 4) > of_a_loop(RewardOptions::paper_literal(), 2));
}

TEST_CASE("a potential is paid once") {
  RewardState state;
  const RewardOptions once = RewardOptions::potential();
  const double at_first = reward_of(once, state, right(1));
  CHECK(reward_of(once, state, right(1)) < at_first);
  CHECK(reward_of(once, state, right(1)) == Approx(-0.03));
}

TEST_CASE("the end alone is the speed-up of the best kernel, whatever came on the way") {
  RewardState state;
  const RewardOptions end = RewardOptions::terminal_only();
  for (const RewardedStep& step : {right(2), no_compile, right(1.5), wrong})
    CHECK(reward_of(end, state, step) == 0);
  CHECK(reward_at_end(end, state) == Approx(1));
  CHECK(reward_at_end({}, state) == 0);
}

TEST_CASE("strong shaping makes stopping better than trying where steps seldom succeed") {
  // One step in five doubles the speed; the others do not compile.
  const auto of_a_try = [](double shaping) {
    const RewardOptions options{.shaping = shaping};
    return 0.2 * first(right(2), options) + 0.8 * first(no_compile, options);
  };
  CHECK(of_a_try(0.1) > 0);
  CHECK(of_a_try(1) < 0);
}
