#pragma once
/// Which launch of a call takes how much of its time, and how far each is from what the device can.

#include <mtmc/core/error.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/observation/roofline.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One launch of the present kernel, at the main size.
struct LaunchShare {
  /// Name of the function.
  std::string entry;
  /// 1-based line of its launch line.
  int line = 0;
  /// Of the seconds of all launches, in [0, 1].
  double share = 0;
  /// Of this launch alone: every buffer it is given read or written once (twice where it does both), but no
  /// more than its threads ask for; its operations as the analysis counts them; its own seconds.
  Roofline roofline{};
  /// The least bytes that the memory bound stands for.
  double bytes = 0;
  /// Bytes of every buffer it is given, by name.
  std::map<std::string, double> buffers{};
  /// The parts of its function, where they were timed.
  std::vector<PartTime> parts{};
  /// Blocks of the grid, and threads of a block; 1 without a grid.
  std::int64_t blocks = 1;
  std::int64_t threads = 1; ///< threads of a block
  /// Part of the device that has something to do, in (0, 1]: multiprocessors with a block, lanes of a warp
  /// with a thread, and blocks of the last wave. 1 where there is no grid.
  double filled = 1;

  /// Of the seconds of all launches, what one of its parts takes, in [0, 1].
  [[nodiscard]] double share_of(const PartTime& part) const noexcept {
    double total = 0;
    for (const auto& one : parts) total += one.seconds;
    return total > 0 ? share * part.seconds / total : share;
  }
};

namespace detail {

/// The launch region of a line; null where analysis knows of none.
[[nodiscard]] inline const Region* launch_region(const Structure& structure, int line) noexcept {
  for (const auto& region : structure.regions)
    if (region.kind == RegionKind::launch && region.first_line == line) return &region;
  return nullptr;
}

/// What a region takes of the seconds of all launches by one that executes it: those parts of it that the
/// region is in, or all of it where that is not known.
[[nodiscard]] inline double share_within(const Region& region, const LaunchShare& launch) noexcept {
  if (launch.parts.empty() || region.path.find('/') == std::string::npos) return launch.share;
  double share = 0;
  for (const auto& part : launch.parts)
    if (part.first_line <= region.last_line && region.first_line <= part.last_line)
      share += launch.share_of(part);
  return share;
}

/// `LaunchShare::buffers`.
[[nodiscard]] inline std::map<std::string, double> buffers_of(const Launch& launch) {
  std::map<std::string, double> buffers;
  for (const auto& argument : launch.arguments) {
    if (argument.kind == LaunchArgument::Kind::scalar) continue;
    auto bytes = static_cast<double>(size_of(argument.type));
    for (const auto extent : argument.extents) bytes *= static_cast<double>(extent);
    buffers[argument.name] = bytes;
  }
  return buffers;
}

/// Bytes that a launch with these buffers must move at the very least.
[[nodiscard]] inline double least_bytes_of(const std::map<std::string, double>& buffers,
                                           const Region* region) {
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  double total = 0;
  for (const auto& [name, bytes] : buffers) {
    const bool both = region != nullptr && has(region->facts.reads, name) && has(region->facts.writes, name);
    total += both ? 2 * bytes : bytes;
  }
  const bool counted = region != nullptr && !region->facts.opaque && region->facts.bytes > 0;
  return counted ? std::min(total, region->facts.bytes) : total;
}

/// Threads that a multiprocessor of this architecture can hold.
[[nodiscard]] inline int resident_threads(std::string_view arch) {
  for (const std::string_view small : {"sm_86", "sm_87", "sm_89", "sm_120", "sm_121"})
    if (arch.starts_with(small)) return 1536;
  return arch.starts_with("sm_75") ? 1024 : 2048;
}

/// The launches of the present kernel; none where they cannot be evaluated.
[[nodiscard]] inline LaunchPlan plan_where_possible(const Observation& seen, const ProblemSize& size) {
  try {
    return plan_launches(seen.kernel, seen.task, size, std::max(1, seen.device.compute_units));
  } catch (const Error&) {
    return {};
  }
}

/// `LaunchShare::filled`.
[[nodiscard]] inline double filled_part(const Device& device, std::int64_t blocks, std::int64_t threads) {
  if (device.kind != "gpu" || device.compute_units <= 1) return 1;
  const auto units = static_cast<double>(device.compute_units);
  const auto all = static_cast<double>(blocks);
  constexpr double warp = 32;
  const double lanes = std::min(1.0, static_cast<double>(threads) / warp);
  if (all < units) return all / units * lanes;
  constexpr double max_blocks = 32; // of a multiprocessor
  const double at_once =
      units *
      std::clamp(std::floor(resident_threads(device.arch) / static_cast<double>(threads)), 1.0, max_blocks);
  return all < at_once ? lanes : lanes * all / (std::ceil(all / at_once) * at_once);
}

} // namespace detail

/// The launches of the present kernel in their order, where their times were measured
/// (`Evaluation::launches`); else empty. Where launch lines cannot be evaluated nothing but shares is known.
/// Throws `Error` where the task's own expressions cannot be evaluated.
[[nodiscard]] inline std::vector<LaunchShare> launch_shares(const Observation& seen) {
  std::vector<LaunchShare> shares;
  const auto* size = seen.task.main_size();
  if (size == nullptr || !seen.evaluation || seen.evaluation->launches.empty()) return shares;
  double total = 0;
  for (const auto& launch : seen.evaluation->launches) total += launch.seconds;
  if (!(total > 0)) return shares;
  const auto plan = detail::plan_where_possible(seen, *size);
  const double bandwidth = detail::memory_ceiling(seen.device);
  for (const auto& timed : seen.evaluation->launches) {
    LaunchShare share{.entry = timed.entry, .line = timed.line, .share = timed.seconds / total};
    share.roofline.seconds = timed.seconds;
    share.parts = timed.parts;
    const auto launch = std::find_if(plan.launches.begin(), plan.launches.end(), [&](const Launch& one) {
      return one.line == timed.line && one.entry == timed.entry;
    });
    const auto* region = detail::launch_region(seen.structure, timed.line);
    if (launch != plan.launches.end()) {
      share.buffers = detail::buffers_of(*launch);
      share.bytes = detail::least_bytes_of(share.buffers, region);
      share.blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
      share.threads = launch->block[0] * launch->block[1] * launch->block[2];
      share.filled = detail::filled_part(seen.device, share.blocks, share.threads);
    }
    if (bandwidth > 0) share.roofline.memory_seconds = share.bytes / bandwidth;
    if (region != nullptr)
      share.roofline.compute_seconds =
          detail::least_compute_seconds(region->facts.flops, timed.seconds, seen.device, seen.task);
    shares.push_back(std::move(share));
  }
  // What the task states of its own kernel is better founded than what analysis counts.
  if (shares.size() == 1) {
    auto whole = roofline_of(seen);
    whole.seconds = shares.front().roofline.seconds;
    if (whole.bound() > 0) shares.front().roofline = whole;
  }
  return shares;
}

namespace detail {
/// The function that an entry is: recorded kernels of one function are called "softmax@" and a hash.
[[nodiscard]] inline std::string_view function_of_entry(std::string_view entry) noexcept {
  return entry.substr(0, entry.find('@'));
}
} // namespace detail

/// The launches that execute a region, as places in `shares`: its own for a launch, all of its members for a
/// sequence, those of its function for everything within one.
[[nodiscard]] inline std::vector<std::size_t> launches_of(const Region& region,
                                                          const std::vector<LaunchShare>& shares) {
  std::vector<std::size_t> places;
  const bool by_line = region.kind == RegionKind::launch || region.kind == RegionKind::launch_sequence;
  const auto function = std::string_view(region.path).substr(0, region.path.find('/'));
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (by_line ? shares[i].line >= region.first_line && shares[i].line <= region.last_line
                : detail::function_of_entry(shares[i].entry) == function)
      places.push_back(i);
  return places;
}

/// Part of a call's time that a region's launches take, or the parts of them that it is in; nothing where
/// that is not known.
[[nodiscard]] inline std::optional<double> share_of_time(const Region& region,
                                                         const std::vector<LaunchShare>& shares) {
  const auto places = launches_of(region, shares);
  if (places.empty()) return std::nullopt;
  double share = 0;
  for (const auto place : places) share += detail::share_within(region, shares[place]);
  return std::min(share, 1.0);
}

/// Whether the time is divided at all: among several launches, or several parts of one.
[[nodiscard]] inline bool tells_apart(const std::vector<LaunchShare>& shares) noexcept {
  return shares.size() > 1 || std::any_of(shares.begin(), shares.end(),
                                          [](const LaunchShare& launch) { return launch.parts.size() > 1; });
}

/// What a change of a region can save at most, as a part of a call's time: in its launches, the time beyond
/// their bounds; by merging a sequence, the bytes that need no longer be written and read again, and the gaps
/// between launches. Nothing where that is not known.
[[nodiscard]] inline std::optional<double>
possible_gain(const Region& region, const std::vector<LaunchShare>& shares, const Device& device) {
  const auto places = launches_of(region, shares);
  if (places.empty()) return std::nullopt;
  double gain = 0;
  if (region.kind != RegionKind::launch_sequence) {
    for (const auto place : places)
      gain += detail::share_within(region, shares[place]) * (1 - shares[place].roofline.reached());
    return std::min(gain, 1.0);
  }
  const double bandwidth = detail::memory_ceiling(device);
  if (!(bandwidth > 0)) return std::nullopt;
  constexpr double gap = 2e-6; // between two launches on a GPU
  double whole = 0;
  double share = 0;
  for (const auto& launch : shares) whole += launch.roofline.seconds;
  double saved = device.kind == "gpu" ? gap * static_cast<double>(places.size() - 1) : 0;
  for (const auto place : places) share += shares[place].share;
  for (const auto& name : region.facts.intermediates)
    for (const auto place : places)
      if (const auto buffer = shares[place].buffers.find(name); buffer != shares[place].buffers.end())
        saved += buffer->second / bandwidth;
  return whole > 0 ? std::min(saved / whole, share) : 0;
}

} // namespace mtmc
