// The list of stages that every candidate goes through.
#include <mtmc/backend/cpu/options.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/stages.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>

using namespace mtmc;
using detail::protocol_stages;

TEST_CASE("every defence that can be switched off is at home in one stage") {
  std::set<std::string_view> names;
  std::size_t count = 0;
  for (const auto& stage : protocol_stages) {
    names.insert(stage.defences.begin(), stage.defences.end());
    count += stage.defences.size();
  }
  CHECK(names.size() == count);
  // Their members are bools, so that the sizes count them.
  CHECK(count == sizeof(EvaluatorDefences) + sizeof(CpuDefences));
}

TEST_CASE(
    "a candidate is screened before it is compiled, checked before it is timed, and has the device last") {
  bool device = false;
  for (const auto& stage : protocol_stages) {
    CHECK_FALSE(stage.name.empty());
    CHECK_FALSE(stage.shows.empty());
    CHECK(bool(stage.run != nullptr));
    CHECK((!device || stage.on_device));
    device = stage.on_device;
  }
  const auto place = [](std::string_view name) {
    std::size_t at = 0;
    while (at < std::size(protocol_stages) && protocol_stages[at].name != name) ++at;
    REQUIRE(at < std::size(protocol_stages));
    return at;
  };
  CHECK(place("screen") < place("compilation"));
  CHECK(place("compilation") < place("correctness"));
  CHECK(place("correctness") < place("timing"));
  CHECK(place("timing") < place("plausibility"));
}
