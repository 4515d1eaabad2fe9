#pragma once
/// What the signatures of a kernel's functions tell about a task's arguments.

#include <mtmc/analysis/signature.hpp>
#include <mtmc/analysis/stated_argument.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/task/launch_lines.hpp>
#include <mtmc/task/validate_task.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Adds the launch line of a kernel for the CPU that has one function and no launch line: the function is
/// called with its own parameter names.
void add_launch_line(Kernel& kernel, const std::vector<Signature>& signatures);

} // namespace detail

/// Completes a task's arguments from its kernel: every plain name among the launch lines' arguments that is
/// no scratch buffer becomes an argument, in order of first use; a pointer to const is an input, another
/// pointer an output, and anything else a scalar whose value is the symbol of the same name. What `stated`
/// says wins where the signature does not tell better; what contradicts it, in the kernel or the reference,
/// is refused. A C++ kernel with exactly one function that takes a buffer gets its launch line added.
///
/// Throws `Error` (`mtmc.task.004`) for contradictions, for stated arguments that no launch passes, and where
/// neither the statement nor the signature tells role and data type: then it says whether the text cannot be
/// parsed, lacks the function, or has a type that this library does not know.
void complete_arguments(Task& task, std::vector<StatedArgument> stated);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/complete_arguments_inl.hpp>
#endif
