#pragma once
/// Whether a task is complete and free of contradictions, before anything is compiled.

#include <mtmc/task/launch_lines.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The text of a kernel or reference, `field`.
void validate_text(const Kernel& kernel, const std::string& field);

/// Whether any expression of the task uses the symbol.
[[nodiscard]] bool uses_symbol(const Task& task, std::string_view symbol);

/// Whether a scalar of that type can have the value.
[[nodiscard]] bool holds(DataType type, std::int64_t value) noexcept;
[[nodiscard]] bool holds(DataType type, double value) noexcept;

} // namespace detail

/// Checks names, roles, shapes, values, domains, sizes and launch lines of a task, every expression at every
/// size. Throws `Error` (`mtmc.task.002`, `mtmc.task.003`, `mtmc.launch.001`) with the field and the remedy;
/// places in the kernel's and the reference's text start with "kernel" and "reference".
void validate_task(const Task& task);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/task/validate_task_inl.hpp>
#endif
