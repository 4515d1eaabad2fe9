#pragma once
/// A recorded plan as a launch plan, for a judge that runs kernels and nothing else.

#include <mtmc/backend/python/lowered_kernel.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/launch_plan.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What an input of a recorded call is for the judge; results are inputs that may be written.
struct RecordedBuffer {
  std::string name;      ///< of the task's argument
  bool writable = false; ///< whether the kernel may write it
};

/// Launches of a recorded call, or why a judge cannot run them.
struct RecordedLaunches {
  LaunchPlan plan{};                   ///< without size
  std::vector<std::size_t> kernels{};  ///< of each launch, which of `RecordedPlan::kernels` it is
  std::optional<Diagnostic> refused{}; ///< the first thing that is no launch and no fill with zeros
};

/// The launches of a plan's `forward`, whose kernels have been lowered. The buffers that are tensors among
/// the plan's inputs are called as `inputs` says (one each, numbers count too and are passed over); all other
/// memory is scratch memory, which is called "temporary_0" and so on. A fill with zeros becomes
/// `LaunchArgument::zeroed` of the launch behind it. Launches without programs are left out. Entries are
/// called by the kernel's name and the beginning of its id, because one function may have become several
/// kernels. Behind a kernel's own arguments are the two pointers to scratch memory of Triton's launcher, both
/// null.
///
/// Refused, with what to do: operators of PyTorch that remain, fills with other values or of a part, memory
/// whose content the text says, a fill that no launch follows, inputs that share memory or are not named,
/// weights, and results that are no inputs: it is for functions that are given everything
/// (`RecordingRequest::Role::function`).
[[nodiscard]] RecordedLaunches
recorded_launches(const RecordedPlan& plan, std::span<const std::shared_ptr<const LoweredKernel>> lowered,
                  std::span<const RecordedBuffer> inputs);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/recorded_launches_inl.hpp>
#endif
