#pragma once
/// How long a device needs at the very least for what a kernel must move and compute.

#include <mtmc/core/step.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// The roofline of a task's main size, or of one launch there, and the time it takes. Seconds; 0 = not known.
struct Roofline {
  /// For the compulsory traffic, at the bandwidth of the memory.
  double memory_seconds = 0;
  /// For the operations: at the rate of the ordinary units, for hardly a kernel starts with matrix units; at
  /// the rate of the matrix units for a call that is faster than the ordinary ones could be.
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

/// Operations a second by the data sheet, of "f32", "tf32", ...; 0 = not known.
[[nodiscard]] inline double peak_rate(const Device& device, const std::string& name) {
  const auto peak = device.peak_rates.find(name);
  return peak == device.peak_rates.end() ? 0 : peak->second;
}

/// Operations a second of the ordinary units, in the precision of the task; 0 = not known.
[[nodiscard]] inline double compute_ceiling(const Device& device, const Task& task) {
  const bool in_f64 = computes_in_f64(task);
  const double measured = in_f64 ? device.measured.f64_rate : device.measured.f32_rate;
  return measured > 0 ? measured : peak_rate(device, in_f64 ? "f64" : "f32");
}

/// Operations a second of the matrix units, as exact as the task asks: of the type itself, and for f32 of the
/// fastest way to make one product of three (TF32 or f16 in two terms each). 0 = not known, or there are
/// none.
[[nodiscard]] inline double matrix_ceiling(const Device& device, const Task& task) {
  if (computes_in_f64(task)) return peak_rate(device, "f64_matrix");
  const auto has = [&task](DataType type) {
    return std::any_of(task.arguments.begin(), task.arguments.end(), [type](const Argument& argument) {
      return argument.role != ArgumentRole::scalar && argument.type == type;
    });
  };
  if (has(DataType::f16)) return peak_rate(device, "f16");
  if (has(DataType::bf16)) return peak_rate(device, "bf16");
  constexpr double products = 3;
  return std::max(peak_rate(device, "tf32"), peak_rate(device, "f16")) / products;
}

/// `Roofline::compute_seconds` of so many operations that took so many seconds; 0 = not known.
[[nodiscard]] inline double least_compute_seconds(double flops, double seconds, const Device& device,
                                                  const Task& task) {
  const double ordinary = compute_ceiling(device, task);
  if (!(ordinary > 0)) return 0;
  const double matrix = matrix_ceiling(device, task);
  return flops / (seconds * ordinary < flops ? std::max(ordinary, matrix) : ordinary);
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
  const double flops = seen.task.flops.empty() ? seen.structure.flops : stated_flops(seen.task, *size);
  if (bandwidth > 0) roofline.memory_seconds = least_bytes(seen.task, *size) / bandwidth;
  roofline.compute_seconds = detail::least_compute_seconds(flops, roofline.seconds, seen.device, seen.task);
  return roofline;
}

} // namespace mtmc
