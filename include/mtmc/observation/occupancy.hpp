#pragma once
/// Names under which a backend reports how full a kernel keeps a GPU's multiprocessors, and what keeps it
/// from filling them.

#include <mtmc/requirements.hpp>

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Keys of `Evaluation::resources`, for the launch of a kernel that has most threads.
namespace resource_key {
/// Warps that can reside on a multiprocessor at once, of those that could at most: in (0, 1].
inline constexpr const char* occupancy = "occupancy";
/// Blocks that can.
inline constexpr const char* blocks_per_unit = "blocks_per_unit";
/// What the occupancy would be if only one thing were scarce: the least of them is the occupancy.
inline constexpr const char* occupancy_by_registers = "occupancy_by_registers";
/// If only shared memory were scarce.
inline constexpr const char* occupancy_by_shared_memory = "occupancy_by_shared_memory";
inline constexpr const char* occupancy_by_threads = "occupancy_by_threads"; ///< if only threads were scarce
inline constexpr const char* occupancy_by_blocks = "occupancy_by_blocks";   ///< if only blocks were scarce
} // namespace resource_key

/// What limits the occupancy that `resources` tell: "registers", "shared memory", "threads" (of a block,
/// whose multiples do not fill the multiprocessor), "blocks" (too small ones for the number that can reside);
/// "none" if it is full; empty if they do not tell. Of several that are equally scarce, the first.
[[nodiscard]] inline std::string_view occupancy_limiter(const std::map<std::string, double>& resources) {
  struct Limit {
    const char* key;
    std::string_view name;
  };
  constexpr std::array<Limit, 4> limits{{{resource_key::occupancy_by_registers, "registers"},
                                         {resource_key::occupancy_by_shared_memory, "shared memory"},
                                         {resource_key::occupancy_by_threads, "threads"},
                                         {resource_key::occupancy_by_blocks, "blocks"}}};
  std::string_view limiter;
  double least = 1;
  for (const auto& [key, name] : limits) {
    const auto found = resources.find(key);
    if (found == resources.end()) continue;
    if (limiter.empty()) limiter = "none";
    if (found->second >= least) continue;
    least = found->second;
    limiter = name;
  }
  return limiter;
}

} // namespace mtmc
