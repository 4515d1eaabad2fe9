#pragma once
/// Headers that NVRTC does not bring along.

#include <mtmc/requirements.hpp>

#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

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
      {"limits.h", "#pragma once\n"
                   // Spelled as in <cuda/std/climits>, so that either may come first.
                   "#define INT_MAX 0x7fffffff\n#define INT_MIN (-INT_MAX - 1)\n#define UINT_MAX 0xffffffff\n"
                   "#define LLONG_MAX 0x7fffffffffffffffLL\n#define LLONG_MIN (-LLONG_MAX - 1)\n"},
      {"climits", "#pragma once\n#include <limits.h>\n"},
      // What a kernel needs of the driver's header: the type of a tensor map.
      {"cuda.h", "#pragma once\n#ifndef __cuda_cuda_h__\n#define __cuda_cuda_h__\n"
                 "typedef struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;\n"
                 "#endif\n"},
      {"math.h", "#pragma once\n"},
      {"cmath", "#pragma once\n"}};
  return headers;
}

} // namespace mtmc::detail
