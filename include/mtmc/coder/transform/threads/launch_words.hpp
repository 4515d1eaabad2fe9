#pragma once
/// What integer expressions of a launched function are in the words of launch lines.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Translates expressions of a function into those that its launch line may use: parameters become their
/// arguments, constants of the function what they are declared with.
class LaunchWords {
public:
  /// `task` and `launch` must outlive it.
  LaunchWords(const Task& task, const ThreadLaunch& launch) : task_(task), launch_(launch) {}

  /// The expression as text that stands for itself in products; nothing where it is not arithmetic of what
  /// is known before the launch.
  [[nodiscard]] std::optional<std::string> of(const SyntaxNode& expression) const {
    return translated(expression, 0);
  }

private:
  [[nodiscard]] std::optional<std::string> translated(const SyntaxNode& node, int depth) const {
    constexpr int deepest = 20;
    if (depth > deepest) return std::nullopt;
    switch (node.kind) {
    case NodeKind::literal:
      return number(node.text);
    case NodeKind::name:
      return name(node.text, depth);
    case NodeKind::member:
      return extent_of_launch(node);
    case NodeKind::cast: {
      const TypeFacts type = type_facts(node.type);
      return type.integer && !type.pointer && type.size >= 4 ? translated(operand(node), depth + 1)
                                                             : std::nullopt;
    }
    case NodeKind::binary:
      return binary(node, depth);
    case NodeKind::call:
      return extremum(node, depth);
    default:
      return std::nullopt;
    }
  }

  [[nodiscard]] static std::optional<std::string> number(std::string_view text) {
    while (!text.empty() &&
           (text.back() == 'u' || text.back() == 'U' || text.back() == 'l' || text.back() == 'L'))
      text.remove_suffix(1);
    const bool digits =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || (text.size() > 1 && text.front() == '0')) return std::nullopt;
    return std::string(text);
  }

  [[nodiscard]] std::optional<std::string> name(const std::string& text, int depth) const {
    const Variable* variable = nullptr;
    for (const Variable& one : launch_.function->variables)
      if (one.name == text) {
        if (variable != nullptr) return std::nullopt; // which of them is not said
        variable = &one;
      }
    if (variable == nullptr || variable->pointer || variable->array || variable->floating ||
        variable->address_taken || variable->loop != nullptr)
      return std::nullopt;
    const auto& uses = launch_.function->scalar_uses;
    const bool changes = std::any_of(variable->uses.begin(), variable->uses.end(), [&](std::size_t at) {
      return uses[at].write && uses[at].node != variable->declaration;
    });
    if (changes) return std::nullopt;
    if (variable->kind == Variable::Kind::parameter) return argument(text);
    if (variable->kind != Variable::Kind::local || variable->declaration == nullptr ||
        variable->declaration->kind != NodeKind::declarator)
      return std::nullopt;
    const SyntaxNode* const value = initial_value(*variable->declaration);
    return value == nullptr ? std::nullopt : translated(*value, depth + 1);
  }

  [[nodiscard]] std::optional<std::string> argument(const std::string& parameter) const {
    const auto formal = parameters(*launch_.function->node);
    for (std::size_t i = 0; i < formal.size() && i < launch_.line.arguments.size(); ++i) {
      if (formal[i].text != parameter) continue;
      const std::string& given = launch_.line.arguments[i];
      const Argument* const argument = task_.find_argument(given);
      if (argument == nullptr) return as_factor(given);
      if (argument->role != ArgumentRole::scalar || is_floating(argument->type)) return std::nullopt;
      return as_factor(argument->value.empty() ? argument->name : argument->value);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> extent_of_launch(const SyntaxNode& node) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (node.text != '.' + std::string(axis_names[axis])) continue;
      const auto& line = launch_.line;
      if (is_name(operand(node), "blockDim"))
        return axis < line.block.size() ? as_factor(line.block[axis]) : "1";
      if (is_name(operand(node), "gridDim"))
        return axis < line.grid.size() ? as_factor(line.grid[axis]) : "1";
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> binary(const SyntaxNode& node, int depth) const {
    if (node.text != "+" && node.text != "-" && node.text != "*" && node.text != "/" && node.text != "%")
      return std::nullopt;
    const auto left = translated(left_operand(node), depth + 1);
    const auto right = translated(right_operand(node), depth + 1);
    if (!left || !right) return std::nullopt;
    return '(' + *left + ' ' + node.text + ' ' + *right + ')';
  }

  [[nodiscard]] std::optional<std::string> extremum(const SyntaxNode& node, int depth) const {
    if ((!is_call_of(node, "min") && !is_call_of(node, "max")) || arguments(node).size() != 2)
      return std::nullopt;
    const auto first = translated(arguments(node)[0], depth + 1);
    const auto second = translated(arguments(node)[1], depth + 1);
    if (!first || !second) return std::nullopt;
    return callee(node).text + '(' + *first + ", " + *second + ')';
  }

  const Task& task_;
  const ThreadLaunch& launch_;
};

/// Iterations of a loop at the task's main size, where they are known: also where parameters have other names
/// than the symbols that are given for them.
[[nodiscard]] inline std::optional<std::int64_t>
launched_trips(const TransformRequest& request, const ThreadLaunch& launch, const LoopInfo& loop) {
  if (!loop.canonical || loop.step < 1 || loop.comparison.empty()) return main_trips(request, loop);
  const LaunchWords words(request.task, launch);
  const auto first = words.of(*loop.start_expression), bound = words.of(*loop.bound_expression);
  if (!first || !bound) return main_trips(request, loop);
  const auto from = value_at_main_size(request, *first), to = value_at_main_size(request, *bound);
  if (!from || !to) return main_trips(request, loop);
  const std::int64_t range = *to - *from + (loop.comparison == "<=" ? 1 : 0);
  return range <= 0 ? 0 : (range - 1) / loop.step + 1;
}

/// A text without the brackets around all of it.
[[nodiscard]] inline std::string without_brackets(const std::string& text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return text;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

} // namespace mtmc::detail
