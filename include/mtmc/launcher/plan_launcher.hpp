#pragma once
/// A recorded call of a PyTorch module as plain C++ that does it without Python: what an engine compiles in.

#include <mtmc/backend/python/lowered_kernel.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>

#include <memory>
#include <span>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// C++17 text that does a plan's `forward` on a GPU and needs neither this library nor Python, PyTorch or
/// Triton: a header with a class `launcher_<task>` that holds the binaries of the kernels and opens
/// libcuda.so.1 when it is made; no header of CUDA is needed. `kernel` is the module's text, `task` what
/// `problem_task` made of the problem: inputs and results are called as its arguments are, or "input_0" and
/// "output_0" where it has none. `lowered` are the plan's kernels in its order (`TritonCompiler::lower`).
///
/// Its constructor loads the kernels into the current context. A call takes a stream, memory for temporaries
/// (`scratch_bytes()` says how much; those that are never needed at once share it), `Weights` where there are
/// some, inputs and outputs, all as addresses of the device's memory, aligned to 16 bytes; it queues launches
/// and fills in their order and allocates nothing, so that it can be captured in a graph. What a storage
/// holds that the module's text says is uploaded once. `Weights` has a member for each parameter and buffer
/// that the call touches ("linear.weight" is `linear_weight`), and for each other tensor that the constructor
/// computed, called after the line that did ("made_in_line_12"), because weights may have any values and no
/// launcher computes what follows from them. A result in the memory of an input or weight is written there;
/// any other result is an output.
///
/// Sizes, strides and numbers that the module was called with are those of the recording: other ones need
/// a plan and a launcher of their own. Of the evidence, `binary` is not looked at: the binaries are
/// `lowered`.
///
/// Throws `Error` (`mtmc.report.001`) with the line of the module and what to do: for operators of PyTorch
/// that remain (the first one is named), for a plan that `check_recorded_plan` refuses, for inputs or
/// weights that are a part of their memory or share it, for fills that are no rows, and for kernels that were
/// not lowered.
[[nodiscard]] std::string plan_launcher_source(const Kernel& kernel, const Task& task,
                                               const RecordedPlan& plan,
                                               std::span<const std::shared_ptr<const LoweredKernel>> lowered,
                                               const LauncherEvidence& evidence = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/launcher/plan_launcher_inl.hpp>
#endif
