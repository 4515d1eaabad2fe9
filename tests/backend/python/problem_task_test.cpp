#include <mtmc/backend/python/problem_task.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

RecordedView view_of(int storage, std::vector<std::int64_t> sizes, std::string type = "f32") {
  RecordedView view{.storage = storage, .sizes = std::move(sizes), .type = std::move(type)};
  view.strides.assign(view.sizes.size(), 1);
  return view;
}

RecordedStep draw(std::string name, std::vector<std::int64_t> numbers, RecordedView output) {
  RecordedOperation operation{.name = std::move(name), .draws = true, .outputs = {std::move(output)}};
  for (const auto number : numbers)
    operation.arguments.push_back({.kind = RecordedValue::Kind::integer, .integer = number});
  return {.operation = std::move(operation)};
}

} // namespace

TEST_CASE("inputs, weights and results of a problem are the arguments of its task") {
  RecordedPlan problem;
  problem.inputs = {{.kind = RecordedValue::Kind::tensor, .tensor = view_of(0, {8, 4})},
                    {.kind = RecordedValue::Kind::tensor, .tensor = view_of(1, {8}, "i64")},
                    {.kind = RecordedValue::Kind::integer, .integer = 3},
                    {.kind = RecordedValue::Kind::tensor, .tensor = view_of(2, {2}, "bool")}};
  problem.phases.inputs = {draw("aten.rand.default", {}, view_of(0, {8, 4})),
                           draw("aten.randint.low", {2, 10}, view_of(1, {8}, "i64"))};
  problem.weights = {{"linear.weight", true, view_of(3, {4, 4})}};
  problem.outputs = {view_of(4, {8})};
  const std::vector<std::string> names{"x", "labels"};
  const auto task = problem_task("a problem", "class Model: ...", problem, names);
  CHECK(task.kernel.language == languages::pytorch);
  REQUIRE(task.arguments.size() == 6);
  CHECK(task.arguments[0].name == "x");
  CHECK(task.arguments[0].shape == std::vector<std::string>{"8", "4"});
  CHECK(task.arguments[0].domain == ValueDomain{"0", "1", {}});
  CHECK(task.arguments[1].domain == ValueDomain{"2", "9", {}});
  CHECK(task.arguments[1].type == DataType::i64);
  CHECK(task.arguments[2].value == "3");
  CHECK(task.arguments[3].name == "input_3");
  CHECK(task.arguments[3].type == DataType::u8);
  CHECK_FALSE(task.arguments[3].domain);
  CHECK(task.arguments[4].name == "linear.weight");
  CHECK(task.arguments[5].role == ArgumentRole::output);
  CHECK(task.sizes.size() == 1);
}

TEST_CASE("values that are changed after they were drawn have no range") {
  RecordedPlan problem;
  problem.inputs = {{.kind = RecordedValue::Kind::tensor, .tensor = view_of(0, {8})}};
  RecordedStep scaled{.operation =
                          RecordedOperation{.name = "aten.mul_.Tensor", .outputs = {view_of(0, {8})}}};
  problem.phases.inputs = {draw("aten.rand.default", {}, view_of(0, {8})), scaled};
  CHECK_FALSE(problem_task("p", "", problem).arguments[0].domain);
}
