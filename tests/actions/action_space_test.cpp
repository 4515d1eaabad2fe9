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

  // A sequence has no threads of its own, its launches have.
  Structure structure;
  region.kind = RegionKind::launch;
  region.first_line = region.last_line = 3;
  Region sequence;
  sequence.kind = RegionKind::launch_sequence;
  sequence.first_line = 3;
  sequence.last_line = 4;
  structure.regions = {region, sequence};
  const auto* fusion = space.find("fusion");
  CHECK(fusion->principle_on(&sequence) == fusion->principle);
  CHECK(fusion->principle_on(&sequence, structure) == fusion->grid_principle);
  structure.regions[0].facts.threads.clear();
  CHECK(fusion->principle_on(&sequence, structure) == fusion->principle);
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

TEST_CASE("rewriting is of all that a call does: the only launch, or all of them") {
  const auto rewritten = [](const Structure& structure) {
    std::vector<std::string> paths;
    for (const auto& action : ActionSpace::extended().legal_actions(structure, sample::device()))
      if (action.optimization == "rewriting") paths.push_back(action.region);
    return paths;
  };
  const auto region = [](RegionKind kind, const std::string& path, int first, int last) {
    Region result;
    result.kind = kind;
    result.path = path;
    result.first_line = first;
    result.last_line = last;
    return result;
  };
  Structure structure;
  structure.regions = {region(RegionKind::launch, "launch:f", 1, 1), region(RegionKind::loop, "f/i", 3, 5)};
  CHECK(rewritten(structure) == std::vector<std::string>{"launch:f"});
  structure.regions.push_back(region(RegionKind::launch, "launch:g", 2, 2));
  CHECK(rewritten(structure).empty());
  structure.regions.push_back(region(RegionKind::launch_sequence, "launch:f+launch:g", 1, 2));
  CHECK(rewritten(structure) == std::vector<std::string>{"launch:f+launch:g"});
  structure.regions.push_back(region(RegionKind::launch, "launch:h", 7, 7));
  CHECK(rewritten(structure).empty());
}

TEST_CASE("what a coder does not write is not offered, stop always is") {
  struct Fuser {
    static Draft implement(const CodingRequest&, std::stop_token) { return {}; }
    [[nodiscard]] static bool writes(std::string_view optimization, const Language& language) {
      return optimization == "fusion" && language == languages::cuda;
    }
  };
  static_assert(Coder<Fuser> && KnowsWhatItWrites<Fuser>);
  auto region = sample::region();
  region.kind = RegionKind::loop_sequence;
  region.facts.fusable = true;
  region.facts.opaque = false;
  Structure structure;
  structure.regions = {region, sample::region()};
  structure.regions.back().facts.opaque = false;
  const auto types = [&](const Language& language) {
    std::vector<std::string> ids;
    for (const auto& action :
         offered_actions(ActionSpace::extended(), structure, sample::device(), Fuser{}, language))
      ids.push_back(action.key());
    return ids;
  };
  CHECK(ActionSpace::extended().legal_actions(structure, sample::device()).size() > 2);
  CHECK(types(languages::cuda) == std::vector<std::string>{"fusion|f/i", "stop"});
  CHECK(types(languages::cpp) == std::vector<std::string>{"stop"});
}
