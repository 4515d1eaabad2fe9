#pragma once
/// The backend's clock.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>
#include <mtmc/evaluator/timing/timing_conditions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

inline constexpr std::string_view time_the_group =
    "Measure wall-clock seconds from the first launch of the whole group to its last completion: wait for "
    "the device before and after";

[[nodiscard]] inline double timed(AnyBackend& backend, AnyBackend::Program& program,
                                  std::span<const LaunchPlan> group, bool cold) {
  const auto result = backend.time(program, group, cold, soon());
  if (!result.status.finished())
    throw Unusable{unexpected("a timed run that finishes", in_words(result.status),
                              "What `run` can do, `time` must be able to do")};
  if (!(result.seconds > 0 && result.seconds < 60))
    throw Unusable{
        unexpected("positive seconds below 60", std::to_string(result.seconds) + " s", time_the_group)};
  return result.seconds;
}

/// The middle one of three.
[[nodiscard]] inline double typical_seconds(AnyBackend& backend, AnyBackend::Program& program,
                                            std::span<const LaunchPlan> group) {
  std::array<double, 3> seconds{};
  for (auto& each : seconds) each = timed(backend, program, group, false);
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

[[nodiscard]] inline Finding check_seconds(Trial& trial, bool cold) {
  const auto& text = trial.probe().vector_add;
  BoundPlan bound(trial.backend(), trial.plan(text, 100'003));
  for (int i = 0; i < 3; ++i) {
    (void)timed(trial.backend(), *trial.program(text), {&bound.plan(), 1}, cold);
    if (auto wrong = bound.wrong_sum(1, 1, "A timed run computes what any other run does")) return *wrong;
    bound.forget();
  }
  return {};
}

[[nodiscard]] inline Finding check_group(Trial& trial) {
  const auto& text = trial.probe().several_launches;
  std::vector<std::unique_ptr<BoundPlan>> plans;
  std::vector<LaunchPlan> group;
  for (int i = 0; i < 5; ++i) {
    plans.push_back(std::make_unique<BoundPlan>(trial.backend(), trial.plan(text, 1000 + i)));
    group.push_back(plans.back()->plan());
  }
  (void)timed(trial.backend(), *trial.program(text), group, true);
  for (auto& plan : plans)
    if (auto wrong = plan->wrong_sum(3, 2, "Run every launch of every plan of the group")) return *wrong;
  return {};
}

/// What a cold call of `vector_add` takes at least of the warm one after it, in most rounds, at the size
/// where it shows best. On a CPU it is twice and more; on an H100 1.09 times, since most of so short a call
/// is its launch.
inline constexpr double least_cold_share = 1.03;
/// How many cold calls of `rounds` took longer than the warm one after them, at one size.
struct ColdRounds {
  std::int64_t bytes = 0; ///< of all three buffers
  int rounds = 0, longer = 0;

  /// Whether chance alone hardly gives so many: once in 500 times where `cold` changes nothing.
  [[nodiscard]] bool clear() const noexcept { return longer >= (rounds <= 25 ? 20 : 50); }
  /// Whether there are more than where `cold` changes nothing, but so few that it is not clear: 45 of 75 were
  /// seen beside six busy processes on two processors.
  [[nodiscard]] bool disturbed() const noexcept { return !clear() && longer > rounds / 2 + 2; }
};

/// Makes rounds until there are `wanted`. Cold and warm take turns, because whoever disturbs for a while
/// disturbs both of a pair.
inline void add_cold_rounds(Trial& trial, ColdRounds& at, int wanted) {
  const auto& text = trial.probe().vector_add;
  const auto program = trial.program(text);
  BoundPlan bound(trial.backend(), trial.plan(text, at.bytes / 12));
  for (; at.rounds < wanted; ++at.rounds) {
    const double cold = timed(trial.backend(), *program, {&bound.plan(), 1}, true);
    const double warm = timed(trial.backend(), *program, {&bound.plan(), 1}, false);
    if (cold >= least_cold_share * warm) ++at.longer;
  }
}

/// Processors kept busy by others from which on a cache belongs to them: with 1.5 of 2, 34 to 39 of 75 cold
/// calls were the longer ones, as chance has it.
inline constexpr double crowded = 0.5;

[[nodiscard]] inline Finding check_evicts(Trial& trial) {
  const auto before = conditions_of(trial.backend());
  // One of these fits a cache that is not mostly used by others.
  std::array<ColdRounds, 5> sizes{{{1 << 18}, {1 << 20}, {1 << 22}, {1 << 24}, {1 << 25}}};
  for (auto& size : sizes) {
    add_cold_rounds(trial, size, 25);
    if (size.clear()) return {};
  }
  // On a loaded machine 19 of 25 were seen where 20 are clear: the best size gets more rounds.
  auto& best = *std::ranges::max_element(sizes, {}, &ColdRounds::longer);
  add_cold_rounds(trial, best, 75);
  if (best.clear()) return {};
  const auto met = conditions_between(before, conditions_of(trial.backend()));
  if (best.disturbed() || met.others_busy.value_or(0) > crowded)
    return not_tried("a cold call took longer than a warm one in " + std::to_string(best.longer) + " of " +
                     std::to_string(best.rounds) +
                     " rounds, which is neither often nor seldom: try again when the machine is less busy");
  const auto got = std::to_string(best.longer) + " of " + std::to_string(best.rounds);
  if (trial.backend().device().caches.empty())
    return not_tried("a cold call takes longer than a warm one in " + got +
                     " rounds only, and the device names no caches (Device::caches): if it has some, name "
                     "them");
  return unexpected("a cold call to take longer than a warm one in 50 of 75 rounds, at one size at least",
                    got,
                    "With `cold`, evict the buffers of the group from all caches before the clock starts");
}

/// Ten times the work takes at least so many times as long, whatever the overhead of a call.
inline constexpr double least_growth = 2;

[[nodiscard]] inline Finding check_more_work(Trial& trial) {
  const auto& text = trial.probe().slow_add;
  const auto program = trial.program(text);
  BoundPlan little(trial.backend(), trial.plan(text, 4096, 4000));
  BoundPlan much(trial.backend(), trial.plan(text, 4096, 40'000));
  (void)timed(trial.backend(), *program, {&little.plan(), 1}, false);
  const double one = typical_seconds(trial.backend(), *program, {&little.plan(), 1});
  const auto more = [&](std::string_view what, double seconds) {
    return unexpected("at least " + std::to_string(static_cast<int>(least_growth)) + " times the " +
                          std::to_string(one * 1e6) + " us of one call for " + std::string(what),
                      std::to_string(seconds * 1e6) + " us", time_the_group);
  };
  if (const double ten = typical_seconds(trial.backend(), *program, {&much.plan(), 1});
      ten < least_growth * one)
    return more("one call with ten times the work", ten);
  const std::vector<LaunchPlan> group(10, little.plan());
  if (const double ten = typical_seconds(trial.backend(), *program, group); ten < least_growth * one)
    return more("a group of ten calls", ten);
  return {};
}

} // namespace detail

/// What `time` reports and does.
inline void check_times(Trial& trial) {
  trial.check("time.warm", "a timed run takes positive seconds and computes the result", {"run.result"},
              [&] { return detail::check_seconds(trial, false); });
  trial.check("time.cold", "so does one with cold caches", {"run.result"},
              [&] { return detail::check_seconds(trial, true); });
  trial.check("time.evicts", "a call with cold caches takes longer than one with warm ones",
              {"time.warm", "time.cold"}, [&] { return detail::check_evicts(trial); });
  trial.check("time.group", "all plans of a group run", {"run.several_launches", "time.cold"},
              [&] { return detail::check_group(trial); });
  trial.check("time.more_work", "ten times the work takes longer, in one call and in a group", {"time.warm"},
              [&] { return detail::check_more_work(trial); });
}

} // namespace mtmc::test
