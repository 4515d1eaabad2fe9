#pragma once
/// Definitions of loop/result.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/loop/launcher.hpp>
#include <mtmc/loop/result.hpp>

namespace mtmc {

MTMC_INLINE LaunchPlan Result::plan(const ProblemSize& size) const {
  return plan_launches(best, task, size, device.compute_units);
}

MTMC_INLINE std::string Result::launcher_source() const {
  return mtmc::launcher_source(best, task, device.compute_units);
}

} // namespace mtmc
