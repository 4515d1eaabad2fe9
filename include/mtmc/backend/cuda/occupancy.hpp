#pragma once
/// How many blocks of a kernel a multiprocessor holds at once.

#include <mtmc/backend/cuda/architecture.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/observation/occupancy.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// What one block needs.
struct BlockNeeds {
  std::int64_t threads = 1;
  /// Of each thread.
  int registers = 0;
  /// Static and dynamic together.
  std::int64_t shared_bytes = 0;
};

/// How many blocks fit on a multiprocessor, and how many would if only one thing were scarce.
struct ResidentBlocks {
  std::int64_t by_registers = 0;
  std::int64_t by_shared_memory = 0;
  std::int64_t by_threads = 0;
  std::int64_t by_blocks = 0;

  [[nodiscard]] std::int64_t all() const noexcept {
    return std::min({by_registers, by_shared_memory, by_threads, by_blocks});
  }
};

[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

/// Warps of a block.
[[nodiscard]] constexpr std::int64_t warps_of(std::int64_t threads) noexcept { return (threads + 31) / 32; }

/// All zero where a block is too large to be launched at all.
[[nodiscard]] inline ResidentBlocks resident_blocks(const CudaMultiprocessor& unit, const BlockNeeds& block) {
  constexpr std::int64_t max_threads = 1024;
  constexpr std::int64_t groups = 4;
  constexpr std::int64_t all_registers = 65536;
  constexpr std::int64_t register_unit = 256;
  constexpr std::int64_t unlimited = std::numeric_limits<int>::max();
  const auto warps = warps_of(block.threads);
  const auto warp_registers = round_up(std::int64_t{32} * block.registers, register_unit);
  // The largest block counts as if its warps filled all groups evenly.
  if (block.threads < 1 || block.threads > max_threads ||
      warp_registers * round_up(warps, groups) > all_registers ||
      block.shared_bytes > unit.shared_bytes_of_a_block())
    return {};
  const auto shared = round_up(block.shared_bytes + unit.reserved_bytes(), unit.shared_unit());
  ResidentBlocks blocks;
  blocks.by_registers =
      warp_registers > 0 ? all_registers / groups / warp_registers * groups / warps : unlimited;
  blocks.by_shared_memory = shared > 0 ? unit.shared_bytes() / shared : unlimited;
  blocks.by_threads = unit.warps / warps;
  blocks.by_blocks = unit.blocks;
  return blocks;
}

/// Product of extents, which may be more than an integer holds.
[[nodiscard]] inline double product_of(const std::array<std::int64_t, 3>& extents) noexcept {
  return static_cast<double>(extents[0]) * static_cast<double>(extents[1]) * static_cast<double>(extents[2]);
}

/// The launch with most threads, the first of equals; 0 for a plan without launches.
[[nodiscard]] inline std::size_t main_launch(const LaunchPlan& plan) {
  std::size_t main = 0;
  double most = 0;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const double threads = product_of(plan.launches[i].grid) * product_of(plan.launches[i].block);
    if (threads <= most) continue;
    most = threads;
    main = i;
  }
  return main;
}

/// What one block of a launch needs, of a function with so many registers and bytes of static shared memory.
/// Impossible extents stay impossible.
[[nodiscard]] inline BlockNeeds block_needs(const Launch& launch, int registers, int static_bytes) noexcept {
  constexpr double too_many = 1 << 20;
  constexpr std::int64_t too_much = 1 << 30;
  return {.threads = static_cast<std::int64_t>(std::clamp(product_of(launch.block), 0.0, too_many)),
          .registers = registers,
          .shared_bytes = static_bytes + std::clamp<std::int64_t>(launch.shared_bytes, 0, too_much)};
}

/// Adds what `resource_key` names; nothing where the block cannot be launched.
inline void note_occupancy(const CudaMultiprocessor& unit, const BlockNeeds& block,
                           std::map<std::string, double>& resources) {
  const auto blocks = resident_blocks(unit, block);
  if (blocks.all() < 1) return;
  const auto share = [&](std::int64_t resident) {
    return std::min(1.0, static_cast<double>(resident * warps_of(block.threads)) / unit.warps);
  };
  resources[resource_key::occupancy] = share(blocks.all());
  resources[resource_key::blocks_per_unit] = static_cast<double>(blocks.all());
  resources[resource_key::occupancy_by_registers] = share(blocks.by_registers);
  resources[resource_key::occupancy_by_shared_memory] = share(blocks.by_shared_memory);
  resources[resource_key::occupancy_by_threads] = share(blocks.by_threads);
  resources[resource_key::occupancy_by_blocks] = share(blocks.by_blocks);
}

} // namespace mtmc::detail
