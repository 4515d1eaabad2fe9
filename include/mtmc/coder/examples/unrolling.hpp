#pragma once
/// The library's own examples of unrolling (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view unrolling_examples = R"xml(<examples>

<example optimization="unrolling" language="cpp">
<title>A polynomial at many points, by Horner's rule</title>
<action>unrolling the i, k loop nest of horner in line 3 to 9</action>
<why>Each step of Horner's rule waits for the one before. Four points at a time give the processor four independent
chains that fill each other's waiting, and each coefficient is loaded once for the four. A second loop takes the up to
three points that remain; each point's own operations and their order are the same.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"], "domain": ["-1", "1"]}, {"name": "c", "shape": ["K"]}, {"name": "y", "shape": ["N"]}],
 "sizes": [{"N": 20000, "K": 24}, {"N": 1003, "K": 7, "weight": 0}, {"N": 1, "K": 1, "weight": 0}],
 "flops": "2*N*K"}
]]></task>
<before><![CDATA[
//@ launch horner(x, c, y, N, K)
void horner(const float* x, const float* c, float* y, int N, int K) {
  for (int i = 0; i < N; ++i) {
    float value = 0.0f;
    for (int k = 0; k < K; ++k) {
      value = value * x[i] + c[k];
    }
    y[i] = value;
  }
}
]]></before>
<after><![CDATA[
//@ launch horner(x, c, y, N, K)
void horner(const float* x, const float* c, float* y, int N, int K) {
  int i = 0;
  for (; i + 3 < N; i += 4) {
    float value0 = 0.0f, value1 = 0.0f, value2 = 0.0f, value3 = 0.0f;
    for (int k = 0; k < K; ++k) {
      value0 = value0 * x[i] + c[k];
      value1 = value1 * x[i + 1] + c[k];
      value2 = value2 * x[i + 2] + c[k];
      value3 = value3 * x[i + 3] + c[k];
    }
    y[i] = value0;
    y[i + 1] = value1;
    y[i + 2] = value2;
    y[i + 3] = value3;
  }
  for (; i < N; ++i) {
    float value = 0.0f;
    for (int k = 0; k < K; ++k) {
      value = value * x[i] + c[k];
    }
    y[i] = value;
  }
}
]]></after>
</example>

<example optimization="unrolling" language="cuda">
<title>A filter with K taps over a signal</title>
<action>unrolling the i threads of fir in line 3 to 10</action>
<why>Each thread now computes four results in registers, 128 elements apart, so that the accesses of a warp stay
neighbouring: a tap is loaded once for the four, and four independent loads of the signal are in flight. The launch line
starts a quarter of the blocks. A thread whose four elements are not all below N takes them one by one.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N + K - 1"]}, {"name": "h", "shape": ["K"]}, {"name": "y", "shape": ["N"]}],
 "sizes": [{"N": 4000000, "K": 32},
           {"N": 6000, "K": 32, "weight": 0}, {"N": 515, "K": 5, "weight": 0}, {"N": 1, "K": 1, "weight": 0}],
 "flops": "2*N*K"}
]]></task>
<before><![CDATA[
//@ launch fir<<<ceil_div(N, 128), 128>>>(x, h, y, N, K)
__global__ void fir(const float* x, const float* h, float* y, int N, int K) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      sum += h[k] * x[i + k];
    }
    y[i] = sum;
  }
}
]]></before>
<after><![CDATA[
//@ launch fir<<<ceil_div(N, 512), 128>>>(x, h, y, N, K)
__global__ void fir(const float* x, const float* h, float* y, int N, int K) {
  int i = blockIdx.x * 512 + threadIdx.x;
  if (i + 384 < N) {
    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
    for (int k = 0; k < K; ++k) {
      float tap = h[k];
      sum0 += tap * x[i + k];
      sum1 += tap * x[i + 128 + k];
      sum2 += tap * x[i + 256 + k];
      sum3 += tap * x[i + 384 + k];
    }
    y[i] = sum0;
    y[i + 128] = sum1;
    y[i + 256] = sum2;
    y[i + 384] = sum3;
  } else {
    for (; i < N; i += 128) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += h[k] * x[i + k];
      }
      y[i] = sum;
    }
  }
}
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
