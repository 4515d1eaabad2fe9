#pragma once
/// A recorded problem as a task: what its inputs, weights and results are, for prompts and reports.

#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/task.hpp>

#include <span>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// The task of a problem: its text as the kernel, in the language `pytorch`; inputs (called as `names` says,
/// or "input_0" and so on), parameters and buffers by their names, results ("output_0"), each with type and
/// extents; one size without symbols, since a recording is of one. Inputs that `torch.rand` makes have the
/// domain [0, 1], those of `torch.randint` that of its bounds. The judges of kernels with launch lines do not
/// take it.
[[nodiscard]] Task problem_task(std::string name, std::string text, const RecordedPlan& problem,
                                std::span<const std::string> names = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/problem_task_inl.hpp>
#endif
