#include <mtmc/loop/search.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <set>

namespace {
std::vector<mtmc::Action> actions(const std::vector<std::string>& names) {
  std::vector<mtmc::Action> result;
  for (const auto& name : names) {
    mtmc::Action action;
    if (name != "stop") {
      action.kind = mtmc::Action::Kind::optimize;
      action.optimization = name;
      action.region = "k";
    }
    result.push_back(action);
  }
  return result;
}
mtmc::ActionDistribution distribution(std::vector<double> probabilities) {
  mtmc::ActionDistribution result;
  result.probabilities = std::move(probabilities);
  return result;
}
using Indices = std::vector<std::size_t>;
} // namespace

TEST_CASE("ranked puts the largest first and near-ties in the order of their keys") {
  const std::vector<double> values{1, 3, 3 * (1 + 1e-12), 2, 3};
  const std::vector<std::string> keys{"e", "d", "c", "b", "a"};
  CHECK(mtmc::ranked(values, keys) == Indices{4, 2, 1, 3, 0});
  CHECK(mtmc::ranked({}, {}).empty());
}

TEST_CASE("argmax takes the likeliest actions") {
  mtmc::PhiloxEngine random{0};
  const auto legal = actions({"a", "b", "c", "stop"});
  const auto choose = [&](std::vector<double> probabilities, int count) {
    return mtmc::choose_actions(legal, distribution(std::move(probabilities)), count, mtmc::Selection::argmax,
                                1, random);
  };
  CHECK(choose({0.1, 0.5, 0.3, 0.1}, 1).actions == Indices{1});
  CHECK(choose({0.1, 0.5, 0.3, 0.1}, 2).actions == Indices{1, 2});
  CHECK(choose({0.25, 0.25, 0.25, 0.25}, 1).actions == Indices{0});
  SUBCASE("stop first means stop") {
    const auto choice = choose({0.1, 0.2, 0.3, 0.4}, 2);
    CHECK(choice.stop);
    CHECK(choice.actions.empty());
  }
  SUBCASE("stop further down ends the list") {
    const auto choice = choose({0.1, 0.5, 0.1, 0.3}, 3);
    CHECK_FALSE(choice.stop);
    CHECK(choice.actions == Indices{1});
  }
  SUBCASE("what is impossible is not chosen") { CHECK(choose({0, 1, 0, 0}, 3).actions == Indices{1}); }
}

TEST_CASE("sampling draws by the probabilities, sharper when colder") {
  const auto legal = actions({"a", "b", "c", "stop"});
  const auto share = [&](double temperature, std::size_t index) {
    int hits = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      mtmc::PhiloxEngine random{seed};
      const auto choice = mtmc::choose_actions(legal, distribution({0.6, 0.3, 0, 0.1}), 1,
                                               mtmc::Selection::sample, temperature, random);
      if (index == 3 ? choice.stop : choice.actions == Indices{index}) ++hits;
    }
    return hits / 4000.0;
  };
  CHECK(share(1, 0) == doctest::Approx(0.6).epsilon(0.05));
  CHECK(share(1, 1) == doctest::Approx(0.3).epsilon(0.07));
  CHECK(share(1, 2) == 0);
  CHECK(share(1, 3) == doctest::Approx(0.1).epsilon(0.15));
  CHECK(share(0.01, 0) == 1);
  CHECK(share(0.5, 0) == doctest::Approx(0.36 / 0.46).epsilon(0.05));
  SUBCASE("several draws are different actions") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      mtmc::PhiloxEngine random{seed};
      const auto choice = mtmc::choose_actions(legal, distribution({0.4, 0.3, 0.3, 0}), 3,
                                               mtmc::Selection::sample, 1, random);
      CHECK(std::set<std::size_t>(choice.actions.begin(), choice.actions.end()).size() == 3);
    }
  }
}

TEST_CASE("a distribution has one probability per action and sums to 1") {
  CHECK_NOTHROW(mtmc::check_distribution(distribution({0.5, 0.5 + 5e-7}), 2));
  CHECK_THROWS_AS(mtmc::check_distribution(distribution({0.5, 0.5}), 3), mtmc::Error);
  CHECK_THROWS_AS(mtmc::check_distribution(distribution({0.5, 0.5 + 5e-6}), 2), mtmc::Error);
  CHECK_THROWS_AS(mtmc::check_distribution(distribution({1.1, -0.1}), 2), mtmc::Error);
  CHECK_THROWS_AS(mtmc::check_distribution(distribution({INFINITY, 0}), 2), mtmc::Error);
}
