#pragma once
/// What a launch line may ask of a GPU, as far as it can be told without the GPU and without a compiler.

#include <mtmc/backend/cuda/architecture.hpp>
#include <mtmc/backend/cuda/tensor_map.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Of every CUDA device: blocks of a grid and threads of a block along x, y, z, and threads of a block.
inline constexpr std::array<std::int64_t, 3> max_blocks_along{2147483647, 65535, 65535};
inline constexpr std::array<std::int64_t, 3> max_threads_along{1024, 1024, 64};
inline constexpr std::int64_t max_threads_of_a_block = 1024;
/// What every device with clusters can do.
inline constexpr std::int64_t max_cluster_blocks = 8;

/// The reason if blocks of that number along each axis cannot be put together in such clusters.
[[nodiscard]] inline std::optional<std::string>
reason_against_cluster(const std::array<std::int64_t, 3>& grid, const std::array<std::int64_t, 3>& cluster) {
  std::int64_t blocks = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto size = cluster[axis];
    if (size < 1 || grid[axis] % size != 0)
      return "the grid has " + std::to_string(grid[axis]) + " blocks along axis " + std::to_string(axis) +
             ", which is no multiple of the cluster's " + std::to_string(size);
    blocks = size > max_cluster_blocks ? max_cluster_blocks + 1 : blocks * size;
  }
  if (blocks > max_cluster_blocks)
    return "a cluster has more than " + std::to_string(max_cluster_blocks) + " blocks";
  return std::nullopt;
}

/// The reason if no kernel could be launched so: on the device, or on any if it is null.
[[nodiscard]] inline std::optional<std::string> reason_against_launch(const Launch& launch,
                                                                      const Device* device) {
  const auto too_many = [](const char* what, std::int64_t count, std::size_t axis, std::int64_t most) {
    return std::string("the ") + what + std::to_string(count) + " along axis " + std::to_string(axis) +
           "; possible are 1 to " + std::to_string(most);
  };
  std::int64_t threads = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] > max_blocks_along[axis])
      return too_many("grid has blocks: ", launch.grid[axis], axis, max_blocks_along[axis]);
    if (launch.block[axis] > max_threads_along[axis])
      return too_many("block has threads: ", launch.block[axis], axis, max_threads_along[axis]);
    threads *= launch.block[axis];
  }
  if (threads > max_threads_of_a_block)
    return "the block has " + std::to_string(threads) + " threads; at most " +
           std::to_string(max_threads_of_a_block) + " are possible";
  const bool clusters = launch.cluster != std::array<std::int64_t, 3>{1, 1, 1};
  if (clusters)
    if (auto reason = reason_against_cluster(launch.grid, launch.cluster)) return reason;
  for (const auto& argument : launch.arguments) {
    TensorMapRequest unused;
    if (argument.kind != LaunchArgument::Kind::tensor_map) continue;
    if (const auto reason = read_tensor_map(argument, 0, unused); !reason.empty())
      return "the tensor map of `" + argument.name + "` " + reason;
  }
  const auto unit = device == nullptr ? std::nullopt : multiprocessor_of(device->arch);
  if (!unit) return std::nullopt;
  if (launch.shared_bytes > unit->shared_bytes_of_a_block())
    return "a block asks for " + std::to_string(launch.shared_bytes) + " bytes of shared memory; at most " +
           std::to_string(unit->shared_bytes_of_a_block()) + " are possible";
  constexpr int hopper = 90;
  if (clusters && unit->capability < hopper) return "there are no clusters before Hopper (sm_90)";
  for (const auto& argument : launch.arguments)
    if (argument.kind == LaunchArgument::Kind::tensor_map && unit->capability < hopper)
      return "there are no tensor maps before Hopper (sm_90)";
  return std::nullopt;
}

} // namespace detail

/// Throws `Error` (`mtmc.launch.001`) with launch, line and size for the first launch of a CUDA kernel that
/// is impossible at one of the task's sizes: on that device, or, if it is null, on any. What only the
/// compiled kernel tells (registers, static shared memory) is not looked at.
inline void require_cuda_launches(const Task& task, const Kernel& kernel, const Device* device) {
  const auto lines = parse_launch_lines(kernel);
  for (const auto& size : task.sizes)
    for (const auto& launch :
         plan_launches(lines, task, size, device == nullptr ? 1 : device->compute_units).launches)
      if (const auto reason = detail::reason_against_launch(launch, device))
        throw Error(error_id::launch_malformed, *reason,
                    "Choose other extents, or sizes for which these are possible",
                    "launch of " + launch.entry + ", line " + std::to_string(launch.line) + ", at " +
                        to_string(size) + (device == nullptr ? "" : " on " + device->name));
}

} // namespace mtmc
