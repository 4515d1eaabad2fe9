#pragma once
/// Threads beyond the last result that do the last one's work, so that all of a block wait at its barriers.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The number of a thread along an axis, and where results end there.
struct ResultClamp {
  ThreadIndex index{};
  std::string type{};  ///< of the number
  std::string limit{}; ///< the number is below it; empty: no thread is beyond it
};

/// The conditions of a condition that must all hold, which outlives them.
inline void add_conditions(const SyntaxNode& condition, std::vector<const SyntaxNode*>& found) {
  if (condition.kind == NodeKind::binary && condition.text == "&&") {
    add_conditions(left_operand(condition), found);
    add_conditions(right_operand(condition), found);
  } else {
    found.push_back(&condition);
  }
}

/// The clamp of one axis; nothing where the conditions of the function ask something else than whether the
/// number is below how many results there are.
[[nodiscard]] inline std::optional<ResultClamp> clamp_of(const ReductionLaunch& reduction,
                                                         const ThreadIndex& index) {
  const SyntaxNode& function = *reduction.function().node;
  std::vector<const SyntaxNode*> conditions;
  for (const ReductionStep& step : reduction.body.steps)
    if (step.declaration == nullptr) add_conditions(step.condition, conditions);
  ResultClamp clamp{index, statements(function_body(function))[index.statement].type, {}};
  const LaunchWords words(reduction.request.task, reduction.launch);
  const auto formal = parameters(function);
  bool known = true;
  for (const SyntaxNode* condition : conditions) {
    if (!reduction.depends_on_index(*condition)) continue;
    if (std::none_of(reduction.indices.begin(), reduction.indices.end(),
                     [&](const ThreadIndex& one) { return uses_name(*condition, one.name); }))
      return std::nullopt; // of something made of a number, which no clamp stands for
    if (!uses_name(*condition, index.name)) continue;
    const bool less = condition->kind == NodeKind::binary && condition->text == "<" &&
                      is_name(left_operand(*condition), index.name) && clamp.limit.empty();
    if (!less) return std::nullopt;
    for (const std::string& name : names_used(right_operand(*condition)))
      known = known && std::any_of(formal.begin(), formal.end(),
                                   [&](const SyntaxNode& parameter) { return parameter.text == name; });
    const auto limit = words.of(right_operand(*condition));
    // The grid has a block, so there is at least one result.
    known =
        known && limit && without_brackets(*limit) == without_brackets(reduction.launch.threads(index.axis));
    clamp.limit = print(right_operand(*condition));
  }
  if (clamp.limit.empty() && reduction.block.size() == 1 && reduction.threads % 32 != 0) return std::nullopt;
  return known ? std::optional(clamp) : std::nullopt;
}

/// The clamps of all axes, with which threads along x can have lanes above each other; none where they
/// cannot.
[[nodiscard]] inline std::vector<ResultClamp> result_clamps(const ReductionLaunch& reduction) {
  if (reduction.alone || reduction.block.size() > 2 || reduction.threads > 512) return {};
  std::vector<ResultClamp> clamps;
  for (const ThreadIndex& index : reduction.indices) {
    auto clamp = clamp_of(reduction, index);
    if (!clamp) return {};
    clamps.push_back(std::move(*clamp));
  }
  return clamps;
}

} // namespace mtmc::detail
