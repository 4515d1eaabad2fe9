#pragma once
/// Definitions of loop/result.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/task/launch_lines.hpp>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE double Result::start_seconds() const {
  double sum = 0, weights = 0;
  for (const auto& size : evaluation.sizes) {
    if (!measured || size.incumbent_seconds <= 0) continue;
    sum += size.size.weight * size.incumbent_seconds;
    weights += size.size.weight;
  }
  return weights > 0 ? sum / weights : start.seconds;
}

MTMC_INLINE LaunchPlan Result::plan(const ProblemSize& size) const {
  return plan_launches(best, task, size, device.compute_units);
}

MTMC_INLINE LauncherEvidence Result::evidence() const {
  LauncherEvidence evidence;
  // What the evaluation itself says holds for it, whatever the device says now.
  const auto recorded = [&](const char* key) {
    if (const auto found = evaluation.environment.find(key); found != evaluation.environment.end())
      return found->second;
    const auto software = device.software.find(key);
    return software == device.software.end() ? std::string{} : software->second;
  };
  evidence.compile_command = recorded(environment_key::compile_command);
  evidence.kernel_environment = recorded(environment_key::kernel_environment);
  evidence.binary_hash = evaluation.binary_hash;
  evidence.seconds = improved() ? evaluation.seconds : start.seconds;
  evidence.compiler = recorded("compiler");
  evidence.device = device.name;
  evidence.arch = device.arch;
  if (improved()) evidence.speed_up = speed_up;
  evidence.verified_sizes = verified_sizes();
  return evidence;
}

MTMC_INLINE std::string Result::launcher_source() const {
  return mtmc::launcher_source(best, task, device.compute_units, evidence());
}

MTMC_INLINE std::string Result::launcher_header() const {
  return mtmc::launcher_header(best, task, evidence());
}

} // namespace mtmc
