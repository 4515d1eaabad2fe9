// Values by backward induction: by hand on a small tree, against play on random ones.

#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/tree_environment.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "toy_trees.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {
/// Mean return of the policy that takes the choice of the largest value.
double played(KernelTree& tree, const TreeOptions& options, int episodes) {
  ExactValues exact(tree, options);
  TreeEnvironment environment(tree, options);
  double sum = 0;
  for (int i = 0; i < episodes; ++i)
    for (environment.reset(); !environment.ended();) {
      const auto values = exact.values_of_choices(environment.state());
      CHECK(values.size() == environment.choices());
      const auto best = std::max_element(values.begin(), values.end()) - values.begin();
      sum += environment.step(static_cast<std::size_t>(best)).reward;
    }
  return sum / episodes;
}
} // namespace

TEST_CASE("by hand: a detour over a slower kernel is worth it, and how often to try") {
  const KernelTree tree = toy::three_ways();
  ExactValues exact(tree, {.reward = {.decays = false, .step_limit = 2}});
  const auto values = exact.values_of_choices({});
  REQUIRE(values.size() == 2);
  // a: 2/3 of 1.03; else -0.1 and once more a or b. b: 0.293, then c: 3 - 0.263 + 0.03 in half of the tries,
  // or stop.
  const double once_a = (2 * 1.03 - 0.1) / 3, b = 0.03 + 0.2630344;
  CHECK(values[0] == Approx((2 * 1.03 + (-0.1 + std::max(once_a, b))) / 3));
  CHECK(values[1] == Approx(b + 0.5 * (3 - 0.2630344 + 0.03) + 0.5 * (0.01 - 0.06)));
  CHECK(exact.value({}) == Approx(values[1]));
}

TEST_CASE("playing by the values returns what they say") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    KernelTree tree = toy::random_tree(seed, 40);
    for (const RewardOptions& reward : {RewardOptions{}, RewardOptions::paper_literal(),
                                        RewardOptions::potential(), RewardOptions::terminal_only()}) {
      const TreeOptions options{.reward = reward, .seed = seed};
      const double value = ExactValues(tree, options).value({});
      CHECK(played(tree, options, 4000) == Approx(value).epsilon(0.06));
    }
  }
}

TEST_CASE("no other way of playing returns more") {
  KernelTree tree = toy::random_tree(11, 80);
  const double value = ExactValues(tree, {}).value({});
  TreeEnvironment environment(tree, {});
  PhiloxEngine player{5};
  double sum = 0;
  constexpr int episodes = 2000;
  for (int i = 0; i < episodes; ++i)
    for (environment.reset(); !environment.ended();)
      sum +=
          environment
              .step(static_cast<std::size_t>(player.uniform() * static_cast<double>(environment.choices())))
              .reward;
  CHECK(sum / episodes < value);
}

TEST_CASE("known outcomes and penalised unknowns") {
  const KernelTree tree = toy::three_ways();
  const RewardOptions plain{.decays = false, .step_limit = 2};
  CHECK(ExactValues(tree, {.children = TreeChildren::best, .reward = plain}).value({}) == Approx(3.06));
  const auto with_unknown =
      ExactValues(tree, {.unknown = UnknownActions::penalise, .reward = plain}).values_of_choices({});
  REQUIRE(with_unknown.size() == 3);
  CHECK(with_unknown[2] < with_unknown[0]);
}
