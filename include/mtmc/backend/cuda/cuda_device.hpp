#pragma once
/// The device as its driver tells it, and its data sheet where the driver does not.

#include <mtmc/backend/cuda/architecture.hpp>
#include <mtmc/backend/cuda/context.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/core/device.hpp>

#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Compute capability as NVRTC and others write it: "sm_90a" on Hopper, whose own instructions need the "a".
[[nodiscard]] inline std::string cuda_architecture(int major, int minor) {
  return "sm_" + std::to_string(10 * major + minor) + (major >= 9 ? "a" : "");
}

/// What the driver answers.
struct CudaDeviceReading {
  std::string name;
  int major = 0;
  int minor = 0;
  int compute_units = 0;
  int warp_size = 32;
  std::int64_t memory_bytes = 0;
  int shared_bytes = 0;
  int l2_bytes = 0;
  int clock_kilohertz = 0;
  /// 0 where a driver does not tell it any more.
  int memory_clock_kilohertz = 0;
  int memory_bus_bits = 0;
  /// 13000 for CUDA 13.0.
  int driver_version = 0;
};

/// The device as policies and coders see it. Dense rates are those of the data sheet where the device is a
/// whole one that `find_device_preset` knows; else what its multiprocessors do in a cycle, times its clock.
/// The memory's bandwidth is the data sheet's, else that of its clock and width.
[[nodiscard]] inline Device describe_cuda_device(const CudaDeviceReading& reading) {
  Device device;
  device.name = reading.name;
  device.kind = "gpu";
  device.arch = cuda_architecture(reading.major, reading.minor);
  device.compute_units = reading.compute_units;
  device.vector_bits = 32 * reading.warp_size;
  device.memory_bytes = reading.memory_bytes;
  device.shared_memory_bytes = reading.shared_bytes;
  device.clock_hz = 1e3 * reading.clock_kilohertz;
  constexpr double transfers_a_cycle = 2;
  device.memory_bandwidth =
      transfers_a_cycle * 1e3 * reading.memory_clock_kilohertz * (reading.memory_bus_bits / 8.0);
  if (const auto unit = multiprocessor_of(device.arch)) {
    device.caches.push_back({.level = 1, .bytes = std::int64_t{1024} * unit->l1_kib, .line_bytes = 128});
    device.peak_rates = peak_rates_of(unit->rates, device.compute_units, device.clock_hz, device.clock_hz);
  }
  device.caches.push_back(
      {.level = 2, .bytes = reading.l2_bytes, .line_bytes = 128, .shared_by = reading.compute_units});
  if (const auto preset = find_device_preset(reading.name);
      preset && preset->device.compute_units == reading.compute_units) {
    device.peak_rates = preset->device.peak_rates;
    device.memory_bandwidth = preset->device.memory_bandwidth;
  }
  device.software["driver"] = "CUDA " + std::to_string(reading.driver_version / 1000) + '.' +
                              std::to_string(reading.driver_version % 1000 / 10);
  return device;
}

/// Asks the driver. Throws `Error` (`mtmc.backend.004`) where it does not answer.
[[nodiscard]] inline Device read_cuda_device(const CudaContext& context) {
  using enum DeviceAttribute;
  CudaDeviceReading reading;
  reading.name = context.name();
  reading.major = context.attribute(major);
  reading.minor = context.attribute(minor);
  reading.compute_units = context.attribute(compute_units);
  reading.warp_size = context.attribute(warp_size);
  reading.memory_bytes = context.memory_bytes();
  reading.shared_bytes = context.attribute(shared_bytes);
  reading.l2_bytes = context.attribute(l2_bytes);
  reading.clock_kilohertz = context.attribute(clock_kilohertz);
  reading.memory_clock_kilohertz = context.attribute(memory_clock_kilohertz);
  reading.memory_bus_bits = context.attribute(memory_bus_bits);
  reading.driver_version = context.driver().version();
  return describe_cuda_device(reading);
}

} // namespace mtmc::detail
