#include <mtmc/actions/action_space.hpp>
#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;
using observed::action;

namespace {

/// A nest "f/i" with a loop j inside, whose only read jumps by `outer` and `inner` elements.
Observation nest(std::int64_t outer, std::int64_t inner) {
  auto seen = observed::with_seconds(0.1);
  seen.task.flops = "1000*N"; // bound by computation
  auto region = observed::loop("f/i");
  region.facts.loops.front().innermost = false;
  region.facts.loops.push_back({.variable = "j", .lower = "0", .upper = "N", .innermost = true});
  AccessFacts access;
  access.array = "a";
  access.strides = {outer, inner};
  region.facts.accesses = {access};
  seen.structure.flops = region.facts.flops;
  seen.structure.regions = {region};
  return seen;
}

std::vector<double> weights(const Observation& seen, const std::vector<Action>& legal,
                            RulesPolicy policy = RulesPolicy{}) {
  return policy.distribution(seen, legal, {}).probabilities;
}

std::string favourite(const Observation& seen, const std::vector<Action>& legal) {
  const auto all = weights(seen, legal);
  return legal[static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin())].key();
}

const std::vector<Action> on_nest{action("parallelization", "f/i"), action("reordering", "f/i"),
                                  action("tiling", "f/i"),          action("unrolling", "f/i"),
                                  action("vectorization", "f/i"),   Action::stop()};

} // namespace

TEST_CASE("rules: probabilities are a distribution, with a reason in words") {
  RulesPolicy policy;
  const auto answer = policy.distribution(nest(1, 1000), on_nest, {});
  CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) == doctest::Approx(1));
  CHECK(*std::min_element(answer.probabilities.begin(), answer.probabilities.end()) >= 0);
  CHECK(answer.rationale == "the innermost loop jumps through memory and another order does not; "
                            "compute-bound, 10 % of the bound reached");
}

TEST_CASE("rules: an order that jumps through memory is mended first, a good one left alone") {
  CHECK(favourite(nest(1, 1000), on_nest) == "reordering|f/i");
  const auto good = nest(1000, 1);
  CHECK(favourite(good, on_nest) == "parallelization|f/i");
  CHECK(weights(good, on_nest)[1] == 0);
}

TEST_CASE("rules: an innermost sum makes room for a loop that fills vectors, unless that one is short too") {
  auto seen = nest(1, 1);
  auto& loops = seen.structure.regions[0].facts.loops;
  loops.back().reduction = true;
  CHECK(favourite(seen, on_nest) == "reordering|f/i");
  loops.front().trip_count = 5;
  CHECK(favourite(seen, on_nest) == "parallelization|f/i");
}

TEST_CASE("rules: a loop that ends before a vector is full is not vectorized") {
  auto seen = nest(1000, 1);
  auto& loops = seen.structure.regions[0].facts.loops;
  loops.back().reduction = true;
  loops.back().trip_count = 5;
  CHECK(weights(seen, on_nest)[4] == 0);
  loops.back().trip_count = 500;
  CHECK(weights(seen, on_nest)[4] > 0);
}

TEST_CASE("rules: an intermediate that goes through memory is worth more than anything in one loop") {
  auto seen = nest(1, 1000);
  Region both;
  both.kind = RegionKind::launch_sequence;
  both.path = "launch:f+launch:g";
  both.facts.intermediates = {"t"};
  seen.structure.regions.push_back(both);
  auto legal = on_nest;
  legal.insert(legal.begin(), action("fusion", both.path));
  CHECK(favourite(seen, legal) == "fusion|launch:f+launch:g");
}

TEST_CASE("rules: cores are not woken for little work") {
  auto seen = nest(1000, 1);
  seen.structure.regions[0].facts.flops = seen.structure.flops = 1e4;
  CHECK(weights(seen, on_nest)[0] == 0);
}

TEST_CASE("rules: a remainder that does next to none of the work is left alone") {
  auto seen = nest(1, 1000);
  seen.structure.flops = 1000 * seen.structure.regions[0].facts.flops;
  CHECK(favourite(seen, on_nest) == "stop");
}

TEST_CASE("rules: near the bound of the device, stop") {
  auto seen = nest(1, 1000);
  seen.evaluation = observed::evaluation(0.0102); // 10 ms is the bound
  CHECK(favourite(seen, on_nest) == "stop");
}

TEST_CASE("rules: what was tried is wanted less, other actions as much as before") {
  auto seen = nest(1, 1000);
  const auto before = weights(seen, on_nest);
  HistoryEntry entry;
  entry.action_key = "reordering|f/i";
  seen.history.push_back(entry);
  const auto failed = weights(seen, on_nest);
  CHECK(failed[1] / failed[0] == doctest::Approx(0.5 * before[1] / before[0]));
  seen.history.front().kept = true;
  const auto kept = weights(seen, on_nest);
  CHECK(kept[1] / kept[0] == doctest::Approx(0.3 * before[1] / before[0]));
}

TEST_CASE(
    "rules: of merged launches the longest chain comes first, and its parts not where it gained nothing") {
  auto seen = nest(1000, 1);
  const auto chain = [](const std::string& path, std::vector<std::string> intermediates) {
    Region region;
    region.path = path;
    region.kind = RegionKind::launch_sequence;
    region.facts.intermediates = std::move(intermediates);
    return region;
  };
  seen.structure.regions.push_back(chain("launch:f+launch:g", {"t"}));
  seen.structure.regions.push_back(chain("launch:f+launch:g+launch:h", {"t", "u"}));
  const std::vector<Action> legal{action("parallelization", "f/i"), action("fusion", "launch:f+launch:g"),
                                  action("fusion", "launch:f+launch:g+launch:h"), Action::stop()};
  CHECK(favourite(seen, legal) == "fusion|launch:f+launch:g+launch:h");

  HistoryEntry entry;
  entry.action_key = "fusion|launch:f+launch:g+launch:h";
  entry.verdict = Verdict::correct;
  entry.speed_up = SpeedUp{1.2, 0.9, 1.5};
  seen.history = {entry};
  INFO("1.2x that may as well be a loss is no gain");
  CHECK(favourite(seen, legal) == "parallelization|f/i");
  seen.history.front().speed_up = SpeedUp{1.2, 1.1, 1.3};
  CHECK(favourite(seen, legal) == "fusion|launch:f+launch:g");
}

TEST_CASE("rules: a host's type that no row speaks of still has its chance, and a host's table decides") {
  const auto seen = nest(1000, 1);
  const std::vector<Action> legal{action("prefetch", "f/i"), Action::stop()};
  CHECK(weights(seen, legal)[0] > 0.9);
  const std::vector<Rule> never{{"prefetch", [](const Region&, const Situation&) { return true; }, 0, "no"}};
  CHECK(weights(seen, legal, RulesPolicy{{}, never}) == std::vector<double>{0, 1});
}

TEST_CASE("rules: where everything is forbidden the answer is still a distribution") {
  const auto seen = nest(1000, 1);
  const std::vector<Action> legal{action("reordering", "f/i"), action("reordering", "f/i")};
  CHECK(weights(seen, legal) == std::vector<double>{0.5, 0.5});
}

TEST_CASE("rules: every optimisation type of the extended space has its rows") {
  const auto has_rows = [](const std::vector<Rule>& rules, const std::string& id) {
    return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.optimization == id; });
  };
  const std::set<std::string> of_gpus{"retention", "splitting", "persistence", "finishing"};
  const std::set<std::string> of_processors{"packing", "fission"};
  for (const auto& type : ActionSpace::extended().types) {
    CAPTURE(type.id);
    CHECK(has_rows(default_rules(), type.id) == !of_gpus.contains(type.id));
    CHECK(has_rows(default_gpu_rules(), type.id) == !of_processors.contains(type.id));
  }
}
