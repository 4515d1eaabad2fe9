#pragma once
/// A launch whose threads, numbered along x, each work on an element of their own: the parts of its function.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/factors.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether an expression or statement reads or writes memory behind a pointer or in an array.
[[nodiscard]] inline bool touches_memory(const SyntaxNode& part) {
  bool found = false;
  walk(part, [&](const SyntaxNode& node) {
    found = found || node.kind == NodeKind::subscript ||
            (node.kind == NodeKind::unary && (node.text == "*" || node.text == "&")) ||
            (node.kind == NodeKind::member && node.text.starts_with("->"));
  });
  return found;
}

/// Whether the statement only ends the thread: `return;`, perhaps in braces.
[[nodiscard]] inline bool only_returns(const SyntaxNode& statement) {
  const auto inside = statements(statement);
  return inside.size() == 1 && inside.front().kind == NodeKind::return_statement;
}

/// The names that are declared in a statement.
inline void add_declared(const SyntaxNode& statement, std::set<std::string>& names) {
  walk(statement, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::declarator) names.insert(node.text);
  });
}

/// Whether any of the names occurs.
[[nodiscard]] inline bool uses_any(const SyntaxNode& part, const std::set<std::string>& names) {
  const auto used = names_used(part);
  return std::any_of(used.begin(), used.end(), [&](const std::string& name) { return names.contains(name); });
}

/// The parts of such a function. What stands in front of the work are declarations and guards.
struct PointwiseLaunch {
  ThreadLaunch launch;
  const FunctionAnalysis* function = nullptr;
  ThreadIndex index{};                          ///< numbers the elements along x
  std::vector<const SyntaxNode*> before{};      ///< declarations in front of the guard, the same for all
                                                ///< elements of a row
  std::vector<const SyntaxNode*> inside{};      ///< the same behind the guard
  std::vector<const SyntaxNode*> own{};         ///< declarations that each element has for itself
  std::optional<SyntaxNode> limit{};            ///< number of elements along x; nothing without a guard
  std::vector<SyntaxNode> conditions{};         ///< of the guard, the same for all elements of a row
  std::vector<SyntaxNode> element_conditions{}; ///< of the guard, of each element
  std::vector<const SyntaxNode*> work{};        ///< what is done to an element
  std::set<std::string> element_names{};        ///< variables that elements have for themselves, and `index`

  /// Throws `TransformDeclined` with the reason where the function is another one.
  explicit PointwiseLaunch(const TransformRequest& request)
      : launch(thread_launch(request)), function(launch.function) {
    require_plain();
    for (const ThreadIndex& one : thread_indices(launch))
      if (one.axis == 0) index = one;
    if (index.name.empty())
      throw TransformDeclined("no variable numbers the threads of " + launch.line.entry + " along x");
    element_names.insert(index.name);
    const auto body = statements(function_body(*function->node));
    read(body);
    if (work.empty()) throw TransformDeclined("the threads of " + launch.line.entry + " do nothing");
    for (const SyntaxNode* statement : work) add_declared(*statement, element_names);
    require_one_scope();
    if (limit) require_covering(request);
  }

  /// The declaration of the number along x.
  [[nodiscard]] const SyntaxNode& index_declaration() const {
    return statements(function_body(*function->node))[index.statement];
  }
  /// Whether something has the same value for all elements of a row.
  [[nodiscard]] bool is_uniform(const SyntaxNode& part) const { return !uses_any(part, element_names); }

private:
  void require_plain() const {
    if (!function->opaque.empty())
      throw TransformDeclined("line " + std::to_string(function->opaque.front().line) + " contains " +
                              function->opaque.front().reason);
    if (!function->barriers.empty()) throw TransformDeclined("the threads wait for each other");
    if (!function->loops.empty()) throw TransformDeclined("a thread goes through a loop");
    for (const Array& array : function->arrays) {
      if (array.unknown) throw TransformDeclined("it is not known what " + array.name + " points to");
      if (array.place == ArrayPlace::block)
        throw TransformDeclined("the threads of a block share the array " + array.name);
    }
  }

  /// Nothing changes the variables of a declaration later.
  [[nodiscard]] bool stays(const SyntaxNode& declaration) const {
    for (const SyntaxNode& declarator : declarators(declaration)) {
      if (initial_value(declarator) == nullptr || !extents(declarator).empty()) return false;
      for (const Variable& variable : function->variables) {
        if (variable.declaration != &declarator) continue;
        if (variable.address_taken || variable.persistent) return false;
        for (const std::size_t at : variable.uses) {
          const ScalarUse& use = function->scalar_uses[at];
          if (use.write && use.statement != &declaration) return false;
        }
      }
    }
    return true;
  }

  void read(std::span<const SyntaxNode> body) {
    const SyntaxNode* const number = &index_declaration();
    bool guarded = false;
    while (!body.empty()) {
      const SyntaxNode& statement = body.front();
      if (statement.kind == NodeKind::declaration) {
        if (&statement != number && !read_declaration(statement, guarded)) break;
      } else if (statement.kind == NodeKind::if_statement && else_branch(statement) == nullptr &&
                 !touches_memory(if_condition(statement))) {
        const bool returns = only_returns(then_branch(statement));
        if (!returns && body.size() > 1) break;
        read_guard(if_condition(statement), returns);
        guarded = true;
        if (!returns) body = statements(then_branch(statement));
        if (!element_conditions.empty()) {
          for (const SyntaxNode& one : returns ? body.subspan(1) : body) work.push_back(&one);
          return;
        }
        if (!returns) continue;
      } else {
        break;
      }
      body = body.subspan(1);
    }
    for (const SyntaxNode& statement : body) work.push_back(&statement);
  }

  /// False where the work begins.
  [[nodiscard]] bool read_declaration(const SyntaxNode& declaration, bool guarded) {
    if (is_uniform(declaration) && stays(declaration)) {
      (guarded ? inside : before).push_back(&declaration);
      return true;
    }
    if (guarded) return false;
    if (touches_memory(declaration))
      throw TransformDeclined("line " + std::to_string(declaration.range.first_line) +
                              " touches memory in front of the guard");
    own.push_back(&declaration);
    add_declared(declaration, element_names);
    return true;
  }

  void read_guard(const SyntaxNode& condition, bool returns) {
    std::vector<SyntaxNode> all;
    take_conditions(returns ? opposite_of(condition, *function->node) : condition, all);
    for (SyntaxNode& one : all) {
      if (is_uniform(one)) {
        conditions.push_back(std::move(one));
      } else if (auto bound = bound_of(one); bound && !limit) {
        limit = std::move(bound);
      } else {
        element_conditions.push_back(std::move(one));
      }
    }
  }

  /// `n` of `index < n` and of `n > index`, `n + 1` of `index <= n`.
  [[nodiscard]] std::optional<SyntaxNode> bound_of(const SyntaxNode& condition) const {
    if (condition.kind != NodeKind::binary) return std::nullopt;
    const SyntaxNode *small = &left_operand(condition), *large = &right_operand(condition);
    if (condition.text == ">" || condition.text == ">=")
      std::swap(small, large);
    else if (condition.text != "<" && condition.text != "<=")
      return std::nullopt;
    if (!is_name(without_casts(*small), index.name) || !is_uniform(*large)) return std::nullopt;
    return offset_by(*large, static_cast<std::int64_t>(condition.text.size()) - 1);
  }

  /// Names mean one thing each.
  void require_one_scope() const {
    std::set<std::string> seen;
    for (const Variable& variable : function->variables)
      if (variable.kind != Variable::Kind::global && !seen.insert(variable.name).second)
        throw TransformDeclined("two variables of " + launch.line.entry + " are called " + variable.name);
    for (const SyntaxNode* statement : work)
      walk(*statement, [&](const SyntaxNode& node) {
        if (node.kind == NodeKind::return_statement)
          throw TransformDeclined("what is done to an element may end the thread");
      });
  }

  /// The launch has a thread for each element that the guard lets through, so that the number of elements
  /// tells how many threads there were.
  void require_covering(const TransformRequest& request) const {
    if (guard_of(request, launch, index) != nullptr) return;
    throw TransformDeclined("it is not proved that " + launch.line.entry + " has as many threads as " +
                            print(*limit) + ", the elements that its guard lets through");
  }
};

} // namespace mtmc::detail
