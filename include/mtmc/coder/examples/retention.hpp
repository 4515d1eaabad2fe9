#pragma once
/// The library's own examples of retention (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view retention_examples = R"xml(<examples>

<example optimization="retention" language="cuda">
<title>Each spectrum less its mean, over its own largest deviation</title>
<action>keeping the values of the threads of centre in line 2 to 25</action>
<why>Every value was read from memory three times. A thread's share of a row is at most 8 values where rows have up to 2048,
so it keeps them in registers: the loop over them has a constant number of turns and is unrolled, or the array would
lie in memory. What lies beyond is read again as before, so that every length is right. Threads without a value
hold 0, which is left out of the maximum by the same bound as before.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M", "N"]}],
 "sizes": [{"M": 4096, "N": 2000}, {"M": 7, "N": 2500, "weight": 0}, {"M": 3, "N": 1, "weight": 0}],
 "flops": "5*M*N"}
]]></task>
<before><![CDATA[
//@ launch centre<<<M, 256>>>(x, out, N)
__global__ void centre(const float* x, float* out, int N) {
  __shared__ float parts[256];
  int i = blockIdx.x;
  float sum = 0;
  for (int j = threadIdx.x; j < N; j += 256) sum += x[i * N + j];
  parts[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  __syncthreads();
  float mean = parts[0] / N;
  __syncthreads();
  float top = 0;
  for (int j = threadIdx.x; j < N; j += 256) top = fmaxf(top, fabsf(x[i * N + j] - mean));
  parts[threadIdx.x] = top;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + half]);
  }
  __syncthreads();
  float scale = 1 / (parts[0] + 1e-3f);
  for (int j = threadIdx.x; j < N; j += 256) out[i * N + j] = (x[i * N + j] - mean) * scale;
}
]]></before>
<after><![CDATA[
//@ launch centre<<<M, 256>>>(x, out, N)
__global__ void centre(const float* x, float* out, int N) {
  __shared__ float parts[256];
  int i = blockIdx.x;
  float kept[8];
  float sum = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    int j = threadIdx.x + 256 * c;
    kept[c] = j < N ? x[i * N + j] : 0;
    sum += kept[c];
  }
  for (int j = threadIdx.x + 2048; j < N; j += 256) sum += x[i * N + j];
  parts[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  __syncthreads();
  float mean = parts[0] / N;
  __syncthreads();
  float top = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c)
    if (threadIdx.x + 256 * c < N) top = fmaxf(top, fabsf(kept[c] - mean));
  for (int j = threadIdx.x + 2048; j < N; j += 256) top = fmaxf(top, fabsf(x[i * N + j] - mean));
  parts[threadIdx.x] = top;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + half]);
  }
  __syncthreads();
  float scale = 1 / (parts[0] + 1e-3f);
#pragma unroll
  for (int c = 0; c < 8; ++c)
    if (threadIdx.x + 256 * c < N) out[i * N + threadIdx.x + 256 * c] = (kept[c] - mean) * scale;
  for (int j = threadIdx.x + 2048; j < N; j += 256) out[i * N + j] = (x[i * N + j] - mean) * scale;
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
