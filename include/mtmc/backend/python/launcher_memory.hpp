#pragma once
/// Memory that a kernel's launcher lends it: where it makes descriptors of tensors.

#include <mtmc/requirements.hpp>

#include <mtmc/backend/python/lowered_kernel.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Bytes that a launch needs; 0: none. More than a device has count as 1 TiB.
[[nodiscard]] inline std::int64_t launcher_memory_bytes(const RecordedLaunch& launch,
                                                        const LoweredKernel& kernel) {
  double bytes = static_cast<double>(kernel.global_scratch_bytes);
  for (const auto extents : {launch.grid, kernel.cluster})
    for (const std::int64_t extent : extents) bytes *= static_cast<double>(extent);
  return static_cast<std::int64_t>(std::min(bytes, 0x1p40));
}

inline void add_launcher_memory(std::vector<RecordedStep>& steps, RecordedPlan& plan,
                                std::span<const std::shared_ptr<const LoweredKernel>> lowered) {
  for (RecordedStep& step : steps) {
    if (!step.launch || step.launch->memory >= 0) continue;
    const auto number = static_cast<std::size_t>(step.launch->kernel);
    const auto bytes = number < lowered.size() && lowered[number] != nullptr
                           ? launcher_memory_bytes(*step.launch, *lowered[number])
                           : 0;
    if (bytes <= 0) continue;
    step.launch->memory = static_cast<int>(plan.storages.size());
    plan.storages.push_back({.bytes = bytes});
  }
}

} // namespace detail

/// A plan whose launches name the memory that their kernels are lent, which is a temporary like others: each
/// launch of a kernel with `LoweredKernel::global_scratch_bytes` gets one, unless it has it already.
/// `lowered`: one for each of the plan's kernels.
[[nodiscard]] inline RecordedPlan
with_launcher_memory(RecordedPlan plan, std::span<const std::shared_ptr<const LoweredKernel>> lowered) {
  detail::add_launcher_memory(plan.phases.setup, plan, lowered);
  detail::add_launcher_memory(plan.phases.forward, plan, lowered);
  return plan;
}

} // namespace mtmc
