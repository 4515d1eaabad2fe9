#pragma once
/// Whether all threads that share a row have the same value of an expression.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Values that are the same for all threads of a row, by the expressions that make them.
class RowUniformity {
public:
  /// Rows have `threads` threads each, which are neighbours along x; with `whole_blocks` the values must be
  /// the same for all threads of a block, also where it has several rows.
  RowUniformity(const FunctionAnalysis& function, const CallEffects& effects, std::int64_t threads,
                bool whole_blocks)
      : function_(function), effects_(effects), threads_(threads), whole_blocks_(whole_blocks) {}

  /// Certainly the same for all of them.
  [[nodiscard]] bool holds(const SyntaxNode& expression) const { return uniform(expression, 0); }

private:
  [[nodiscard]] bool uniform(const SyntaxNode& node, int depth) const {
    constexpr int deepest = 16; // definitions by definitions
    if (depth > deepest) return false;
    const auto all = [&](const auto& children) {
      return std::all_of(children.begin(), children.end(),
                         [&](const SyntaxNode& child) { return uniform(child, depth); });
    };
    switch (node.kind) {
    case NodeKind::literal:
      return true;
    case NodeKind::name:
      return is_uniform_name(node.text, depth);
    case NodeKind::member:
      if (is_name(operand(node), "threadIdx")) return !whole_blocks_ && node.text != ".x";
      return is_launch_name(operand(node)) || all(node.children);
    case NodeKind::binary:
      return (!whole_blocks_ && is_number_of_row(node, depth)) || all(node.children);
    case NodeKind::unary:
      return node.text != "&" && node.text != "++" && node.text != "--" && all(node.children);
    case NodeKind::conditional:
    case NodeKind::cast:
      return all(node.children);
    case NodeKind::call:
      return callee(node).kind == NodeKind::name && effects_.of(callee(node).text).mathematical &&
             all(arguments(node));
    default:
      return false;
    }
  }

  /// `threadIdx.x / 32` for rows of 32 threads.
  [[nodiscard]] bool is_number_of_row(const SyntaxNode& node, int depth) const {
    const auto divisor = literal_value(right_operand(node));
    const bool divides = divisor && ((node.text == "/" && *divisor == threads_) ||
                                     (node.text == ">>" && *divisor < 32 && (1LL << *divisor) == threads_));
    return divides && is_number_in_block(left_operand(node), depth);
  }
  [[nodiscard]] bool is_number_in_block(const SyntaxNode& node, int depth) const {
    if (node.kind == NodeKind::cast) return is_number_in_block(operand(node), depth);
    if (node.kind == NodeKind::member) return is_name(operand(node), "threadIdx") && node.text == ".x";
    if (node.kind != NodeKind::name || depth > 2) return false;
    const auto definitions = definitions_of(node.text);
    return definitions.size() == 1 && definitions.front() != nullptr &&
           is_number_in_block(*definitions.front(), depth + 1);
  }

  /// The values that the variables of a name are declared with; null for one that is not so simple.
  [[nodiscard]] std::vector<const SyntaxNode*> definitions_of(const std::string& name) const {
    std::vector<const SyntaxNode*> found;
    for (const Variable& variable : function_.variables) {
      if (variable.name != name || variable.kind != Variable::Kind::local) continue;
      found.push_back(is_constant(variable) && variable.declaration != nullptr
                          ? initial_value(*variable.declaration)
                          : nullptr);
    }
    return found;
  }
  /// Nothing but its declaration gives it a value.
  [[nodiscard]] bool is_constant(const Variable& variable) const {
    return !variable.address_taken && !variable.persistent &&
           std::none_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
             const ScalarUse& use = function_.scalar_uses[at];
             return use.write && (variable.kind == Variable::Kind::parameter || use.statement == nullptr ||
                                  use.statement->kind != NodeKind::declaration);
           });
  }
  [[nodiscard]] bool is_uniform_name(const std::string& name, int depth) const {
    for (const Variable& variable : function_.variables) {
      if (variable.name != name) continue;
      if (variable.kind == Variable::Kind::local && (variable.array || variable.loop != nullptr))
        return false;
      if (variable.kind == Variable::Kind::parameter && !is_constant(variable)) return false;
      if (variable.kind == Variable::Kind::global && effects_.is_mutable_global(name)) return false;
    }
    const auto definitions = definitions_of(name);
    return std::all_of(definitions.begin(), definitions.end(), [&](const SyntaxNode* value) {
      return value != nullptr && uniform(*value, depth + 1);
    });
  }

  const FunctionAnalysis& function_;
  const CallEffects& effects_;
  const std::int64_t threads_;
  const bool whole_blocks_;
};

} // namespace mtmc::detail
