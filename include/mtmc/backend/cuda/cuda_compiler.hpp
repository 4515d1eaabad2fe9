#pragma once
/// From a kernel's text and its launches to a CUBIN for one architecture.

#include <mtmc/backend/cuda/compiler_process.hpp>
#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/backend/cuda/nvrtc_log.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/core/branch.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/file_fence.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One launch of a compiled kernel.
struct CudaEntry {
  /// Name in the binary.
  std::string name;
  std::vector<CudaParameter> parameters{};
  /// Which binary it is in: 0, or one more than its place in `CudaCompilation::further`.
  std::size_t binary = 0;
};

/// One more binary of a program: recorded plans have one for each kernel.
struct CudaBinary {
  std::string cubin{};
  /// As `CudaCompilation::variables`.
  std::vector<std::string> variables{};
};

/// What came of a compilation: a binary, or diagnostics with an error, or `timed_out`.
struct CudaCompilation {
  std::string cubin{};
  /// Of a program with probes, whose binary is PTX: in the order of their stores.
  std::vector<Branch> branches{};
  /// In the order of the launches.
  std::vector<CudaEntry> entries{};
  std::vector<LaunchSignature> signatures{};
  /// Variables of the device that outlive a launch; tables, as far as the screen can tell.
  std::vector<std::string> variables{};
  /// Of a recorded plan with several kernels.
  std::vector<CudaBinary> further{};
  bool timed_out = false;
  bool refused = false;
  std::vector<Diagnostic> diagnostics{};
  std::map<std::string, double> resources{};
};

/// Compiles for one architecture. Needs no GPU. May be used from several threads.
class CudaCompiler {
public:
  /// `architecture`: "sm_90a". Throws `Error` (`mtmc.backend.001`) where there is no NVRTC that serves a
  /// driver of `driver_version` (0 = any).
  CudaCompiler(const CudaBackendOptions& options, const std::string& architecture, int driver_version = 0);

  /// "NVRTC 13.0".
  [[nodiscard]] std::string version() const { return here_ ? here_->version() : apart_->version(); }
  /// Whether it is a process of its own, so that limits are kept.
  [[nodiscard]] bool is_apart() const noexcept { return apart_ != nullptr; }
  /// What keeps the compiler from files that are no headers, for the environment record: "Landlock",
  /// "seccomp", or only "the text's screen".
  [[nodiscard]] std::string confinement() const;
  /// The toolkit whose headers kernels can include; empty without one.
  [[nodiscard]] const std::string& toolkit() const noexcept { return toolkit_; }
  /// What kernels may include and is there, by what lies in the toolkit's folders.
  [[nodiscard]] std::vector<std::string> headers() const;
  /// "nvrtc" and the options that decide what code comes of a kernel's text.
  [[nodiscard]] std::string command() const { return command_; }
  [[nodiscard]] std::string flags() const;

  /// Throws `Error` (`mtmc.backend.001`) only where the compiler itself is not available. `memory_bytes`: as
  /// `CudaBackendOptions::compile_memory_bytes`; 0 = what that says.
  [[nodiscard]] CudaCompilation compile(const Kernel& kernel, const LaunchPlan& plan, Deadline deadline,
                                        std::stop_token stop, std::int64_t memory_bytes = 0) const {
    return compile_text(kernel, plan, deadline, std::move(stop), memory_bytes, false);
  }
  /// The same for a debugger, with stores that show which ways its branches go.
  [[nodiscard]] CudaCompilation compile_probed(const Kernel& kernel, const LaunchPlan& plan,
                                               Deadline deadline, std::stop_token stop,
                                               std::int64_t memory_bytes = 0) const {
    return compile_text(kernel, plan, deadline, std::move(stop), memory_bytes, true);
  }

private:
  [[nodiscard]] CudaCompilation compile_text(const Kernel& kernel, const LaunchPlan& plan, Deadline deadline,
                                             std::stop_token stop, std::int64_t memory_bytes,
                                             bool probed) const;

  /// In a thread that can read the toolkit's headers and nothing else, if the system keeps it to that.
  [[nodiscard]] NvrtcResult compile_here(const NvrtcRequest& request) const;

  [[nodiscard]] static std::string toolkit_of(const CudaBackendOptions& options);

  /// What to start for a compiler process; empty if there is no program that could be one.
  [[nodiscard]] static std::vector<std::string> compiler_command(const CudaBackendOptions& options);

  /// Names of the entries in the binary, what their parameters take, and the worst of their resources.
  static void read_entries(const NvrtcResult& compiled, CudaCompilation& result);

  std::string toolkit_;
  std::int64_t memory_bytes_;
  bool landlock_;
  mutable std::once_flag warm_;
  /// One of the two.
  std::optional<Nvrtc> here_;
  std::unique_ptr<CompilerProcess> apart_;
  std::vector<std::string> flags_;
  std::string command_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cuda/cuda_compiler_inl.hpp>
#endif
