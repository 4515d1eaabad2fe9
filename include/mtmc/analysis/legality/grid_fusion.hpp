#pragma once

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Whether consecutive launches on a grid may be one kernel: which thread makes each element of a buffer that
/// one launch hands to the next, and which threads need it.
///
/// Two ways are recognised, for every size of the task:
/// - `FusionScope::thread`: both launches go through all elements of the buffer in row-major order, each
///   element made at one point and needed at one point; or each element that a thread of the second launch
///   needs, and no other thread does, is stored just once by the first one, by whatever thread
///   (element_match.hpp).
/// - `FusionScope::block`: the buffer is rows of one length, and in both launches the threads that make or
///   need elements of a row are those with the row's number; a block that owns whole rows can do both.

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Polynomials over the task's symbols, which several functions share.
class TaskSizes {
public:
  explicit TaskSizes(const Task* task) : task_(task) {}

  /// An expression of a shape or a launch line; undefined where it is no polynomial.
  [[nodiscard]] Polynomial read(const std::string& text);

  /// The number of elements of a buffer of the task or of a scratch line; undefined if it is not known.
  [[nodiscard]] Polynomial elements(const std::string& buffer, std::span<const ScratchText> scratch);

  /// A polynomial over the parameters of a launched function; undefined if anything else occurs in it.
  [[nodiscard]] Polynomial translate(const Polynomial& polynomial, const FunctionAnalysis& function,
                                     const LaunchText& launch);

private:
  [[nodiscard]] Polynomial symbol(const std::string& name);

  const Task* task_;
  std::deque<Symbol> storage_;
  std::map<std::string, const Symbol*, std::less<>> symbols_;
};

/// A launch on a grid as fusion looks at it.
struct GridLaunch {
  const LaunchText* launch = nullptr;
  const FunctionAnalysis* function = nullptr;
  LaunchGeometry geometry{};
  /// Accesses to memory that all threads see, by the buffer behind their array.
  std::map<std::string, std::vector<const Access*>, std::less<>> accesses{};
  /// The launch line gives a buffer for each array that all threads see.
  bool buffers_known = true;

  GridLaunch(const LaunchText& line, const FunctionAnalysis& entry, const LaunchGeometry& grid);

  /// The accesses to a buffer.
  [[nodiscard]] std::span<const Access* const> accesses_to(const std::string& buffer) const;
  [[nodiscard]] bool touches(const std::string& buffer, bool write) const;
};

/// An index that numbers a launch's threads or a loop's iterations from 0 upwards, without holes.
struct GridIndex {
  const Symbol* symbol = nullptr;
  bool thread = false;
  /// Number of its values, over the task's symbols.
  Polynomial extent{};
};

/// One access taken apart into indices and what they are multiplied with (over the task's symbols), smallest
/// first.
struct IndexedAccess {
  struct Part {
    GridIndex index;
    Polynomial factor;
  };
  std::vector<Part> parts;
  Polynomial constant{};
};

/// Decides for two launches on grids.
class GridFusion {
public:
  GridFusion(const KernelAnalysis& analysis, const GridLaunch& first, const GridLaunch& second,
             const Task* task);

  [[nodiscard]] FusionScope run();

private:
  [[nodiscard]] static bool understood(const GridLaunch& launch);

  /// Steps of the budget: each access is compared with each guard.
  [[nodiscard]] static std::int64_t cost(const GridLaunch& launch) noexcept;

  // --- indices

  /// As many threads as the extent are launched along an axis at the task's main size, as far as that is
  /// known: a guard may let through more.
  [[nodiscard]] bool is_launched(const Polynomial& extent, std::size_t axis, const GridLaunch& at) const;

  /// What a symbol of a subscript counts, or nothing if its values are not all numbers below a known extent.
  [[nodiscard]] std::optional<GridIndex> index_of(const Symbol& symbol, const Access& access,
                                                  const GridLaunch& at);

  /// The subscript of an access in terms of indices, parameters and what is made of them: names of other
  /// numbers are replaced by what they stand for.
  [[nodiscard]] Polynomial opened(const Access& access, const GridLaunch& at);

  /// The indices of an access with their factors; nothing where its subscript is no sum of such products.
  [[nodiscard]] std::optional<IndexedAccess> taken_apart(const Access& access, const GridLaunch& at);

  /// Puts the parts into the order in which each factor is the one before times its extent, starting at
  /// `unit`; false if there is no such order. `total` is what the last one leads to.
  [[nodiscard]] static bool row_major(std::vector<IndexedAccess::Part> parts, Polynomial unit,
                                      Polynomial& total);

  // --- element by element

  /// Each element is touched at one point: in all accesses, in row-major order.
  [[nodiscard]] bool once_each(const GridLaunch& at, const std::string& buffer, bool needs);

  [[nodiscard]] bool pointwise(const std::string& buffer);

  /// No thread reads what another one of the launch may write.
  [[nodiscard]] static bool reads_own_results(const GridLaunch& launch);

  /// Each element that a thread of the second launch needs is stored once, and it needs no other thread.
  [[nodiscard]] bool stored_once(const std::string& buffer) const;
  [[nodiscard]] static bool writes_once(const GridLaunch& at, const std::string& buffer);

  // --- row by row

  /// The length of the rows in which the second launch goes through the buffer.
  [[nodiscard]] Polynomial row_length(const std::string& buffer);

  /// All accesses stay in the row whose number the thread has, and the threads' numbers go through all rows.
  [[nodiscard]] bool stays_in_row(const GridLaunch& at, const std::string& buffer, const Polynomial& length);

  [[nodiscard]] bool by_rows(const std::string& buffer);

  const KernelAnalysis& analysis_;
  const GridLaunch& first_;
  const GridLaunch& second_;
  const Task* task_;
  TaskSizes sizes_;
};

/// The geometry with an extent that is 1 only where the launch line says so, and not just at one size.
[[nodiscard]] LaunchGeometry for_all_sizes(const LaunchText& launch, LaunchGeometry geometry);

/// Something that one of two launches writes is touched by the other.
[[nodiscard]] bool share_results(const GridLaunch& first, const GridLaunch& second);

} // namespace detail

/// How consecutive launches on grids may become one kernel; `none` where that is not proved.
/// `geometry_of_launch` gives the grid of a launch (`detail::geometry_of`). Of three and more, neighbours
/// must all go together in one way, and those further apart must not share what one of them writes, unless
/// they go together too.
template <class GeometryOf>
[[nodiscard]] FusionScope grid_fusion_scope(const KernelAnalysis& analysis,
                                            std::span<const LaunchText> launches, const Task* task,
                                            const GeometryOf& geometry_of_launch) {
  std::vector<detail::GridLaunch> grids;
  for (const LaunchText& launch : launches) {
    const FunctionAnalysis* function = analysis.find_function(launch.entry);
    const std::optional<detail::LaunchGeometry> geometry = geometry_of_launch(launch);
    if (function == nullptr || !geometry) return FusionScope::none;
    grids.emplace_back(launch, *function, detail::for_all_sizes(launch, *geometry));
  }
  FusionScope scope = FusionScope::none;
  for (std::size_t a = 0; a < grids.size(); ++a)
    for (std::size_t b = a + 1; b < grids.size(); ++b) {
      const bool neighbours = b == a + 1;
      if (!neighbours && !detail::share_results(grids[a], grids[b])) continue;
      const FusionScope own = detail::GridFusion(analysis, grids[a], grids[b], task).run();
      if (own == FusionScope::none || (scope != FusionScope::none && own != scope)) return FusionScope::none;
      scope = own;
    }
  return scope;
}

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/legality/grid_fusion_inl.hpp>
#endif
