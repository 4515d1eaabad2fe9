#pragma once
/// In how many parts long sums are split where tiles of their results are too few for a device.

#include <mtmc/coder/transform/threads/result_tiles.hpp>
#include <mtmc/core/device.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Parts of each sum, and the tile of partial results that is expected for them.
struct ResultParts {
  std::int64_t parts = 1;
  ResultTile tile{};

  /// Parts are multiples of so many steps of the sum: full tiles, and sectors of memory, lie within one part.
  static constexpr std::int64_t unit = 32;
};

/// Extents of results and of what each of them adds up.
struct SumExtents {
  std::int64_t rows = 1, columns = 1, layers = 1;
  std::int64_t depth = 1;  ///< steps of the loop that is split
  std::int64_t around = 1; ///< iterations of the other loops of the sum

  [[nodiscard]] std::int64_t results() const noexcept { return rows * columns * layers; }
  /// Steps of the first part of so many.
  [[nodiscard]] std::int64_t steps_of(std::int64_t parts) const noexcept {
    const std::int64_t units = ResultParts::unit * parts;
    return parts == 1 ? depth : (depth + units - 1) / units * ResultParts::unit;
  }
};

/// What a split takes, as multiply-adds of a multiprocessor (125 of an H100 in a nanosecond): the time of the
/// tiles, and that of another launch, in which threads go through the parts of their results.
[[nodiscard]] inline double time_of_parts(const ResultParts& split, const SumExtents& sums,
                                          const Device& device) {
  constexpr double of_a_launch = 3e5;
  constexpr double of_a_part = 4e3;            // each waits for memory
  constexpr double of_a_partial_result = 0.25; // to memory and back
  const double tiles = time_of_tiles(split.tile, sums.rows, sums.columns, sums.layers * split.parts, device) *
                       static_cast<double>(sums.steps_of(split.parts)) * static_cast<double>(sums.around);
  if (split.parts == 1) return tiles;
  const auto parts = static_cast<double>(split.parts);
  return tiles + of_a_launch +
         parts * (of_a_part + of_a_partial_result * static_cast<double>(sums.results()));
}

/// Ways to split the sums, the one expected to take the least time first; none where that gains nothing.
[[nodiscard]] inline std::vector<ResultParts> result_parts(const SumExtents& sums, const Device& device) {
  constexpr std::size_t most_ways = 4;
  constexpr double worth_it = 0.8; // of the time without parts
  const auto with = [&](std::int64_t parts) {
    return ResultParts{
        parts,
        result_tiles(sums.rows, sums.columns, sums.steps_of(parts), sums.layers * parts, device).front()};
  };
  const double whole = time_of_parts(with(1), sums, device);
  std::vector<std::pair<double, ResultParts>> all;
  const std::int64_t most =
      std::min<std::int64_t>(sums.depth / ResultParts::unit, std::int64_t{8} * device.compute_units);
  for (std::int64_t parts = 2; parts <= most; ++parts) {
    const std::int64_t each = sums.steps_of(parts);
    if ((sums.depth + each - 1) / each != parts) continue; // some would be empty
    const ResultParts one = with(parts);
    const double time = time_of_parts(one, sums, device);
    if (time < worth_it * whole) all.emplace_back(time, one);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ResultParts> ways;
  for (const auto& way : all) {
    const ResultParts& one = way.second;
    const bool other = std::all_of(ways.begin(), ways.end(), [&](const ResultParts& known) {
      return 3 * one.parts <= 2 * known.parts || 2 * one.parts >= 3 * known.parts;
    });
    if (other && ways.size() < most_ways) ways.push_back(one);
  }
  return ways;
}

} // namespace mtmc::detail
