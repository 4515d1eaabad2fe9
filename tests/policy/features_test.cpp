// What a small network sees: a fixed list of named numbers, the kernel's apart from the way's.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;
using doctest::Approx;
using observed::action;

namespace {

/// The value of a named feature.
double named(const std::vector<std::string>& names, std::span<const double> values, std::string_view name) {
  const auto place = std::find(names.begin(), names.end(), name);
  REQUIRE(place != names.end());
  return values[static_cast<std::size_t>(place - names.begin())];
}

Observation two_loops() {
  auto seen = observed::with_seconds(1e-3);
  seen.device.kind = "cpu";
  seen.structure.regions = {observed::loop("f/i"), observed::loop("f/j")};
  seen.structure.regions.back().facts.flops = 2.5e8;
  seen.structure.flops = 1.25e9;
  return seen;
}

const std::vector<Action> legal{action("tiling", "f/i"), action("vectorization", "f/j"), Action::stop()};

HistoryEntry tried(const Action& action, Verdict verdict, double ratio, bool kept) {
  HistoryEntry entry;
  entry.action_key = action.key();
  entry.verdict = verdict;
  entry.speed_up = SpeedUp{.value = ratio, .low = ratio, .high = ratio};
  entry.kept = kept;
  return entry;
}

} // namespace

TEST_CASE("features: names are unique, and as many as numbers") {
  for (const auto* names : {&state_feature_names(), &action_feature_names()})
    CHECK(std::set<std::string>(names->begin(), names->end()).size() == names->size());
  const auto features = kernel_features(two_loops(), legal);
  CHECK(features.kernel.size() == kernel_feature_count());
  CHECK(features.actions.size() == legal.size() * action_feature_count());
  std::vector<double> state, actions;
  append_state(features.kernel, {}, state);
  append_action(std::span(features.actions).first(action_feature_count()), legal[0].key(), {}, actions);
  CHECK(state.size() == state_feature_names().size());
  CHECK(actions.size() == action_feature_names().size());
  CHECK(std::all_of(state.begin(), state.end(), [](double one) { return std::abs(one) <= 2; }));
}

TEST_CASE("features: every optimisation type of the library has its own") {
  const auto& names = action_feature_names();
  for (const auto& type : ActionSpace::extended().types) {
    CAPTURE(type.id);
    CHECK(std::find(names.begin(), names.end(), "type " + type.id) != names.end());
  }
}

TEST_CASE("features: an action's say its type, its region, and its share of the work") {
  const auto features = kernel_features(two_loops(), legal);
  const auto of = [&](std::size_t i) {
    return std::span(features.actions).subspan(i * action_feature_count(), action_feature_count());
  };
  const auto& names = action_feature_names();
  CHECK(named(names, of(0), "type tiling") == 1);
  CHECK(named(names, of(0), "type vectorization") == 0);
  CHECK(named(names, of(1), "type vectorization") == 1);
  CHECK(named(names, of(1), "share of work") == Approx(0.2));
  CHECK(named(names, of(1), "outer loop parallel") == 1);
  CHECK(named(names, of(2), "stop") == 1);
  CHECK(named(names, of(2), "region loop") == 0);
}

TEST_CASE("features: a kernel's do not depend on the way to it") {
  auto seen = two_loops();
  const auto without = kernel_features(seen, legal);
  seen.history = {tried(legal[0], Verdict::correct, 2, true),
                  tried(legal[1], Verdict::wrong_result, 0, false)};
  seen.step = 2;
  seen.step_limit = 8;
  CHECK(kernel_features(seen, legal) == without);
}

TEST_CASE("features: the way tells what was tried, what it brought, and how many steps are left") {
  const std::vector<HistoryEntry> history{tried(legal[0], Verdict::correct, 2, true),
                                          tried(legal[1], Verdict::compile_error, 0, false)};
  const auto steps = past_of(history);
  const PastFacts past{2, 8, steps};
  std::vector<double> state;
  append_state(std::vector<double>(kernel_feature_count()), past, state);
  const auto& names = state_feature_names();
  CHECK(named(names, state, "steps left") == Approx(6 / 8.0));
  CHECK(named(names, state, "speed-up so far") == Approx(1 / 6.0));
  CHECK(named(names, state, "last not compiled") == 1);
  CHECK(named(names, state, "last kept tiling") == 1);
  std::vector<double> again, elsewhere;
  const std::vector<double> none(action_feature_count());
  append_action(none, legal[1].key(), past, again);
  append_action(none, "tiling|g/k", past, elsewhere);
  CHECK(named(action_feature_names(), again, "tried in vain") == 1);
  CHECK(named(action_feature_names(), again, "region in vain") == Approx(1 / 4.0));
  CHECK(named(action_feature_names(), elsewhere, "tried in vain") == 0);
  CHECK(named(action_feature_names(), elsewhere, "type gained") == Approx(1 / 2.0));
  CHECK(named(action_feature_names(), elsewhere, "follows its region") == 0);
}

TEST_CASE("features: the rules' opinion of an action can be read off, that of stopping off the kernel") {
  const auto seen = two_loops();
  const auto features = kernel_features(seen, legal);
  const auto rules = RulesPolicy{}.distribution(seen, legal, {}).probabilities;
  const std::size_t each = action_feature_count();
  for (std::size_t i = 0; i < legal.size(); ++i)
    CHECK(rules_score(std::span(features.actions).subspan(i * each, each)) ==
          Approx(std::log(std::max(rules[i], 1e-4))));
  CHECK(stop_features(features.kernel) ==
        std::vector<double>(features.actions.end() - static_cast<std::ptrdiff_t>(each),
                            features.actions.end()));
}

TEST_CASE("features: what tells of modules in Python stands behind those of version 1, and is 0 elsewhere") {
  CHECK(kernel_feature_count_of_version_1() == 19);
  CHECK(action_feature_count_of_version_1() == 79);
  const auto features = kernel_features(two_loops(), legal);
  const auto is_zero = [](double value) { return value == 0; };
  CHECK(std::all_of(features.kernel.begin() + static_cast<long>(kernel_feature_count_of_version_1()),
                    features.kernel.end(), is_zero));

  auto seen = two_loops();
  Region& region = seen.structure.regions.front();
  region.kind = RegionKind::launch;
  region.facts.directives = {"torch", "contraction", "pointwise", "pointwise"};
  seen.evaluation->resources["library_share"] = 0.75;
  const auto module = kernel_features(seen, legal);
  const auto& kernel = state_feature_names();
  CHECK(named(kernel, module.kernel, "library share") == 0.75);
  CHECK(named(kernel, module.kernel, "torch operators") > 0);
  CHECK(named(kernel, module.kernel, "triton kernels") == 0);
  const auto first = std::span(module.actions).first(action_feature_count());
  CHECK(named(action_feature_names(), first, "torch") == 1);
  CHECK(named(action_feature_names(), first, "computes contraction") == 1);
  CHECK(named(action_feature_names(), first, "computes reduction") == 0);
  CHECK(named(action_feature_names(), first, "operators") == Approx(2 / std::log2(17)));
}
