#pragma once
/// Where a kernel stands: what bounds it, how much is left, and what kind of loops it has. Rules decide by
/// it.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/observation/launch_shares.hpp>
#include <mtmc/observation/occupancy.hpp>
#include <mtmc/observation/roofline.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// What limits the present kernel, by the roofline of the device.
enum class Bottleneck {
  /// Neither times nor ceilings are known.
  unknown,
  /// The bytes that must be moved take longer than the operations.
  memory,
  compute
};

namespace detail {
inline constexpr EnumName<Bottleneck> bottleneck_names[] = {
    {Bottleneck::unknown, "unknown"}, {Bottleneck::memory, "memory"}, {Bottleneck::compute, "compute"}};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Bottleneck>> enum_names(Bottleneck) noexcept {
  return detail::bottleneck_names;
}

/// How much faster the roofline would allow: below 60 % of the bound, 60 to 80 %, above 80 %.
enum class Headroom { high, middle, low };

namespace detail {
inline constexpr EnumName<Headroom> headroom_names[] = {
    {Headroom::high, "high"}, {Headroom::middle, "middle"}, {Headroom::low, "low"}};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Headroom>> enum_names(Headroom) noexcept {
  return detail::headroom_names;
}

/// What keeps more threads from being resident on a multiprocessor.
enum class OccupancyLimiter { unknown, registers, shared_memory, block_size };

namespace detail {
inline constexpr EnumName<OccupancyLimiter> occupancy_limiter_names[] = {
    {OccupancyLimiter::unknown, "unknown"},
    {OccupancyLimiter::registers, "registers"},
    {OccupancyLimiter::shared_memory, "shared_memory"},
    {OccupancyLimiter::block_size, "block_size"}};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<OccupancyLimiter>> enum_names(OccupancyLimiter) noexcept {
  return detail::occupancy_limiter_names;
}

/// The roofline of one kernel on one device, and what the compiler and the launches make of the device.
struct Situation {
  /// What limits the kernel.
  Bottleneck bottleneck = Bottleneck::unknown;
  /// How far it is from the bound.
  Headroom headroom = Headroom::high;
  /// Part of the bound that is reached, in [0, 1]; 0 if unknown.
  double reached = 0;
  /// Launches of one call.
  std::size_t launches = 0;
  /// Bytes of the cache nearest to one core alone, and of the largest level.
  double private_cache_bytes = 0;
  /// Bytes of the largest level.
  double last_cache_bytes = 0;
  /// The device is a GPU.
  bool gpu = false;
  /// Cores or multiprocessors.
  int compute_units = 1;
  /// Registers of a thread and bytes that it spills, as the evaluation reports them; 0 = none, or not
  /// reported.
  double registers = 0;
  /// Bytes a thread spills.
  double spilled_bytes = 0;
  /// Part of the threads a multiprocessor can hold that are resident, in (0, 1]: as the evaluation reports it
  /// (`occupancy`), else estimated from registers, shared memory and the threads of a block. Nothing where
  /// that cannot be done.
  std::optional<double> occupancy{};
  OccupancyLimiter limiter = OccupancyLimiter::unknown; ///< what keeps the occupancy low
  /// The task is given numbers in f32 and in no shorter type: matrix units do not multiply those.
  bool single_precision = false;
};

namespace detail {

/// The compiler's and the driver's figures of an evaluation, by the names that backends use.
inline void read_resources(const Evaluation& evaluation, Situation& situation) {
  const auto value = [&evaluation](const char* name) { return resource_of(evaluation, name); };
  situation.registers = value("registers");
  situation.spilled_bytes =
      std::max({value("spill_bytes"), value("spill_store_bytes"), value("spill_load_bytes")});
  if (const double occupancy = value(resource_key::occupancy); occupancy > 0)
    situation.occupancy = std::min(1.0, occupancy);
  const auto limiter = occupancy_limiter(evaluation.resources);
  if (limiter == "registers") situation.limiter = OccupancyLimiter::registers;
  if (limiter == "shared memory") situation.limiter = OccupancyLimiter::shared_memory;
  if (limiter == "threads" || limiter == "blocks") situation.limiter = OccupancyLimiter::block_size;
}

[[nodiscard]] inline bool is_single_precision(const Task& task) {
  bool single = false;
  for (const auto& argument : task.arguments) {
    if (!is_floating(argument.type)) continue;
    if (size_of(argument.type) < size_of(DataType::f32)) return false;
    single = single || argument.type == DataType::f32;
  }
  return single;
}

/// Occupancy of the launch that does most work, where its threads and the registers of a thread are known.
/// Without the granularity at which the device hands out registers and shared memory: an upper bound.
inline void estimate_occupancy(const Observation& seen, Situation& situation) {
  const Region* main = nullptr;
  for (const auto& region : seen.structure.regions)
    if (region.kind == RegionKind::launch && !region.facts.threads.empty() &&
        (main == nullptr || region.facts.flops + region.facts.bytes > main->facts.flops + main->facts.bytes))
      main = &region;
  if (main == nullptr || situation.registers <= 0) return;
  constexpr double registers_per_unit = 65536; // of all architectures since sm_50
  const auto block = static_cast<double>(main->facts.threads_per_block());
  const double most = resident_threads(seen.device.arch);
  constexpr double max_blocks = 32;
  const double by_size = std::min(std::floor(most / block), max_blocks);
  const double by_registers = std::floor(registers_per_unit / (situation.registers * block));
  const double shared = static_cast<double>(main->facts.shared_bytes);
  const double by_shared = shared > 0 && seen.device.shared_memory_bytes > 0
                               ? std::floor(static_cast<double>(seen.device.shared_memory_bytes) / shared)
                               : by_size;
  const double blocks = std::max(1.0, std::min({by_size, by_registers, by_shared}));
  situation.occupancy = std::min(1.0, blocks * block / most);
  situation.limiter = by_registers <= blocks && by_registers < by_size ? OccupancyLimiter::registers
                      : by_shared <= blocks && by_shared < by_size     ? OccupancyLimiter::shared_memory
                      : *situation.occupancy < 1                       ? OccupancyLimiter::block_size
                                                                       : OccupancyLimiter::unknown;
}

/// Fills in bottleneck, headroom and what is reached; leaves them where no bound is known.
inline void place_under(const Roofline& roofline, Situation& situation) {
  if (roofline.bound() <= 0) return;
  situation.bottleneck =
      roofline.memory_seconds >= roofline.compute_seconds ? Bottleneck::memory : Bottleneck::compute;
  situation.reached = roofline.reached();
  situation.headroom = situation.reached < 0.6   ? Headroom::high
                       : situation.reached < 0.8 ? Headroom::middle
                                                 : Headroom::low;
}

} // namespace detail

/// Reads an observation's situation by its roofline (observation/roofline.hpp). Throws `Error` where the
/// task's own expressions cannot be evaluated.
[[nodiscard]] inline Situation assess(const Observation& seen) {
  Situation situation;
  for (const auto& region : seen.structure.regions)
    if (region.kind == RegionKind::launch) ++situation.launches;
  for (const auto& cache : seen.device.caches) {
    const auto bytes = static_cast<double>(cache.bytes);
    if (cache.shared_by <= 1) situation.private_cache_bytes = std::max(situation.private_cache_bytes, bytes);
    situation.last_cache_bytes = std::max(situation.last_cache_bytes, bytes);
  }
  situation.gpu = seen.device.kind == "gpu";
  situation.compute_units = seen.device.compute_units;
  situation.single_precision = detail::is_single_precision(seen.task);
  if (seen.evaluation) detail::read_resources(*seen.evaluation, situation);
  if (situation.gpu && !situation.occupancy) detail::estimate_occupancy(seen, situation);
  detail::place_under(roofline_of(seen), situation);
  return situation;
}

/// The situation of one launch, of which `whole` is the call's: its own bottleneck and headroom.
[[nodiscard]] inline Situation situation_of(const LaunchShare& launch, const Situation& whole) {
  auto situation = whole;
  situation.bottleneck = Bottleneck::unknown;
  situation.headroom = Headroom::high;
  situation.reached = 0;
  detail::place_under(launch.roofline, situation);
  return situation;
}

} // namespace mtmc
