#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/action.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "../core/sample_nouns.hpp"

using namespace mtmc;

TEST_CASE("an action reads as in the paper and is identified by type and region") {
  auto action = sample::action();
  action.label = "the linear and max";
  action.verb = "fusing";
  CHECK(action.text() == "fusing the linear and max in line 2 to 5");
  CHECK(action.key() == "tiling|f/i");
  auto shifted = action;
  shifted.first_line += 10;
  shifted.last_line += 10;
  CHECK(shifted.key() == action.key());
  CHECK(Action::stop().text() == "stop");
  CHECK(Action::stop().key() == "stop");
}

TEST_CASE("the paper's space has four types, the extended one more, ids are unique") {
  std::set<std::string> ids;
  for (const auto& type : ActionSpace::paper().types) ids.insert(type.id);
  CHECK(ids == std::set<std::string>{"fusion", "pipeline", "reordering", "tiling"});
  const auto extended = ActionSpace::extended();
  for (const auto& type : extended.types) {
    CHECK_FALSE(type.intent.empty());
    CHECK_FALSE(type.principle.empty());
    CHECK(extended.find(type.id) == &type);
    ids.insert(type.id);
  }
  CHECK(ids.size() == extended.types.size());
  CHECK(extended.find("nonsense") == nullptr);
}

TEST_CASE("legal actions are sorted by key and end with stop") {
  Structure structure;
  auto region = sample::region();
  region.facts.opaque = false;
  structure.regions = {region, region};
  structure.regions[0].path = "z/i";
  const auto actions = ActionSpace::extended().legal_actions(structure, sample::device());
  REQUIRE(actions.size() > 2);
  CHECK(actions.back().kind == Action::Kind::stop);
  CHECK(std::is_sorted(actions.begin(), actions.end() - 1,
                       [](const Action& a, const Action& b) { return a.key() < b.key(); }));
}

TEST_CASE("nothing is offered for what was not understood") {
  Structure structure;
  structure.regions = {sample::region()};
  REQUIRE(structure.regions[0].facts.opaque);
  const auto actions = ActionSpace::extended().legal_actions(structure, sample::device());
  CHECK(actions.size() == 1);
}

TEST_CASE("a host adds an optimisation type as one more entry") {
  auto space = ActionSpace::paper();
  space.types.push_back({"prefetch", "prefetching", "Hide latency.", "Prefetch the next row.",
                         [](const Region& region, const Structure&, const Device&) {
                           return region.kind == RegionKind::loop;
                         }});
  Structure structure;
  structure.regions = {sample::region()};
  const auto actions = space.legal_actions(structure, sample::device());
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].text() == "prefetching the i, j loop nest of f in line 2 to 5");
}

TEST_CASE("how an optimisation is done may be said differently for the threads of a grid") {
  const auto space = ActionSpace::extended();
  const auto* tiling = space.find("tiling");
  Region region;
  CHECK(tiling->principle_on(nullptr) == tiling->principle);
  CHECK(tiling->principle_on(&region) == tiling->principle);
  region.facts.threads = {{"x", "i", "N", 4, 128, true, 512}};
  CHECK(tiling->principle_on(&region) == tiling->grid_principle);
  CHECK(tiling->principle_on(&region).find("shared memory") != std::string::npos);
  const OptimizationType plain{"own", "doing", "why", "how", {}};
  CHECK(plain.principle_on(&region) == "how");
}

TEST_CASE("nothing is offered across threads that wait for each other or exchange values") {
  Structure structure;
  auto region = sample::region();
  region.kind = RegionKind::thread_nest;
  region.path = "f/threads:x";
  region.facts.opaque = false;
  region.facts.staged = false;
  region.facts.accesses.front().lanes->bank_ways = 1;
  structure.regions = {region};
  CHECK(ActionSpace::extended().legal_actions(structure, sample::device()).size() == 1);
}
