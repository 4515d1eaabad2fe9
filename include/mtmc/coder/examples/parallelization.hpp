#pragma once
/// The library's own examples of parallelization (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view parallelization_examples = R"xml(<examples>

<example optimization="parallelization" language="cpp">
<title>Squared distance of each point to the nearest site</title>
<action>parallelizing the i, s loop nest of nearest in line 5 to 13</action>
<why>No point needs another's result, so every core takes a contiguous share of the points; `static` gives all of them
the same number, since each point costs the same. What an iteration writes besides out[i] is declared inside the
loop, so every thread has its own. The operations of each point are unchanged, also where N is no multiple of the number
of cores.</why>
<task><![CDATA[
{"arguments": [{"name": "px", "shape": ["N"]}, {"name": "py", "shape": ["N"]}, {"name": "sx", "shape": ["S"]},
               {"name": "sy", "shape": ["S"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 20000, "S": 1000}, {"N": 67, "S": 13, "weight": 0}, {"N": 1, "S": 1, "weight": 0}],
 "flops": "6*N*S"}
]]></task>
<before><![CDATA[
#include <algorithm>

//@ launch nearest(px, py, sx, sy, out, N, S)
void nearest(const float* px, const float* py, const float* sx, const float* sy, float* out, int N, int S) {
  for (int i = 0; i < N; ++i) {
    float best = 1e30f;
    for (int s = 0; s < S; ++s) {
      float dx = px[i] - sx[s];
      float dy = py[i] - sy[s];
      best = std::min(best, dx * dx + dy * dy);
    }
    out[i] = best;
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ launch nearest(px, py, sx, sy, out, N, S)
void nearest(const float* px, const float* py, const float* sx, const float* sy, float* out, int N, int S) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < N; ++i) {
    float best = 1e30f;
    for (int s = 0; s < S; ++s) {
      float dx = px[i] - sx[s];
      float dy = py[i] - sy[s];
      best = std::min(best, dx * dx + dy * dy);
    }
    out[i] = best;
  }
}
]]></after>
</example>

<example optimization="parallelization" language="cuda">
<title>From the lowest to the highest sample of each record</title>
<action>parallelizing the j loop of peak_to_peak in line 7 to 10</action>
<why>A block of 128 threads now shares a record that one thread went through alone: neighbouring threads read
neighbouring samples, and 128 times as many threads are at work. Each keeps its own extremes, and a tree in shared memory
combines them, with a barrier after every halving. The launch line starts a block for each record; threads
without a sample keep the record's first one, which changes no extreme.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "span", "shape": ["M"]}],
 "sizes": [{"M": 1000, "N": 10000},
           {"M": 100, "N": 1000, "weight": 0}, {"M": 7, "N": 129, "weight": 0}, {"M": 3, "N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch peak_to_peak<<<ceil_div(M, 128), 128>>>(x, span, M, N)
__global__ void peak_to_peak(const float* x, float* span, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float low = x[i * N];
    float high = x[i * N];
    for (int j = 0; j < N; ++j) {
      low = fminf(low, x[i * N + j]);
      high = fmaxf(high, x[i * N + j]);
    }
    span[i] = high - low;
  }
}
]]></before>
<after><![CDATA[
//@ launch peak_to_peak<<<M, 128>>>(x, span, M, N)
__global__ void peak_to_peak(const float* x, float* span, int M, int N) {
  __shared__ float lows[128];
  __shared__ float highs[128];
  int i = blockIdx.x;
  int t = threadIdx.x;
  float low = x[i * N];
  float high = x[i * N];
  for (int j = t; j < N; j += 128) {
    low = fminf(low, x[i * N + j]);
    high = fmaxf(high, x[i * N + j]);
  }
  lows[t] = low;
  highs[t] = high;
  __syncthreads();
  for (int reach = 64; reach > 0; reach /= 2) {
    if (t < reach) {
      lows[t] = fminf(lows[t], lows[t + reach]);
      highs[t] = fmaxf(highs[t], highs[t + reach]);
    }
    __syncthreads();
  }
  if (t == 0) {
    span[i] = highs[0] - lows[0];
  }
}
]]></after>
</example>

<example optimization="parallelization" language="opencl">
<title>Energy of each record</title>
<action>parallelizing the j loop of energy in line 6 to 8</action>
<why>A group of 64 work-items now shares a record that one work-item went through alone: neighbours read neighbouring
samples, and 64 times as many are at work. Each sums every 64th square, and a tree in local memory adds the
partial sums, with a barrier after every halving. The launch line starts a group for each record; work-items without
a sample add zero.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "role": "input", "dtype": "f32", "shape": ["M", "N"]},
               {"name": "out", "role": "output", "dtype": "f32", "shape": ["M"]},
               {"name": "M", "role": "scalar", "dtype": "i32", "value": "M"},
               {"name": "N", "role": "scalar", "dtype": "i32", "value": "N"}],
 "sizes": [{"M": 100, "N": 1000}, {"M": 7, "N": 65, "weight": 0}, {"M": 3, "N": 1, "weight": 0}],
 "flops": "2*M*N"}
]]></task>
<before><![CDATA[
//@ launch energy<<<ceil_div(M, 64), 64>>>(x, out, M, N)
__kernel void energy(__global const float* x, __global float* out, int M, int N) {
  int i = get_global_id(0);
  if (i >= M) return;
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) {
    sum += x[i * N + j] * x[i * N + j];
  }
  out[i] = sum;
}
]]></before>
<after><![CDATA[
//@ launch energy<<<M, 64>>>(x, out, M, N)
__kernel void energy(__global const float* x, __global float* out, int M, int N) {
  __local float sums[64];
  int i = get_group_id(0);
  int t = get_local_id(0);
  float sum = 0.0f;
  for (int j = t; j < N; j += 64) {
    sum += x[i * N + j] * x[i * N + j];
  }
  sums[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = 32; reach > 0; reach /= 2) {
    if (t < reach) sums[t] += sums[t + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) out[i] = sums[0];
}
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
