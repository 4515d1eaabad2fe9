#pragma once
/// What kernels in CUDA C++ may include, and tell the compiler.

#include <mtmc/backend/directive_screen.hpp>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::detail {

/// Headers that are there without any toolkit, with their texts. The types are those of the toolkit's own
/// <cuda/std/cstdint>; functions for real numbers and macros of the device are built in.
[[nodiscard]] inline const std::vector<std::pair<const char*, const char*>>& cuda_own_headers() {
  static const std::vector<std::pair<const char*, const char*>> headers{
      {"stdint.h",
       "#pragma once\n"
       "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;\n"
       "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;\n"
       "typedef unsigned long long uint64_t; typedef long long intptr_t; typedef unsigned long long "
       "uintptr_t;\n"},
      {"cstdint",
       "#pragma once\n#include <stdint.h>\n"
       "namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t;\n"
       "using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t; }\n"},
      {"stddef.h", "#pragma once\n"},
      {"cstddef", "#pragma once\nnamespace std { using ::size_t; using ::ptrdiff_t; }\n"},
      {"float.h", "#pragma once\n"
                  "#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n"
                  "#define FLT_EPSILON 1.192092896e-07f\n#define DBL_MAX 1.7976931348623158e+308\n"
                  "#define DBL_MIN 2.2250738585072014e-308\n#define DBL_EPSILON 2.2204460492503131e-16\n"},
      {"cfloat", "#pragma once\n#include <float.h>\n"},
      {"limits.h",
       "#pragma once\n"
       "#define INT_MAX 2147483647\n#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX 4294967295u\n"
       "#define LLONG_MAX 9223372036854775807ll\n#define LLONG_MIN (-LLONG_MAX - 1)\n"},
      {"climits", "#pragma once\n#include <limits.h>\n"},
      {"math.h", "#pragma once\n"},
      {"cmath", "#pragma once\n"}};
  return headers;
}

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
