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
/// `state`: "observed" where the backend sees what a program keeps in memory of its own
/// (`BackendAbility::changed_state`), else "not observed".
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
