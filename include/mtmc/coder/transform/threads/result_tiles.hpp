#pragma once
/// Which tiles of results a block makes: parameters from the extents of the results and the device.

#include <mtmc/core/device.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Extents of a tile of results, and how far a step goes along the sum.
struct ResultTile {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
  std::int64_t depth = 16;
  std::int64_t thread_rows = 8;    ///< results of a thread along the rows
  std::int64_t thread_columns = 8; ///< and along the columns
  double efficiency = 1;           ///< operations in a unit of time, relative to the largest tile

  static constexpr std::int64_t edge = 16; ///< threads of a block along each axis
  static constexpr std::int64_t threads = edge * edge;
};

/// What tiles compute for results of these extents (beyond the last results, too) in rounds of one block for
/// each multiprocessor, over their efficiency: multiply-adds of a multiprocessor for each step of the sum.
[[nodiscard]] inline double time_of_tiles(const ResultTile& tile, std::optional<std::int64_t> rows,
                                          std::optional<std::int64_t> columns, std::int64_t layers,
                                          const Device& device) {
  const auto along = [](std::optional<std::int64_t> extent, std::int64_t each) {
    return extent ? (*extent + each - 1) / each : 4096 / each;
  };
  const std::int64_t blocks = along(rows, tile.rows) * along(columns, tile.columns) * layers;
  const std::int64_t units = std::max(device.compute_units, 1);
  const std::int64_t rounds = (blocks + units - 1) / units;
  // Two blocks of a multiprocessor hide each other's loads; what is left over waits for its own.
  constexpr double alone = 0.2;
  const double all = static_cast<double>(rounds) + (rounds % 2 == 1 ? alone : 0);
  return all * static_cast<double>(tile.rows * tile.columns) / tile.efficiency;
}

/// Tiles for results of these extents, the one expected to take the least time first.
[[nodiscard]] inline std::vector<ResultTile> result_tiles(std::optional<std::int64_t> rows,
                                                          std::optional<std::int64_t> columns,
                                                          std::optional<std::int64_t> depth,
                                                          std::int64_t layers, const Device& device) {
  std::vector<ResultTile> tiles{{128, 128, 16, 8, 8, 1.0}, {128, 64, 16, 8, 4, 0.93},
                                {64, 128, 16, 4, 8, 0.86}, {64, 64, 16, 4, 4, 0.74},
                                {32, 32, 32, 2, 2, 0.42},  {16, 128, 16, 1, 8, 0.36},
                                {128, 16, 16, 8, 1, 0.36}};
  const auto time = [&](const ResultTile& tile) {
    return time_of_tiles(tile, rows, columns, layers, device);
  };
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](const ResultTile& a, const ResultTile& b) { return time(a) < time(b); });
  for (ResultTile& tile : tiles)
    while (depth && tile.depth / 2 >= *depth &&
           std::min(tile.rows, tile.columns) * tile.depth / 2 >= ResultTile::threads)
      tile.depth /= 2;
  return tiles;
}

} // namespace mtmc::detail
