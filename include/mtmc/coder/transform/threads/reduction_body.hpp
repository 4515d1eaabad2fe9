#pragma once
/// A function on a GPU's launch that reduces in one loop (or nest): what stands before it, the loop, and what
/// is done with the results.

#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/unrolling.hpp>

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

/// A variable that the loop reduces.
struct ReducedValue {
  Reduction reduction{};
  std::string name{};
  std::string type{};
  SyntaxNode start{};                      ///< its value before the loop
  const SyntaxNode* declaration = nullptr; ///< the statement that declares it

  [[nodiscard]] bool is_extremum() const noexcept {
    return reduction.operation == ReductionOperation::minimum ||
           reduction.operation == ReductionOperation::maximum;
  }
};

/// A declaration in front of the loop, or a condition without which a thread does nothing.
struct ReductionStep {
  const SyntaxNode* declaration = nullptr;
  SyntaxNode condition{}; ///< where it is no declaration
};

/// The addresses of statements.
[[nodiscard]] inline std::vector<const SyntaxNode*> pointers_to(std::span<const SyntaxNode> statements) {
  std::vector<const SyntaxNode*> result;
  for (const SyntaxNode& statement : statements) result.push_back(&statement);
  return result;
}

/// The parts of such a function.
struct ReductionBody {
  const FunctionAnalysis* function = nullptr;
  std::vector<ReductionStep> steps{};        ///< in front of the loop, in order
  std::vector<const LoopInfo*> nest{};       ///< perfectly nested loops that reduce, outermost first
  std::vector<ReducedValue> values{};        ///< what they reduce
  std::vector<const SyntaxNode*> epilogue{}; ///< statements behind the loop

  /// Reads the function around a loop, one in its body or in branches that are all of it. Throws
  /// `TransformDeclined` with the reason where it is another one.
  ReductionBody(const FunctionAnalysis& of, const std::vector<const SyntaxNode*>& body, const LoopInfo& loop)
      : function(&of) {
    const LoopInfo* outermost = &loop;
    while (outermost->parent != nullptr) outermost = outermost->parent;
    read_nest(*outermost);
    read(body, *outermost->node);
    read_values(*outermost);
    require_understood(*outermost);
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  void read_nest(const LoopInfo& outermost) {
    const Legality legality = loop_is_reduction(outermost);
    if (!legality) decline(legality.reason);
    const LoopNest levels = nest_of(outermost);
    nest.push_back(&outermost);
    for (std::size_t level = 1; level < levels.size(); ++level) {
      const LoopInfo& inner = levels.loop(level);
      if (!levels.perfect(level - 1, level) || !loop_is_reduction(inner) || inner.variable_type.empty())
        return;
      for (std::size_t outer = 0; outer < level; ++outer)
        if (uses_name(*inner.bound_expression, levels.loop(outer).variable) ||
            uses_name(*inner.start_expression, levels.loop(outer).variable))
          return;
      nest.push_back(&inner);
    }
  }

  void read(const std::vector<const SyntaxNode*>& body, const SyntaxNode& loop) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const SyntaxNode& statement = *body[i];
      if (&statement == &loop) {
        epilogue.assign(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, body.end());
        return;
      }
      if (statement.kind == NodeKind::comment || statement.kind == NodeKind::pragma ||
          statement.kind == NodeKind::empty)
        continue;
      if (statement.kind == NodeKind::declaration) {
        steps.push_back({&statement, {}});
      } else if (is_early_return(statement)) {
        steps.push_back({nullptr, opposite_of(if_condition(statement), *function->node)});
      } else if (statement.kind == NodeKind::if_statement && contains(statement, loop)) {
        if (else_branch(statement) != nullptr || i + 1 != body.size() ||
            !contains(then_branch(statement), loop))
          decline("what the threads of " + function->name + " do is not one branch");
        steps.push_back({nullptr, if_condition(statement)});
        read(pointers_to(statements(then_branch(statement))), loop);
        return;
      } else {
        decline("line " + std::to_string(statement.range.first_line) + " does something before " +
                loop_name(*nest.front()));
      }
    }
    decline(loop_name(*nest.front()) + " stands in another statement");
  }

  void read_values(const LoopInfo& outermost) {
    for (const ScalarFacts& scalar : classify_scalars(outermost))
      if (scalar.role == ScalarRole::privatizable && scalar.live_out)
        decline("the last value of " + scalar.variable->name + " in " + loop_name(outermost) +
                " is used after it");
    for (const Reduction& reduction : scalar_reductions(outermost)) {
      ReducedValue value{reduction, reduction.scalar->name, std::string(trim(reduction.type))};
      for (const ReductionStep& step : steps) {
        if (step.declaration == nullptr) continue;
        for (const SyntaxNode& declarator : declarators(*step.declaration)) {
          if (&declarator != reduction.scalar->declaration) continue;
          const SyntaxNode* const start = initial_value(declarator);
          if (start == nullptr) decline(value.name + " is declared without a first value");
          value.start = *start;
          value.declaration = step.declaration;
          if (has_word(step.declaration->type, "auto")) decline("the type of " + value.name + " is not said");
        }
      }
      if (value.declaration == nullptr)
        decline(value.name + " is not declared before " + loop_name(outermost));
      values.push_back(std::move(value));
    }
    for (const ReductionStep& step : steps)
      for (const ReducedValue& value : values)
        if (step.declaration != nullptr
                ? step.declaration != value.declaration && uses_name(*step.declaration, value.name)
                : uses_name(step.condition, value.name))
          decline(value.name + " is used before " + loop_name(outermost));
  }

  void require_understood(const LoopInfo& outermost) const {
    std::set<const SyntaxNode*> early;
    const auto note = [&early](const SyntaxNode& part) {
      walk(part, [&early](const SyntaxNode& node) { early.insert(&node); });
    };
    for (const ReductionStep& step : steps)
      if (step.declaration != nullptr) note(*step.declaration);
    note(*outermost.node);
    for (const OpaqueEffect& effect : function->opaque)
      if (early.contains(effect.node))
        decline("line " + std::to_string(effect.line) + " contains " + effect.reason);
    for (const Barrier& barrier : function->barriers)
      if (early.contains(barrier.node))
        decline("the threads wait for each other before " + loop_name(outermost));
    for (const Access& access : function->accesses)
      if (access.write && early.contains(access.node) && !is_private(access))
        decline(access.array->name + " is written before the results of " + loop_name(outermost) +
                " are known");
  }

  /// An array that each iteration has for itself.
  [[nodiscard]] static bool is_private(const Access& access) {
    return access.array->place == ArrayPlace::own && access.array->variable != nullptr &&
           access.array->variable->loop != nullptr;
  }
  [[nodiscard]] static bool contains(const SyntaxNode& around, const SyntaxNode& wanted) {
    bool found = false;
    walk(around, [&](const SyntaxNode& node) { found = found || &node == &wanted; });
    return found;
  }
};

} // namespace mtmc::detail
