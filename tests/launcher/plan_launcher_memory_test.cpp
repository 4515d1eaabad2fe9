#include <mtmc/launcher/plan_launcher_memory.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using mtmc::detail::PlanMemories;
using mtmc::detail::PlanMemory;

namespace {

mtmc::RecordedView row(int storage, std::int64_t elements) {
  return {.storage = storage, .sizes = {elements}, .strides = {1}};
}

/// A launch that is passed these storages.
mtmc::RecordedStep touching(std::vector<int> storages) {
  mtmc::RecordedLaunch launch;
  for (const int storage : storages) launch.arguments.push_back({.storage = storage});
  return {.launch = launch};
}

} // namespace

TEST_CASE("names of a module become names of C++, each once") {
  mtmc::detail::PlanNames names;
  CHECK(names.take("layers.0.weight") == "layers_0_weight");
  CHECK(names.take("layers_0.weight") == "layers_0_weight_");
  CHECK(names.take("new") == "new_");
  CHECK(names.take("stream") == "stream_");
  CHECK(names.take("0") == "_0");
}

TEST_CASE("a view is told with what is not as in rows") {
  CHECK(mtmc::detail::view_text({.sizes = {}, .strides = {}}) == "f32[]");
  CHECK(mtmc::detail::view_text({.sizes = {1, 3}, .strides = {99, 1}, .type = "bf16"}) == "bf16[1, 3]");
  CHECK(mtmc::detail::view_text({.offset = 8, .sizes = {2, 3}, .strides = {1, 2}}) ==
        "f32[2, 3] with strides of 1, 2 elements, from byte 8");
}

TEST_CASE("temporaries lie where no other one is that is needed at the same time") {
  mtmc::RecordedPlan plan;
  for (const std::int64_t bytes : {1000, 300, 200, 1200, 0}) plan.storages.push_back({.bytes = bytes});
  // 0 lives in the steps 0 and 1, 1 in 0 to 3, 2 in 2 and 3, 3 in 3.
  plan.phases.forward = {touching({0, 1}), touching({0}), touching({2, 4}), touching({1, 2, 3})};
  const PlanMemories memories(plan, {});
  CHECK(memories.at(0).at == 0);
  CHECK(memories.at(1).at == 1024);
  CHECK(memories.at(2).at == 0);    // where 0 was
  CHECK(memories.at(4).at == 256);  // empty, and yet a place of its own
  CHECK(memories.at(3).at == 1536); // fits into no gap
  CHECK(memories.scratch_bytes() == 1536 + 1280);
  CHECK(memories.parameters().empty());
}

TEST_CASE("who gives a storage") {
  using enum PlanMemory::Place;
  mtmc::RecordedPlan plan;
  plan.storages = {{.bytes = 16},
                   {.bytes = 16},
                   {.bytes = 16},
                   {.bytes = 16, .content = "00"},
                   {.bytes = 16, .content = "01"},
                   {.bytes = 16},
                   {.bytes = 16}};
  plan.inputs = {{.kind = mtmc::RecordedValue::Kind::tensor, .tensor = row(0, 4)}};
  plan.weights = {{"a", true, row(1, 4)}, {"tied", true, row(1, 4)}};
  plan.phases.setup = {{.fill = mtmc::RecordedFill{row(2, 4), {}}, .line = 5}};
  plan.phases.forward = {touching({0, 1, 2, 3, 4, 5}), {.fill = mtmc::RecordedFill{row(4, 4), {}}}};
  plan.outputs = {row(6, 4)};
  const PlanMemories memories(plan, {});
  CHECK(memories.at(0).place == input);
  CHECK(memories.at(1).place == weight);
  CHECK(memories.at(1).text == "f32[4]; also tied");
  CHECK(memories.at(2).name == "made_in_line_5");
  CHECK(memories.at(2).text == "f32[4], what the constructor makes in line 5 by a fill");
  CHECK(memories.at(3).place == constant);
  CHECK(!memories.at(3).copied);
  CHECK(memories.at(4).place == temporary); // the call fills it, so that each needs a copy of its own
  CHECK(memories.at(4).copied);
  CHECK(memories.constant_at(4) == 256);
  CHECK(memories.constant_bytes() == 512);
  CHECK(memories.at(5).place == temporary);
  CHECK(memories.at(6).place == output);
  CHECK(memories.parameters() == std::vector{0, 6});
  CHECK(memories.weights() == std::vector{1, 2});
}
