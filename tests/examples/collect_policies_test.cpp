// The policies of mtmc-collect: what they try of a kernel, and what they leave out of another policy.

#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "../../examples/tools/collect_policies.hpp"
#include "../policy/observations.hpp"

using namespace command_line;
using mtmc::Action;
using mtmc::ActionDistribution;
using observed::action;

namespace {

const std::vector<Action> legal{action("tiling", "f/i"), action("tiling", "f/j"), action("unrolling", "f/j"),
                                Action::stop()};

mtmc::Observation on_cpu() {
  auto seen = observed::with_seconds(1e-3);
  seen.device.kind = "cpu";
  seen.kernel = {mtmc::languages::cpp, "void f() {}", {}};
  seen.structure.regions = {observed::loop("f/i"), observed::loop("f/j")};
  return seen;
}

/// The one action that a policy leaves possible.
std::string only(const ActionDistribution& answer) {
  const auto& all = answer.probabilities;
  REQUIRE(all.size() == legal.size());
  REQUIRE(std::count(all.begin(), all.end(), 0.0) == 3);
  return legal[static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin())].key();
}

/// Gives the actions fixed probabilities.
struct Fixed {
  std::vector<double> probabilities;
  [[nodiscard]] ActionDistribution distribution(const mtmc::Observation&, std::span<const Action>,
                                                const std::stop_token&) const {
    ActionDistribution answer;
    answer.probabilities = probabilities;
    return answer;
  }
  [[nodiscard]] static std::string identity() { return "fixed"; }
};

} // namespace

TEST_CASE("anew: each action of a kernel is tried once, in an order of the seed, before any comes again") {
  TriedActions tried;
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    seen.insert(only(TriesAnew{tried, seed}.distribution(on_cpu(), legal, {})));
  CHECK(seen == std::set<std::string>{"tiling|f/i", "tiling|f/j", "unrolling|f/j"});
  // Then as the rules do, without stopping.
  const auto rest = TriesAnew{tried, 9}.distribution(on_cpu(), legal, {});
  CHECK(rest.probabilities ==
        NeverStops{mtmc::RulesPolicy{}}.distribution(on_cpu(), legal, {}).probabilities);
  CHECK(rest.probabilities.back() == 0);
}

TEST_CASE("walk: what was tried on the kernel is equally likely; where nothing was, it stops") {
  TriedActions tried;
  CHECK(only(WalksOnKnownWays{tried}.distribution(on_cpu(), legal, {})) == "stop");
  tried[on_cpu().kernel.id()] = {"tiling|f/j", "unrolling|f/j", "tiling|another kernel's"};
  const auto answer = WalksOnKnownWays{tried}.distribution(on_cpu(), legal, {});
  CHECK(answer.probabilities == std::vector<double>{0, 0.5, 0.5, 0});
}

TEST_CASE("types alone: the type that is likeliest over its regions, in any of them") {
  const Fixed policy{{0.3, 0.25, 0.4, 0.05}}; // unrolling is the likeliest action, tiling the likeliest type
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    seen.insert(only(TypesAlone{policy, seed}.distribution(on_cpu(), legal, {})));
  CHECK(seen == std::set<std::string>{"tiling|f/i", "tiling|f/j"});
  CHECK(only(TypesAlone{Fixed{{0.1, 0.1, 0.2, 0.6}}, 1}.distribution(on_cpu(), legal, {})) == "stop");
}

TEST_CASE("policies that explore go on from slower kernels by turns, those that are compared never do") {
  CHECK(collecting_minimum_gain("anew", 0, 0.5) == 1);
  CHECK(collecting_minimum_gain("anew", 1, 0.5) == 0.5);
  CHECK(collecting_minimum_gain("best-rules", 0, 0.5) == 0.5);
  CHECK(looks_back("walk"));
  CHECK_FALSE(looks_back("best-learnt"));
}
