#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/recorded_launches.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace mtmc;

namespace {

RecordedView view_of(int storage, std::int64_t elements, std::int64_t offset = 0) {
  return {.storage = storage, .offset = offset, .sizes = {elements}, .strides = {1}};
}

RecordedStep launch_of(std::vector<RecordedArgument> arguments, int line) {
  return {.launch = RecordedLaunch{.kernel = 0, .grid = {8, 2, 1}, .arguments = std::move(arguments)},
          .line = line};
}

RecordedArgument pointer(int storage, std::int64_t offset = 0) {
  return {.kind = RecordedArgument::Kind::pointer, .storage = storage, .offset = offset};
}
RecordedArgument integer(std::int64_t value) {
  return {.kind = RecordedArgument::Kind::integer, .integer = value};
}

/// run(x, n, y): a temporary of zeros gets what x has, from its second half on; y gets that of the temporary.
RecordedPlan two_launches() {
  RecordedPlan plan{.torch = "2.11.0", .triton = "3.6.0"};
  plan.storages = {{.bytes = 64}, {.bytes = 64}, {.bytes = 32}};
  plan.kernels = {{.name = "copy",
                   .ir = "module {}",
                   .parameters = {{"from", "*fp32"}, {"to", "*fp32"}, {"n", "i32"}, {"B", "constexpr"}}}};
  plan.inputs = {{.kind = RecordedValue::Kind::tensor, .tensor = view_of(0, 16)},
                 {.kind = RecordedValue::Kind::integer, .integer = 16},
                 {.kind = RecordedValue::Kind::tensor, .tensor = view_of(1, 16)}};
  plan.phases.forward = {
      {.fill = RecordedFill{view_of(2, 8), {.kind = RecordedValue::Kind::integer}}, .line = 4},
      launch_of({pointer(0, 32), pointer(2), integer(8)}, 5),
      launch_of({pointer(2), pointer(1), integer(8)}, 6)};
  return plan;
}

const std::vector<RecordedBuffer> names{{"x", false}, {"n", false}, {"y", true}};

RecordedLaunches launches_of(
    const std::function<void(RecordedPlan&)>& change = [](RecordedPlan&) {},
    std::array<std::int64_t, 3> cluster = {1, 1, 1}, std::int64_t launcher_bytes = 0) {
  auto plan = two_launches();
  change(plan);
  REQUIRE(check_recorded_plan(plan) == std::nullopt);
  auto lowered = std::make_shared<LoweredKernel>();
  lowered->entry = "copy";
  lowered->threads = 256;
  lowered->shared_bytes = 1024;
  lowered->cluster = cluster;
  lowered->global_scratch_bytes = launcher_bytes;
  const std::vector<std::shared_ptr<const LoweredKernel>> all{lowered};
  return recorded_launches(plan, all, names);
}

std::string reason_of(const std::function<void(RecordedPlan&)>& change) {
  const auto refused = launches_of(change).refused;
  return refused ? refused->message : "none";
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

} // namespace

TEST_SUITE("recorded plans as launch plans") {
  TEST_CASE("inputs have the task's names, other memory is scratch, zeros are filled before the launch that "
            "needs them") {
    const auto launches = launches_of();
    REQUIRE_FALSE(launches.refused);
    REQUIRE(launches.plan.scratch.size() == 1);
    CHECK(launches.plan.scratch[0].name == "temporary_0");
    CHECK(launches.plan.scratch[0].bytes() == 32);
    REQUIRE(launches.plan.launches.size() == 2);
    const auto& first = launches.plan.launches[0];
    CHECK(first.entry.starts_with("copy@"));
    CHECK(first.entry == launches.plan.launches[1].entry);
    CHECK(first.grid == std::array<std::int64_t, 3>{8, 2, 1});
    CHECK(first.block == std::array<std::int64_t, 3>{256, 1, 1});
    CHECK(first.shared_bytes == 1024);
    CHECK(first.line == 5);
    REQUIRE(first.arguments.size() == 5);
    CHECK(first.arguments[0].name == "x");
    CHECK(first.arguments[0].byte_offset == 32);
    CHECK_FALSE(first.arguments[0].writable);
    CHECK(first.arguments[0].type == DataType::f32);
    CHECK(first.arguments[1].name == "temporary_0");
    CHECK(first.arguments[1].zeroed);
    CHECK(first.arguments[2].integer == 8);
    CHECK(first.arguments[3].integer == 0); // Triton's own two pointers
    CHECK(first.arguments[4].kind == LaunchArgument::Kind::scalar);
    const auto& second = launches.plan.launches[1];
    CHECK_FALSE(second.arguments[0].zeroed);
    CHECK(second.arguments[1].name == "y");
    CHECK(second.arguments[1].writable);
    CHECK(launches.kernels == std::vector<std::size_t>{0, 0});
  }

  TEST_CASE("each launch of a kernel that makes descriptors of tensors is lent memory for its blocks") {
    const auto launches = launches_of([](auto&) {}, {2, 1, 1}, 384);
    REQUIRE_FALSE(launches.refused);
    REQUIRE(launches.plan.scratch.size() == 3); // the module's own, and one for each launch
    CHECK(launches.plan.scratch[1].bytes() == 8 * 2 * 2 * 384);
    const auto& lent = launches.plan.launches[0].arguments[3];
    CHECK(lent.kind == LaunchArgument::Kind::buffer);
    CHECK(lent.name == launches.plan.scratch[1].name);
    CHECK(launches.plan.launches[1].arguments[3].name == launches.plan.scratch[2].name);
    CHECK(launches.plan.launches[0].arguments[4].integer == 0);
  }

  TEST_CASE("programs of several blocks have them along x") {
    const auto launch = launches_of([](auto&) {}, {2, 1, 1}).plan.launches[0];
    CHECK(launch.grid == std::array<std::int64_t, 3>{16, 2, 1});
    CHECK(launch.cluster == std::array<std::int64_t, 3>{2, 1, 1});
  }

  TEST_CASE("a launch without programs is none") {
    CHECK(launches_of([](auto& plan) { plan.phases.forward[2].launch->grid[1] = 0; }).plan.launches.size() ==
          1);
  }

  TEST_CASE("what a judge of kernels cannot run is refused, with the line") {
    CHECK(has(reason_of([](auto& plan) {
                plan.phases.forward.push_back(
                    {.operation = RecordedOperation{.name = "aten.relu.default"}, .line = 9});
              }),
              "aten.relu.default remains"));
    CHECK(launches_of([](auto& plan) {
            plan.phases.forward.push_back(
                {.operation = RecordedOperation{.name = "aten.relu.default"}, .line = 9});
          }).refused->line == 9);
    CHECK(has(reason_of([](auto& plan) { plan.phases.forward[0].fill->value.integer = 1; }),
              "another value than zero"));
    CHECK(has(reason_of([](auto& plan) {
                plan.phases.forward[0].fill->value = {.kind = RecordedValue::Kind::real, .real = -0.0};
              }),
              "another value than zero"));
    CHECK(has(reason_of([](auto& plan) { plan.phases.forward[0].fill->view = view_of(2, 4); }),
              "a part of a tensor"));
    CHECK(has(reason_of([](auto& plan) { plan.phases.forward[0].fill->view = view_of(2, 4, 16); }),
              "a part of a tensor"));
    CHECK(has(reason_of([](auto& plan) {
                plan.phases.forward.erase(plan.phases.forward.begin() + 1, plan.phases.forward.end());
              }),
              "no kernel is launched"));
    CHECK(has(reason_of([](auto& plan) { plan.storages[2].content = "00"; }),
              "numbers that the module's text lists"));
    CHECK(has(reason_of([](auto& plan) { plan.inputs[2].tensor.storage = 0; }), "share their memory"));
    CHECK(has(reason_of([](auto& plan) { plan.inputs[2].tensor = view_of(1, 8); }), "a part of its memory"));
  }

  TEST_CASE(
      "whoever runs it is told what it needs: weights, results of its own and unnamed inputs are refused") {
    CHECK(has(reason_of([](auto& plan) { plan.weights = {{"layer.scale", true, view_of(2, 8)}}; }),
              "the weight `layer.scale`"));
    CHECK(has(reason_of([](auto& plan) { plan.outputs = {view_of(2, 8)}; }), "none of its inputs"));
    CHECK(reason_of([](auto& plan) { plan.outputs = {view_of(1, 16)}; }) == "none");
    CHECK(
        has(recorded_launches(two_launches(), {}, std::vector<RecordedBuffer>{{"x", false}}).refused->message,
            "3 inputs, and 1 are named"));
  }

  TEST_CASE("a kernel that was not lowered is refused") {
    CHECK(has(recorded_launches(two_launches(), {}, names).refused->message, "has not been lowered"));
  }
}
