#pragma once

#include <mtmc/analysis/flow/flow_builder.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// The head of a for loop: whether it is canonical, and its bounds.

namespace mtmc::inline MTMC_ABI::detail {

inline VariableState* FlowBuilder::enter_for(LoopInfo& loop, const AssignmentIndex::Part& part) {
  const SyntaxNode& node = *loop.node;
  current_for_ = &node;
  assigned_in_for_.reset();
  Head head = read_init(loop);
  if (head.problem.empty()) read_step(loop, head);
  if (head.problem.empty() && part.leaves) head.problem = "break, return or a jump may leave it";
  if (head.problem.empty())
    for (const auto& entry : assignments_.in(loop_body(node)))
      if (!entry.memory && entry.name == head.variable) {
        head.problem = "its body assigns " + std::string(head.variable);
        break;
      }
  std::vector<Bound> bounds;
  if (head.problem.empty()) read_condition(loop_condition(node), head, loop.step, bounds);
  if (!head.problem.empty()) {
    loop.why_not_canonical = std::move(head.problem);
    run_init(node, nullptr);
    return nullptr;
  }
  loop.variable = head.variable;
  ExpressionValue start;
  if (const SyntaxNode* value = head.start; value != nullptr) {
    start = visit(*value, true);
    loop.start_expression = value;
  }
  for (const Bound& bound : bounds) add_limits(loop, bound, visit(*bound.expression, true).number);
  loop.bound_expression = bounds.front().expression;
  if (bounds.size() == 1 && bounds.front().plain) loop.comparison = bounds.front().comparison;
  loop.start = start.number.defined() ? followed(start.number, loop.variable) : unknown_number(loop.variable);
  loop.origins = extremes(loop.start, loop.step > 0 ? "max" : "min");
  VariableState* state = nullptr;
  if (loop_init(node).kind == NodeKind::declaration) {
    loop.variable_type = loop_init(node).type;
    declare_control(loop);
    state = find(loop.variable);
  } else {
    state = find(loop.variable);
    if (state != nullptr) {
      note_use(*state, true, loop_init(node));
      state->changed = true;
    }
  }
  if (state == nullptr || !state->integer || state->unstable) {
    loop.why_not_canonical = "its variable is no local integer";
    loop.limits.clear();
    return nullptr;
  }
  return state;
}

inline void FlowBuilder::declare_control(const LoopInfo& loop) {
  const SyntaxNode& declarator = declarators(loop_init(*loop.node)).front();
  Variable variable;
  variable.name = declarator.text;
  variable.type = loop.variable_type + declarator.type;
  variable.loop = &loop;
  variable.declaration = &declarator;
  VariableState& state = declare(declarator.text, std::move(variable));
  state.integer = !type_facts(loop.variable_type).floating && declarator.type.empty();
  state.changed = true;
}

inline void FlowBuilder::run_init(const SyntaxNode& node, const LoopInfo* head) {
  const SyntaxNode& init = loop_init(node);
  if (init.kind == NodeKind::declaration)
    declaration(init, head);
  else if (init.kind != NodeKind::empty)
    (void)visit(init, false);
}

inline FlowBuilder::Head FlowBuilder::read_init(const LoopInfo& loop) {
  Head head;
  const SyntaxNode& init = loop_init(*loop.node);
  if (init.kind == NodeKind::declaration) {
    const auto declared = declarators(init);
    if (declared.size() != 1)
      head.problem = "its head declares several variables";
    else {
      head.variable = declared.front().text;
      head.start = initial_value(declared.front());
    }
  } else if (init.kind == NodeKind::assignment && init.text == "=" &&
             left_operand(init).kind == NodeKind::name) {
    head.variable = left_operand(init).text;
    head.start = &right_operand(init);
  }
  if (head.problem.empty() && head.start == nullptr)
    head.problem = "its head does not set one variable to a first value";
  return head;
}

inline std::optional<std::int64_t> FlowBuilder::constant_value(const SyntaxNode& node) {
  switch (node.kind) {
  case NodeKind::literal:
    return integer_literal(node.text);
  case NodeKind::name: {
    if (VariableState* state = find(node.text); state != nullptr)
      return state->integer && state->number && !state->unstable ? state->number->constant() : std::nullopt;
    const auto found = constants_.find(node.text);
    return found == constants_.end() ? std::nullopt : std::optional<std::int64_t>(found->second);
  }
  case NodeKind::member: { // blockDim.x
    if (operand(node).kind != NodeKind::name || find(operand(node).text) != nullptr) return std::nullopt;
    const auto found = constants_.find(operand(node).text + node.text);
    return found == constants_.end() ? std::nullopt : std::optional<std::int64_t>(found->second);
  }
  case NodeKind::cast:
    return constant_value(operand(node));
  case NodeKind::unary: {
    const auto value = constant_value(operand(node));
    if (node.text == "+") return value;
    return node.text == "-" && value ? std::optional<std::int64_t>(-*value) : std::nullopt;
  }
  case NodeKind::binary: {
    const auto a = constant_value(left_operand(node));
    const auto b = constant_value(right_operand(node));
    if (!a || !b) return std::nullopt;
    const Polynomial x{*a};
    const Polynomial y{*b};
    if (node.text == "+") return (x + y).constant();
    if (node.text == "-") return (x - y).constant();
    if (node.text == "*") return (x * y).constant();
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

inline void FlowBuilder::read_step(LoopInfo& loop, Head& head) {
  const SyntaxNode& step = loop_step(*loop.node);
  std::optional<std::int64_t> amount;
  const auto is_variable = [&](const SyntaxNode& node) { return is_name(node, head.variable); };
  if ((step.kind == NodeKind::unary || step.kind == NodeKind::postfix) && is_variable(operand(step))) {
    if (step.text == "++") amount = 1;
    if (step.text == "--") amount = -1;
  } else if (step.kind == NodeKind::assignment && is_variable(left_operand(step))) {
    const SyntaxNode& value = right_operand(step);
    if (step.text == "+=" || step.text == "-=") {
      amount = constant_value(value);
      if (amount && step.text == "-=") amount = -*amount;
    } else if (step.text == "=" && value.kind == NodeKind::binary &&
               (value.text == "+" || value.text == "-")) {
      if (is_variable(left_operand(value)))
        amount = constant_value(right_operand(value));
      else if (value.text == "+" && is_variable(right_operand(value)))
        amount = constant_value(left_operand(value));
      if (amount && value.text == "-") amount = -*amount;
    }
  }
  constexpr std::int64_t largest = std::int64_t{1} << 31;
  if (!amount || *amount == 0 || *amount > largest || *amount < -largest || names_change(step, head.variable))
    head.problem = "its variable does not move by a constant step";
  else
    loop.step = *amount;
}

inline void FlowBuilder::read_condition(const SyntaxNode& condition, Head& head, std::int64_t step,
                                        std::vector<Bound>& bounds) {
  if (condition.kind == NodeKind::binary && condition.text == "&&") {
    read_condition(left_operand(condition), head, step, bounds);
    if (head.problem.empty()) read_condition(right_operand(condition), head, step, bounds);
    return;
  }
  Bound bound;
  if (condition.kind == NodeKind::binary) {
    bound.comparison = condition.text;
    const auto shift = shift_of(left_operand(condition), head.variable);
    const auto crossed = shift ? shift : shift_of(right_operand(condition), head.variable);
    bound.expression = shift ? &right_operand(condition) : &left_operand(condition);
    if (crossed) bound.shift = *crossed;
    if (!crossed) bound.comparison.clear();
    if (!shift && bound.comparison != "!=")
      for (char& c : bound.comparison) c = c == '<' ? '>' : c == '>' ? '<' : c;
    bound.plain = bound.shift == 0;
  }
  const std::string& symbol = bound.comparison;
  const bool up = symbol == "<" || symbol == "<=" || (symbol == "!=" && step == 1);
  const bool down = symbol == ">" || symbol == ">=" || (symbol == "!=" && step == -1);
  if (step > 0 ? !up : !down) {
    head.problem = "its condition does not compare " + std::string(head.variable) +
                   " with a bound that its step moves towards";
    return;
  }
  if (!keeps_value(*bound.expression, head) || names_change(condition, head.variable)) {
    head.problem = "its bound may change while it runs";
    return;
  }
  bounds.push_back(std::move(bound));
}

inline std::optional<std::int64_t> FlowBuilder::shift_of(const SyntaxNode& node, std::string_view variable) {
  if (is_name(node, variable)) return 0;
  if (node.kind == NodeKind::cast) return shift_of(operand(node), variable);
  if (node.kind != NodeKind::binary || (node.text != "+" && node.text != "-")) return std::nullopt;
  if (is_name(left_operand(node), variable)) {
    const auto value = constant_value(right_operand(node));
    return value && node.text == "-" ? -*value : value;
  }
  if (node.text == "+" && is_name(right_operand(node), variable)) return constant_value(left_operand(node));
  return std::nullopt;
}

inline bool FlowBuilder::keeps_value(const SyntaxNode& node, const Head& head) {
  if (node.kind == NodeKind::assignment || node.kind == NodeKind::postfix || node.kind == NodeKind::opaque)
    return false;
  if (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--")) return false;
  if (node.kind == NodeKind::name && node.text == head.variable) return false;
  if (node.kind == NodeKind::call && callee(node).kind == NodeKind::name) {
    const CallEffect& effect = effects_.of(callee(node).text);
    if (!effect.known && !is_integer_type_name(callee(node).text)) return false;
  }
  if (node.kind == NodeKind::name) {
    if (assigned_in_current_for(node.text)) return false;
    if (const VariableState* state = find(node.text); state != nullptr && state->unstable) return false;
  }
  if (node.kind == NodeKind::subscript || (node.kind == NodeKind::unary && node.text == "*")) {
    const VariableState* state = find(root_name(node));
    if (state == nullptr || state->array == nullptr || !state->array->constant || state->array->unknown)
      return false;
  }
  for (const SyntaxNode& child : node.children)
    if (!keeps_value(child, head)) return false;
  return true;
}

inline bool FlowBuilder::names_change(const SyntaxNode& node, std::string_view variable) {
  if (node.kind == NodeKind::name && node.text != variable && assigned_in_current_for(node.text)) return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](const SyntaxNode& child) { return names_change(child, variable); });
}

inline bool FlowBuilder::assigned_in_current_for(std::string_view name) {
  if (!assigned_in_for_) {
    assigned_in_for_.emplace();
    for (const auto& entry : assignments_.in(*current_for_)) assigned_in_for_->insert(entry.name);
  }
  return assigned_in_for_->contains(name);
}

inline std::vector<Polynomial> FlowBuilder::extremes(const Polynomial& number, std::string_view operation) {
  if (number.terms().size() == 1 && number.terms().front().degree == 1 &&
      number.terms().front().coefficient == 1) {
    const Symbol& symbol = *number.terms().front().factors[0];
    if (symbol.kind == Symbol::Kind::derived && symbol.operation == operation) {
      std::vector<Polynomial> result;
      for (const Polynomial& operand : symbol.operands)
        for (Polynomial& part : extremes(operand, operation)) result.push_back(std::move(part));
      return result;
    }
  }
  return {number};
}

inline void FlowBuilder::add_limits(LoopInfo& loop, const Bound& bound, const Polynomial& number) {
  const Polynomial known = number.defined() ? followed(number, "bound") : unknown_number("bound");
  const bool inclusive = bound.comparison == "<=" || bound.comparison == ">=";
  const std::int64_t beyond = (inclusive ? (loop.step > 0 ? 1 : -1) : 0) - bound.shift;
  for (const Polynomial& limit : extremes(known, loop.step > 0 ? "min" : "max"))
    loop.limits.push_back(limit + beyond);
}

} // namespace mtmc::detail
