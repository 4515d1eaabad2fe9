#pragma once
/// What was proved of a kernel, for the head of its launcher.

#include <mtmc/core/conditions.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/program_binary.hpp>
#include <mtmc/core/task.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What was proved of a kernel, and with what; `Result::evidence` has it of a run. What is empty is not
/// known, and the launcher does not speak of it.
struct LauncherEvidence {
  /// As `environment_key::compile_command` has it: a launcher in C++ asks for the same flags, one of a CUDA
  /// kernel hands the same options to NVRTC.
  std::string compile_command{};
  /// As `environment_key::kernel_environment` has it: with which variables its threads ran.
  std::string kernel_environment{};
  /// `Evaluation::binary_hash` of the kernel: which binary was judged.
  std::string binary_hash{};
  /// That binary, for the launcher of a CUDA kernel to hold and load in place of compiling the text anew:
  /// `CudaBackend::binary`. `Result::evidence` leaves it out.
  std::optional<ProgramBinary> binary{};
  /// Seconds of one call, on average of the sizes that were timed; 0 = not known.
  double seconds = 0;
  /// Version of the compiler.
  std::string compiler{};
  /// Name of the device, and its architecture.
  std::string device{};
  /// `Device::arch`.
  std::string arch{};
  /// Over the start kernel, where there is one that was measured.
  std::optional<SpeedUp> speed_up{};
  /// At which the kernel was found correct.
  std::vector<ProblemSize> verified_sizes{};
};

} // namespace mtmc
