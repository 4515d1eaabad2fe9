#pragma once
/// From a recorded kernel's IR to a binary for the device, in a process that never ran a candidate's text.

#include <mtmc/backend/python/lowered_kernel.hpp>
#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What came of a lowering.
struct Lowering {
  std::shared_ptr<const LoweredKernel> kernel{}; ///< the binary, or null
  /// At least one error where there is no binary, unless it was timed out.
  std::vector<Diagnostic> diagnostics{};
  /// A screen refused what came of it.
  bool refused = false;
  /// The deadline or a stop request came first.
  bool timed_out = false;
  /// Wall-clock time; nearly none for a kernel that was lowered before.
  double seconds = 0;
};

/// Lowers kernels with the Triton of a Python installation.
class TritonCompiler {
public:
  /// Starts Python, which takes a second. Throws `Error` (`mtmc.backend.001`) where it is missing, lacks
  /// triton, or has a version that is not one of `known_triton_versions`.
  explicit TritonCompiler(const PythonOptions& options = {});
  TritonCompiler(TritonCompiler&&) noexcept;            ///< takes over process and kernels
  TritonCompiler& operator=(TritonCompiler&&) noexcept; ///< takes over process and kernels
  ~TritonCompiler();

  /// Of "python" and "triton".
  [[nodiscard]] const std::map<std::string, std::string>& versions() const noexcept;

  /// Makes a kernel's binary for a device, once for each `RecordedKernel::id()` and device; PTX and binary
  /// pass the screens of CUDA C++ (backend/cuda/cubin_screen.hpp). May be called from several threads. Throws
  /// `Error` (`mtmc.backend.001`) where Python is lost.
  [[nodiscard]] Lowering lower(const RecordedKernel& kernel, const RecordedTarget& target,
                               std::stop_token stop = {}) const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/triton_compiler_inl.hpp>
#endif
