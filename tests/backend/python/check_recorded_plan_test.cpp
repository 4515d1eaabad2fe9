#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace mtmc;

namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

RecordedView view_of(int storage, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return {.storage = storage, .sizes = std::move(sizes), .strides = std::move(strides)};
}

RecordedValue tensor(RecordedView view) {
  return {.kind = RecordedValue::Kind::tensor, .tensor = std::move(view)};
}

/// y = softmax(x @ w): one operator that remains, a temporary filled with zeros, and a kernel.
RecordedPlan sound_plan() {
  RecordedPlan plan{.torch = "2.11.0", .triton = "3.6.0"};
  plan.storages = {{.bytes = 64}, {.bytes = 64}, {.bytes = 64}, {.bytes = 8, .content = "00000000000000ff"}};
  plan.kernels = {
      {.name = "softmax",
       .ir = "module {}",
       .options = {{"num_warps", 4}},
       .parameters = {{"x", "*fp32"}, {"y", "*fp32"}, {"n", "i32"}, {"scale", "fp32"}, {"B", "constexpr"}},
       .line = 3}};
  plan.inputs = {tensor(view_of(0, {4, 4}, {4, 1}))};
  plan.weights = {{"layer.weight", true, view_of(1, {4, 4}, {1, 4})}};
  plan.phases.setup = {
      {.operation = RecordedOperation{.name = "aten.uniform_.default",
                                      .draws = true,
                                      .arguments = {tensor(view_of(1, {4, 4}, {4, 1})),
                                                    {.kind = RecordedValue::Kind::real, .real = -0.5}},
                                      .outputs = {view_of(1, {4, 4}, {4, 1})}},
       .line = 9}};
  using enum RecordedArgument::Kind;
  plan.phases.forward = {
      {.fill = RecordedFill{view_of(2, {16}, {1}), {.kind = RecordedValue::Kind::integer}}, .line = 12},
      {.launch = RecordedLaunch{.kernel = 0,
                                .grid = {4, 1, 1},
                                .arguments = {{.kind = pointer, .storage = 0, .offset = 16},
                                              {.kind = pointer, .storage = 2},
                                              {.kind = integer, .integer = 4},
                                              {.kind = real, .real = 0.25}}},
       .line = 13}};
  plan.outputs = {view_of(2, {4, 4}, {4, 1})};
  plan.choices = {{.kernel = "softmax", .configurations = 3, .chosen = 2, .text = "B: 4"}};
  return plan;
}

/// What is said of a sound plan that somebody has changed.
std::string verdict_of(const std::function<void(RecordedPlan&)>& change, RecordedPlanLimits limits = {}) {
  auto plan = sound_plan();
  change(plan);
  const auto wrong = check_recorded_plan(plan, limits);
  return wrong ? wrong->message : "sound";
}

bool says(const std::string& verdict, std::string_view part) {
  CAPTURE(verdict);
  return verdict.find(part) != std::string::npos;
}

} // namespace

TEST_SUITE("recorded plans as data") {
  TEST_CASE("a plan comes back from its JSON as it was, and is sound") {
    const auto plan = sound_plan();
    CHECK(check_recorded_plan(plan) == std::nullopt);
    const nlohmann::json document = plan;
    CHECK(nlohmann::json::parse(document.dump()).get<RecordedPlan>() == plan);
    CHECK(document["phases"]["forward"][1]["launch"]["arguments"][2]["integer"] == 4);
  }

  TEST_CASE("numbers that JSON does not have are texts") {
    RecordedValue value{.kind = RecordedValue::Kind::real, .real = -std::numeric_limits<double>::infinity()};
    const nlohmann::json document = value;
    CHECK(document["text"] == "-inf");
    const RecordedValue minus_zero{.kind = RecordedValue::Kind::real, .real = -0.0};
    CHECK(std::signbit(nlohmann::json(minus_zero).get<RecordedValue>().real));
    CHECK(document.get<RecordedValue>() == value);
    CHECK(std::isnan(nlohmann::json::parse(R"({"kind": "real", "text": "nan"})").get<RecordedValue>().real));
  }

  TEST_CASE("a malformed document is an error that names the field") {
    auto document = nlohmann::json(sound_plan());
    document["phases"]["forward"][1]["launch"]["arguments"][0]["kind"] = "pointers";
    try {
      (void)document.get<RecordedPlan>();
      FAIL("it was read");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::json_malformed);
      CHECK(says(error.what(), "phases.forward[1].launch.arguments[0].kind"));
    }
  }

  TEST_CASE("a kernel's id is that of what it lowers to") {
    auto kernel = sound_plan().kernels[0];
    const auto id = kernel.id();
    kernel.line = 40;
    CHECK(kernel.id() == id);
    kernel.options["num_warps"] = 8;
    CHECK(kernel.id() != id);
  }

  TEST_CASE("what lies outside of a storage is refused") {
    const auto pointer = [](RecordedPlan& plan) -> RecordedArgument& {
      return plan.phases.forward[1].launch->arguments[0];
    };
    CHECK(verdict_of([&](auto& plan) { pointer(plan).offset = 64; }) == "sound");
    CHECK(says(verdict_of([&](auto& plan) { pointer(plan).offset = 65; }), "reaches beyond its storage"));
    CHECK(says(verdict_of([&](auto& plan) { pointer(plan).offset = -1; }), "reaches beyond its storage"));
    CHECK(says(verdict_of([&](auto& plan) { pointer(plan).storage = 4; }), "storage that is not there"));
    CHECK(says(verdict_of([&](auto& plan) { pointer(plan).storage = -1; }), "storage that is not there"));
    CHECK(says(verdict_of([](auto& plan) { plan.outputs[0].offset = 4; }), "an output reaches beyond"));
    CHECK(says(verdict_of([](auto& plan) { plan.outputs[0].strides = {5, 1}; }), "an output reaches beyond"));
    CHECK(
        says(verdict_of([](auto& plan) { plan.weights[0].view.sizes = {5, 4}; }), "the weight layer.weight"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[0].fill->view.sizes = {17}; }),
               "a fill reaches"));
    CHECK(
        says(verdict_of([](auto& plan) { plan.phases.setup[0].operation->arguments[0].tensor.storage = 9; }),
             "an argument lies in a storage"));
    CHECK(says(verdict_of([](auto& plan) {
                 RecordedValue list{.kind = RecordedValue::Kind::list};
                 list.list = {tensor(view_of(77, {1}, {1}))};
                 plan.phases.setup[0].operation->named["out"] = list;
               }),
               "an argument lies in a storage"));
  }

  TEST_CASE("extents and strides overflow nothing") {
    const auto output = [](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
      return verdict_of([&](auto& plan) { plan.outputs[0] = view_of(2, sizes, strides); });
    };
    CHECK(says(output({huge, huge}, {huge, huge}), "that no tensor has"));
    CHECK(says(output({2, 2}, {huge, 1}), "that no tensor has"));
    CHECK(says(output({huge}, {1}), "that no tensor has"));
    CHECK(says(output({-1}, {1}), "that no tensor has"));
    CHECK(says(output({4}, {-1}), "that no tensor has"));
    CHECK(says(output({4, 4}, {1}), "that no tensor has"));
    CHECK(output({0, 5}, {1, 0}) == "sound");
    CHECK(says(output({0, huge}, {1, 0}), "that no tensor has"));
    // Repeated elements take no memory, and whoever counts them must not overflow.
    CHECK(output({1 << 20, 16}, {0, 1}) == "sound");
    CHECK(says(output({std::int64_t{1} << 40, std::int64_t{1} << 40}, {0, 0}), "that no tensor has"));
    CHECK(says(output({1}, {huge}), "that no tensor has"));
    CHECK(says(output(std::vector<std::int64_t>(100000, 1), std::vector<std::int64_t>(100000, 1)),
               "that no tensor has"));
    CHECK(says(
        verdict_of([](auto& plan) { plan.outputs[0] = view_of(2, {1}, {1}), plan.outputs[0].offset = 3; }),
        "between two elements"));
    CHECK(output({}, {}) == "sound");
    CHECK(recorded_extent_bytes(view_of(0, {1000, 16}, {0, 1})) == 64);
    CHECK(says(verdict_of([](auto& plan) { plan.outputs[0].type = "f33"; }), "that no tensor has"));
  }

  TEST_CASE("a grid is one that a device launches") {
    const auto grid = [](std::array<std::int64_t, 3> extents) {
      return verdict_of([&](auto& plan) { plan.phases.forward[1].launch->grid = extents; });
    };
    CHECK(grid({2147483647, 65535, 65535}) == "sound");
    CHECK(grid({0, 1, 1}) == "sound");
    CHECK(says(grid({2147483648, 1, 1}), "2147483648 programs along axis 0"));
    CHECK(says(grid({1, 65536, 1}), "axis 1"));
    CHECK(says(grid({1, 1, -1}), "axis 2"));
  }

  TEST_CASE("arguments fit the kernel's parameters") {
    using enum RecordedArgument::Kind;
    const auto arguments = [](const std::function<void(std::vector<RecordedArgument>&)>& change) {
      return verdict_of([&](auto& plan) { change(plan.phases.forward[1].launch->arguments); });
    };
    CHECK(says(arguments([](auto& given) { given.pop_back(); }), "too few"));
    CHECK(says(arguments([](auto& given) { given.push_back(given.back()); }), "too many"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[1].launch->memory = 2; }),
               "memory of its launcher"));
    CHECK(says(arguments([](auto& given) { given[0] = {.kind = integer, .integer = 4096}; }),
               "something else than *fp32"));
    CHECK(arguments([](auto& given) { given[0] = {.kind = integer, .integer = 0}; }) ==
          "sound"); // a null pointer
    CHECK(says(arguments([](auto& given) { given[2] = {.kind = pointer}; }), "something else than i32"));
    CHECK(says(arguments([](auto& given) { given[2].integer = std::int64_t{1} << 31; }), "which is i32"));
    CHECK(arguments([](auto& given) { given[2].integer = -(std::int64_t{1} << 31); }) == "sound");
    CHECK(says(arguments([](auto& given) { given[3] = {.kind = integer, .integer = 1}; }),
               "something else than fp32"));
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].parameters[0].type = "tensordesc<fp32[64]>"; }),
               "has the type tensordesc"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[1].launch->kernel = 1; }),
               "a kernel that is not there"));
  }

  TEST_CASE("names are names, and steps are one thing") {
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].name = "a b"; }), "a kernel's name"));
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].name = ""; }), "a kernel's name"));
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].name = "9k"; }), "a kernel's name"));
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].options["ir_override"] = 1; }),
               "the option ir_override"));
    CHECK(says(verdict_of([](auto& plan) { plan.kernels[0].options["num_warps"] = -4; }), "num_warps = -4"));
    // What is said of hostile names is fit for a screen.
    CHECK(verdict_of([](auto& plan) {
            plan.kernels[0].parameters[0].name = "a\x1b[2J" + std::string(1 << 20, 'x');
          }).size() < 600);
    CHECK_FALSE(
        says(verdict_of([](auto& plan) { plan.kernels[0].parameters[0].name = "a\x1b[2J"; }), "\x1b"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.setup[0].operation->name = "os.system('x')"; }),
               "an operator's name"));
    CHECK(says(verdict_of([](auto& plan) { plan.weights[0].name = "../x"; }), "a weight's name"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[0].launch = RecordedLaunch{}; }),
               "not exactly one"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[0].fill.reset(); }), "not exactly one"));
    CHECK(says(
        verdict_of([](auto& plan) { plan.phases.forward[0].fill->value.kind = RecordedValue::Kind::text; }),
        "a fill's value"));
    CHECK(says(verdict_of([](auto& plan) { plan.choices[0].chosen = 3; }), "a choice"));
    CHECK(says(verdict_of([](auto& plan) { plan.phases.forward[0].line = -1; }), "a line"));
  }

  TEST_CASE("a candidate gives what the problem gives: number, extents and types") {
    const auto said = [](const std::function<void(RecordedPlan&)>& change) {
      auto candidate = sound_plan();
      change(candidate);
      const auto differs = check_same_results(sound_plan(), candidate);
      return differs ? differs->message : std::string("the same");
    };
    CHECK(said([](auto& plan) { plan.outputs[0].strides = {1, 4}; }) == "the same");
    CHECK(says(said([](auto& plan) { plan.outputs[0].sizes = {4, 3}; }),
               "gives f32[4, 3] as result 1, and the problem's f32[4, 4]"));
    CHECK(says(said([](auto& plan) { plan.outputs[0].type = "f16"; }), "f16[4, 4]"));
    CHECK(says(said([](auto& plan) { plan.outputs.clear(); }), "gives 0 tensors"));
  }

  TEST_CASE("contents and limits") {
    CHECK(says(verdict_of([](auto& plan) { plan.storages[3].content += "00"; }), "does not fit"));
    CHECK(says(verdict_of([](auto& plan) { plan.storages[3].content = "zz"; }), "does not fit"));
    CHECK(says(verdict_of([](auto& plan) { plan.storages[0].bytes = -1; }), "take up"));
    CHECK(says(verdict_of([](auto& plan) {
                 for (auto& storage : plan.storages) storage.bytes = huge;
               }),
               "take up"));
    CHECK(says(verdict_of([](auto&) {}, {.max_bytes = 199}), "take up"));
    CHECK(verdict_of([](auto&) {}, {.max_bytes = 200}) == "sound");
    CHECK(says(verdict_of([](auto&) {}, {.max_steps = 2}), "more steps than 2"));
    CHECK(says(verdict_of([](auto&) {}, {.max_storages = 3}), "more storages"));
    CHECK(says(verdict_of([](auto&) {}, {.max_kernels = 0}), "more kernels"));
    CHECK(says(verdict_of([](auto&) {}, {.max_ir_bytes = 8}), "no IR, or too much"));
    RecordedValue deep{.kind = RecordedValue::Kind::list};
    for (int level = 0; level < 40; ++level) {
      RecordedValue outer{.kind = RecordedValue::Kind::list};
      outer.list = {deep};
      deep = outer;
    }
    CHECK(says(verdict_of([&](auto& plan) { plan.constructor = {deep}; }), "too deep"));
  }
}
