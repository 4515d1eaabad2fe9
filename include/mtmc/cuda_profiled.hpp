#pragma once
/// The program that Nsight Compute watches, so that counters of kernels can be read.

#include <mtmc/support/process/program_roles.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI {

/// What a program must be able to play for `CudaBackend::profile`, which has this very program started so by
/// Nsight Compute ("--mtmc-profiled" and a folder): it runs the kernel whose job lies in that folder.
/// `play_role(argc, argv, cuda_worker())` plays it, too; a program that is no worker says
///
///     if (const auto code = mtmc::play_role(argc, argv, {mtmc::cuda_profiled_role()})) return *code;
[[nodiscard]] ProgramRole cuda_profiled_role();

/// What `play_role` with `cuda_profiled_role` was called before 0.2.
[[deprecated(
    "run_as_profiled is a role of play_role(argc, argv, cuda_worker()) now; the old name works until "
    "0.3")]] [[nodiscard]] inline std::optional<int>
run_as_profiled(int argc, const char* const* argv) {
  return play_role(argc, argv, {cuda_profiled_role()});
}

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/cuda_profiled_inl.hpp>
#endif
