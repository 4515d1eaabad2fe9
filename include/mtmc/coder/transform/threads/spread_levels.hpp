#pragma once
/// The loops of a nest whose iterations become threads, and how kernels and launch lines speak of them.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/product_sum.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A loop whose iterations become threads.
struct SpreadLevel {
  const LoopInfo* loop = nullptr; ///< null for the rows that threads do already
  CountingLoop head{};
  std::optional<std::int64_t> trips{}; ///< at the main size
  std::string launch_count{};          ///< iterations, in the words of the launch line
  bool at_least_one = false;           ///< there is an iteration at every size

  /// The variable counts iterations: 0, 1, 2, ...
  [[nodiscard]] bool counts_iterations() const { return literal_value(head.first) == 0 && head.step == 1; }
  /// The variable is wider than the numbers of threads.
  [[nodiscard]] bool is_wide() const { return type_facts(head.type).size > 4; }

  /// Iterations, in the words of the function, as a factor.
  [[nodiscard]] std::string count() const {
    const SyntaxNode range = difference(head.bound, head.first);
    if (head.step == 1) return factor(range);
    return factor(make_binary("/", offset_by(range, head.step - 1), make_integer(head.step)));
  }
  /// The same as a divisor.
  [[nodiscard]] std::string divisor() const {
    const std::string text = count();
    const bool plain = std::all_of(text.begin(), text.end(), is_name_character);
    return plain || (text.starts_with('(') && without_brackets(text) != text) ? text : '(' + text + ')';
  }
  /// The value of the variable in an iteration.
  [[nodiscard]] std::string value(const std::string& iteration) const {
    std::string offset = iteration;
    if (head.step != 1)
      offset = std::to_string(head.step) + " * " +
               (iteration.find(' ') == std::string::npos ? iteration : '(' + iteration + ')');
    if (literal_value(head.first) == 0) return offset;
    return factor(head.first) + " + " + offset;
  }
  /// The condition that the variable belongs to an iteration.
  [[nodiscard]] std::string in_range() const {
    return print(make_binary("<", make_name(head.variable), head.bound));
  }
  /// The declaration of the variable.
  [[nodiscard]] std::string declared(const std::string& as) const {
    const bool constant = head.type.find("const") != std::string::npos;
    return (constant ? "" : "const ") + head.type + ' ' + head.variable + " = " + as + ";\n";
  }

private:
  /// The text of an expression as a factor.
  [[nodiscard]] static std::string factor(const SyntaxNode& expression) {
    const std::string product = print(make_binary("*", expression, make_integer(1)));
    return product.substr(0, product.rfind(" * 1"));
  }
};

/// Perfectly nested loops, or rows and the loops in them; the one that goes along memory comes last.
using SpreadNest = std::vector<SpreadLevel>;

/// The loop whose body is the work.
[[nodiscard]] inline const LoopInfo& innermost_of(const SpreadNest& nest) {
  const LoopInfo* innermost = nullptr;
  for (const SpreadLevel& level : nest)
    if (level.loop != nullptr && (innermost == nullptr || level.loop->depth > innermost->depth))
      innermost = level.loop;
  return *innermost;
}

/// The level counts in `int`, and so does its bound, in variables of the function.
[[nodiscard]] inline bool counts_in_int(const SpreadLevel& level, const FunctionAnalysis& function) {
  const auto is = [](std::string_view type) {
    const TypeFacts facts = type_facts(type);
    return facts.integer && facts.size == 4 && !facts.is_unsigned;
  };
  bool all = is(level.head.type);
  for (const std::string& name : names_used(level.head.bound))
    for (const Variable& variable : function.variables)
      all = all && (variable.name != name || is(variable.type));
  return all;
}

/// What the body of a nest says of the number through all iterations, as kernels write it; nothing where
/// some variable does not count iterations.
[[nodiscard]] inline std::optional<ProductSum> iteration_number(const SpreadNest& nest) {
  SyntaxNode number = make_name(nest.front().head.variable);
  for (const SpreadLevel& level : nest)
    if (!level.counts_iterations()) return std::nullopt;
  for (std::size_t i = 1; i < nest.size(); ++i)
    number = make_binary("+", make_binary("*", std::move(number), nest[i].head.bound),
                         make_name(nest[i].head.variable));
  return product_sum(number);
}

/// Puts a name into the body for that number. Returns how often it stands there.
[[nodiscard]] inline std::size_t name_iteration_number(SyntaxNode& body, const SpreadNest& nest,
                                                       const std::string& name) {
  const auto wanted = iteration_number(nest);
  if (!wanted || nest.size() < 2) return 0;
  bool hidden = false; // a name of the bounds means something else inside
  std::set<std::string> outside;
  for (const SpreadLevel& level : nest) {
    outside.insert(level.head.variable);
    for (std::string& one : names_used(level.head.bound)) outside.insert(std::move(one));
  }
  walk(body, [&](const SyntaxNode& node) {
    hidden = hidden || (node.kind == NodeKind::declarator && outside.contains(node.text));
  });
  if (hidden) return 0;
  std::size_t count = 0;
  walk(body, [&](SyntaxNode& node) {
    if (node.kind != NodeKind::binary) return true;
    if (const auto sum = product_sum(node); sum && *sum == *wanted) {
      node = make_name(name);
      ++count;
      return false;
    }
    // a part of a longer sum
    return true;
  });
  return count;
}

} // namespace mtmc::detail
