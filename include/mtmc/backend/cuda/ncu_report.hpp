#pragma once
/// What Nsight Compute (`ncu --csv --page raw --print-units base`) writes, as a profile.

#include <mtmc/core/profile.hpp>
#include <mtmc/observation/profile_grading.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Fields of one line of comma-separated values; a quote within quotes is written twice.
[[nodiscard]] inline std::vector<std::string> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      fields.back() += line[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

/// "1,048,576.5" as a number; nothing for "n/a" and other words.
[[nodiscard]] inline std::optional<double> read_ncu_number(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One launch of the report: values and units by the tool's own names.
struct NcuLaunch {
  std::string kernel;
  std::map<std::string, double> values{};
  std::map<std::string, std::string> units{};

  [[nodiscard]] std::optional<double> value(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  /// The first that is there.
  [[nodiscard]] std::optional<double> first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const auto found = value(name)) return found;
    return std::nullopt;
  }
  [[nodiscard]] double seconds() const {
    constexpr const char* name = "gpu__time_duration.sum";
    const auto unit = units.find(name);
    constexpr std::array<std::pair<std::string_view, double>, 8> scales{{{"second", 1},
                                                                         {"s", 1},
                                                                         {"msecond", 1e-3},
                                                                         {"ms", 1e-3},
                                                                         {"usecond", 1e-6},
                                                                         {"us", 1e-6},
                                                                         {"nsecond", 1e-9},
                                                                         {"ns", 1e-9}}};
    for (const auto& [word, scale] : scales)
      if (unit != units.end() && unit->second == word) return scale * value(name).value_or(0);
    return 0;
  }
};

/// The launches of a report, in order. What stands before the line with the columns' names is passed over, as
/// is what is no row.
[[nodiscard]] inline std::vector<NcuLaunch> read_ncu_rows(std::string_view text) {
  std::vector<NcuLaunch> launches;
  std::vector<std::string> names;
  std::vector<std::string> units;
  while (!text.empty()) {
    const auto line = take_line(text);
    if (names.empty()) {
      if (line.starts_with("\"ID\",")) names = split_csv(line);
      continue;
    }
    if (!line.starts_with('"')) continue;
    auto fields = split_csv(line);
    if (fields.size() != names.size()) continue;
    if (fields.front().empty()) {
      units = std::move(fields);
      continue;
    }
    auto& launch = launches.emplace_back();
    for (std::size_t i = 1; i < fields.size(); ++i) {
      if (names[i] == "Kernel Name") launch.kernel = fields[i];
      // Metrics alone have such names; the columns before them are "Block Size" and the like.
      if (names[i].find("__") == std::string::npos) continue;
      if (const auto value = read_ncu_number(fields[i])) launch.values[names[i]] = *value;
      if (i < units.size()) launch.units[names[i]] = units[i];
    }
  }
  return launches;
}

/// What is asked for, besides the section on what warps wait for.
inline constexpr std::string_view ncu_metrics =
    "gpu__time_duration.sum,"
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed,"
    "lts__throughput.avg.pct_of_peak_sustained_elapsed,"
    "l1tex__throughput.avg.pct_of_peak_sustained_active,"
    "sm__throughput.avg.pct_of_peak_sustained_elapsed,"
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active,"
    "l1tex__t_sector_hit_rate.pct,"
    "lts__t_sector_hit_rate.pct,"
    "dram__bytes_read.sum,"
    "dram__bytes_write.sum,"
    "sm__warps_active.avg.pct_of_peak_sustained_active,"
    "sm__maximum_warps_per_active_cycle_pct,"
    "launch__waves_per_multiprocessor,"
    "launch__registers_per_thread";
inline constexpr std::string_view ncu_section = "WarpStateStats";

/// What a launch's warps wait for, in per cent of all their waiting. Issuing an instruction, and having to
/// let another warp do so, is no waiting.
inline void add_stalls(const NcuLaunch& launch, Profile& profile) {
  constexpr std::string_view before = "smsp__average_warps_issue_stalled_";
  constexpr std::string_view behind = "_per_issue_active.ratio";
  std::vector<std::pair<double, std::string>> stalls;
  double all = 0;
  for (const auto& [name, value] : launch.values) {
    if (!name.starts_with(before) || !name.ends_with(behind)) continue;
    const auto reason = name.substr(before.size(), name.size() - before.size() - behind.size());
    if (reason == "selected" || reason == "not_selected" || reason.ends_with("_not_issued")) continue;
    all += value;
    stalls.emplace_back(value, reason);
  }
  std::sort(stalls.rbegin(), stalls.rend());
  constexpr std::size_t most = 3;
  constexpr double noticeable_percent = 5;
  for (std::size_t i = 0; i < std::min(most, stalls.size()); ++i)
    if (const double percent = 100 * stalls[i].first / all; all > 0 && percent >= noticeable_percent)
      profile.metrics.push_back(
          {std::string(profile_metric::stall_prefix) + stalls[i].second, percent, "%", {}});
}

/// The profile of the launch that took longest; nothing if the text holds no launch, or nothing that was
/// counted of it.
[[nodiscard]] inline std::optional<Profile> read_ncu_report(std::string_view text) {
  namespace name = profile_metric;
  const auto launches = read_ncu_rows(text);
  const auto longest = std::max_element(launches.begin(), launches.end(), [](const auto& a, const auto& b) {
    return a.seconds() < b.seconds();
  });
  if (longest == launches.end()) return std::nullopt;
  const auto& launch = *longest;
  Profile profile;
  const auto add = [&](const char* key, std::optional<double> value, const char* unit) {
    if (value) profile.metrics.push_back({key, *value, unit, {}});
  };
  const auto larger = [](std::optional<double> a, std::optional<double> b) {
    return a && b ? std::max(a, b) : a ? a : b;
  };
  if (launch.seconds() > 0) add(name::duration, launch.seconds(), "s");
  add(name::memory_throughput,
      launch.first_of({"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                       "dram__throughput.avg.pct_of_peak_sustained_elapsed"}),
      "%");
  add(name::cache_throughput,
      larger(launch.value("lts__throughput.avg.pct_of_peak_sustained_elapsed"),
             launch.value("l1tex__throughput.avg.pct_of_peak_sustained_active")),
      "%");
  add(name::compute_throughput, launch.value("sm__throughput.avg.pct_of_peak_sustained_elapsed"), "%");
  add(name::matrix_throughput, launch.value("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
      "%");
  if (!profile.find(name::memory_throughput) && !profile.find(name::compute_throughput)) return std::nullopt;
  add(name::l1_hit_rate, launch.value("l1tex__t_sector_hit_rate.pct"), "%");
  add(name::l2_hit_rate, launch.value("lts__t_sector_hit_rate.pct"), "%");
  if (const auto read = launch.value("dram__bytes_read.sum"))
    add(name::memory_bytes, *read + launch.value("dram__bytes_write.sum").value_or(0), "byte");
  add(name::achieved_occupancy, launch.value("sm__warps_active.avg.pct_of_peak_sustained_active"), "%");
  add(name::possible_occupancy, launch.value("sm__maximum_warps_per_active_cycle_pct"), "%");
  add(name::waves, launch.value("launch__waves_per_multiprocessor"), "");
  add(name::registers, launch.value("launch__registers_per_thread"), "");
  add_stalls(launch, profile);
  grade_counters(profile);
  if (launches.size() > 1)
    profile.reason +=
        "; of " + std::to_string(launches.size()) + " launches `" + launch.kernel + "` takes longest";
  return profile;
}

/// Why the tool gave no counters, by what it wrote.
[[nodiscard]] inline std::string why_no_counters(std::string_view output) {
  if (output.find("ERR_NVGPUCTRPERM") != std::string_view::npos)
    return "the driver keeps its counters from this user (ERR_NVGPUCTRPERM): an administrator can allow them "
           "with the module option NVreg_RestrictProfilingToAdminUsers=0, or a container be given "
           "CAP_SYS_ADMIN";
  constexpr std::string_view marker = "==ERROR== ";
  if (const auto at = output.find(marker); at != std::string_view::npos) {
    const auto words = output.substr(at + marker.size());
    constexpr std::size_t longest = 200;
    return "Nsight Compute says: " + std::string(words.substr(0, std::min(words.find('\n'), longest)));
  }
  return "Nsight Compute counted nothing";
}

} // namespace mtmc::detail
