#pragma once
/// What is decided about a split before its text is written: its shape, its launches, and the names in them.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/known_combination.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/result_clamps.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Names that the kernel does not have yet.
struct SplitNames {
  std::string lane{};                 ///< the number of a thread among those of a block that share a result
  std::string part{}, parts{};        ///< the number of a part of a result, and how many there are
  std::string result{}, results{};    ///< the number of a result, and how many there are
  std::string inside{};               ///< whether the thread has a result that is no copy of the last one
  std::vector<std::string> scratch{}; ///< of each value, the parts that blocks leave for the second launch
  std::vector<std::string> shared{};  ///< of each value, the parts of the lanes of a block
};

/// The names for a reduction.
[[nodiscard]] inline SplitNames split_names(const ReductionLaunch& reduction) {
  const SyntaxNode& tree = reduction.request.tree;
  SplitNames names{fresh_name(tree, "lane"),   fresh_name(tree, "part"),    fresh_name(tree, "parts"),
                   fresh_name(tree, "result"), fresh_name(tree, "results"), fresh_name(tree, "inside")};
  for (const ReducedValue& value : reduction.body.values) {
    std::string name = fresh_name(tree, value.name + "_parts");
    while (reduction.request.task.find_argument(name) != nullptr)
      name = fresh_name(tree, name + "_of_blocks");
    names.scratch.push_back(name);
    names.shared.push_back(fresh_name(tree, value.name + "_of_lanes"));
  }
  return names;
}

/// The functions by which all threads of a block combine the values, each once.
[[nodiscard]] inline std::vector<ThreadReduction> block_combiners(const ReductionLaunch& reduction) {
  std::vector<ThreadReduction> combiners;
  for (const ReducedValue& value : reduction.body.values) {
    auto kind = thread_reduction(value.reduction, false);
    if (!kind) throw TransformDeclined("threads cannot combine values of the type " + value.type);
    if (std::any_of(combiners.begin(), combiners.end(),
                    [&](const ThreadReduction& known) { return known.same_as(*kind); }))
      continue;
    give_name(reduction.request.tree, *kind);
    combiners.push_back(std::move(*kind));
  }
  return combiners;
}

/// The decisions.
struct SplitPlan {
  SplittingShape shape{};
  std::optional<KnownCombination> combination{}; ///< what combines the values of present threads already
  std::vector<ResultClamp> clamps{};             ///< of the threads of columns
  SplitGeometry geometry{};
  SplitNames names{};
  std::vector<ThreadReduction> combiners{}; ///< what combines the values of a block's threads
};

/// Plans a split of that shape. Throws `TransformDeclined` where it cannot be launched.
[[nodiscard]] inline SplitPlan split_plan(const ReductionLaunch& reduction, const SplittingShape& shape) {
  SplitPlan plan{shape};
  if (shape.team == ReductionTeam::present) plan.combination = known_combination(reduction);
  if (shape.team == ReductionTeam::column) plan.clamps = result_clamps(reduction);
  plan.geometry = split_geometry(reduction, shape, plan.combination);
  plan.names = split_names(reduction);
  if (shape.team == ReductionTeam::block) plan.combiners = block_combiners(reduction);
  return plan;
}

} // namespace mtmc::detail
