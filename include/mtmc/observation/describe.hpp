#pragma once
/// An observation as text: what prompts and token-scored policies read.

#include <mtmc/core/step.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// What `describe` puts in, and how much of it.
struct DescribeOptions {
  /// Include the kernel's text.
  bool kernel = true;
  /// Prefix each line of the kernel with its number, so that "line 15 to 20" can be followed.
  bool line_numbers = true;
  /// Newest history entries shown; older ones are counted.
  std::size_t history = 8;
  /// Regions with their facts.
  bool regions = true;
};

/// Seconds for people: "12.3 ms", "850 us", "1.5 s".
[[nodiscard]] std::string seconds_text(double seconds);

/// A speed-up for people: "2.41x [2.36, 2.47]", or "2.41x" where it has no interval.
[[nodiscard]] std::string speed_up_text(const SpeedUp& speed_up);

/// The device in a few lines: name, units, vector width, caches, memory, rates (measured ones marked so).
[[nodiscard]] std::string describe(const Device& device);

/// A profile in a few lines: what bounds the kernel, by what evidence and why, then the figures. Empty where
/// there is no evidence.
[[nodiscard]] std::string describe(const Profile& profile);

/// A region in one line: label, lines, loops with their trip counts, and what is known to be legal.
[[nodiscard]] std::string describe(const Region& region);

/// A task in a few lines: summary, arguments, sizes.
[[nodiscard]] std::string describe(const Task& task);

/// One line of history: "step 3: tiling the i, j loop nest of gemm in line 4 to 9 -> correct, 2.4x
/// [2.3, 2.5], kept".
[[nodiscard]] std::string describe(const HistoryEntry& entry);

/// The newest `most` entries of history, a line each; older ones are counted. Empty if nothing was tried.
[[nodiscard]] std::string describe_history(const Observation& seen, std::size_t most);

/// The kernel's text, each line with its number.
[[nodiscard]] std::string with_line_numbers(std::string_view source);

/// What is known of the speed of the present kernel: time, rates, and what bounds it. Empty if it was not
/// timed.
[[nodiscard]] std::string describe_speed(const Observation& seen);

/// The launches of the present kernel, a line each: time, share of a call, what the device could do at best,
/// and whether the launch can fill it; below it the parts of its function, where those were timed. Empty
/// where there are no two to tell apart.
[[nodiscard]] std::string describe_launches(const Observation& seen);

/// All a policy or coder may know, as text with headings. Deterministic: equal observations give equal text.
[[nodiscard]] std::string describe(const Observation& seen, const DescribeOptions& options = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/observation/describe_inl.hpp>
#endif
