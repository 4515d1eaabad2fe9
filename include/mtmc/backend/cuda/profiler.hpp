#pragma once
/// Counters of a kernel's run, by Nsight Compute. It watches a small program of ours from its start, so the
/// kernel is run once more, in a process of its own, on copies of its buffers.

#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/profile.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How counters are read.
struct CudaProfilerOptions {
  /// Nsight Compute's `ncu`; empty = where a CUDA toolkit or its own package puts it, or in the PATH.
  std::string profiler{};
  /// A program, with arguments, whose `main` begins with `play_role` and `cuda_worker()` or
  /// `cuda_profiled_role()`, as that of `mtmc-worker` does; empty = this very program, if it does so.
  std::vector<std::string> program{};
  /// Where copies of the buffers are put, in a folder that is removed; most bytes of them.
  std::string temporary_folder = "/tmp";
  /// A plan whose buffers take more than this is not profiled.
  std::int64_t max_bytes = std::int64_t{4} << 30;
  /// Longest run: it starts two processes and runs the kernel some ten times.
  std::chrono::milliseconds timeout{120'000};
  std::stop_token stop{}; ///< ends a profile early
};

namespace detail {

/// What makes a program the one that is watched: its first argument, before the folder of its job.
inline constexpr std::string_view profiled_argument = "--mtmc-profiled";

/// What the watched program is to run: all that `CudaProgram` and a plan need. A buffer argument's handle is
/// the number of its file, from 1 on.
struct ProfiledJob {
  CudaBackendOptions options{};
  LaunchPlan plan{};
  /// By launch: the function's name in the binary, and the kinds of its parameters.
  std::vector<std::string> entries{};
  std::vector<std::vector<std::uint64_t>> parameters{};
};
void visit_fields(JsonFields& visit, ProfiledJob& noun);

[[nodiscard]] inline std::string job_file(const std::string& folder) { return folder + "/job.json"; }
[[nodiscard]] inline std::string binary_file(const std::string& folder) { return folder + "/kernel.cubin"; }
[[nodiscard]] std::string buffer_file(const std::string& folder, std::size_t number);

/// Why the watched program failed; not there if it did not.
[[nodiscard]] inline std::string failure_file(const std::string& folder) { return folder + "/failure"; }

/// Copies bytes from an address of the device.
using ReadDevice = std::function<void(std::uint64_t address, std::span<std::byte> target)>;

/// Writes the files of a job. Gives the reason if there would be too many bytes.
[[nodiscard]] std::string write_job(const std::string& folder, const CudaBackendOptions& options,
                                    const CudaCompilation& compilation, LaunchPlan plan,
                                    std::int64_t max_bytes, const ReadDevice& read);

/// The profile of a program's run with a plan whose buffers are bound: by counters where they can be read,
/// else by the compiler's report, with the reason in `missing`. Throws nothing for what the surroundings
/// lack.
[[nodiscard]] Profile profile_cuda(const CudaProfilerOptions& profiler, const CudaBackendOptions& options,
                                   const std::string& toolkit, const CudaCompilation& compilation,
                                   const LaunchPlan& plan, const Device& device, const ReadDevice& read);

} // namespace detail
} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cuda/profiler_inl.hpp>
#endif
