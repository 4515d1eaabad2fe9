#pragma once
/// The ways to split a reduction, chosen by what a device has at the task's main size.

#include <mtmc/coder/transform/threads/known_combination.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>
#include <mtmc/coder/transform/threads/reduction_launch.hpp>
#include <mtmc/coder/transform/threads/reduction_nest.hpp>
#include <mtmc/coder/transform/threads/reductions.hpp>
#include <mtmc/coder/transform/threads/result_clamps.hpp>
#include <mtmc/coder/transform/threads/split_geometry.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Chooses how many threads and blocks share a result.
class SplitShapes {
public:
  /// `reduction` must outlive it.
  explicit SplitShapes(const ReductionLaunch& reduction)
      : reduction_(reduction), nest_(reduction),
        compute_units_(std::max(reduction.request.device.compute_units, 1)) {}

  /// Ways to split, the one expected to be best first. Throws `TransformDeclined` where there is none.
  [[nodiscard]] std::vector<SplittingShape> all() const {
    if (!reduction_.own) return of_present_threads();
    const auto threads = threads_at_main_size(reduction_.request, reduction_.launch);
    if (threads && *threads >= enough_threads * compute_units_)
      throw TransformDeclined("there are threads enough for all multiprocessors");
    std::vector<SplittingShape> result;
    if (!result_clamps(reduction_).empty() && nest_.neighbours_have_neighbouring_results())
      result = of_columns();
    if (reduction_.block.size() == 1) {
      const auto blocks = of_blocks();
      const bool blocks_first = nest_.goes_along_own_memory(nest_.level_along_memory());
      result.insert(blocks_first ? result.begin() : result.end(), blocks.begin(), blocks.end());
    }
    if (result.empty())
      throw TransformDeclined("the blocks of " + reduction_.launch.line.entry + " have no room for lanes");
    return result;
  }

private:
  /// In two launches, of which the first has the blocks that multiprocessors want.
  [[nodiscard]] std::vector<SplittingShape> of_present_threads() const {
    const bool combined = known_combination(reduction_).has_value();
    if (!combined && !reduction_.why_not_own.empty() && !reduction_.is_shared())
      throw TransformDeclined(reduction_.why_not_own);
    std::vector<SplittingShape> result;
    for (const std::int64_t to_a_unit : {4, 2, 1, 8}) {
      const std::int64_t wanted = to_a_unit * compute_units_;
      // a part for each thread takes the second launch long
      add_parts(result, ReductionTeam::present, 1, combined ? wanted : wanted / 2,
                blocks_at_main_size(reduction_.grid));
    }
    if (result.empty()) throw TransformDeclined("there are blocks enough for all multiprocessors");
    return result;
  }
  /// In one launch where its blocks are enough for most multiprocessors, else in two.
  [[nodiscard]] std::vector<SplittingShape> of_columns() const {
    constexpr std::int64_t most_threads = 1024;     // of a block
    constexpr std::int64_t resident_threads = 2048; // of a multiprocessor
    const bool plane = reduction_.block.size() > 1;
    const std::int64_t width = plane ? reduction_.threads : 32;
    const std::int64_t now = blocks_at_main_size(grid_of_columns(reduction_));
    const std::int64_t most = most_threads / width, few = plane ? most : 8;
    std::int64_t lanes = std::min<std::int64_t>(most, plane ? 2 : 8);
    while (lanes < most && now * width * lanes < resident_threads / 2 * compute_units_) lanes *= 2;
    std::vector<SplittingShape> alone, parts;
    for (const std::int64_t one : {lanes, most, few, most / 2})
      if (one > 1 && std::none_of(alone.begin(), alone.end(),
                                  [&](const SplittingShape& other) { return other.lanes == one; }))
        alone.push_back({ReductionTeam::column, one, 0});
    const std::int64_t wanted = compute_units_ * resident_threads / (width * few);
    for (const std::int64_t blocks : {wanted, wanted / 2, 2 * wanted})
      add_parts(parts, ReductionTeam::column, few, blocks, now);
    const bool fills = 4 * now >= 3 * compute_units_;
    alone.insert(fills ? alone.end() : alone.begin(), parts.begin(), parts.end());
    return alone;
  }
  /// In two launches where there are fewer blocks than multiprocessors want, and in one.
  [[nodiscard]] std::vector<SplittingShape> of_blocks() const {
    std::vector<SplittingShape> result;
    for (const ReducedValue& value : reduction_.body.values)
      if (!thread_reduction(value.reduction, false)) return result;
    const std::int64_t now = blocks_at_main_size(grid_of_blocks(reduction_));
    for (const auto& [lanes, to_a_unit] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{256, 4}, {512, 2}, {256, 2}, {128, 8}})
      add_parts(result, ReductionTeam::block, lanes, to_a_unit * compute_units_, now);
    for (const std::int64_t lanes : {256, 512, 1024, 128})
      if (lanes <= std::max<std::int64_t>(nest_.iterations() / 2, 256))
        result.push_back({ReductionTeam::block, lanes, 0});
    return result;
  }

  /// Adds a shape of about `wanted` blocks where `blocks_now` are left, if each part of a result then has
  /// iterations enough and there are more blocks than before.
  void add_parts(std::vector<SplittingShape>& shapes, ReductionTeam team, std::int64_t lanes,
                 std::int64_t wanted, std::int64_t blocks_now) const {
    constexpr std::int64_t each = 8; // iterations of a thread
    constexpr std::int64_t largest_extent = 65535;
    const std::int64_t parts = std::max<std::int64_t>(nest_.iterations() / (lanes * each), 1);
    const std::int64_t blocks = std::min({wanted, blocks_now * parts, largest_extent});
    const bool known = std::any_of(shapes.begin(), shapes.end(), [&](const SplittingShape& other) {
      return other.team == team && other.lanes == lanes && other.blocks == blocks;
    });
    if (!known && blocks >= 2 * blocks_now) shapes.push_back({team, lanes, blocks});
  }
  /// How many blocks a grid has, or 1 where that is not known.
  [[nodiscard]] std::int64_t blocks_at_main_size(const std::vector<std::string>& grid) const {
    return value_at_main_size(reduction_.request, extent_product(grid)).value_or(1);
  }

  static constexpr std::int64_t enough_threads = 1024; // of a multiprocessor

  const ReductionLaunch& reduction_;
  ReductionNest nest_;
  std::int64_t compute_units_;
};

} // namespace mtmc::detail
