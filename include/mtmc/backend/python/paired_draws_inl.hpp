#pragma once
/// Definitions of backend/python/paired_draws.hpp.

#include <mtmc/backend/python/paired_draws.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::vector<const RecordedStep*> draws_of(const std::vector<RecordedStep>& steps) {
  std::vector<const RecordedStep*> draws;
  for (const auto& step : steps)
    if (step.operation && step.operation->draws) draws.push_back(&step);
  return draws;
}

[[nodiscard]] inline std::string text_of_real(double value) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// A value without the places of tensors: "[32, 64]", "-0.125", "f32[32, 64]".
[[nodiscard]] inline std::string text_of_value(const RecordedValue& value) {
  using enum RecordedValue::Kind;
  const auto in_brackets = [](const auto& parts, const auto& text) {
    std::string all;
    for (const auto& part : parts) all += (all.empty() ? "" : ", ") + text(part);
    return '[' + all + ']';
  };
  const auto number = [](std::int64_t part) { return std::to_string(part); };
  switch (value.kind) {
  case none:
    return "none";
  case boolean:
    return value.integer != 0 ? "true" : "false";
  case integer:
    return std::to_string(value.integer);
  case real:
    return text_of_real(value.real);
  case text:
  case type:
    return value.text;
  case tensor: {
    auto shown = value.tensor.type + in_brackets(value.tensor.sizes, number);
    // Unsigned, because a tensor may repeat its elements more often than there are numbers.
    std::uint64_t stride = 1;
    bool in_rows = true;
    for (std::size_t axis = value.tensor.sizes.size(); axis-- > 0;) {
      const auto size = static_cast<std::uint64_t>(value.tensor.sizes[axis]);
      in_rows = in_rows && (size < 2 || static_cast<std::uint64_t>(value.tensor.strides[axis]) == stride);
      stride *= size;
    }
    return in_rows ? shown : shown + " with strides " + in_brackets(value.tensor.strides, number);
  }
  case RecordedValue::Kind::list:
    return in_brackets(value.list, [](const RecordedValue& part) { return text_of_value(part); });
  }
  return "?";
}

/// "aten.uniform_.default(f32[32, 64], -0.125, 0.125)". Where it is drawn does not matter.
[[nodiscard]] inline std::string text_of_draw(const RecordedOperation& draw) {
  auto text = draw.name + '(';
  for (const auto& argument : draw.arguments)
    text += (text.back() == '(' ? "" : ", ") + text_of_value(argument);
  for (const auto& [name, argument] : draw.named)
    if (name != "device" && name != "pin_memory" && name != "layout" &&
        argument.kind != RecordedValue::Kind::none)
      text += (text.back() == '(' ? "" : ", ") + name + '=' + text_of_value(argument);
  return text + ')';
}

} // namespace detail

MTMC_INLINE std::optional<Diagnostic> check_paired_draws(const RecordedPlan& problem,
                                                         const RecordedPlan& candidate) {
  const auto expected = detail::draws_of(problem.phases.setup);
  const auto found = detail::draws_of(candidate.phases.setup);
  const auto differs = [](int line, std::string message) {
    return Diagnostic{
        Severity::error,
        line,
        0,
        std::move(message),
        "Make parameters with the same modules and initialisers, in the same order, as the problem does, and "
        "change their layout afterwards",
        {}};
  };
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const auto wanted = detail::text_of_draw(*expected[i]->operation);
    const auto given = detail::text_of_draw(*found[i]->operation);
    if (wanted != given)
      return differs(found[i]->line, "draw " + std::to_string(i + 1) + " of the constructor is " + given +
                                         ", and the problem's " + wanted);
  }
  if (found.size() > expected.size())
    return differs(found[expected.size()]->line, "the constructor draws random numbers " +
                                                     std::to_string(found.size()) + " times, the problem's " +
                                                     std::to_string(expected.size()) + " times");
  if (found.size() < expected.size())
    return differs(0, "the constructor does not draw " +
                          detail::text_of_draw(*expected[found.size()]->operation) +
                          ", as the problem's does");
  return std::nullopt;
}

} // namespace mtmc
