#pragma once
/// How a program lets counters be read of its kernels: one line at the start of `main`.

#include <mtmc/requirements.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI {

/// To be called at the start of `main`, before anything else that matters:
///
///     if (auto code = mtmc::run_as_profiled(argc, argv)) return *code;
///
/// If `argv[1]` is "--mtmc-profiled" this process was started by Nsight Compute for `CudaBackend::profile`:
/// it runs the kernel whose job lies in the folder `argv[2]`, and the answer is the exit code. Otherwise
/// nothing happens but that `CudaBackend::profile` may from now on have this very program started so, and
/// there is no answer. Never throws.
[[nodiscard]] std::optional<int> run_as_profiled(int argc, const char* const* argv);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/cuda_profiled_inl.hpp>
#endif
