#include <mtmc/loop/no_gain.hpp>

#include <doctest/doctest.h>

using mtmc::detail::what_changed;

namespace {
mtmc::Evaluation with(std::map<std::string, double> resources, std::vector<mtmc::LaunchTime> launches = {}) {
  mtmc::Evaluation evaluation{mtmc::Verdict::correct};
  evaluation.resources = std::move(resources);
  evaluation.launches = std::move(launches);
  return evaluation;
}
} // namespace

TEST_CASE("resources that changed by a quarter are named, with both values") {
  const auto before = with({{"registers", 40}, {"spill_store_bytes", 0}, {"occupancy", 1}});
  CHECK(what_changed(before, with({{"registers", 168}, {"spill_store_bytes", 96}, {"occupancy", 0.25}})) ==
        "registers 40 -> 168, bytes spilled 0 -> 96, occupancy 1 -> 0.25");
  CHECK(
      what_changed(before, with({{"registers", 48}, {"spill_store_bytes", 0}, {"occupancy", 0.9}})).empty());
  CHECK(what_changed(before, with({})).empty());
}

TEST_CASE("launches that take longer or shorter are named, or how many there are now") {
  const auto before = with({}, {{"score", 3, 1e-3, {}, {}}, {"gather", 4, 2e-3, {}, {}}});
  CHECK(what_changed(before, with({}, {{"score", 3, 1.3e-3, {}, {}}, {"gather", 4, 2.02e-3, {}, {}}})) ==
        "score 1 ms -> 1.3 ms");
  CHECK(what_changed(before, with({}, {{"both", 3, 3e-3, {}, {}}})) == "launches 2 -> 1");
  CHECK(what_changed(before, with({})).empty());
}
