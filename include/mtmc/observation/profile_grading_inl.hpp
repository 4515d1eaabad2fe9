#pragma once
/// Definitions of observation/profile_grading.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/profile.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/observation/occupancy.hpp>
#include <mtmc/observation/profile_grading.hpp>
#include <mtmc/observation/roofline.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// "83 %".
[[nodiscard]] inline std::string percent_text(double percent) {
  char text[32];
  std::snprintf(text, sizeof text, percent < 9.95 ? "%.1f %%" : "%.0f %%", percent);
  return text;
}

/// What a reason of waiting means, for those that name a remedy.
[[nodiscard]] inline std::string_view stall_words(std::string_view reason) noexcept {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> words{{
      {"long_scoreboard", "for global or local memory"},
      {"short_scoreboard", "for shared memory or special functions"},
      {"barrier", "at barriers of their block"},
      {"lg_throttle", "because the queue of global memory instructions is full"},
      {"mio_throttle", "because the queue of shared memory instructions is full"},
      {"tex_throttle", "because the queue of texture instructions is full"},
      {"math_pipe_throttle", "because the arithmetic units are taken"},
      {"wait", "for the instruction before"},
      {"no_instruction", "for instructions to be fetched"},
      {"membar", "at memory fences"},
      {"branch_resolving", "for branches to be decided"},
  }};
  for (const auto& [name, meaning] : words)
    if (name == reason) return meaning;
  return {};
}

/// The reason for which warps wait most, in words; empty if it is not known.
[[nodiscard]] inline std::string main_stall_text(const Profile& profile) {
  const ProfileMetric* most = nullptr;
  for (const auto& metric : profile.metrics)
    if (metric.name.starts_with(profile_metric::stall_prefix) &&
        (most == nullptr || metric.value > most->value))
      most = &metric;
  if (most == nullptr) return {};
  const auto reason = std::string_view(most->name).substr(profile_metric::stall_prefix.size());
  const auto words = stall_words(reason);
  return percent_text(most->value) + " of their waiting time warps wait " +
         (words.empty() ? "(" + std::string(reason) + ")" : std::string(words));
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void grade_counters(Profile& profile) {
  namespace name = profile_metric;
  using detail::percent_text;
  const auto value = [&](const char* key) {
    const auto* found = profile.find(key);
    return found == nullptr ? 0.0 : found->value;
  };
  const double memory = value(name::memory_throughput);
  const double cache = value(name::cache_throughput);
  const double compute = std::max(value(name::compute_throughput), value(name::matrix_throughput));
  const auto* waves = profile.find(name::waves);
  const auto* occupancy = profile.find(name::achieved_occupancy);
  const double most = std::max({memory, cache, compute});
  const auto decide = [&](BoundBy bound, std::string reason) {
    profile.bound = bound;
    profile.reason = std::move(reason);
    if (const auto stall = detail::main_stall_text(profile); !stall.empty()) profile.reason += "; " + stall;
  };
  profile.evidence = Evidence::counters;
  if (most >= detail::busy_percent) {
    // Traffic of memory passes the caches, too.
    if (memory >= detail::busy_percent && memory >= compute)
      return decide(BoundBy::memory, "memory moves " + percent_text(memory) + " of what it can");
    if (compute >= cache)
      return decide(BoundBy::compute, "arithmetic units do " + percent_text(compute) + " of what they can");
    return decide(BoundBy::cache,
                  "caches or shared memory move " + percent_text(cache) + " of what they can");
  }
  const auto busiest = "no unit does more than " + percent_text(most) + " of what it can";
  if (waves != nullptr && waves->value > 0 && waves->value < 1)
    return decide(BoundBy::parallelism,
                  "the grid fills only " + percent_text(100 * waves->value) + " of the device; " + busiest);
  if (occupancy != nullptr && occupancy->value < detail::low_occupancy_percent)
    return decide(BoundBy::occupancy,
                  "only " + percent_text(occupancy->value) + " of the possible warps reside; " + busiest);
  decide(BoundBy::latency, busiest);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE ResourceReport resource_report(const std::map<std::string, double>& resources) {
  const auto value = [&](const char* key) {
    const auto found = resources.find(key);
    return found == resources.end() ? 0.0 : found->second;
  };
  return {value("registers"), value("spill_store_bytes"), 100 * value(resource_key::occupancy)};
}

MTMC_INLINE void add_report(const ResourceReport& report, Profile& profile) {
  const auto note = [&](const char* key, double value, const char* unit) {
    if (value > 0) profile.metrics.push_back({key, value, unit, {}});
  };
  note(profile_metric::registers, report.registers, "");
  note(profile_metric::spilled, report.spilled_bytes, "byte");
  note(profile_metric::possible_occupancy, report.occupancy_percent, "%");
}

MTMC_INLINE bool grade_report(const ResourceReport& report, const std::map<std::string, double>& resources,
                              Profile& profile) {
  const auto* waves = profile.find(profile_metric::waves);
  if (report.spilled_bytes > 0) {
    char text[96];
    std::snprintf(text, sizeof text, "each thread has %.0f registers and spills %.0f bytes to memory",
                  report.registers, report.spilled_bytes);
    profile.bound = BoundBy::registers;
    profile.reason = text;
  } else if (waves != nullptr && waves->value < 1) {
    profile.bound = BoundBy::parallelism;
    profile.reason = "the grid fills only " + percent_text(100 * waves->value) + " of the device";
  } else if (report.occupancy_percent > 0 && report.occupancy_percent < low_occupancy_percent) {
    profile.bound = BoundBy::occupancy;
    profile.reason = "only " + percent_text(report.occupancy_percent) +
                     " of the possible warps fit, for want of " + std::string(occupancy_limiter(resources));
  } else {
    return false;
  }
  return true;
}

/// Decides what bounds the kernel by its time, and where that does not tell by the compiler's report.
inline void grade_time(const Observation& seen, const Roofline& roofline, const ResourceReport& report,
                       Profile& profile) {
  const double memory = 100 * roofline.memory_seconds / roofline.seconds;
  const double compute = 100 * roofline.compute_seconds / roofline.seconds;
  constexpr double short_call = 5e-6;
  profile.reason = "the least traffic takes " + percent_text(memory) +
                   " of the time at the memory's bandwidth, the arithmetic " + percent_text(compute) +
                   " at the device's rate";
  if (std::max(memory, compute) >= busy_percent) {
    profile.bound = memory >= compute ? BoundBy::memory : BoundBy::compute;
  } else if (seen.device.kind == "gpu" && roofline.seconds < short_call) {
    profile.bound = BoundBy::overhead;
    profile.reason = "one call takes hardly longer than a launch";
  } else if (!grade_report(report, seen.evaluation->resources, profile)) {
    profile.reason += "; what takes the rest is not visible without counters";
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Profile profile_of(const Observation& seen) {
  Profile profile;
  if (!seen.evaluation) return profile;
  const auto& given = seen.evaluation->profile;
  if (given && given->evidence == Evidence::counters) return *given;
  const auto roofline = roofline_of(seen);
  if (roofline.bound() > 0) {
    const auto add = [&](const char* key, double seconds) {
      if (seconds > 0) profile.metrics.push_back({key, 100 * seconds / roofline.seconds, "%", {}});
    };
    add(profile_metric::memory_throughput, roofline.memory_seconds);
    add(profile_metric::compute_throughput, roofline.compute_seconds);
  }
  const auto report = detail::resource_report(seen.evaluation->resources);
  detail::add_report(report, profile);
  if (given) {
    profile.missing = given->missing;
    if (const auto* waves = given->find(profile_metric::waves)) profile.metrics.push_back(*waves);
  }
  if (!(roofline.seconds > 0) || profile.metrics.empty()) return profile;
  profile.evidence = report.registers > 0 ? Evidence::compiler : Evidence::roofline;
  detail::grade_time(seen, roofline, report, profile);
  return profile;
}

} // namespace mtmc
