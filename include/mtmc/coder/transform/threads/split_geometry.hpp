#pragma once
/// A way to split a reduction, and the grid and the blocks of threads that do so.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/block_trees.hpp>
#include <mtmc/coder/transform/threads/covering_guard.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Who works on one result.
enum class ReductionTeam {
  /// All threads of a block, whose results lie along the loop: neighbours read neighbouring elements of it.
  block,
  /// Threads above each other: neighbours along x have neighbouring results.
  column,
  /// The thread, or the threads, that do so already.
  present
};

/// One way to split a reduction.
struct SplittingShape {
  ReductionTeam team = ReductionTeam::block;
  std::int64_t lanes = 1;  ///< threads of a block that share a result
  std::int64_t blocks = 0; ///< how many blocks there should be about; 0: no more than now, in one launch
};

/// The launches of a split.
struct SplitGeometry {
  std::vector<std::string> grid{}, block{}; ///< extents; the blocks of the parts of a result are left out
  std::int64_t width = 1;                   ///< results of a block
  bool single = false;                      ///< there is one result
  std::size_t part_axis = 0;                ///< along which the blocks of the parts lie
  std::string parts{};                      ///< of a result, in the words of the launch line
};

/// A number or an extent of the launch along an axis: "blockIdx.y".
[[nodiscard]] inline std::string launch_member(std::string_view object, std::size_t axis) {
  return std::string(object) + '.' + std::string(axis_names[axis]);
}

/// The product of extents of a launch line.
[[nodiscard]] inline std::string extent_product(const std::vector<std::string>& extents) {
  const auto is_one_call = [](const std::string& text) {
    return !arguments_of_call(text, text.substr(0, text.find('('))).empty();
  };
  std::string text;
  for (const std::string& extent : extents) {
    if (extent == "1") continue;
    const bool sum = extent.find_first_of("+-*/% ") != std::string::npos && !is_one_call(extent);
    const std::string factor = sum ? '(' + extent + ')' : extent;
    text += (text.empty() ? "" : " * ") + factor;
  }
  return text.empty() ? "1" : extents.size() == 1 ? extents.front() : text;
}

/// The grid where each block has one result.
[[nodiscard]] inline std::vector<std::string> grid_of_blocks(const ReductionLaunch& reduction) {
  if (reduction.alone) return {"1"};
  auto grid = reduction.grid;
  grid[0] = threads_with_work(reduction.request, reduction.launch);
  return grid;
}
/// The grid where blocks have lanes above each other: 32 results along x, or those of a plane as they are.
[[nodiscard]] inline std::vector<std::string> grid_of_columns(const ReductionLaunch& reduction) {
  auto grid = reduction.grid;
  if (reduction.block.size() == 1) grid[0] = reduction.launch.threads_divided_by(32, 0);
  return grid;
}

/// Whether the function of several threads names a member such as `blockIdx.x`.
[[nodiscard]] inline bool names_launch_member(const ReductionLaunch& reduction, std::string_view object,
                                              std::string_view member) {
  if (reduction.alone) return false;
  bool found = false;
  walk(*reduction.function().node, [&](const SyntaxNode& node) {
    found = found || (node.kind == NodeKind::member && node.text == member && is_name(operand(node), object));
  });
  return found;
}

/// The geometry of a shape. `combination`: how present threads combine their values already. Throws
/// `TransformDeclined` where the parts of a result have no axis.
[[nodiscard]] inline SplitGeometry split_geometry(const ReductionLaunch& reduction,
                                                  const SplittingShape& shape,
                                                  const std::optional<KnownCombination>& combination) {
  SplitGeometry geometry{reduction.grid, reduction.block};
  switch (shape.team) {
  case ReductionTeam::block:
    geometry.grid = grid_of_blocks(reduction);
    geometry.block = {std::to_string(shape.lanes)};
    break;
  case ReductionTeam::column:
    geometry.grid = grid_of_columns(reduction);
    geometry.width = reduction.block.size() == 1 ? 32 : reduction.threads;
    if (reduction.block.size() == 1) geometry.block = {"32"};
    geometry.block.push_back(std::to_string(shape.lanes));
    break;
  case ReductionTeam::present:
    geometry.width = !combination ? reduction.threads : combination->warp ? reduction.threads / 32 : 1;
    break;
  }
  geometry.grid = without_ones(geometry.grid);
  const bool one_block = geometry.grid.size() == 1 && geometry.grid.front() == "1";
  geometry.single = geometry.width == 1 && one_block;
  const bool x_is_free = one_block && !names_launch_member(reduction, "blockIdx", ".x") &&
                         !names_launch_member(reduction, "gridDim", ".x");
  geometry.part_axis = x_is_free ? 0 : geometry.grid.size();
  if (shape.blocks == 0) return geometry;
  const std::string no_axis = "the grid of " + reduction.launch.line.entry + " has no axis left";
  if (geometry.part_axis > 2) throw TransformDeclined(no_axis);
  const std::string member = '.' + std::string(axis_names[geometry.part_axis]);
  if (geometry.part_axis > 0 && (names_launch_member(reduction, "blockIdx", member) ||
                                 names_launch_member(reduction, "gridDim", member)))
    throw TransformDeclined(no_axis);
  const std::string blocks = extent_product(geometry.grid);
  geometry.parts = blocks == "1" ? std::to_string(shape.blocks)
                                 : "ceil_div(" + std::to_string(shape.blocks) + ", " + blocks + ')';
  return geometry;
}

} // namespace mtmc::detail
