#pragma once
/// From what is known of a kernel's run to what bounds it. Pure functions.

#include <mtmc/core/profile.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/observation/roofline.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// A unit that does this share of what it could is what bounds the kernel.
inline constexpr double busy_percent = 60;
/// With fewer warps than this share latency is hardly hidden.
inline constexpr double low_occupancy_percent = 30;

} // namespace detail

/// Decides by the figures of `profile`, which counters gave, what bounds the kernel, and writes why.
void grade_counters(Profile& profile);

namespace detail {

/// What the compiler's report tells, as far as grading needs it; 0 = nothing.
struct ResourceReport {
  double registers = 0;
  double spilled_bytes = 0;
  double occupancy_percent = 0;
};
[[nodiscard]] ResourceReport resource_report(const std::map<std::string, double>& resources);

/// Adds its figures to a profile.
void add_report(const ResourceReport& report, Profile& profile);

/// Decides what bounds the kernel by the report alone, and by the number of waves where the profile has it.
/// False if nothing stands out.
bool grade_report(const ResourceReport& report, const std::map<std::string, double>& resources,
                  Profile& profile);

} // namespace detail

/// Profile of an observation's kernel by the best evidence it holds: the profile that came with its
/// evaluation where that rests on counters, else its time against the roofline, with the compiler's report
/// where there is one. Throws `Error` where the task's own expressions cannot be evaluated.
[[nodiscard]] Profile profile_of(const Observation& seen);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/observation/profile_grading_inl.hpp>
#endif
