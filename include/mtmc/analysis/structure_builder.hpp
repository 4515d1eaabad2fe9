#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/legality/launch_merge.hpp>
#include <mtmc/analysis/region_facts.hpp>
#include <mtmc/analysis/threads/thread_regions.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// The default region finder: C-family text to a `Structure` by way of its syntax tree and data flow.

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Makes the structure of one kernel.
class StructureBuilder {
public:
  /// `budget`: what the analysis may cost.
  StructureBuilder(const Task& task, const Kernel& kernel, const SyntaxNode& tree,
                   WorkBudget budget = WorkBudget());

  [[nodiscard]] Structure run();

private:
  // --- sizes

  void read_sizes();

  [[nodiscard]] std::optional<std::int64_t> evaluate(const std::string& text) const;

  void note_buffer(const std::string& name, const std::vector<std::string>& shape);

  [[nodiscard]] std::optional<std::int64_t> value_of_argument(const std::string& text) const;

  /// The grid of a launch, where the language's names of a thread's indices are known.
  [[nodiscard]] std::optional<LaunchGeometry> geometry(const LaunchText& launch) const;

  /// How a launch calls its function; without a launch, parameters have the values of symbols of their name.
  [[nodiscard]] CallContext context_of(const FunctionAnalysis& function, const LaunchText* launch) const;

  [[nodiscard]] const LaunchText* first_launch(const FunctionAnalysis& function) const;

  // --- functions and loops

  void add_function(const FunctionAnalysis& function);

  void add(Region region, double calls);

  void add_loop(const LoopInfo& loop, const CallContext& context, const FunctionAtSize& at_size,
                double calls);

  // --- neighbouring loops

  /// Finds runs of neighbouring loops in all blocks of a statement.
  void add_sequences(const FunctionAnalysis& function, const SyntaxNode& node, const CallContext& context,
                     const FunctionAtSize& at_size, double calls);

  void add_run(const SyntaxNode& block, const std::vector<const LoopInfo*>& run,
               const std::vector<std::size_t>& positions, const CallContext& context,
               const FunctionAtSize& at_size, double calls);

  /// Calls `use(first, last, fusable)` for the run as a whole and for the longest fusable parts of it, each
  /// of three to `longest` members.
  template <class Use>
  static void for_longer_runs(std::size_t size, const std::vector<bool>& fusable, const Use& use) {
    constexpr std::size_t longest = 12; // what grows with the square stays small
    const bool all = std::all_of(fusable.begin(), fusable.end(), [](bool one) { return one; });
    if (size >= 3 && size <= longest) use(0, size - 1, all);
    if (all && size <= longest) return;
    for (std::size_t first = 0; first < fusable.size();) {
      std::size_t last = first;
      while (last < fusable.size() && fusable[last] && last - first + 1 < longest) ++last;
      if (last - first >= 2) use(first, last, true);
      first = std::max(last, first + 1);
    }
  }

  void add_loop_sequence(const std::vector<const LoopInfo*>& members, bool fusable,
                         const CallContext& context, const FunctionAtSize& at_size, double calls);

  /// Arrays that one loop writes and a later one reads.
  [[nodiscard]] static std::vector<std::string> handed_on(const std::vector<const LoopInfo*>& members);

  /// Steps of the budget for the facts of a function, which are computed anew for each of its launches.
  [[nodiscard]] static std::int64_t cost_of_facts(const FunctionAnalysis& function) noexcept;

  [[nodiscard]] static std::string listed(const std::vector<std::string>& names);

  // --- launches

  void add_launches();

  /// Launches on grids are merged thread by thread or row by row, others loop by loop.
  void judge_launch_fusion(std::span<const LaunchText> launches, RegionFacts& facts) const;

  /// From each launch that reads a buffer to the last one before it that wrote it.
  void add_edges(const std::vector<RegionFacts>& facts);

  /// Adds the region and answers whether its members may be merged, if that `may_be` so.
  bool add_launch_sequence(std::size_t first, std::size_t last, const std::vector<RegionFacts>& facts,
                           bool may_be);

  // --- remarks and totals

  void note(int line, std::string message, std::string remedy = {});

  void add_notes();

  /// Items of the file that are not understood; declarations of types and aliases do no harm.
  void add_opaque_items(const SyntaxNode& node);

  void add_totals();

  /// Analysis knows no device: a grid of `2 * compute_units` blocks counts as one on a device of this size.
  static constexpr std::int64_t nominal_compute_units = 128;

  const Task& task_;
  const Kernel& kernel_;
  const SyntaxNode& tree_;
  const KernelAnalysis analysis_;
  Symbols symbols_;
  std::map<std::string, double, std::less<>> elements_;
  Structure structure_;
};

} // namespace detail

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/structure_builder_inl.hpp>
#endif
