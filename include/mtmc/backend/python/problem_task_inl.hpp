#pragma once
/// Definitions of backend/python/problem_task.hpp.

#include <mtmc/backend/python/problem_task.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What a draw's operator is called, without library and overload: "rand" of "aten.rand.default".
[[nodiscard]] inline std::string_view base_name_of(std::string_view name) {
  const auto first = name.find('.');
  if (first == std::string_view::npos) return name;
  return name.substr(first + 1, name.find('.', first + 1) - first - 1);
}

[[nodiscard]] inline Argument argument_of(std::string name, ArgumentRole role, const RecordedView& view) {
  Argument argument;
  argument.name = std::move(name);
  argument.role = role;
  argument.type = parse_data_type(view.type).value_or(DataType::u8); // truth values and numbers of 8 bits
  for (const auto extent : view.sizes) argument.shape.push_back(std::to_string(extent));
  return argument;
}

/// The range of what a problem's own draws give a tensor, where one of them makes all of it.
[[nodiscard]] inline std::optional<ValueDomain> domain_of(const RecordedPlan& problem,
                                                          const RecordedView& view) {
  std::optional<ValueDomain> domain;
  for (const auto& step : problem.phases.inputs) {
    if (!step.operation) continue;
    const auto& operation = *step.operation;
    const bool makes =
        std::any_of(operation.outputs.begin(), operation.outputs.end(),
                    [&](const RecordedView& output) { return output.storage == view.storage; });
    if (!makes) continue;
    domain.reset();
    const auto name = base_name_of(operation.name);
    if (name == "rand") domain = ValueDomain{"0", "1", {}};
    std::vector<std::int64_t> bounds;
    for (const auto& argument : operation.arguments)
      if (argument.kind == RecordedValue::Kind::integer) bounds.push_back(argument.integer);
    if (name == "randint" && bounds.size() == 1) domain = ValueDomain{"0", std::to_string(bounds[0] - 1), {}};
    if (name == "randint" && bounds.size() == 2)
      domain = ValueDomain{std::to_string(bounds[0]), std::to_string(bounds[1] - 1), {}};
  }
  return domain;
}

} // namespace detail

MTMC_INLINE Task problem_task(std::string name, std::string text, const RecordedPlan& problem,
                              std::span<const std::string> names) {
  Task task;
  task.name = std::move(name);
  task.kernel = {languages::pytorch, std::move(text), {}};
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const auto& value = problem.inputs[i];
    const auto called = i < names.size() ? names[i] : "input_" + std::to_string(i);
    if (value.kind == RecordedValue::Kind::tensor) {
      auto argument = detail::argument_of(called, ArgumentRole::input, value.tensor);
      argument.domain = detail::domain_of(problem, value.tensor);
      task.arguments.push_back(std::move(argument));
    } else if (value.kind == RecordedValue::Kind::integer || value.kind == RecordedValue::Kind::boolean) {
      Argument argument;
      argument.name = called;
      argument.role = ArgumentRole::scalar;
      argument.type = DataType::i64;
      argument.value = std::to_string(value.integer);
      task.arguments.push_back(std::move(argument));
    }
  }
  for (const auto& weight : problem.weights)
    task.arguments.push_back(detail::argument_of(weight.name, ArgumentRole::input, weight.view));
  for (std::size_t i = 0; i < problem.outputs.size(); ++i)
    task.arguments.push_back(
        detail::argument_of("output_" + std::to_string(i), ArgumentRole::output, problem.outputs[i]));
  task.sizes = {ProblemSize{}};
  return task;
}

} // namespace mtmc
