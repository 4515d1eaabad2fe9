#pragma once
/// Whether a recorded plan can be run at all: it comes from a process that ran what a candidate wrote.

#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace mtmc::inline MTMC_ABI {

/// What a recorded plan may ask for at most.
struct RecordedPlanLimits {
  std::int64_t max_bytes = std::int64_t{1} << 40;   ///< bytes of all storages together
  std::size_t max_storages = 100000;                ///< storages
  std::size_t max_steps = 60000;                    ///< steps of all phases together
  std::size_t max_kernels = 1000;                   ///< kernels
  std::size_t max_ir_bytes = std::size_t{16} << 20; ///< bytes of a kernel's IR
};

/// The first thing that is wrong, with the line of the module's text where there is one; nothing if a plan is
/// sound: every index names something, every view and pointer lies inside of its storage, fills and contents
/// fit, grids are within what devices launch (2^31 - 1, 65535 and 65535 programs), arguments fit the kernel's
/// parameters in number and type, names are names, and no limit is passed. Nothing is computed from a number
/// that has not been looked at, so the check itself may be given anything.
[[nodiscard]] std::optional<Diagnostic> check_recorded_plan(const RecordedPlan& plan,
                                                            const RecordedPlanLimits& limits = {});

/// Bytes from a view's first element to the end of its last one; 0 if it has none. Nothing if an extent or
/// stride is negative, the numbers of both differ or are more than 64, the type is unknown, or there are more
/// than 2^48 elements, repeated ones counted, or a stride is longer.
[[nodiscard]] std::optional<std::int64_t> recorded_extent_bytes(const RecordedView& view) noexcept;

/// The first difference between what a problem's call and a candidate's give: number, extents or type of the
/// tensors. Their strides may differ.
[[nodiscard]] std::optional<Diagnostic> check_same_results(const RecordedPlan& problem,
                                                           const RecordedPlan& candidate);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/check_recorded_plan_inl.hpp>
#endif
