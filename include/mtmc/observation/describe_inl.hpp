#pragma once
/// Definitions of observation/describe.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/observation/launch_shares.hpp>
#include <mtmc/observation/profile_grading.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// `value` with three significant digits and a unit prefix: 1.23e9 -> "1.23 G".
[[nodiscard]] inline std::string with_prefix(double value) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t index = 0;
  while (std::abs(value) >= 999.5 && index + 1 < std::size(prefixes)) {
    value /= 1000;
    ++index;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", value, prefixes[index]);
  return text;
}

/// Bytes with a binary prefix: 524288 -> "512 KiB".
[[nodiscard]] inline std::string bytes_text(double bytes) {
  constexpr const char* prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t index = 0;
  while (bytes >= 1024 && index + 1 < std::size(prefixes)) {
    bytes /= 1024;
    ++index;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %s", bytes, prefixes[index]);
  return text;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string seconds_text(double seconds) {
  char text[48];
  if (seconds >= 100)
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  else if (seconds >= 1)
    std::snprintf(text, sizeof text, "%.3g s", seconds);
  else if (seconds >= 1e-3)
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  else if (seconds >= 1e-6)
    std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  else
    std::snprintf(text, sizeof text, "%.3g ns", seconds * 1e9);
  return text;
}

MTMC_INLINE std::string speed_up_text(const SpeedUp& speed_up) {
  char text[96];
  if (!speed_up.has_interval()) {
    std::snprintf(text, sizeof text, "%.3gx", speed_up.value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.3gx [%.3g, %.3g]", speed_up.value, speed_up.low, speed_up.high);
  return text;
}

MTMC_INLINE std::string describe(const Device& device) {
  std::string text =
      device.name + " (" + device.kind + (device.arch.empty() ? "" : ", " + device.arch) + ")\n";
  text += "  compute units: " + std::to_string(device.compute_units);
  if (device.vector_bits > 0) text += ", vectors of " + std::to_string(device.vector_bits) + " bits";
  if (device.clock_hz > 0) text += ", " + detail::with_prefix(device.clock_hz) + "Hz";
  text += '\n';
  for (const auto& cache : device.caches)
    text += "  L" + std::to_string(cache.level) + ": " +
            detail::bytes_text(static_cast<double>(cache.bytes)) + ", shared by " +
            std::to_string(cache.shared_by) + '\n';
  if (device.shared_memory_bytes > 0)
    text +=
        "  shared memory per unit: " + detail::bytes_text(static_cast<double>(device.shared_memory_bytes)) +
        '\n';
  if (device.memory_bytes > 0)
    text += "  memory: " + detail::bytes_text(static_cast<double>(device.memory_bytes)) + '\n';
  if (device.measured.read_bandwidth > 0)
    text += "  read bandwidth (measured): " + detail::with_prefix(device.measured.read_bandwidth) + "B/s\n";
  else if (device.memory_bandwidth > 0)
    text += "  memory bandwidth (data sheet): " + detail::with_prefix(device.memory_bandwidth) + "B/s\n";
  if (device.measured.f32_rate > 0)
    text += "  f32 rate (measured): " + detail::with_prefix(device.measured.f32_rate) + "FLOP/s\n";
  for (const auto& [type, rate] : device.peak_rates)
    text += "  " + type + " peak (data sheet, dense): " + detail::with_prefix(rate) +
            (type.starts_with('i') ? "OP/s\n" : "FLOP/s\n");
  if (!device.features.empty()) text += "  features: " + detail::joined(device.features) + '\n';
  if (!device.headers.empty())
    text += "  a kernel may include <" + detail::joined(device.headers, ">, <") + ">, and nothing else\n";
  return text;
}

MTMC_INLINE std::string describe(const Profile& profile) {
  if (profile.evidence == Evidence::none) return {};
  const auto basis = profile.evidence == Evidence::counters ? "by counters of the device"
                     : profile.evidence == Evidence::compiler
                         ? "by the compiler's report and the measured time"
                         : "by the measured time";
  std::string text = profile.bound == BoundBy::unknown ? "what bounds it is not known"
                                                       : "bound by " + std::string(to_string(profile.bound));
  text += std::string(" (") + basis + "): " + profile.reason + '\n';
  for (const auto& metric : profile.metrics) {
    char value[32];
    std::snprintf(value, sizeof value, "%.3g", metric.value);
    text += "  " + metric.name + ": " + value + (metric.unit.empty() ? "" : " " + metric.unit) + '\n';
  }
  if (!profile.missing.empty()) text += "  (no counters: " + profile.missing + ")\n";
  return text;
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

/// "79 % of the time".
[[nodiscard]] inline std::string share_text(double share) {
  char text[48];
  std::snprintf(text, sizeof text, share < 0.0095 ? "%.1f %% of the time" : "%.0f %% of the time",
                100 * share);
  return text;
}

/// "; moves at least 32 MB: 10 us, 5 % of what the device can"; empty where no bound is known.
[[nodiscard]] inline std::string bound_text(const Roofline& roofline, double bytes) {
  if (!(roofline.bound() > 0)) return {};
  const bool memory = roofline.memory_seconds >= roofline.compute_seconds;
  char reached[64];
  const double percent = 100 * roofline.reached();
  std::snprintf(reached, sizeof reached,
                percent < 9.95 ? ", %.2g %% of what the device can" : ", %.0f %% of what the device can",
                percent);
  return (memory ? "; moves at least " + with_prefix(bytes) + "B: " : "; its arithmetic takes ") +
         seconds_text(roofline.bound()) + reached;
}

/// "; 1 block of 1 thread for 132 units"; empty where the launch fills most of the device.
[[nodiscard]] inline std::string filling_text(const LaunchShare& launch, const Device& device) {
  constexpr double mostly = 0.8;
  if (launch.filled >= mostly) return {};
  char part[64];
  std::snprintf(part, sizeof part, " fill %.2g %% of the device", 100 * launch.filled);
  return "; " + counted(launch.blocks, "block") + " of " + counted(launch.threads, "thread") + " for " +
         counted(device.compute_units, "unit") + part;
}

/// How the threads of a warp make an access: "reads A[K*i + k]: 2 sectors a warp (1 needed), the same for 16
/// threads along x".
[[nodiscard]] inline std::string lanes_text(const AccessFacts& access) {
  const LaneFacts& lanes = *access.lanes;
  std::string text = (access.write ? "writes " : "reads ") + access.array + '[' + access.subscript + "]: ";
  text += to_string(lanes.pattern);
  if (lanes.pattern == LanePattern::strided)
    text += " by " + (lanes.stride == "?" ? std::to_string(*lanes.elements) : lanes.stride);
  if (lanes.sectors > 0)
    text += ", " + std::to_string(lanes.sectors) + " sectors a warp (" + std::to_string(lanes.least_sectors) +
            " needed)";
  if (lanes.bank_ways > 1) text += ", " + std::to_string(lanes.bank_ways) + "-way bank conflict";
  if (lanes.sharers > 1 && !lanes.shared_memory)
    text += ", the same for " + std::to_string(lanes.sharers) + " threads along " + lanes.same_along;
  if (lanes.window) text += ", overlapping with its neighbours'";
  return text;
}

/// What a launch on a grid adds to a region's remarks. Accesses are told where something can be done about
/// them: for loops, the threads as a whole, and stores.
inline void add_grid_remarks(const Region& region, std::vector<std::string>& remarks) {
  const auto& facts = region.facts;
  for (const auto& axis : facts.threads)
    remarks.push_back(axis.axis + ": " + axis.variable + (axis.upper.empty() ? "" : " < " + axis.upper) +
                      ", " + std::to_string(axis.blocks) + " blocks of " + std::to_string(axis.threads) +
                      " threads");
  for (const auto& reduction : facts.reductions) remarks.push_back("reduces " + reduction);
  if (region.kind == RegionKind::loop || region.kind == RegionKind::thread_nest ||
      region.kind == RegionKind::store)
    for (const auto& access : facts.accesses)
      if (access.lanes) remarks.push_back(lanes_text(access));
  if (facts.block_barriers > 0) remarks.push_back(std::to_string(facts.block_barriers) + " block barriers");
  if (facts.warp_exchanges > 0) remarks.push_back(std::to_string(facts.warp_exchanges) + " warp exchanges");
  if (facts.shared_bytes > 0)
    remarks.push_back(bytes_text(static_cast<double>(facts.shared_bytes)) + " shared memory a block");
  if (facts.staged) remarks.emplace_back("stages a tile");
  if (facts.fusion_scope != FusionScope::none)
    remarks.push_back("values could pass within a " + std::string(to_string(facts.fusion_scope)));
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string describe(const Region& region) {
  std::string text = region.label + " (line " + std::to_string(region.first_line);
  if (region.last_line != region.first_line) text += " to " + std::to_string(region.last_line);
  text += ")";
  const auto& facts = region.facts;
  std::vector<std::string> remarks;
  for (const auto& loop : facts.loops) {
    std::string remark = loop.variable;
    if (loop.trip_count) remark += " x" + std::to_string(*loop.trip_count);
    if (loop.parallel)
      remark += " parallel";
    else if (loop.reduction)
      remark += " reduction";
    remarks.push_back(std::move(remark));
  }
  if (!facts.reads.empty()) remarks.push_back("reads " + detail::joined(facts.reads, " "));
  if (!facts.writes.empty()) remarks.push_back("writes " + detail::joined(facts.writes, " "));
  if (!facts.intermediates.empty())
    remarks.push_back("passes on " + detail::joined(facts.intermediates, " "));
  if (facts.interchangeable) remarks.emplace_back("interchangeable");
  if (facts.tileable) remarks.emplace_back("tileable");
  if (facts.fusable) remarks.emplace_back("fusable");
  if (facts.vectorizable) remarks.emplace_back("vectorizable");
  if (facts.transcendental) remarks.emplace_back("transcendental functions");
  if (facts.indirect) remarks.emplace_back("indirect accesses");
  if (facts.opaque) remarks.emplace_back("not fully understood");
  for (const auto& directive : facts.directives) remarks.push_back("#" + directive);
  detail::add_grid_remarks(region, remarks);
  if (!remarks.empty()) text += ": " + detail::joined(remarks, "; ");
  return text;
}

MTMC_INLINE std::string describe(const Task& task) {
  std::string text = task.name;
  if (!task.summary.empty()) text += ": " + task.summary;
  text += '\n';
  for (const auto& argument : task.arguments) {
    text += "  " + std::string(to_string(argument.role)) + ' ' + argument.name + ": " +
            std::string(to_string(argument.type));
    if (argument.role == ArgumentRole::scalar)
      text += " = " + (argument.value.empty() ? argument.name : argument.value);
    else
      text += '[' + detail::joined(argument.shape) + ']';
    if (argument.domain) text += " in [" + argument.domain->low + ", " + argument.domain->high + ']';
    text += '\n';
  }
  for (const auto& size : task.sizes)
    if (!size.symbols.empty() || size.weight <= 0)
      text += "  size " + to_string(size) + (size.weight > 0 ? "" : " (checked, not timed)") + '\n';
  return text;
}

MTMC_INLINE std::string describe(const HistoryEntry& entry) {
  std::string text = "step " + std::to_string(entry.step + 1) + ": " + entry.action_text + " -> ";
  if (entry.draft_failure != DraftFailure::none)
    text += "no kernel (" + std::string(to_string(entry.draft_failure)) + ")";
  else if (entry.verdict)
    text += to_string(*entry.verdict);
  else
    text += "not judged";
  if (entry.verdict == Verdict::correct && entry.speed_up) text += ", " + speed_up_text(*entry.speed_up);
  if (entry.kept) text += ", kept";
  if (!entry.message.empty()) text += " (" + entry.message + ')';
  return text;
}

MTMC_INLINE std::string describe_history(const Observation& seen, std::size_t most) {
  std::string text;
  const auto shown = std::min(most, seen.history.size());
  if (shown < seen.history.size())
    text += "- (" + std::to_string(seen.history.size() - shown) + " earlier ones left out)\n";
  for (std::size_t i = seen.history.size() - shown; i < seen.history.size(); ++i)
    text += "- " + describe(seen.history[i]) + '\n';
  return text;
}

MTMC_INLINE std::string with_line_numbers(std::string_view source) {
  std::string text;
  int line = 1;
  while (!source.empty()) {
    const auto end = source.find('\n');
    char number[16];
    std::snprintf(number, sizeof number, "%4d  ", line++);
    text.append(number).append(source.substr(0, end)).push_back('\n');
    source = end == std::string_view::npos ? std::string_view{} : source.substr(end + 1);
  }
  return text;
}

MTMC_INLINE std::string describe_launches(const Observation& seen) {
  const auto shares = launch_shares(seen);
  if (!tells_apart(shares)) return {};
  std::string text;
  for (const auto& launch : shares) {
    text += "  " + launch.entry + " (line " + std::to_string(launch.line) +
            "): " + seconds_text(launch.roofline.seconds) + ", " + detail::share_text(launch.share) +
            detail::bound_text(launch.roofline, launch.bytes) + detail::filling_text(launch, seen.device) +
            '\n';
    for (const auto& part : launch.parts)
      text += "    line " + std::to_string(part.first_line) + " to " + std::to_string(part.last_line) + ": " +
              detail::share_text(launch.share_of(part)) + '\n';
  }
  return text;
}

MTMC_INLINE std::string describe_speed(const Observation& seen) {
  if (!seen.evaluation || !(seen.evaluation->seconds > 0)) return {};
  const double seconds = seen.evaluation->seconds;
  std::string text = "one call takes " + seconds_text(seconds);
  if (const auto* size = seen.task.main_size()) {
    const double stated = stated_flops(seen.task, *size);
    const double flops = stated > 0 ? stated : seen.structure.flops;
    text += (size->symbols.empty() ? "; that is " : "; at " + to_string(*size) + " that is ") +
            detail::with_prefix(least_bytes(seen.task, *size) / seconds) + "B/s";
    if (flops > 0) text += " and " + detail::with_prefix(flops / seconds) + "FLOP/s";
    text += detail::bound_text(roofline_of(seen), least_bytes(seen.task, *size));
  }
  text += '\n' + describe_launches(seen);
  // What the roofline alone says can be read off the line above.
  if (const auto profile = profile_of(seen); profile.evidence >= Evidence::compiler)
    text += describe(profile);
  return text;
}

MTMC_INLINE std::string describe(const Observation& seen, const DescribeOptions& options) {
  std::string text = "## Task\n" + describe(seen.task);
  text += "\n## Hardware\n" + describe(seen.device);
  if (options.kernel)
    text += "\n## Kernel (" + seen.kernel.language.name + ")\n" +
            (options.line_numbers ? with_line_numbers(seen.kernel.source) : seen.kernel.source);
  if (const auto speed = describe_speed(seen); !speed.empty()) text += "\n## Speed\n" + speed;
  if (options.regions && !seen.structure.regions.empty()) {
    text += "\n## Regions\n";
    const auto shares = launch_shares(seen);
    for (const auto& region : seen.structure.regions) {
      text += "- " + describe(region);
      const auto share = share_of_time(region, shares);
      if (share && tells_apart(shares)) text += "; " + detail::share_text(*share);
      text += '\n';
    }
  }
  text += "\n## History\nstep " + std::to_string(seen.step + 1) + " of at most " +
          std::to_string(seen.step_limit) + '\n' + describe_history(seen, options.history);
  return text;
}

} // namespace mtmc
