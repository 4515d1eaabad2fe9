#pragma once
/// The launch of a function that reduces in one loop (or nest), as it is before threads share the reduction.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/one_thread.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A type of the C family as scratch lines name it; empty for others.
[[nodiscard]] inline std::string scratch_type(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {{"float", "f32"},
                                                                            {"double", "f64"},
                                                                            {"int", "i32"},
                                                                            {"unsigned int", "u32"},
                                                                            {"unsigned", "u32"},
                                                                            {"long long", "i64"},
                                                                            {"unsigned long long", "u64"}};
  for (const auto& [one, other] : names)
    if (type == one) return std::string(other);
  return {};
}

/// Extents without the last ones that are 1.
[[nodiscard]] inline std::vector<std::string> without_ones(std::vector<std::string> extents) {
  while (extents.size() > 1 && extents.back() == "1") extents.pop_back();
  return extents;
}

/// A function that reduces, its one launch, and who of the threads has a result of it.
struct ReductionLaunch {
  const TransformRequest& request; ///< outlives it
  ThreadLaunch launch{};
  bool alone = false; ///< one thread does everything
  ReductionBody body;
  std::vector<std::string> grid{}, block{}; ///< extents without the last ones that are 1
  std::int64_t threads = 1;                 ///< of a block
  std::vector<ThreadIndex> indices{};       ///< the numbers of threads that do not share the loops
  bool own = false;                         ///< each thread reduces for itself, so that others may help it
  std::string why_not_own{};                ///< the reason against it, where there is one

  /// The function.
  [[nodiscard]] const FunctionAnalysis& function() const noexcept { return *launch.function; }

  /// The threads of a block share some loop of the nest already.
  [[nodiscard]] bool is_shared() const {
    return std::any_of(body.nest.begin(), body.nest.end(), [&](const LoopInfo* loop) {
      return depends_on_thread(*loop->start_expression) || depends_on_thread(*loop->bound_expression);
    });
  }
  /// The expression uses the number of a thread within its block, or a constant made of it.
  [[nodiscard]] bool depends_on_thread(const SyntaxNode& expression) const {
    const auto names = thread_dependent();
    bool found = names_thread(expression);
    for (const std::string& name : names_used(expression)) found = found || names.contains(name);
    return found;
  }
  /// The expression is the number of the thread in its block, by whatever name.
  [[nodiscard]] bool is_thread_number(const SyntaxNode& expression) const {
    if (block.size() != 1) return false;
    const SyntaxNode* node = &expression;
    for (int turn = 0; turn < 4 && node != nullptr; ++turn) {
      while (node->kind == NodeKind::cast) node = &operand(*node);
      if (node->kind == NodeKind::member) return node->text == ".x" && is_name(operand(*node), "threadIdx");
      if (node->kind != NodeKind::name) return false;
      const SyntaxNode* next = nullptr;
      for (const ReductionStep& step : body.steps)
        if (step.declaration != nullptr)
          for (const SyntaxNode& declarator : declarators(*step.declaration))
            if (declarator.text == node->text && is_constant(declarator)) next = initial_value(declarator);
      node = next;
    }
    return false;
  }
  /// The expression uses one of `indices`, or something made of it: it may differ between threads of a block.
  [[nodiscard]] bool depends_on_index(const SyntaxNode& expression) const {
    std::set<std::string> names;
    for (const ThreadIndex& index : indices) names.insert(index.name);
    for (const ReductionStep& step : body.steps) {
      if (step.declaration == nullptr) continue;
      for (const SyntaxNode& declarator : declarators(*step.declaration))
        for (const std::string& name : names_used(declarator))
          if (names.contains(name)) names.insert(declarator.text);
    }
    const auto used = names_used(expression);
    return std::any_of(used.begin(), used.end(), [&](const auto& name) { return names.contains(name); });
  }

private:
  /// Names in front of the loop whose values are made of the number of a thread within its block.
  [[nodiscard]] std::set<std::string> thread_dependent() const {
    std::set<std::string> names;
    for (const ReductionStep& step : body.steps) {
      if (step.declaration == nullptr) continue;
      for (const SyntaxNode& declarator : declarators(*step.declaration)) {
        const SyntaxNode* const value = initial_value(declarator);
        if (value == nullptr) continue;
        bool thread = false;
        walk(*value, [&](const SyntaxNode& node) {
          thread = thread || is_name(node, "threadIdx") ||
                   (node.kind == NodeKind::name && names.contains(node.text));
        });
        if (thread) names.insert(declarator.text);
      }
    }
    return names;
  }
  /// Nothing but its declaration writes the variable.
  [[nodiscard]] bool is_constant(const SyntaxNode& declarator) const {
    for (const Variable& variable : function().variables) {
      if (variable.declaration != &declarator) continue;
      return !variable.address_taken &&
             std::none_of(variable.uses.begin(), variable.uses.end(), [&](std::size_t at) {
               const ScalarUse& use = function().scalar_uses[at];
               return use.write && use.node != &declarator;
             });
    }
    return false;
  }
};

/// The loop of the action, or the first one of the function that reduces. Throws `TransformDeclined` where
/// there is none.
[[nodiscard]] inline const LoopInfo& reducing_loop(const TransformRequest& request,
                                                   const FunctionAnalysis& function) {
  if (request.action.region.find("/threads:") == std::string::npos) {
    const auto located = locate(request.tree, request.action.region);
    const LoopInfo* const loop =
        located.empty() ? nullptr : request.analysis.find_loop(*located.front().node);
    if (loop == nullptr) throw TransformDeclined('"' + request.action.region + "\" names no loop");
    return *loop;
  }
  for (const LoopInfo& loop : function.loops)
    if (loop.parent == nullptr && loop_is_reduction(loop)) return loop;
  throw TransformDeclined("no loop of " + function.name + " reduces");
}

/// What the lanes of a result must not find behind the loop, since one of them does it; empty where there is
/// nothing of that.
[[nodiscard]] inline std::string reason_against_lanes(const ReductionBody& body) {
  if (!body.function->barriers.empty()) return "the threads wait for each other already";
  std::string reason;
  for (const SyntaxNode* statement : body.epilogue)
    walk(*statement, [&](const SyntaxNode& node) {
      if (is_loop(node.kind) || node.kind == NodeKind::return_statement)
        reason = "more than a result follows " + loop_name(*body.nest.front());
    });
  return reason;
}

/// Reads the action's function. Throws `TransformDeclined` with the reason where it is not one that reduces
/// in one loop.
[[nodiscard]] inline ReductionLaunch reduction_launch(const TransformRequest& request) {
  const ThreadLaunch launch = thread_launch(request);
  const FunctionAnalysis& function = *launch.function;
  const OneThread only(launch);
  const auto work = only.alone() ? only.work() : pointers_to(statements(function_body(*function.node)));
  ReductionLaunch result{request, launch, only.alone(),
                         ReductionBody(function, work, reducing_loop(request, function))};
  if (launch.function_at.size() != 1)
    throw TransformDeclined("the function " + function.name + " stands in another scope");
  result.grid = without_ones(launch.line.grid);
  result.block = without_ones(launch.line.block);
  for (const std::string& extent : result.block) result.threads *= integer_literal(extent).value_or(1);
  for (const ReducedValue& value : result.body.values)
    if (scratch_type(value.type).empty())
      throw TransformDeclined("threads cannot combine values of the type " + value.type);
  const auto& nest = result.body.nest;
  const bool shared = std::any_of(nest.begin(), nest.end(), [](const LoopInfo* loop) {
    return names_thread(*loop->start_expression) || names_thread(*loop->bound_expression);
  });
  result.own = result.alone;
  if (!result.own && !shared) {
    try {
      result.indices = thread_indices(launch);
      result.own = !result.indices.empty();
    } catch (const TransformDeclined& reason) {
      result.why_not_own = reason.what();
    }
  }
  if (result.own) {
    result.why_not_own = reason_against_lanes(result.body);
    result.own = result.why_not_own.empty();
  }
  return result;
}

} // namespace mtmc::detail
