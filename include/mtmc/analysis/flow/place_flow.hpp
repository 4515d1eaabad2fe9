#pragma once

#include <mtmc/analysis/flow/expression_flow.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Places: which variable or which element of which array an expression names.

namespace mtmc::inline MTMC_ABI::detail {

inline Place ExpressionFlow::place_of(const SyntaxNode& node) {
  switch (node.kind) {
  case NodeKind::name:
    return named_place(node);
  case NodeKind::subscript:
    return element_place(node);
  case NodeKind::unary:
    if (node.text == "*") {
      ExpressionValue pointer = visit(operand(node), true);
      return pointed_place(pointer);
    }
    break;
  case NodeKind::member: {
    if (node.text.starts_with("->")) {
      ExpressionValue pointer = visit(operand(node), true);
      return pointed_place(pointer);
    }
    return place_of(operand(node)); // a member counts as the whole object
  }
  case NodeKind::cast:
    return place_of(operand(node));
  default:
    break;
  }
  (void)visit(node, false);
  return {};
}

inline Place ExpressionFlow::named_place(const SyntaxNode& node) {
  VariableState* state = find(node.text);
  if (state == nullptr) state = &global(node.text);
  if (state->target) return *state->target;
  Place place;
  place.kind = Place::Kind::scalar;
  place.state = state;
  place.floating = state->variable->floating;
  return place;
}

inline Place ExpressionFlow::pointed_place(const ExpressionValue& pointer) {
  Place place;
  place.kind = Place::Kind::element;
  place.array = pointer.array != nullptr ? pointer.array : &unknown_array();
  place.subscripts.push_back(pointer.array != nullptr ? pointer.offset : Polynomial::undefined());
  place.indirect = pointer.indirect;
  place.floating = type_facts(place.array->element_type).floating;
  return place;
}

inline Place ExpressionFlow::element_place(const SyntaxNode& node) {
  std::vector<const SyntaxNode*> indices;
  const SyntaxNode* base = &node;
  for (; base->kind == NodeKind::subscript; base = &subscript_base(*base))
    indices.insert(indices.begin(), &subscript_index(*base));
  Place place;
  place.kind = Place::Kind::element;
  VariableState* state = base->kind == NodeKind::name ? find(base->text) : nullptr;
  if (state == nullptr && base->kind == NodeKind::name) state = &global(base->text);
  if (state != nullptr && !state->target && state->array == nullptr) make_container(*state);
  const bool whole =
      state != nullptr && !state->target && state->array != nullptr && !state->variable->pointer;
  ExpressionValue pointer;
  if (!whole) pointer = visit(*base, true);
  for (const SyntaxNode* index : indices) {
    ExpressionValue value = visit(*index, true);
    place.indirect = place.indirect || value.indirect;
    place.subscripts.push_back(std::move(value.number));
  }
  if (whole) {
    place.array = state->array;
    const std::size_t expected = place.array->extents.empty() ? 1 : place.array->extents.size();
    if (place.subscripts.size() != expected) place.subscripts.assign(expected, Polynomial::undefined());
  } else if (pointer.array == nullptr || place.subscripts.size() != 1) {
    if (pointer.array != nullptr) { // the table of a pointer to pointers is read first
      Place table;
      table.kind = Place::Kind::element;
      table.array = pointer.array;
      table.subscripts.push_back(pointer.offset + place.subscripts.front());
      note_access(table, false, node);
    }
    place.array = &unknown_array();
    place.subscripts.assign(1, Polynomial::undefined());
  } else {
    place.array = pointer.array;
    place.indirect = place.indirect || pointer.indirect;
    if (place.array->extents.empty())
      place.subscripts.front() += pointer.offset;
    else
      place.subscripts.assign(place.array->extents.size(), Polynomial::undefined());
  }
  place.floating = type_facts(place.array->element_type).floating;
  return place;
}

inline void ExpressionFlow::make_container(VariableState& state) {
  Array& array = new_array(state.variable);
  array.local = state.variable->kind == Variable::Kind::local && !type_facts(state.variable->type).reference;
  array.unknown = state.variable->kind == Variable::Kind::parameter; // a span or a view: of anything
  state.array = &array;
  state.offset = Polynomial{};
  state.variable->array = true;
}

inline ExpressionValue ExpressionFlow::read(const Place& place, const SyntaxNode& node, bool wanted) {
  ExpressionValue value;
  value.floating = place.floating;
  if (place.kind == Place::Kind::element) {
    note_access(place, false, node);
    if (wanted && !place.floating) {
      value.indirect = true;
      value.number = element_number(place);
    }
  } else if (place.kind == Place::Kind::scalar) {
    VariableState& state = *place.state;
    value.array = state.array;
    if (state.array != nullptr) {
      value.offset = state.array->extents.empty() ? offset_of(state) : Polynomial::undefined();
      if (state.variable->pointer) note_use(state, false, node);
      value.indirect = state.indirect;
    } else {
      note_use(state, false, node);
      value.indirect = state.indirect;
      if (wanted && !place.floating) value.number = number_of(state);
    }
  }
  return value;
}

inline Polynomial ExpressionFlow::element_number(const Place& place) {
  const bool constant = place.array->constant && !place.array->unknown;
  if (!constant) return unknown_number(place.array->name);
  return derived(place.array->name + "[]", place.subscripts, place.array->name);
}

} // namespace mtmc::detail
