#pragma once

#include <mtmc/analysis/flow/flow_state.hpp>
#include <mtmc/analysis/flow/updates.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Expressions to values and effects: follows the integer value of every variable as a polynomial, and notes
/// each read and write on the way. flow_builder.hpp drives it over the statements of a function.

namespace mtmc::inline MTMC_ABI::detail {

/// Walks expressions of one function. Places and calls are defined in place_flow.hpp and call_flow.hpp.
class ExpressionFlow : public FlowState {
public:
  using FlowState::FlowState;

protected:
  // --- places

  /// The place an expression names. Reads inside it (subscripts, pointers) are noted, the place itself not.
  [[nodiscard]] Place place_of(const SyntaxNode& node);

  [[nodiscard]] Place named_place(const SyntaxNode& node);

  [[nodiscard]] Place pointed_place(const ExpressionValue& pointer);

  [[nodiscard]] Place element_place(const SyntaxNode& node);

  /// An object that is subscripted but is no pointer: a container, or an array of the file.
  void make_container(VariableState& state);

  /// Reads a place.
  [[nodiscard]] ExpressionValue read(const Place& place, const SyntaxNode& node, bool wanted);

  /// The integer an element holds: the same symbol each time if nobody ever writes the array.
  [[nodiscard]] Polynomial element_number(const Place& place);

  // --- expressions

  /// An expression whose value nobody uses: only there an update is nothing but an update.
  void visit_discarded(const SyntaxNode& node) {
    if (node.kind == NodeKind::binary && node.text == ",") {
      visit_discarded(left_operand(node));
      visit_discarded(right_operand(node));
      return;
    }
    discarded_ = &node;
    (void)visit(node, false);
  }

  /// Notes everything an expression does; gives its integer value if `wanted`.
  ExpressionValue visit(const SyntaxNode& node, bool wanted) {
    switch (node.kind) {
    case NodeKind::literal:
      return literal(node);
    case NodeKind::name: {
      if (const auto constant = constants_.find(node.text);
          constant != constants_.end() && find(node.text) == nullptr) {
        ExpressionValue value;
        value.number = constant->second;
        return value;
      }
      return read(place_of(node), node, wanted);
    }
    case NodeKind::subscript:
      return read(place_of(node), node, wanted);
    case NodeKind::member:
      return member(node, wanted);
    case NodeKind::unary:
      return unary(node, wanted);
    case NodeKind::postfix:
      return increment(node, wanted, true);
    case NodeKind::binary:
      return binary(node, wanted);
    case NodeKind::assignment:
      return assignment(node, wanted);
    case NodeKind::conditional:
      return conditional(node, wanted);
    case NodeKind::call:
      return call(node, wanted);
    case NodeKind::cast:
      return cast(node.type, operand(node), wanted);
    case NodeKind::initializer_list:
      for (const SyntaxNode& child : node.children) (void)visit(child, false);
      return {};
    case NodeKind::opaque:
      note_opaque(node, "text that is not understood");
      return {};
    default:
      return {};
    }
  }

  /// An operand that may not be evaluated at all.
  ExpressionValue visit_perhaps(const SyntaxNode& node, bool wanted) {
    const std::size_t outer = guard_;
    function_.guards.push_back({outer, nullptr});
    guard_ = function_.guards.size() - 1;
    ExpressionValue value = visit(node, wanted);
    guard_ = outer;
    forget_assigned(node);
    return value;
  }

  /// Forgets the variables that an expression assigns.
  void forget_assigned(const SyntaxNode& node) {
    assigned_place(node, [this](const SyntaxNode& place, bool) {
      if (VariableState* state = find(root_name(place)); state != nullptr && !is_memory_place(place))
        forget(*state, true, loop_);
    });
    for (const SyntaxNode& child : node.children) forget_assigned(child);
  }

  [[nodiscard]] static ExpressionValue literal(const SyntaxNode& node) {
    ExpressionValue value;
    if (const auto number = integer_literal(node.text)) {
      value.number = *number;
      return value;
    }
    const char first = node.text.empty() ? ' ' : node.text.front();
    value.floating = (first >= '0' && first <= '9') || first == '.';
    return value;
  }

  [[nodiscard]] ExpressionValue member(const SyntaxNode& node, bool wanted) {
    const SyntaxNode& object = operand(node);
    // threadIdx.x and the like: a number of its own; blockDim.x the launch line's, where that is one.
    if (object.kind == NodeKind::name && find(object.text) == nullptr && node.text.starts_with(".")) {
      ExpressionValue value;
      const auto constant = constants_.find(object.text + node.text);
      if (constant != constants_.end())
        value.number = constant->second;
      else if (wanted)
        value.number = number_of(global(object.text + node.text));
      return value;
    }
    Place place = place_of(node);
    if (place.kind == Place::Kind::scalar && place.state->array == nullptr) {
      note_use(*place.state, false, node);
      ExpressionValue value;
      value.floating = true; // of a struct nothing is known; as an integer it would claim more
      if (wanted) value.number = unknown_number(place.state->variable->name + node.text);
      return value;
    }
    return read(place, node, wanted);
  }

  [[nodiscard]] ExpressionValue unary(const SyntaxNode& node, bool wanted) {
    if (node.text == "++" || node.text == "--") return increment(node, wanted, false);
    if (node.text == "*") return read(place_of(node), node, wanted);
    const SyntaxNode& inner = operand(node);
    if (node.text == "&") {
      Place place = place_of(inner);
      ExpressionValue value;
      if (place.kind == Place::Kind::element) {
        value.array = place.array;
        value.offset = place.subscripts.size() == 1 ? place.subscripts.front() : Polynomial::undefined();
        value.indirect = place.indirect;
      } else if (place.kind == Place::Kind::scalar) {
        place.state->variable->address_taken = true;
        place.state->unstable = true;
        if (place.state->array != nullptr) {
          value.array = place.state->array;
          value.offset = Polynomial::undefined();
        }
      }
      return value;
    }
    ExpressionValue value = visit(inner, wanted);
    value.array = nullptr;
    if (node.text == "-") {
      value.number = -value.number;
    } else if (node.text != "+") {
      if (node.text == "sizeof") value.floating = false;
      if (wanted) value.number = unknown_number(node.text);
    }
    return value;
  }

  [[nodiscard]] ExpressionValue increment(const SyntaxNode& node, bool wanted, bool postfix) {
    const std::int64_t amount = node.text == "--" ? -1 : 1;
    const ReductionOperation update =
        discarded_ == &node ? ReductionOperation::sum : ReductionOperation::none;
    Place place = place_of(operand(node));
    ExpressionValue value;
    value.floating = place.floating;
    if (place.kind == Place::Kind::element) {
      note_access(place, false, node, update);
      note_access(place, true, node, update);
      if (wanted) value.number = unknown_number(place.array->name);
    } else if (place.kind == Place::Kind::scalar) {
      VariableState& state = *place.state;
      note_use(state, false, node, update);
      const bool pointer = state.array != nullptr && state.variable->pointer;
      const Polynomial before = pointer         ? offset_of(state)
                                : state.integer ? number_of(state)
                                                : Polynomial::undefined();
      note_use(state, true, node, update);
      const Polynomial after = before + amount;
      if (pointer) {
        state.offset = after;
        value.array = state.array;
        value.offset = postfix ? before : after;
      } else if (state.integer) {
        state.number = after;
        value.number = postfix ? before : after;
      }
      value.indirect = state.indirect;
    }
    return value;
  }

  [[nodiscard]] ExpressionValue binary(const SyntaxNode& node, bool wanted) {
    const std::string& symbol = node.text;
    if (symbol == ",") {
      (void)visit(left_operand(node), false);
      return visit(right_operand(node), wanted);
    }
    const bool arithmetic = symbol == "+" || symbol == "-" || symbol == "*" || symbol == "/";
    const bool integral =
        symbol == "%" || symbol == "<<" || symbol == ">>" || symbol == "&" || symbol == "|" || symbol == "^";
    const bool want_operands = wanted && (arithmetic || integral);
    const bool lazy = symbol == "&&" || symbol == "||";
    if (lazy) note_branch();
    ExpressionValue left = visit(left_operand(node), want_operands);
    ExpressionValue right =
        lazy ? visit_perhaps(right_operand(node), want_operands) : visit(right_operand(node), want_operands);
    ExpressionValue value;
    value.indirect = left.indirect || right.indirect;
    if (!arithmetic && !integral) {
      if (wanted) value.number = unknown_number(symbol);
      return value;
    }
    if (left.array != nullptr || right.array != nullptr) {
      if (symbol == "-" && left.array != nullptr && right.array != nullptr) { // the distance of two pointers
        if (wanted) value.number = unknown_number("distance");
        return value;
      }
      const ExpressionValue& pointer = left.array != nullptr ? left : right;
      const ExpressionValue& moved = left.array != nullptr ? right : left;
      // The offset is wanted even where the value of the whole expression is not.
      value.array = pointer.array;
      value.offset = symbol == "-" ? pointer.offset - moved.number : pointer.offset + moved.number;
      return value;
    }
    value.floating = left.floating || right.floating;
    if (value.floating) {
      note_flops(1);
      return value;
    }
    if (!wanted) return value;
    if (symbol == "+")
      value.number = left.number + right.number;
    else if (symbol == "-")
      value.number = left.number - right.number;
    else if (symbol == "*")
      value.number = product(left.number, right.number);
    else if (symbol == "<<" && right.number.constant() && *right.number.constant() >= 0 &&
             *right.number.constant() < 62)
      value.number = left.number * Polynomial(std::int64_t{1} << *right.number.constant());
    else
      value.number = quotient(symbol, left.number, right.number);
    return value;
  }

  [[nodiscard]] Polynomial product(const Polynomial& a, const Polynomial& b) {
    if (!invariant(a) && b.defined() && b.terms().size() > 1) return a * named(b);
    if (!invariant(b) && a.defined() && a.terms().size() > 1) return named(a) * b;
    return a * b;
  }

  [[nodiscard]] Polynomial quotient(const std::string& symbol, const Polynomial& a, const Polynomial& b) {
    if (const auto x = a.constant(), y = b.constant(); x && y && *y > 0 && *x >= 0) {
      if (symbol == "/") return *x / *y;
      if (symbol == "%") return *x % *y;
    }
    if (b == Polynomial(1) && symbol == "/") return a;
    std::vector<Polynomial> operands;
    operands.push_back(a);
    operands.push_back(b);
    return derived(symbol, std::move(operands));
  }

  [[nodiscard]] ExpressionValue conditional(const SyntaxNode& node, bool wanted) {
    note_branch();
    (void)visit(node.children[0], false);
    ExpressionValue a = visit_perhaps(node.children[1], wanted);
    ExpressionValue b = visit_perhaps(node.children[2], wanted);
    ExpressionValue value;
    value.floating = a.floating || b.floating;
    value.indirect = a.indirect || b.indirect;
    if (a.array != nullptr || b.array != nullptr) {
      value.array = a.array == b.array ? a.array : &unknown_array();
      value.offset = Polynomial::undefined();
      return value;
    }
    if (!wanted || value.floating) return value;
    ReductionOperation operation = selection(node.children[0], node.children[1], node.children[2]);
    if (is_clamp(node.children[0], node.children[1], node.children[2]))
      operation = ReductionOperation::minimum;
    value.number =
        operation == ReductionOperation::none ? unknown_number("?") : extreme(operation, a.number, b.number);
    return value;
  }

  [[nodiscard]] Polynomial extreme(ReductionOperation operation, const Polynomial& a, const Polynomial& b) {
    if (a == b) return a;
    std::vector<Polynomial> operands;
    operands.push_back(a);
    operands.push_back(b);
    return derived(std::string(to_string(operation)), std::move(operands));
  }

  ExpressionValue assignment(const SyntaxNode& node, bool wanted) {
    const SyntaxNode& target = left_operand(node);
    const SyntaxNode& source = right_operand(node);
    const bool plain = node.text == "=";
    const bool sum = node.text == "+=" || node.text == "-=";
    const bool scalar_target = target.kind == NodeKind::name;
    const VariableState* known = scalar_target ? find(target.text) : nullptr;
    const bool want_source = wanted || (known != nullptr && (known->integer || known->variable->pointer)) ||
                             (scalar_target && known == nullptr);
    ReductionOperation update = ReductionOperation::none;
    const std::size_t tags = tagged_.size();
    if (plain) {
      const Update found = find_update(target, source, [this](const SyntaxNode& expression) {
        return callee(expression).kind == NodeKind::name ? effects_.of(callee(expression).text).selects
                                                         : ReductionOperation::none;
      });
      update = found.operation;
      if (discarded_ != &node) update = ReductionOperation::none;
      if (found.read != nullptr) tagged_.emplace_back(found.read, update);
      // `x = x > m ? ... `: the comparison reads the target as well.
      if (source.kind == NodeKind::conditional && found.read != nullptr)
        for (const SyntaxNode& side : source.children[0].children)
          if (same_expression(side, target)) tagged_.emplace_back(&side, update);
    } else if (sum) {
      update = ReductionOperation::sum;
    } else if (node.text == "*=") {
      update = ReductionOperation::product;
    } else if (scalar_target && (node.text == "|=" || node.text == "&=" || node.text == "^=")) {
      update = truth_operation(std::string_view(node.text).substr(0, 1));
    }
    if (discarded_ != &node) update = ReductionOperation::none;
    ExpressionValue value = visit(source, want_source);
    tagged_.resize(tags);
    Place place = place_of(target);
    // An integer to which numbers with fractions are added is rounded each time: no sum.
    if (value.floating && !place.floating) update = ReductionOperation::none;
    if (!plain && (place.floating || value.floating)) note_flops(1);
    if (place.kind == Place::Kind::element) {
      if (!plain) note_access(place, false, target, update);
      note_access(place, true, target, update);
    } else if (place.kind == Place::Kind::scalar) {
      assign_scalar(*place.state, target, value, node.text, update);
    }
    value.floating = value.floating || place.floating;
    return value;
  }

  void assign_scalar(VariableState& state, const SyntaxNode& target, const ExpressionValue& value,
                     const std::string& symbol, ReductionOperation update) {
    const bool plain = symbol == "=";
    if (target.kind == NodeKind::member) { // the rest of the object stays: no definition of the whole
      note_use(state, false, target);
      note_use(state, true, target);
      forget(state, true, loop_);
      return;
    }
    if (!plain) note_use(state, false, target, update);
    const Polynomial before = plain || !state.integer ? Polynomial{} : number_of(state);
    const Polynomial start = plain || state.array == nullptr ? Polynomial{} : offset_of(state);
    note_use(state, true, target, update);
    const bool known_step = (symbol == "+=" || symbol == "-=") && value.number.defined();
    const Polynomial step = symbol == "-=" ? -value.number : value.number;
    state.changed = true;
    state.changed_in = loop_;
    if (state.variable->pointer) {
      if (plain) {
        state.array = value.array != nullptr ? value.array : &unknown_array();
        state.offset = value.array != nullptr ? value.offset : Polynomial::undefined();
      } else if (known_step) {
        state.offset = start + step;
      } else {
        state.offset.reset();
      }
      state.indirect = value.indirect;
    } else if (state.integer) {
      state.indirect = value.indirect || (!plain && state.indirect);
      state.number.reset();
      if (plain && value.number.defined())
        state.number = named(value.number, state.variable->name);
      else if (known_step)
        state.number = before + step;
    }
  }

  [[nodiscard]] ExpressionValue cast(const std::string& type, const SyntaxNode& inner, bool wanted) {
    const TypeFacts facts = type_facts(type);
    ExpressionValue value = visit(inner, wanted || facts.pointer);
    if (facts.pointer) {
      if (value.array == nullptr) value.array = &unknown_array();
      if (facts.size != value.array->element_size) value.offset = Polynomial::undefined();
      return value;
    }
    value.array = nullptr;
    if (facts.floating) {
      value.floating = true;
      value.number = Polynomial::undefined();
    } else if (value.floating && facts.integer) {
      value.floating = false;
      value.indirect = true;
      if (wanted) value.number = unknown_number("cast");
    }
    return value;
  }

  // --- calls

  [[nodiscard]] ExpressionValue call(const SyntaxNode& node, bool wanted);

  /// Visits one argument; memory behind it counts as read, and written if the function may write through it.
  void argument(const SyntaxNode& node, std::size_t index, const CallEffect& effect, bool own_function);

  [[nodiscard]] ExpressionValue member_call(const SyntaxNode& node, bool wanted);

  [[nodiscard]] std::int64_t sizeof_number(const SyntaxNode& node);
};

} // namespace mtmc::detail
