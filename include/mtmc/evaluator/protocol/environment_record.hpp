#pragma once
/// What an evaluation was taken with, so that its numbers can be understood later.

#include <mtmc/core/conditions.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/evaluation.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Protocol version, device, compiler and other software, clock, compute units: what can be said of a device
/// from anywhere. Of the software of the backends here `compiler_files` says what keeps the compiler from
/// files that are not its own: "Landlock", or what stands in for it.
[[nodiscard]] inline std::map<std::string, std::string> device_record(const Device& device) {
  std::map<std::string, std::string> record;
  record["protocol"] = std::to_string(protocol_version);
  record["device"] = device.name;
  record["arch"] = device.arch;
  record["compute_units"] = std::to_string(device.compute_units);
  for (const auto& [name, version] : device.software) record[name] = version;
  std::array<char, 40> text{};
  if (device.clock_hz > 0) {
    std::snprintf(text.data(), text.size(), "%.0f", device.clock_hz / 1e6);
    record[environment_key::clock] = text.data();
  }
  return record;
}

/// The same on the host of the device: with the load of the last minute (runnable processes).
/// `KernelEvaluator` adds `truth`: "f64" where checks at cheap sizes compare f32 results with those of the
/// reference in double precision, "own precision: <why>" where with those of the reference as it is; and
/// `precision`, of tasks with f32 results: "tells <what>", which coarser arithmetic would be refused
/// (evaluator/protocol/told_precision.hpp); and
/// `state`: "observed" where the backend sees what a program keeps in memory of its own
/// (`BackendAbility::changed_state`), else "not observed"; and `guarded_allocation`: "observed" where some
/// checks take place with no memory next to the buffers, so that reads there are seen
/// (`BackendAbility::guard_page_bytes`, `guarded_allocation`), else "not observed", with the reason behind a
/// colon where the backend gives one; and `residue`: "overwritten" where every call begins with random bytes
/// in memory that programs are given uncleared (`BackendAbility::overwrite_residue`), else "not overwritten";
/// and `reload`: "between pairs" where both sides are loaded anew between timed pairs
/// (`BackendAbility::reload`), else "not between pairs"; and `memory`: "exchanged" where candidate and
/// incumbent were timed in each other's memory, too, else "not exchanged"; and `binary`: "observed" where the
/// backend tells the hash of what is judged (`BackendAbility::binary_hash`), else "not observed"; and
/// `secret_sizes`: how many sizes that nobody was told the task was given.
[[nodiscard]] inline std::map<std::string, std::string> environment_record(const Device& device) {
  auto record = device_record(device);
  std::array<char, 40> text{};
  double load = 0;
  if (::getloadavg(&load, 1) == 1) {
    std::snprintf(text.data(), text.size(), "%.2f", load);
    record["load"] = text.data();
  }
  return record;
}

} // namespace mtmc
