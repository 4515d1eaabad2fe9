#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/fusion_legality.hpp>
#include <mtmc/analysis/syntax/launch_text.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Consecutive launches as one function, for asking whether their loops could be fused.

namespace mtmc::inline MTMC_ABI {

/// Several launches as if one function did the work of all. Its parameters are what the launches are given;
/// its body has one block a launch, which first declares the entry's parameters. Good for analysing, not for
/// printing.
struct MergedLaunches {
  SyntaxNode function{}; ///< one function that does the work of all the launches
  LaunchText launch{};   ///< the launch line of that function
};

namespace detail {

class LaunchMerger {
public:
  LaunchMerger(const KernelAnalysis& analysis, std::span<const LaunchText> launches)
      : analysis_(analysis), launches_(launches) {}

  [[nodiscard]] std::optional<MergedLaunches> run();

private:
  [[nodiscard]] static bool returns_early(const SyntaxNode& node);

  /// The merged function's parameter for an argument; entered on first use.
  [[nodiscard]] std::string name_of(const std::string& argument, const std::string& type);

  const KernelAnalysis& analysis_;
  std::span<const LaunchText> launches_;
  std::vector<std::string> arguments_;
  std::vector<SyntaxNode> parameters_;
};

} // namespace detail

/// The launches as one function; nothing if an entry is not in the text, is launched on a grid, or returns
/// early.
[[nodiscard]] std::optional<MergedLaunches> merged_launches(const KernelAnalysis& analysis,
                                                            std::span<const LaunchText> launches);

/// The loops that these launches end and begin with may all become one loop: each launch hands something on
/// to the next one, the last loop of each can be fused with the first loop of the next, and (for more than
/// two) the launches in between consist of one loop each.
[[nodiscard]] Legality launch_fusion_legal(const KernelAnalysis& analysis,
                                           std::span<const LaunchText> launches, const Task* task);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/launch_merge_inl.hpp>
#endif
