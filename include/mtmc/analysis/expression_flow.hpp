#pragma once

#include <mtmc/analysis/assignment_index.hpp>
#include <mtmc/analysis/call_effects.hpp>
#include <mtmc/analysis/function_analysis.hpp>
#include <mtmc/analysis/type_facts.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// Expressions to values and effects: follows the integer value of every variable as a polynomial, and notes
/// each read and write on the way. flow_builder.hpp drives it over the statements of a function.

namespace mtmc::detail {

/// Both expressions are written the same way.
[[nodiscard]] inline bool same_expression(const SyntaxNode& a, const SyntaxNode& b) noexcept {
  if (a.kind != b.kind || a.text != b.text || a.type != b.type || a.children.size() != b.children.size())
    return false;
  for (std::size_t i = 0; i < a.children.size(); ++i)
    if (!same_expression(a.children[i], b.children[i])) return false;
  return true;
}

/// The value of an integer literal as spelt (`42u`, `0x1f`, `1'000`, `'a'` is none).
[[nodiscard]] inline std::optional<std::int64_t> integer_literal(std::string_view text) noexcept {
  if (text == "true") return 1;
  if (text == "false") return 0;
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  std::int64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') continue;
    int digit = 99;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (base == 16 && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (base == 16 && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit >= base) break;
    if (__builtin_mul_overflow(value, std::int64_t{base}, &value) ||
        __builtin_add_overflow(value, std::int64_t{digit}, &value))
      return std::nullopt;
  }
  if (i == 0) return std::nullopt;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c != 'u' && c != 'U' && c != 'l' && c != 'L' && c != 'z' && c != 'Z') return std::nullopt;
  }
  return value;
}

/// An update `target = target op value` recognised in an assigned value.
struct Update {
  ReductionOperation operation = ReductionOperation::none;
  /// Where the value reads the target.
  const SyntaxNode* read = nullptr;
};

/// `target` as a term of a sum (or factor of a product) that is not negated.
[[nodiscard]] inline const SyntaxNode* find_operand(const SyntaxNode& value, const SyntaxNode& target,
                                                    bool product) noexcept {
  if (same_expression(value, target)) return &value;
  if (value.kind != NodeKind::binary) return nullptr;
  const bool commutes = value.text == (product ? "*" : "+");
  if (!commutes && (product || value.text != "-")) return nullptr;
  if (const SyntaxNode* left = find_operand(value.children[0], target, product); left != nullptr) return left;
  return commutes ? find_operand(value.children[1], target, product) : nullptr;
}

/// Whether `condition ? a : b` selects the smaller or the larger of `a` and `b`.
[[nodiscard]] inline ReductionOperation selection(const SyntaxNode& condition, const SyntaxNode& a,
                                                  const SyntaxNode& b) noexcept {
  if (condition.kind != NodeKind::binary) return ReductionOperation::none;
  const std::string& symbol = condition.text;
  const bool less = symbol == "<" || symbol == "<=";
  if (!less && symbol != ">" && symbol != ">=") return ReductionOperation::none;
  const bool straight =
      same_expression(condition.children[0], a) && same_expression(condition.children[1], b);
  const bool crossed = same_expression(condition.children[0], b) && same_expression(condition.children[1], a);
  if (!straight && !crossed) return ReductionOperation::none;
  return less == straight ? ReductionOperation::minimum : ReductionOperation::maximum;
}

/// The update that assigning `value` to `target` is, if it is one. `min_max_of` gives what a call selects.
template <class MinMaxOf>
[[nodiscard]] Update find_update(const SyntaxNode& target, const SyntaxNode& value,
                                 const MinMaxOf& min_max_of) {
  if (value.kind == NodeKind::binary) {
    if (value.text == "+" || value.text == "-")
      if (const SyntaxNode* read = find_operand(value, target, false); read != nullptr)
        return {ReductionOperation::sum, read};
    if (value.text == "*")
      if (const SyntaxNode* read = find_operand(value, target, true); read != nullptr)
        return {ReductionOperation::product, read};
  }
  if (value.kind == NodeKind::call && value.children.size() == 3) {
    const ReductionOperation operation = min_max_of(value);
    if (operation != ReductionOperation::none) {
      if (same_expression(value.children[1], target)) return {operation, &value.children[1]};
      if (same_expression(value.children[2], target)) return {operation, &value.children[2]};
    }
  }
  if (value.kind == NodeKind::conditional) {
    const ReductionOperation operation = selection(value.children[0], value.children[1], value.children[2]);
    if (operation != ReductionOperation::none) {
      if (same_expression(value.children[1], target)) return {operation, &value.children[1]};
      if (same_expression(value.children[2], target)) return {operation, &value.children[2]};
    }
  }
  return {};
}

struct VariableState;

/// What an expression names, to be read or written.
struct Place {
  enum class Kind : std::uint8_t { none, scalar, element };
  Kind kind = Kind::none;
  VariableState* state = nullptr;
  Array* array = nullptr;
  std::vector<Polynomial> subscripts{};
  bool indirect = false;
  bool floating = false;
};

/// What an expression is worth.
struct ExpressionValue {
  /// Of an integer, where it was wanted.
  Polynomial number = Polynomial::undefined();
  bool floating = false;
  /// It depends on something loaded from memory.
  bool indirect = false;
  /// Of a pointer: where it points to, in elements.
  Array* array = nullptr;
  Polynomial offset{};
};

/// What is known of a variable at the present point of the walk.
struct VariableState {
  Variable* variable = nullptr;
  bool integer = false;
  /// The integer value; without it a symbol is made when the variable is read.
  std::optional<Polynomial> number{};
  bool indirect = false;
  /// The innermost loop that may have changed it since its value was known.
  const LoopInfo* changed_in = nullptr;
  bool changed = false;
  /// It may change in ways that are not followed: each read is a value of its own.
  bool unstable = false;
  /// Of pointers and arrays.
  Array* array = nullptr;
  std::optional<Polynomial> offset{};
  /// Of references to memory.
  std::optional<Place> target{};
};

/// Integer constants of the file: `constexpr int tile = 32;`, `#define TILE 32`.
using FileConstants = std::unordered_map<std::string_view, std::int64_t>;

/// Walks expressions of one function.
class ExpressionFlow {
public:
  ExpressionFlow(FunctionAnalysis& function, const CallEffects& effects, const AssignmentIndex& assignments,
                 const FileConstants& constants)
      : function_(function), effects_(effects), assignments_(assignments), constants_(constants) {}

protected:
  // --- names

  [[nodiscard]] VariableState* find(std::string_view name) {
    const auto found = scopes_.find(name);
    return found == scopes_.end() || found->second.empty() ? nullptr : found->second.back();
  }

  VariableState& declare(std::string_view name, Variable variable) {
    function_.variables.push_back(std::move(variable));
    states_.push_back({});
    VariableState& state = states_.back();
    state.variable = &function_.variables.back();
    state.changed_in = loop_;
    scopes_[name].push_back(&state);
    declared_.push_back(name);
    return state;
  }

  [[nodiscard]] std::size_t open_scope() const noexcept { return declared_.size(); }
  void close_scope(std::size_t mark) {
    while (declared_.size() > mark) {
      scopes_[declared_.back()].pop_back();
      declared_.pop_back();
    }
  }

  /// A name of the file or of the language's run time; entered on first use.
  [[nodiscard]] VariableState& global(const std::string& name) {
    const auto found = globals_.find(name);
    if (found != globals_.end()) return *found->second;
    Variable variable;
    variable.kind = Variable::Kind::global;
    variable.name = name;
    variable.persistent = true;
    function_.variables.push_back(std::move(variable));
    states_.push_back({});
    VariableState& state = states_.back();
    state.variable = &function_.variables.back();
    state.integer = true;
    state.unstable = may_change(name);
    globals_.emplace(name, &state);
    return state;
  }

  [[nodiscard]] Array& new_array(const Variable* variable) {
    function_.arrays.push_back({});
    Array& array = function_.arrays.back();
    array.variable = variable;
    if (variable != nullptr) {
      array.name = variable->name;
      const TypeFacts facts = type_facts(variable->type);
      array.element_type = element_type(variable->type);
      if (facts.size > 0) array.element_size = facts.size;
    }
    return array;
  }

  [[nodiscard]] Array& unknown_array() {
    if (unknown_ == nullptr) {
      unknown_ = &new_array(nullptr);
      unknown_->unknown = true;
      unknown_->name = "memory behind a pointer";
    }
    return *unknown_;
  }

  /// The type without `const`, `static`, pointers and attributes.
  [[nodiscard]] static std::string element_type(std::string_view type) {
    std::string result;
    for (std::size_t i = 0; i < type.size();) {
      if (!is_name_start(type[i])) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < type.size() && (is_name_character(type[end]) || type[end] == ':')) ++end;
      const std::string_view word = type.substr(i, end - i);
      i = end;
      if (word == "const" || word == "static" || word == "constexpr" || word == "volatile" ||
          word.starts_with("__restrict") || word == "restrict" || word.starts_with("__") ||
          word == "register" || word == "extern" || word == "alignas" || word == "thread_local")
        continue;
      if (!result.empty()) result += ' ';
      result += word;
    }
    return result;
  }

  // --- symbols

  [[nodiscard]] const Symbol* new_symbol(Symbol::Kind kind, std::string name, const LoopInfo* loop) {
    function_.symbols.push_back({});
    Symbol& symbol = function_.symbols.back();
    symbol.kind = kind;
    symbol.name = std::move(name);
    symbol.loop = loop;
    symbol.index = static_cast<std::uint32_t>(function_.symbols.size());
    return &symbol;
  }

  [[nodiscard]] static bool invariant(const Polynomial& polynomial) noexcept {
    for (const auto& term : polynomial.terms())
      for (std::size_t i = 0; i < term.degree; ++i)
        if (term.factors[i]->loop != nullptr) return false;
    return true;
  }

  /// The symbol for an operation on known operands: the same one whenever the operands are the same.
  [[nodiscard]] Polynomial derived(std::string operation, std::vector<Polynomial> operands,
                                   std::string_view name = {}) {
    std::string key = operation;
    const LoopInfo* deepest = nullptr;
    for (const Polynomial& operand : operands) {
      if (!operand.defined()) return Polynomial(new_symbol(Symbol::Kind::unknown, std::string(name), loop_));
      key += '|';
      for (const auto& term : operand.terms()) {
        key += std::to_string(term.coefficient);
        for (std::size_t i = 0; i < term.degree; ++i) {
          key += '*';
          key += std::to_string(term.factors[i]->index);
          const LoopInfo* loop = term.factors[i]->loop;
          if (loop != nullptr && (deepest == nullptr || loop->depth > deepest->depth)) deepest = loop;
        }
        key += '+';
      }
    }
    const auto [entry, fresh] = derived_.emplace(std::move(key), nullptr);
    if (fresh) {
      std::string shown(name);
      if (shown.empty()) shown = derived_name(operation, operands);
      const Symbol* symbol = new_symbol(Symbol::Kind::derived, std::move(shown), deepest);
      Symbol& made = function_.symbols.back();
      made.operation = std::move(operation);
      made.operands = std::move(operands);
      entry->second = symbol;
    }
    return Polynomial(entry->second);
  }

  [[nodiscard]] static std::string derived_name(const std::string& operation,
                                                const std::vector<Polynomial>& operands) {
    if (operation == "=") return '(' + operands[0].text() + ')';
    if (operation == "min" || operation == "max")
      return operation + '(' + operands[0].text() + ", " + operands[1].text() + ')';
    if (operands.size() == 2)
      return '(' + operands[0].text() + ' ' + operation + ' ' + operands[1].text() + ')';
    return operation;
  }

  /// A sum of invariant terms gets a name, so that products with it keep their shape: `OW` for `W - S + 1`
  /// in `y*OW + x`.
  [[nodiscard]] Polynomial named(const Polynomial& polynomial, std::string_view name = {}) {
    if (!polynomial.defined() || polynomial.terms().size() < 2 || !invariant(polynomial)) return polynomial;
    std::vector<Polynomial> operand;
    operand.push_back(polynomial);
    return derived("=", std::move(operand), name);
  }

  [[nodiscard]] Polynomial unknown_number(std::string_view name) {
    return Polynomial(new_symbol(Symbol::Kind::unknown, std::string(name), loop_));
  }

  [[nodiscard]] Polynomial number_of(VariableState& state) {
    if (state.unstable) return unknown_number(state.variable->name);
    if (!state.number) {
      const bool fixed = !state.changed && state.changed_in == nullptr;
      state.number = Polynomial(new_symbol(fixed ? Symbol::Kind::variable : Symbol::Kind::unknown,
                                           state.variable->name, state.changed_in));
    }
    return *state.number;
  }

  [[nodiscard]] Polynomial offset_of(VariableState& state) {
    if (state.unstable) return Polynomial::undefined();
    if (!state.offset)
      state.offset = Polynomial(new_symbol(Symbol::Kind::unknown, state.variable->name, state.changed_in));
    return *state.offset;
  }

  /// Forgets what the given assignments may change; `loop`: the innermost loop in which they happen anew.
  void forget(std::span<const AssignmentIndex::Entry> entries, const LoopInfo* loop) {
    for (const auto& entry : entries) {
      if (entry.memory) continue;
      if (VariableState* state = find(entry.name); state != nullptr) forget(*state, entry.rebased, loop);
    }
  }

  void forget(VariableState& state, bool rebased, const LoopInfo* loop) {
    if (state.target && state.target->kind == Place::Kind::scalar) {
      forget(*state.target->state, rebased, loop);
      return;
    }
    state.number.reset();
    state.indirect = false;
    state.changed = true;
    state.changed_in = loop;
    if (state.array == nullptr || !state.variable->pointer) return;
    state.offset.reset();
    if (rebased) state.array = &unknown_array();
  }

  // --- noting

  [[nodiscard]] ReductionOperation tag_of(const SyntaxNode& node) const noexcept {
    for (const auto& [tagged, operation] : tagged_)
      if (tagged == &node) return operation;
    return ReductionOperation::none;
  }

  void note_use(const VariableState& state, bool write, const SyntaxNode& node,
                ReductionOperation update = ReductionOperation::none) {
    if (update == ReductionOperation::none) update = tag_of(node);
    const Variable& variable = *state.variable;
    if (!write && variable.kind != Variable::Kind::local && !state.changed && !may_change(variable.name))
      return; // a parameter that nobody assigns is no data flow
    if (const LoopInfo* home = variable.loop;
        home != nullptr && home->control == &variable && home->canonical && !home->variable_type.empty())
      return; // what a loop's head declares is a symbol, no data flow
    state.variable->uses.push_back(function_.scalar_uses.size());
    function_.scalar_uses.push_back(
        {state.variable, write, &node, statement_, loop_, update, guard_, order_++});
  }

  [[nodiscard]] bool may_change(std::string_view name) {
    if (!assigned_known_) {
      for (const auto& entry : assignments_.all())
        if (!entry.memory) assigned_[entry.name] = true;
      assigned_known_ = true;
    }
    return assigned_.contains(name);
  }

  void note_access(const Place& place, bool write, const SyntaxNode& node,
                   ReductionOperation update = ReductionOperation::none) {
    if (update == ReductionOperation::none) update = tag_of(node);
    function_.accesses.push_back({});
    Access& access = function_.accesses.back();
    access.array = place.array;
    access.write = write;
    access.node = &node;
    access.statement = statement_;
    access.loop = loop_;
    access.subscripts = place.subscripts;
    access.conditional = guard_ != 0 && function_.guards[guard_].loop == nullptr;
    access.indirect = place.indirect;
    access.update = update;
    access.order = order_++;
  }

  void note_opaque(const SyntaxNode& node, std::string reason) {
    const SyntaxNode& shown = node.range.known() || statement_ == nullptr ? node : *statement_;
    function_.opaque.push_back({&node, loop_, shown.range.first_line, std::move(reason)});
    for (LoopInfo* loop = loop_; loop != nullptr; loop = const_cast<LoopInfo*>(loop->parent))
      loop->understood = false;
  }

  void note_flops(double count) { (loop_ != nullptr ? loop_->flops : function_.flops) += count; }
  void note_branch() { (loop_ != nullptr ? loop_->branches : function_.branches) = true; }

  // --- places

  /// The place an expression names. Reads inside it (subscripts, pointers) are noted, the place itself not.
  [[nodiscard]] Place place_of(const SyntaxNode& node) {
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

  [[nodiscard]] Place named_place(const SyntaxNode& node) {
    VariableState* state = find(node.text);
    if (state == nullptr) state = &global(node.text);
    if (state->target) return *state->target;
    Place place;
    place.kind = Place::Kind::scalar;
    place.state = state;
    place.floating = state->variable->floating;
    return place;
  }

  [[nodiscard]] Place pointed_place(const ExpressionValue& pointer) {
    Place place;
    place.kind = Place::Kind::element;
    place.array = pointer.array != nullptr ? pointer.array : &unknown_array();
    place.subscripts.push_back(pointer.array != nullptr ? pointer.offset : Polynomial::undefined());
    place.indirect = pointer.indirect;
    place.floating = type_facts(place.array->element_type).floating;
    return place;
  }

  [[nodiscard]] Place element_place(const SyntaxNode& node) {
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

  /// An object that is subscripted but is no pointer: a container, or an array of the file.
  void make_container(VariableState& state) {
    Array& array = new_array(state.variable);
    array.local =
        state.variable->kind == Variable::Kind::local && !type_facts(state.variable->type).reference;
    array.unknown = state.variable->kind == Variable::Kind::parameter; // a span or a view: of anything
    state.array = &array;
    state.offset = Polynomial{};
    state.variable->array = true;
  }

  /// Reads a place.
  [[nodiscard]] ExpressionValue read(const Place& place, const SyntaxNode& node, bool wanted) {
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

  /// The integer an element holds: the same symbol each time if nobody ever writes the array.
  [[nodiscard]] Polynomial element_number(const Place& place) {
    const Variable* variable = place.array->variable;
    const bool constant = variable != nullptr && !place.array->unknown && type_facts(variable->type).constant;
    if (!constant) return unknown_number(place.array->name);
    return derived(place.array->name + "[]", place.subscripts, place.array->name);
  }

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
    // threadIdx.x and the like: a number of its own.
    if (object.kind == NodeKind::name && find(object.text) == nullptr && node.text.starts_with(".")) {
      ExpressionValue value;
      if (wanted) value.number = number_of(global(object.text + node.text));
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
    if (symbol == "&&" || symbol == "||") note_branch();
    ExpressionValue left = visit(left_operand(node), want_operands);
    ExpressionValue right = visit(right_operand(node), want_operands);
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
    ExpressionValue a = visit(node.children[1], wanted);
    ExpressionValue b = visit(node.children[2], wanted);
    ExpressionValue value;
    value.floating = a.floating || b.floating;
    value.indirect = a.indirect || b.indirect;
    if (a.array != nullptr || b.array != nullptr) {
      value.array = a.array == b.array ? a.array : &unknown_array();
      value.offset = Polynomial::undefined();
      return value;
    }
    if (!wanted || value.floating) return value;
    const ReductionOperation operation = selection(node.children[0], node.children[1], node.children[2]);
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
    }
    if (discarded_ != &node) update = ReductionOperation::none;
    ExpressionValue value = visit(source, want_source);
    tagged_.resize(tags);
    Place place = place_of(target);
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
    if (!plain) note_use(state, false, target, update);
    const Polynomial before = plain || !state.integer ? Polynomial{} : number_of(state);
    const Polynomial start = plain || state.array == nullptr ? Polynomial{} : offset_of(state);
    note_use(state, true, target, update);
    if (target.kind == NodeKind::member) {
      forget(state, true, loop_);
      return;
    }
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

  [[nodiscard]] ExpressionValue call(const SyntaxNode& node, bool wanted) {
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

  /// Visits one argument; memory behind it counts as read, and written if the function may write through it.
  void argument(const SyntaxNode& node, std::size_t index, const CallEffect& effect, bool own_function) {
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

  [[nodiscard]] ExpressionValue member_call(const SyntaxNode& node, bool wanted) {
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
    note_opaque(node, "a call of member " + name.substr(name.find_first_not_of(".->")) +
                          ", whose effects are not known");
    return value;
  }

  [[nodiscard]] std::int64_t sizeof_number(const SyntaxNode& node) {
    const TypeFacts facts = node.children.size() > 1 ? type_facts(node.children[1].text) : TypeFacts{};
    if (facts.pointer) return 8;
    return facts.size > 0 ? facts.size : 4;
  }

  FunctionAnalysis& function_;
  const CallEffects& effects_;
  const AssignmentIndex& assignments_;
  const FileConstants& constants_;

  // The present point.
  LoopInfo* loop_ = nullptr;
  std::size_t guard_ = 0;
  const SyntaxNode* statement_ = nullptr;
  const SyntaxNode* discarded_ = nullptr;
  std::size_t order_ = 0;
  /// Nodes that read or write the target of an update being visited.
  std::vector<std::pair<const SyntaxNode*, ReductionOperation>> tagged_;

private:
  std::deque<VariableState> states_;
  std::unordered_map<std::string_view, std::vector<VariableState*>> scopes_;
  std::vector<std::string_view> declared_;
  std::unordered_map<std::string, VariableState*> globals_;
  std::unordered_map<std::string, const Symbol*> derived_;
  std::unordered_map<std::string_view, bool> assigned_;
  bool assigned_known_ = false;
  Array* unknown_ = nullptr;
};

} // namespace mtmc::detail
