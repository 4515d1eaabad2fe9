#pragma once
/// Where a kernel stands: what bounds it, how much is left, and what kind of loops it has. Rules decide by
/// it.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/roofline.hpp>
#include <mtmc/core/step.hpp>

#include <algorithm>
#include <span>

namespace mtmc {

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

/// The roofline of one kernel on one device.
struct Situation {
  Bottleneck bottleneck = Bottleneck::unknown;
  Headroom headroom = Headroom::high;
  /// Part of the bound that is reached, in [0, 1]; 0 if unknown.
  double reached = 0;
  /// Launches of one call.
  std::size_t launches = 0;
  /// Bytes of the cache nearest to one core alone, and of the largest level.
  double private_cache_bytes = 0;
  double last_cache_bytes = 0;
};

/// Reads an observation's situation by its roofline (core/roofline.hpp). Throws `Error` where the task's own
/// expressions cannot be evaluated.
[[nodiscard]] inline Situation assess(const Observation& seen) {
  Situation situation;
  for (const auto& region : seen.structure.regions)
    if (region.kind == RegionKind::launch) ++situation.launches;
  for (const auto& cache : seen.device.caches) {
    const auto bytes = static_cast<double>(cache.bytes);
    if (cache.shared_by <= 1) situation.private_cache_bytes = std::max(situation.private_cache_bytes, bytes);
    situation.last_cache_bytes = std::max(situation.last_cache_bytes, bytes);
  }
  const auto roofline = roofline_of(seen);
  if (roofline.bound() <= 0) return situation;
  situation.bottleneck =
      roofline.memory_seconds >= roofline.compute_seconds ? Bottleneck::memory : Bottleneck::compute;
  situation.reached = std::min(1.0, roofline.bound() / roofline.seconds);
  situation.headroom = situation.reached < 0.6   ? Headroom::high
                       : situation.reached < 0.8 ? Headroom::middle
                                                 : Headroom::low;
  return situation;
}

} // namespace mtmc
