#pragma once

#include <mtmc/analysis/flow/expression_flow.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

/// \file
/// Calls: what they are worth, what they read, write and may do besides.

namespace mtmc::inline MTMC_ABI::detail {

inline ExpressionValue ExpressionFlow::call(const SyntaxNode& node, bool wanted) {
  const SyntaxNode& function = callee(node);
  if (function.kind == NodeKind::member) return member_call(node, wanted);
  if (function.kind != NodeKind::name) {
    for (const SyntaxNode& child : node.children) (void)visit(child, false);
    note_opaque(node, "a call through an expression");
    return {};
  }
  if (find(function.text) == nullptr && is_integer_type_name(function.text) && node.children.size() == 2)
    return cast(function.text, node.children[1], wanted);
  const CallEffect effect = effects_.of(function.text);
  if (effect.synchronizes != Synchronization::none)
    function_.barriers.push_back({&node, loop_, effect.synchronizes, order_++});
  const std::string_view plain = plain_function_name(function.text);
  ExpressionValue value;
  if (plain == "sizeof" || plain == "alignof") {
    if (wanted) value.number = Polynomial(sizeof_number(node));
    return value;
  }
  function_.calls.push_back({function.text, &node, loop_, effect.transcendental});
  if (plain == "__builtin_assume_aligned" || plain == "assume_aligned" || plain == "__builtin_expect") {
    for (std::size_t i = 2; i < node.children.size(); ++i) (void)visit(node.children[i], false);
    return node.children.size() > 1 ? visit(node.children[1], wanted) : value;
  }
  if (is_one_of(plain, cached_loads) && node.children.size() == 2) {
    const Place place = pointed_place(visit(node.children[1], true));
    return read(place, node, wanted);
  }
  if (effect.selects != ReductionOperation::none && node.children.size() == 3) {
    ExpressionValue a = visit(node.children[1], wanted);
    ExpressionValue b = visit(node.children[2], wanted);
    value.floating = effect.floating || a.floating || b.floating;
    value.indirect = a.indirect || b.indirect;
    if (value.floating)
      note_flops(1);
    else if (wanted)
      value.number = extreme(effect.selects, a.number, b.number);
    return value;
  }
  const bool known_operation = effect.known && !effect.mathematical;
  for (std::size_t i = 1; i < node.children.size(); ++i) argument(node, i, effect, known_operation);
  value.floating = effect.floating;
  if (effect.mathematical && effect.floating) note_flops(1);
  if (!effect.known) note_opaque(node, "a call of " + function.text + ", whose effects are not known");
  if (wanted && !effect.floating) {
    value.number = unknown_number(function.text);
    value.indirect = true;
  }
  return value;
}

inline void ExpressionFlow::argument(const SyntaxNode& node, std::size_t index, const CallEffect& effect,
                                     bool own_function) {
  const SyntaxNode& given = node.children[index];
  const bool writes = index - 1 < effect.writes.size() && effect.writes[index - 1];
  if (own_function && writes && given.kind != NodeKind::call) {
    // A scalar given by reference is assigned.
    const SyntaxNode* bare = &given;
    if (bare->kind == NodeKind::unary && bare->text == "&") bare = &operand(*bare);
    if (bare->kind == NodeKind::name || bare->kind == NodeKind::subscript) {
      Place place = place_of(*bare);
      if (place.kind == Place::Kind::scalar && place.state->array == nullptr) {
        note_use(*place.state, false, *bare);
        note_use(*place.state, true, *bare);
        forget(*place.state, true, loop_);
        return;
      }
      if (place.kind == Place::Kind::element) {
        place.subscripts.assign(place.subscripts.size(), Polynomial::undefined());
        note_access(place, false, *bare);
        note_access(place, true, *bare);
        return;
      }
    }
  }
  const ExpressionValue value = visit(given, true);
  if (value.array == nullptr) return;
  Place behind;
  behind.kind = Place::Kind::element;
  behind.array = value.array;
  behind.subscripts.assign(std::max<std::size_t>(1, value.array->extents.size()), Polynomial::undefined());
  note_access(behind, false, given);
  if (writes || !effect.known) note_access(behind, true, given);
}

inline ExpressionValue ExpressionFlow::member_call(const SyntaxNode& node, bool wanted) {
  const SyntaxNode& function = callee(node);
  const std::string& name = function.text;
  for (const SyntaxNode& given : arguments(node)) (void)visit(given, false);
  ExpressionValue value;
  if (name == ".size" || name == ".length" || name == ".empty" || name == "->size") {
    if (wanted && operand(function).kind == NodeKind::name)
      value.number = number_of(global(operand(function).text + name + "()"));
    return value;
  }
  if ((name == ".data" || name == ".begin") && operand(function).kind == NodeKind::name) {
    VariableState* state = find(operand(function).text);
    if (state != nullptr && state->array == nullptr && !state->target) make_container(*state);
    if (state != nullptr && state->array != nullptr) {
      value.array = state->array;
      return value;
    }
  }
  (void)visit(operand(function), false);
  if (name == ".sync" && node.children.size() == 1) { // of a cooperative group
    function_.barriers.push_back({&node, loop_, Synchronization::block, order_++});
    return value;
  }
  note_opaque(node, "a call of member " + name.substr(name.find_first_not_of(".->")) +
                        ", whose effects are not known");
  return value;
}

inline std::int64_t ExpressionFlow::sizeof_number(const SyntaxNode& node) {
  const TypeFacts facts = node.children.size() > 1 ? type_facts(node.children[1].text) : TypeFacts{};
  if (facts.pointer) return 8;
  return facts.size > 0 ? facts.size : 4;
}

} // namespace mtmc::detail
