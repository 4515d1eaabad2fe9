#pragma once

#include <mtmc/analysis/flow/flow_builder.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

/// \file
/// What branches and strides say about the index of a thread: `if (i < n)`, `if (i >= n) return;`,
/// `i += gridDim.x * blockDim.x`.

namespace mtmc::inline MTMC_ABI::detail {

inline Polynomial FlowBuilder::quiet_number(const SyntaxNode& node) {
  switch (node.kind) {
  case NodeKind::literal: {
    const auto value = integer_literal(node.text);
    return value ? Polynomial(*value) : Polynomial::undefined();
  }
  case NodeKind::name: {
    if (const VariableState* state = find(node.text); state != nullptr)
      return state->integer && state->number && !state->unstable ? *state->number : Polynomial::undefined();
    const auto constant = constants_.find(node.text);
    return constant == constants_.end() ? Polynomial::undefined() : Polynomial(constant->second);
  }
  case NodeKind::member: {
    const SyntaxNode& object = operand(node);
    if (object.kind != NodeKind::name || find(object.text) != nullptr || !node.text.starts_with("."))
      return Polynomial::undefined();
    const std::string name = object.text + node.text;
    const auto constant = constants_.find(name);
    return constant == constants_.end() ? number_of(global(name)) : Polynomial(constant->second);
  }
  case NodeKind::cast:
    return type_facts(node.type).integer ? quiet_number(operand(node)) : Polynomial::undefined();
  case NodeKind::binary: {
    const Polynomial a = quiet_number(left_operand(node));
    const Polynomial b = quiet_number(right_operand(node));
    if (node.text == "+") return a + b;
    if (node.text == "-") return a - b;
    if (node.text == "*") return a * b;
    const bool rounds = node.text == "/" || node.text == "%" || node.text == "&" || node.text == ">>";
    return rounds && a.defined() && b.defined() ? quotient(node.text, a, b) : Polynomial::undefined();
  }
  default:
    return Polynomial::undefined();
  }
}

inline void FlowBuilder::note_bounds(const SyntaxNode& condition, bool negated) {
  if (condition.kind == NodeKind::unary && condition.text == "!")
    return note_bounds(operand(condition), !negated);
  if (condition.kind != NodeKind::binary) return;
  if (condition.text == (negated ? "||" : "&&")) {
    note_bounds(left_operand(condition), negated);
    note_bounds(right_operand(condition), negated);
    return;
  }
  const std::string_view symbol = condition.text;
  const bool less = symbol == "<" || symbol == "<=";
  if (!less && symbol != ">" && symbol != ">=") return;
  // "a < b", or the opposite of it: "b <= a", that is "b < a + 1".
  const bool swapped = less == negated;
  const bool inclusive = (symbol.size() == 2) != negated;
  Polynomial below = quiet_number(left_operand(condition));
  Polynomial limit = quiet_number(right_operand(condition));
  if (swapped) std::swap(below, limit);
  if (!below.defined() || !limit.defined()) return;
  if (below.weight() + limit.weight() > Symbol::heaviest) return;
  function_.guard_bounds.push_back({std::move(below), limit + (inclusive ? 1 : 0), order_, open_end});
}

inline const SyntaxNode* FlowBuilder::named_condition(const SyntaxNode& name) {
  const VariableState* const state = find(name.text);
  if (state == nullptr || state->variable->declaration == nullptr || may_change(name.text) ||
      state->variable->type.find("bool") == std::string::npos ||
      state->variable->kind != Variable::Kind::local || state->variable->address_taken)
    return nullptr;
  const SyntaxNode* const value = initial_value(*state->variable->declaration);
  if (value == nullptr || value->kind != NodeKind::binary) return nullptr;
  constexpr std::size_t longest = 64; // nodes
  std::size_t nodes = 0;
  bool fixed = true;
  walk(*value, [&](const SyntaxNode& node) {
    ++nodes;
    if (node.kind == NodeKind::name)
      fixed = fixed && nodes <= longest && !may_change(node.text) && means_one_thing(node.text);
  });
  return fixed && nodes <= longest ? value : nullptr;
}

inline void FlowBuilder::note_comparisons(const SyntaxNode& condition, bool negated,
                                          const BranchComparison& one, bool named) {
  if (condition.kind == NodeKind::unary && condition.text == "!")
    return note_comparisons(operand(condition), !negated, one, named);
  if (condition.kind == NodeKind::binary && condition.text == (negated ? "||" : "&&")) {
    note_comparisons(left_operand(condition), negated, one, named);
    note_comparisons(right_operand(condition), negated, one, named);
    return;
  }
  if (condition.kind == NodeKind::name && !named)
    if (const SyntaxNode* const stands_for = named_condition(condition))
      return note_comparisons(*stands_for, negated, one, true);
  BranchComparison comparison = one;
  comparison.number = Polynomial::undefined();
  const std::string_view symbol = condition.text;
  if (condition.kind != NodeKind::binary) { // `if (!lane)`
    comparison.equal = true;
    if (negated) comparison.number = quiet_number(condition);
  } else if (symbol == (negated ? "!=" : "==")) {
    comparison.equal = true;
    comparison.number = quiet_number(left_operand(condition)) - quiet_number(right_operand(condition));
  } else if (symbol == "<" || symbol == "<=" || symbol == ">" || symbol == ">=") {
    const Polynomial difference =
        quiet_number(left_operand(condition)) - quiet_number(right_operand(condition));
    const bool less = symbol.front() == '<';
    const bool inclusive = (symbol.size() == 2) != negated;
    comparison.number = (less != negated ? difference : -difference) - (inclusive ? 1 : 0);
  }
  if (comparison.number.weight() > Symbol::heaviest) comparison.number = Polynomial::undefined();
  function_.branch_comparisons.push_back(std::move(comparison));
}

inline VariableState* FlowBuilder::read_stride(LoopInfo& loop) {
  const SyntaxNode& node = *loop.node;
  if (node.kind != NodeKind::for_loop) return nullptr;
  const SyntaxNode& step = loop_step(node);
  const SyntaxNode& condition = loop_condition(node);
  if (step.kind != NodeKind::assignment || step.text != "+=" || left_operand(step).kind != NodeKind::name ||
      condition.kind != NodeKind::binary || condition.text != "<" ||
      !is_name(left_operand(condition), left_operand(step).text))
    return nullptr;
  VariableState* const state = find(left_operand(step).text);
  const Polynomial stride = quiet_number(right_operand(step));
  const Polynomial limit = quiet_number(right_operand(condition));
  if (state == nullptr || !state->integer || state->unstable || !state->number || !stride.defined() ||
      !limit.defined() || stride.weight() + limit.weight() + state->number->weight() > Symbol::heaviest)
    return nullptr;
  // Only what a launch is made of: anything else is an ordinary loop that is not canonical.
  bool of_launch = false;
  for (const Symbol* symbol : stride.symbols())
    of_launch = of_launch || symbol->name.starts_with("blockDim.") || symbol->name.starts_with("gridDim.");
  if (!of_launch) return nullptr;
  for (const auto& entry : assignments_.in(loop_body(node)))
    if (!entry.memory && entry.name == left_operand(step).text) return nullptr;
  loop.variable = left_operand(step).text;
  loop.start = *state->number;
  loop.stride = stride;
  loop.limits = {limit};
  return state;
}

} // namespace mtmc::detail
