#pragma once
/// Definitions of loop/result.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/loop/launcher.hpp>
#include <mtmc/loop/result.hpp>

namespace mtmc {

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

MTMC_INLINE std::string Result::launcher_source() const {
  return mtmc::launcher_source(best, task, device.compute_units);
}

} // namespace mtmc
