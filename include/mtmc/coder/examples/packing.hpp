#pragma once
/// The library's own examples of packing (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view packing_examples = R"xml(<examples>

<example optimization="packing" language="cpp">
<title>Distance between the days of two stations, hour by hour</title>
<action>packing the data of the i, j, k loop nest of taxicab in line 5 to 13</action>
<why>The inner loop went down the columns of y, M numbers apart, and did so again for every row of x. One copy with the
hours of a day side by side is made first, 32 x 32 numbers at a time, so that neither reading nor writing jumps through
many pages. It costs as much as one row of x did; the N rows then read both operands in order, and the sum is one of
vectors.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N", "K"]}, {"name": "y", "shape": ["K", "M"]}, {"name": "out", "shape": ["N", "M"]}],
 "sizes": [{"N": 160, "M": 256, "K": 192}, {"N": 7, "M": 33, "K": 41, "weight": 0}, {"N": 1, "M": 1, "K": 1, "weight": 0}],
 "flops": "3*N*M*K"}
]]></task>
<before><![CDATA[
#include <cmath>

//@ launch taxicab(x, y, out, N, M, K)
void taxicab(const float* x, const float* y, float* out, int N, int M, int K) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < M; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) {
        sum += std::fabs(x[i * K + k] - y[k * M + j]);
      }
      out[i * M + j] = sum;
    }
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>
#include <cmath>

//@ scratch days: f32[M, K]
//@ launch taxicab(x, y, days, out, N, M, K)
void taxicab(const float* x, const float* y, float* days, float* out, int N, int M, int K) {
  for (int first_k = 0; first_k < K; first_k += 32) {
    for (int first_j = 0; first_j < M; first_j += 32) {
      for (int j = first_j; j < std::min(first_j + 32, M); ++j) {
        for (int k = first_k; k < std::min(first_k + 32, K); ++k) {
          days[j * K + k] = y[k * M + j];
        }
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < M; ++j) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int k = 0; k < K; ++k) {
        sum += std::fabs(x[i * K + k] - days[j * K + k]);
      }
      out[i * M + j] = sum;
    }
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
