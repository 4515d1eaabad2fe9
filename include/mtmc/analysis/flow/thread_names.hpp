#pragma once

#include <mtmc/requirements.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

/// \file
/// What a language calls the index of a thread: the indices of the parallel loops that a launch is.

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::array<std::string_view, 3> axis_names{"x", "y", "z"};
inline constexpr std::array<std::string_view, 3> thread_index_names{"threadIdx.x", "threadIdx.y",
                                                                    "threadIdx.z"};
inline constexpr std::array<std::string_view, 3> block_index_names{"blockIdx.x", "blockIdx.y", "blockIdx.z"};
inline constexpr std::array<std::string_view, 3> block_extent_names{"blockDim.x", "blockDim.y", "blockDim.z"};
inline constexpr std::array<std::string_view, 3> grid_extent_names{"gridDim.x", "gridDim.y", "gridDim.z"};

/// Position of a name in one of these lists: 0 = x, 1 = y, 2 = z; nothing if it is another name.
[[nodiscard]] constexpr std::optional<std::size_t> axis_of(const std::array<std::string_view, 3>& names,
                                                           std::string_view name) noexcept {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (names[axis] == name) return axis;
  return std::nullopt;
}

} // namespace mtmc::detail
