#pragma once

#include <mtmc/core/kernel.hpp>

/// \file
/// Which languages have threads in the sense of a GPU, and what those can do.

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a launch in this language is a grid of blocks of threads: CUDA C++, OpenCL C.
[[nodiscard]] inline bool has_thread_grid(const Language& language) noexcept {
  return language.name == languages::cuda.name || language.name == languages::opencl.name;
}

/// Whether the threads of a warp exchange what they have in registers (`__shfl_xor_sync`). Otherwise all goes
/// through shared memory.
[[nodiscard]] inline bool has_warps(const Language& language) noexcept {
  return language.name == languages::cuda.name;
}

} // namespace mtmc::detail
