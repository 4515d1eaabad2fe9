#pragma once
/// Rows of elements that the threads of a row go along: what shared loops read and write there, one element
/// an iteration, so that a thread may move several neighbours at once or keep them.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/shared_loops.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What one loop does with the elements of a stream.
struct StreamUse {
  std::vector<const SyntaxNode*> nodes{}; ///< expressions that stand for the element of the iteration
  SyntaxNode place{};      ///< the element, with the loop's variable as the only name of the loop's own
  std::size_t order = 0;   ///< of the first access
  bool read_first = false; ///< memory gives the element before the loop writes it
  bool reads = false;
  bool writes = false;

  [[nodiscard]] bool any() const noexcept { return !nodes.empty(); }
};

/// Neighbouring elements of an array, of which iteration j of each loop touches the one of number j behind
/// the same start, in no branch.
struct RowStream {
  const Array* array = nullptr;
  Polynomial start{};            ///< subscript without the loop's variable
  std::string element{};         ///< type without `const`
  std::vector<StreamUse> uses{}; ///< one for each loop

  /// The loop that uses it first, or the number of loops.
  [[nodiscard]] std::size_t first_loop() const {
    const auto found = std::find_if(uses.begin(), uses.end(), [](const StreamUse& use) { return use.any(); });
    return static_cast<std::size_t>(found - uses.begin());
  }
  /// The loop that uses it last.
  [[nodiscard]] std::size_t last_loop() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].any()) last = i;
    return last;
  }
};

/// Finds the streams of loops that go along a row.
class StreamFinder {
public:
  /// Elements are stored by loops whose first iteration is `first`; others leave out some of a group.
  StreamFinder(const FunctionAnalysis& function, std::span<const SharedLoop> loops, std::int64_t first)
      : function_(function), loops_(loops), first_(first) {}

  /// All of them. Accesses of other kinds stay as they are: their arrays are no streams in that loop if it
  /// writes to them.
  [[nodiscard]] std::vector<RowStream> run() {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      find_places(i);
      const auto& accesses = loops_[i].loop->accesses;
      for (std::size_t a = accesses.first; a < accesses.last; ++a) add(function_.accesses[a], i);
      for (RowStream& stream : streams_)
        if (stream.uses[i].any() && mixed_.contains(stream.array) && is_written(*stream.array, i))
          stream.uses[i] = {};
      mixed_.clear();
    }
    std::erase_if(streams_, [](const RowStream& stream) {
      return std::none_of(stream.uses.begin(), stream.uses.end(),
                          [](const StreamUse& use) { return use.any(); });
    });
    return std::move(streams_);
  }

private:
  /// The expressions of a loop's body that are evaluated in each iteration, and not by their address.
  void find_places(std::size_t loop) {
    places_.clear();
    const auto visit = [this](const auto& self, const SyntaxNode& node) -> void {
      if (node.kind == NodeKind::if_statement || node.kind == NodeKind::conditional) {
        self(self, node.children.front());
        return;
      }
      if (node.kind == NodeKind::binary && (node.text == "&&" || node.text == "||")) {
        self(self, left_operand(node));
        return;
      }
      if (node.kind == NodeKind::unary && node.text == "&") return;
      places_.insert(&node);
      for (const SyntaxNode& child : node.children) self(self, child);
    };
    visit(visit, loop_body(*loops_[loop].loop->node));
  }

  [[nodiscard]] bool is_written(const Array& array, std::size_t loop) const {
    const auto& accesses = loops_[loop].loop->accesses;
    for (std::size_t a = accesses.first; a < accesses.last; ++a)
      if (function_.accesses[a].array == &array && function_.accesses[a].write) return true;
    return false;
  }

  void add(const Access& access, std::size_t at) {
    const LoopInfo& loop = *loops_[at].loop;
    auto place = place_of(access, loop);
    const bool whole = loops_[at].first == first_ || !access.write;
    if (!place || !whole) {
      mixed_.insert(access.array);
      return;
    }
    const Polynomial start = expanded(access.subscripts.front().without(loop.symbol));
    auto stream = std::find_if(streams_.begin(), streams_.end(), [&](const RowStream& other) {
      return other.array == access.array && other.start == start;
    });
    for (const RowStream& other : streams_)
      if (other.array == access.array && !(other.start == start) && other.uses[at].any())
        mixed_.insert(access.array); // two elements of one array in an iteration
    if (stream == streams_.end()) {
      streams_.push_back({access.array, start, without_qualifiers(access.array->element_type),
                          std::vector<StreamUse>(loops_.size())});
      stream = streams_.end() - 1;
    }
    StreamUse& use = stream->uses[at];
    if (!use.any()) {
      use.place = std::move(*place);
      use.order = access.order;
      use.read_first = !access.write;
    }
    (access.write ? use.writes : use.reads) = true;
    use.nodes.push_back(access.node);
  }

  /// The element as an expression of names that are known outside of the loop, but for the loop's variable;
  /// nothing where the access is none to the neighbour of the last iteration's.
  [[nodiscard]] std::optional<SyntaxNode> place_of(const Access& access, const LoopInfo& loop) const {
    if (access.loop != &loop || access.array->place != ArrayPlace::common || access.array->unknown ||
        access.array->variable == nullptr || access.array->variable->kind != Variable::Kind::parameter ||
        access.subscripts.size() != 1 || !access.subscripts.front().defined() || access.indirect ||
        !places_.contains(access.node))
      return std::nullopt;
    const Polynomial& subscript = access.subscripts.front();
    if (subscript.degree_in(loop.symbol) != 1 || subscript.coefficient_of(loop.symbol).constant() != 1)
      return std::nullopt;
    const Polynomial start = subscript.without(loop.symbol);
    for (const Symbol* symbol : expanded(start).symbols())
      if (symbol->loop != nullptr) return std::nullopt;
    SyntaxNode place = *access.node;
    if (place.kind == NodeKind::call) {
      const bool load = !access.write && callee(place).kind == NodeKind::name &&
                        callee(place).text == "__ldg" && arguments(place).size() == 1;
      if (!load) return std::nullopt;
      place = make_unary("*", SyntaxNode(arguments(*access.node).front()));
      const SyntaxNode& address = operand(place);
      if (address.kind == NodeKind::unary && address.text == "&") place = SyntaxNode(operand(address));
    } else if (place.kind != NodeKind::subscript && !(place.kind == NodeKind::unary && place.text == "*")) {
      return std::nullopt;
    }
    if (!resolve(place, loop)) return std::nullopt;
    return place;
  }

  /// Puts values into the places of names that the body declares.
  [[nodiscard]] bool resolve(SyntaxNode& place, const LoopInfo& loop) const {
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round) {
      bool resolved = true;
      for (const std::string& name : names_used(place)) {
        const auto declared = variables_of(name, loop);
        if (declared.empty()) continue;
        if (declared.size() > 1) return false;
        const Variable* const inside = declared.front();
        const SyntaxNode* const value =
            inside->declaration != nullptr ? initial_value(*inside->declaration) : nullptr;
        const bool declared_only = std::all_of(inside->uses.begin(), inside->uses.end(), [&](std::size_t at) {
          const ScalarUse& use = function_.scalar_uses[at];
          return !use.write || (use.statement != nullptr && use.statement->kind == NodeKind::declaration);
        });
        if (value == nullptr || !declared_only || inside->address_taken) return false;
        substitute(place, name, *value);
        resolved = false;
      }
      if (!resolved) continue;
      // Variables from outside must not change from iteration to iteration.
      for (const ScalarFacts& scalar : classify_scalars(loop))
        if (scalar.role != ScalarRole::invariant && !scalar.declared_inside &&
            uses_name(place, scalar.variable->name))
          return false;
      bool plain = true;
      walk(place, [&](const SyntaxNode& node) {
        plain = plain && node.kind != NodeKind::opaque && node.kind != NodeKind::assignment &&
                node.kind != NodeKind::postfix;
      });
      return plain;
    }
    return false;
  }
  /// The variables of that name which a loop's body declares.
  [[nodiscard]] std::vector<const Variable*> variables_of(const std::string& name,
                                                          const LoopInfo& loop) const {
    std::vector<const Variable*> found;
    for (const Variable& variable : function_.variables)
      if (variable.name == name && variable.loop == &loop && &variable != loop.control)
        found.push_back(&variable);
    return found;
  }

  const FunctionAnalysis& function_;
  std::span<const SharedLoop> loops_;
  const std::int64_t first_;
  std::set<const SyntaxNode*> places_{};
  std::set<const Array*> mixed_{}; ///< arrays with other accesses in the present loop
  std::vector<RowStream> streams_{};
};

/// What must hold for the elements of a stream to begin with a whole vector: the buffer does, and these
/// parameters are multiples of the vector's elements. Nothing where that cannot be said by parameters.
[[nodiscard]] inline std::optional<std::set<std::string>>
divisible_parameters(const FunctionAnalysis& function, const Polynomial& start, std::int64_t elements) {
  std::set<std::string> names;
  for (const auto& term : start.terms()) {
    if (term.coefficient % elements == 0) continue;
    const Symbol* found = nullptr;
    for (std::size_t i = 0; i < term.degree && found == nullptr; ++i) {
      const Symbol* const factor = term.factors[i];
      const bool parameter =
          std::any_of(function.variables.begin(), function.variables.end(), [&](const Variable& variable) {
            return variable.kind == Variable::Kind::parameter && variable.name == factor->name &&
                   !variable.pointer && !variable.address_taken &&
                   std::none_of(variable.uses.begin(), variable.uses.end(),
                                [&](std::size_t use) { return function.scalar_uses[use].write; });
          });
      const bool other =
          std::any_of(function.variables.begin(), function.variables.end(), [&](const Variable& variable) {
            return variable.kind != Variable::Kind::parameter && variable.name == factor->name;
          });
      if (factor->kind == Symbol::Kind::variable && parameter && !other) found = factor;
    }
    if (found == nullptr) return std::nullopt;
    names.insert(found->name);
  }
  return names;
}

} // namespace mtmc::detail
