#pragma once
/// What is known of where a kernel's time goes, and how well that is founded.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a profile rests on, weakest first. Machines often forbid counters, so each is only the best there
/// was.
enum class Evidence {
  /// Nothing: no time, or no ceilings to compare it with.
  none,
  /// The measured time against the least traffic and arithmetic, and the device's ceilings.
  roofline,
  /// That, and the compiler's report: registers, spills, shared memory, and the occupancy they allow.
  compiler,
  /// Counters of the device, of a run of this very kernel.
  counters
};

namespace detail {
inline constexpr EnumName<Evidence> evidence_names[] = {{Evidence::none, "none"},
                                                        {Evidence::roofline, "roofline"},
                                                        {Evidence::compiler, "compiler"},
                                                        {Evidence::counters, "counters"}};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Evidence>> enum_names(Evidence) noexcept {
  return detail::evidence_names;
}

/// What keeps a kernel from being faster.
enum class BoundBy {
  unknown,
  /// Bandwidth of the memory.
  memory,
  /// Bandwidth of a cache or of shared memory.
  cache,
  /// Rate of some arithmetic unit.
  compute,
  /// Neither: there is work to do, but it waits for results.
  latency,
  /// Too few warps reside to hide latency.
  occupancy,
  /// Values do not fit in registers and go to memory and back.
  registers,
  /// The grid has too few blocks to fill the device.
  parallelism,
  /// A call is so short that starting it is most of it.
  overhead
};

namespace detail {
inline constexpr EnumName<BoundBy> bound_by_names[] = {
    {BoundBy::unknown, "unknown"},     {BoundBy::memory, "memory"},
    {BoundBy::cache, "cache"},         {BoundBy::compute, "compute"},
    {BoundBy::latency, "latency"},     {BoundBy::occupancy, "occupancy"},
    {BoundBy::registers, "registers"}, {BoundBy::parallelism, "parallelism"},
    {BoundBy::overhead, "overhead"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<BoundBy>> enum_names(BoundBy) noexcept {
  return detail::bound_by_names;
}

/// One figure of a profile.
struct ProfileMetric {
  /// One of `profile_metric`, or what else a backend tells.
  std::string name;
  /// In `unit`.
  double value = 0;
  /// "%", "s", "byte", ...; empty for plain numbers.
  std::string unit{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ProfileMetric&, const ProfileMetric&) = default; ///< member by member
};

/// Names of the figures that all backends call alike.
namespace profile_metric {
/// Seconds of the launch that took longest, while it was profiled.
inline constexpr const char* duration = "duration";
/// Per cent of what the device could do at most; by the roofline: of the least traffic and arithmetic.
inline constexpr const char* memory_throughput = "memory_throughput";
/// Per cent: the last-level cache.
inline constexpr const char* cache_throughput = "cache_throughput";
/// Per cent: arithmetic.
inline constexpr const char* compute_throughput = "compute_throughput";
/// Per cent: the matrix units.
inline constexpr const char* matrix_throughput = "matrix_throughput";
/// Per cent of all accesses.
inline constexpr const char* l1_hit_rate = "l1_hit_rate";
/// Per cent of the accesses that reach the L2 cache.
inline constexpr const char* l2_hit_rate = "l2_hit_rate";
/// Bytes read from memory and written to it.
inline constexpr const char* memory_bytes = "memory_bytes";
/// Per cent of the warps that can reside at most: on average in the run, and by the kernel's resources.
inline constexpr const char* achieved_occupancy = "achieved_occupancy";
/// Per cent: by registers, shared memory and threads of a block.
inline constexpr const char* possible_occupancy = "possible_occupancy";
/// How often the grid fills the device.
inline constexpr const char* waves = "waves";
/// Of one thread.
inline constexpr const char* registers = "registers";
/// Bytes of registers that are written to memory for want of room, by the compiler's report.
inline constexpr const char* spilled = "spilled";
/// Followed by the name of a reason: per cent of all waiting of warps.
inline constexpr std::string_view stall_prefix = "stall_";
} // namespace profile_metric

/// Where a kernel's time goes: for policies by its fields, for prompts by `describe`.
struct Profile {
  /// What the profile is made from.
  Evidence evidence = Evidence::none;
  /// What limits the kernel.
  BoundBy bound = BoundBy::unknown;
  /// Why, in a sentence without a full stop.
  std::string reason{};
  /// The figures it rests on.
  std::vector<ProfileMetric> metrics{};
  /// Why there is no better evidence; empty if none was asked for or it is the best.
  std::string missing{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// The figure of that name, or null.
  [[nodiscard]] const ProfileMetric* find(std::string_view name) const noexcept {
    for (const auto& metric : metrics)
      if (metric.name == name) return &metric;
    return nullptr;
  }

  friend bool operator==(const Profile&, const Profile&) = default; ///< member by member
};

} // namespace mtmc
