#pragma once
/// The library's own examples of online algorithms (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view online_examples = R"xml(<examples>

<example optimization="online" language="cpp">
<title>Logarithm of the sum of exponentials of each row</title>
<action>making one pass of the neighbouring j and j loops of soft_top in line 7 to 9</action>
<why>The sum needed the maximum of the whole row, so the row was read twice. Now the pass carries the largest value so far
and the sum relative to it; where a larger one comes, the sum is scaled to it. Each value costs one exponential as
before, the row is read once, and nothing overflows. The first value starts the pair, so no infinity is ever
subtracted.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M"]}],
 "sizes": [{"M": 300, "N": 5000}, {"M": 7, "N": 13, "weight": 0}, {"M": 1, "N": 1, "weight": 0}],
 "flops": "3*M*N"}
]]></task>
<before><![CDATA[
#include <cmath>

//@ launch soft_top(x, out, M, N)
void soft_top(const float* x, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float top = x[i * N];
    for (int j = 0; j < N; ++j) top = std::fmax(top, x[i * N + j]);
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += std::exp(x[i * N + j] - top);
    out[i] = top + std::log(sum);
  }
}
]]></before>
<after><![CDATA[
#include <cmath>

//@ launch soft_top(x, out, M, N)
void soft_top(const float* x, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float top = x[i * N];
    float sum = 1;
    for (int j = 1; j < N; ++j) {
      const float value = x[i * N + j];
      if (value > top) {
        sum = sum * std::exp(top - value) + 1;
        top = value;
      } else {
        sum += std::exp(value - top);
      }
    }
    out[i] = top + std::log(sum);
  }
}
]]></after>
</example>

<example optimization="online" language="cuda">
<title>Logarithm of the sum of exponentials of each row</title>
<action>making one pass of the neighbouring j and j loops of soft_top in line 6 to 12</action>
<why>The sum needed the maximum of the whole row, so memory gave the row twice. Now the pass carries the largest value so
far and the sum relative to it: both are scaled to the larger of old and new, by one exponential that is 1 and one that
is not, so that no thread waits for another's branch. Memory gives the row once, nothing overflows, and the first value
starts the pair, so no infinity is ever subtracted.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M"]}],
 "sizes": [{"M": 4096, "N": 4000}, {"M": 7, "N": 131, "weight": 0}, {"M": 3, "N": 1, "weight": 0}],
 "flops": "3*M*N"}
]]></task>
<before><![CDATA[
//@ launch soft_top<<<ceil_div(M, 128), 128>>>(x, out, M, N)
__global__ void soft_top(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float top = x[i * N];
    for (int j = 0; j < N; ++j) {
      top = fmaxf(top, x[i * N + j]);
    }
    float sum = 0;
    for (int j = 0; j < N; ++j) {
      sum += expf(x[i * N + j] - top);
    }
    out[i] = top + logf(sum);
  }
}
]]></before>
<after><![CDATA[
//@ launch soft_top<<<ceil_div(M, 128), 128>>>(x, out, M, N)
__global__ void soft_top(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float top = x[i * N];
    float sum = 1;
    for (int j = 1; j < N; ++j) {
      float value = x[i * N + j];
      float larger = fmaxf(top, value);
      sum = sum * expf(top - larger) + expf(value - larger);
      top = larger;
    }
    out[i] = top + logf(sum);
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
