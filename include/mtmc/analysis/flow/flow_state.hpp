#pragma once

#include <mtmc/analysis/flow/assignment_index.hpp>
#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/type_facts.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// What is known at one point of a walk through a function: the scopes, the value of each variable, the
/// symbols made so far; and the lists that the walk fills.

namespace mtmc::inline MTMC_ABI::detail {

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

/// The state of a walk through one function.
class FlowState {
public:
  FlowState(FunctionAnalysis& function, const CallEffects& effects, const AssignmentIndex& assignments,
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

  /// Whether a name means the same wherever what is visible now is visible.
  [[nodiscard]] bool means_one_thing(std::string_view name) const {
    const auto found = scopes_.find(name);
    if (found == scopes_.end() || found->second.empty()) return true;
    return found->second.size() == 1 && !constants_.contains(name) && !globals_.contains(std::string(name));
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
      array.constant = facts.constant;
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

  /// The type without `const`, `static`, pointers and attributes; of a container what it holds.
  [[nodiscard]] static std::string element_type(std::string_view type) {
    for (const std::string_view container : {"vector<", "array<", "span<", "unique_ptr<", "valarray<"})
      if (const auto at = type.find(container); at != std::string_view::npos) {
        const auto held = type.substr(at + container.size());
        return element_type(held.substr(0, held.find_first_of(",>[")));
      }
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

  /// The number, or an unknown one in its place where its definition is too long to be followed.
  [[nodiscard]] Polynomial followed(const Polynomial& number, std::string_view name) {
    return number.weight() > Symbol::heaviest ? unknown_number(name) : number;
  }

  /// The symbol for an operation on known operands: the same one whenever the operands are the same.
  [[nodiscard]] Polynomial derived(std::string operation, std::vector<Polynomial> operands,
                                   std::string_view name = {}) {
    std::size_t weight = 1;
    for (const Polynomial& operand : operands) weight += operand.weight();
    if (weight > Symbol::heaviest) return unknown_number(name);
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
      made.weight = static_cast<std::uint32_t>(weight);
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
    for (Polynomial& subscript : access.subscripts)
      if (subscript.weight() > Symbol::heaviest) subscript = Polynomial::undefined();
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
