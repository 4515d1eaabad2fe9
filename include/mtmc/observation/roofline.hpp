#pragma once
/// How long a device needs at the very least for what a kernel must move and compute.

#include <mtmc/core/step.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>

namespace mtmc::inline MTMC_ABI {

/// The roofline of a task's main size, or of one launch there, and the time it takes. Seconds; 0 = not known.
struct Roofline {
  /// For the compulsory traffic, at the bandwidth of the memory.
  double memory_seconds = 0;
  /// For the operations, at the rate of the ordinary units: hardly a kernel starts with matrix units.
  double compute_seconds = 0;
  /// Measured of one call.
  double seconds = 0;

  /// The least time of a call: the longer of the two.
  [[nodiscard]] double bound() const noexcept { return std::max(memory_seconds, compute_seconds); }
  /// Part of that bound that is reached, in [0, 1]; 0 where it is not known.
  [[nodiscard]] double reached() const noexcept {
    return seconds > 0 && bound() > 0 ? std::min(1.0, bound() / seconds) : 0;
  }
};

namespace detail {
/// Whether all floating-point arguments are f64.
[[nodiscard]] inline bool computes_in_f64(const Task& task) noexcept {
  bool wide = false;
  for (const auto& argument : task.arguments) {
    if (!is_floating(argument.type)) continue;
    if (argument.type != DataType::f64) return false;
    wide = true;
  }
  return wide;
}

/// Bytes a second that memory moves: measured, else of the data sheet; 0 = not known.
[[nodiscard]] inline double memory_ceiling(const Device& device) noexcept {
  return device.measured.read_bandwidth > 0 ? device.measured.read_bandwidth : device.memory_bandwidth;
}

/// Operations a second of the ordinary units, in the precision of the task; 0 = not known.
[[nodiscard]] inline double compute_ceiling(const Device& device, const Task& task) {
  const bool in_f64 = computes_in_f64(task);
  const double measured = in_f64 ? device.measured.f64_rate : device.measured.f32_rate;
  if (measured > 0) return measured;
  const auto peak = device.peak_rates.find(in_f64 ? "f64" : "f32");
  return peak == device.peak_rates.end() ? 0 : peak->second;
}
} // namespace detail

/// Reads an observation's roofline: compulsory traffic and the operations that the task (or, without a
/// statement, the analysis) counts are set against the measured ceilings, those of the data sheet where
/// nothing was measured. All unknown before the kernel was timed. Throws `Error` where the task's own
/// expressions cannot be evaluated.
[[nodiscard]] inline Roofline roofline_of(const Observation& seen) {
  Roofline roofline;
  const auto* size = seen.task.main_size();
  if (size == nullptr || !seen.evaluation || !(seen.evaluation->seconds > 0)) return roofline;
  roofline.seconds = seen.evaluation->seconds;
  for (const auto& evaluated : seen.evaluation->sizes)
    if (evaluated.size == *size && evaluated.seconds > 0) roofline.seconds = evaluated.seconds;

  const double bandwidth = detail::memory_ceiling(seen.device);
  const double rate = detail::compute_ceiling(seen.device, seen.task);
  const double flops = seen.task.flops.empty() ? seen.structure.flops : stated_flops(seen.task, *size);
  if (bandwidth > 0) roofline.memory_seconds = least_bytes(seen.task, *size) / bandwidth;
  if (rate > 0) roofline.compute_seconds = flops / rate;
  return roofline;
}

} // namespace mtmc
