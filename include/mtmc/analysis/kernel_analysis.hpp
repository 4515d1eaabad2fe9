#pragma once

#include <mtmc/analysis/flow/flow_builder.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/loop_head.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/core/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// \file
/// The data flow of a whole file.
///
/// Use: `const KernelAnalysis analysis{tree, &task};`, `analysis.find_loop("gemm/i/j")`, then the questions
/// of legality.hpp. It points into the tree, which must outlive it and stay as it is: first ask, then edit,
/// then analyse anew.

namespace mtmc::inline MTMC_ABI {

/// The data flow of all functions of a file.
///
/// Whatever the text, it ends in bounded time: walks are linear in the text, and proofs spend a budget. Where
/// that is used up, dependences count as there and rewrites as not legal; `complete()` is then false.
class KernelAnalysis {
public:
  /// Analyses every function. The tree must outlive the analysis and must not change. The task, if given,
  /// lets more be proved: extents of its shapes are at least 1, so that `R` of an argument of shape
  /// `[2*R + 1]` is known not to be negative. It is not kept. `budget`: what proofs may cost, now and for the
  /// questions that are asked later.
  explicit KernelAnalysis(const SyntaxNode& tree, const Task* task = nullptr,
                          WorkBudget budget = WorkBudget());

  /// False once the budget is used up: some answers are then "no" for want of time.
  [[nodiscard]] bool complete() const noexcept { return !budget_->exhausted(); }
  /// What is left to spend on further questions; they spend it themselves.
  [[nodiscard]] WorkBudget& budget() const noexcept { return *budget_; }

  /// All functions in the order of the text.
  [[nodiscard]] std::span<const std::unique_ptr<FunctionAnalysis>> functions() const noexcept;
  /// The first function of that name, or null.
  [[nodiscard]] const FunctionAnalysis* find_function(std::string_view name) const noexcept;
  /// The loop of a path ("gemm/i/j"), or null.
  [[nodiscard]] const LoopInfo* find_loop(std::string_view path) const noexcept;
  /// The loop of a statement, or null.
  [[nodiscard]] const LoopInfo* find_loop(const SyntaxNode& loop_node) const noexcept;
  /// The launch lines of that entry, in order.
  [[nodiscard]] std::span<const LaunchText> launches_of(const std::string& entry) const noexcept;
  /// The launch and scratch lines, in order.
  [[nodiscard]] const LaunchTexts& lines() const noexcept { return lines_; }
  /// Analyses a function that is not in the file (two merged ones, say) as if it were, called by `launch`. It
  /// must outlive the result.
  [[nodiscard]] std::unique_ptr<FunctionAnalysis>
  analyse_as_if(const SyntaxNode& function_node, const LaunchText& launch, const Task* task) const;
  /// What calls in this file may do.
  [[nodiscard]] const CallEffects& effects() const noexcept { return *effects_; }

private:
  void collect(const SyntaxNode& node);

  /// `constexpr int tile = 32;` and `#define TILE 32`.
  void collect_constants(const SyntaxNode& node);

  void analyse(FunctionAnalysis& function, std::span<const LaunchText> launches, const Task* task) const;

  /// The file's constants, and `blockDim.x` and the like where all launches of the function give one number.
  [[nodiscard]] detail::FileConstants with_launch_constants(const std::string& name,
                                                            std::span<const LaunchText> launches) const;

  /// Extents of buffers are at least 1, whatever the size.
  void assume(FunctionAnalysis& function, const detail::FlowBuilder& builder,
              std::span<const LaunchText> launches, const Task* task) const;

  LaunchTexts lines_;
  std::unique_ptr<CallEffects> effects_;
  detail::FileConstants constants_;
  std::unordered_map<std::string, int> names_;
  std::unordered_map<std::string, std::vector<LaunchText>> launches_of_;
  std::shared_ptr<WorkBudget> budget_;
  std::vector<std::unique_ptr<FunctionAnalysis>> functions_;
  /// The first function of each name; points at names in `functions_`.
  std::unordered_map<std::string_view, const FunctionAnalysis*> by_name_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/kernel_analysis_inl.hpp>
#endif
