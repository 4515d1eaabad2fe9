#pragma once
/// What kernels in CUDA C++ may include, and tell the compiler.

#include <mtmc/backend/directive_screen.hpp>
#include <mtmc/support/nvrtc_headers.hpp>

#include <array>
#include <string_view>

namespace mtmc::detail {

[[nodiscard]] inline bool is_allowed_cuda_header(std::string_view name) {
  for (const auto& [own, text] : cuda_own_headers())
    if (name == own) return true;
  constexpr auto of_toolkit = std::to_array<std::string_view>(
      {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "mma.h", "cuda_pipeline.h", "cuda_runtime.h",
       "cooperative_groups.h", "math_constants.h", "vector_types.h", "device_launch_parameters.h"});
  if (is_one_of(name, of_toolkit)) return true;
  // Whole folders of the toolkit, but nothing that leads out of them.
  return (name.starts_with("cuda/") || name.starts_with("cooperative_groups/")) &&
         name.find("..") == std::string_view::npos;
}

[[nodiscard]] inline bool is_allowed_cuda_pragma(std::string_view first, std::string_view) {
  constexpr auto allowed = std::to_array<std::string_view>(
      {"unroll", "nounroll", "once", "nv_diag_suppress", "nv_diag_default", "diag_suppress", "diag_default"});
  return first.empty() || is_one_of(first, allowed);
}

inline constexpr TextRules cuda_text_rules{
    is_allowed_cuda_header,
    "Use <cstdint>, <cmath>, <cfloat>, and of the toolkit <cuda_fp16.h>, <cuda_bf16.h>, <mma.h>, "
    "<cooperative_groups.h> and <cuda/...>; a kernel has no files, no output and no host code",
    is_allowed_cuda_pragma, "Leave it out; `#pragma unroll` is understood"};

} // namespace mtmc::detail
