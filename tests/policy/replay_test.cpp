#include <mtmc/policy/replay.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;

namespace {

ReplayStep step(const std::string& optimization, const std::string& region, const Kernel& to) {
  ReplayStep step;
  step.optimization = optimization;
  step.region = region;
  step.draft.kernel = to;
  return step;
}

const Kernel start{languages::cpp, "// start\n"};
const Kernel next{languages::cpp, "// next\n"};

Observation standing_on(const Kernel& kernel) {
  Observation seen;
  seen.task.kernel = start;
  seen.kernel = kernel;
  return seen;
}

const std::vector<Action> legal{observed::action("fusion", "f"), observed::action("tiling", "f"),
                                observed::action("tiling", "f/k"), Action::stop()};

std::vector<double> probabilities(const ReplaySequence& sequence, const Observation& seen) {
  return ReplayPolicy{sequence}.distribution(seen, legal, {}).probabilities;
}

} // namespace

TEST_CASE("the replaying policy wants the steps from the present kernel, in their order") {
  const ReplaySequence sequence{{step("tiling", "f/k", next), step("fusion", "", next)}};
  CHECK(probabilities(sequence, standing_on(start)) == std::vector<double>{1.0 / 3, 0, 2.0 / 3, 0});
  CHECK(probabilities(sequence, standing_on(next)) == std::vector<double>{0, 0, 0, 1}); // the end: stop
}

TEST_CASE("a step that names no region means the first legal action of its type, once") {
  const ReplaySequence sequence{{step("tiling", "", next), step("fusion", "f", next)}};
  auto seen = standing_on(start);
  CHECK(probabilities(sequence, seen) == std::vector<double>{1.0 / 3, 2.0 / 3, 0, 0});
  HistoryEntry entry;
  entry.action_key = "tiling|f";
  seen.history.push_back(entry);
  CHECK(probabilities(sequence, seen) == std::vector<double>{1, 0, 0, 0});

  // What was tried on the way to the present kernel is another matter.
  auto later = sequence;
  later.steps[0].parent = next.id();
  seen.history[0].kept = true;
  seen.kernel = next;
  CHECK(probabilities(later, seen) == std::vector<double>{0, 1, 0, 0});
}

TEST_CASE("steps that are not legal, are repairs, or belong to another task are passed over") {
  ReplaySequence sequence{{step("pipeline", "", next), step("tiling", "f/m", next)}};
  CHECK(probabilities(sequence, standing_on(start)) == std::vector<double>{0, 0, 0, 1});
  sequence.steps.push_back(step("fusion", "", next));
  sequence.steps.back().repair = true;
  CHECK(probabilities(sequence, standing_on(start)) == std::vector<double>{0, 0, 0, 1});
  sequence.steps.back().repair = false;
  sequence.steps.back().task = "another";
  CHECK(probabilities(sequence, standing_on(start)) == std::vector<double>{0, 0, 0, 1});
}

TEST_CASE("the space of a sequence offers its types on the regions that its steps name") {
  Structure structure;
  structure.regions = {observed::loop("f/i"), observed::loop("f/k")};
  const ReplaySequence sequence{{step("tiling", "f/k", next), step("sorting", "", next)}};
  const auto space = action_space_of(sequence);
  std::vector<std::string> keys;
  for (const auto& action : space.legal_actions(structure, {})) keys.push_back(action.key());
  CHECK(keys == std::vector<std::string>{"sorting|f/i", "sorting|f/k", "tiling|f/k", "stop"});
  CHECK_FALSE(space.find("tiling")->principle.empty());
  CHECK(space.find("sorting")->verb == "applying sorting to");
}
