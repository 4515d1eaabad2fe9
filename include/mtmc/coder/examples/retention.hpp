#pragma once
/// The library's own examples of retention (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view retention_examples = R"xml(<examples>

<example optimization="retention" language="cuda">
<title>Each spectrum between 0, its lowest line, and 1, its highest</title>
<action>keeping the values of the blockIdx.x, threadIdx.x threads of rescale in line 3 to 21</action>
<why>Every value was read from memory twice. A thread's share of a row is at most 8 values where rows have up to 2048, so
it keeps them in registers: the loop over them has a constant number of turns and is unrolled, or the array would
lie in memory. What lies beyond is read again as before, so that every length is right. Where a thread has no value it
keeps the row's first one, which changes no extreme and is not written.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M", "N"]}],
 "sizes": [{"M": 4096, "N": 2000}, {"M": 7, "N": 2500, "weight": 0}, {"M": 3, "N": 1, "weight": 0}],
 "flops": "4*M*N"}
]]></task>
<before><![CDATA[
//@ launch rescale<<<M, 256>>>(x, out, N)
__global__ void rescale(const float* x, float* out, int N) {
  __shared__ float lows[256];
  __shared__ float highs[256];
  int i = blockIdx.x;
  float low = x[i * N];
  float high = x[i * N];
  for (int j = threadIdx.x; j < N; j += 256) {
    low = fminf(low, x[i * N + j]);
    high = fmaxf(high, x[i * N + j]);
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  __syncthreads();
  for (int t = 0; t < 256; ++t) {
    low = fminf(low, lows[t]);
    high = fmaxf(high, highs[t]);
  }
  for (int j = threadIdx.x; j < N; j += 256) {
    out[i * N + j] = (x[i * N + j] - low) / (high - low + 1e-3f);
  }
}
]]></before>
<after><![CDATA[
//@ launch rescale<<<M, 256>>>(x, out, N)
__global__ void rescale(const float* x, float* out, int N) {
  __shared__ float lows[256];
  __shared__ float highs[256];
  int i = blockIdx.x;
  float low = x[i * N];
  float high = x[i * N];
  float kept[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    int j = threadIdx.x + 256 * c;
    kept[c] = j < N ? x[i * N + j] : x[i * N];
    low = fminf(low, kept[c]);
    high = fmaxf(high, kept[c]);
  }
  for (int j = threadIdx.x + 2048; j < N; j += 256) {
    low = fminf(low, x[i * N + j]);
    high = fmaxf(high, x[i * N + j]);
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  __syncthreads();
  for (int t = 0; t < 256; ++t) {
    low = fminf(low, lows[t]);
    high = fmaxf(high, highs[t]);
  }
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    int j = threadIdx.x + 256 * c;
    if (j < N) out[i * N + j] = (kept[c] - low) / (high - low + 1e-3f);
  }
  for (int j = threadIdx.x + 2048; j < N; j += 256) {
    out[i * N + j] = (x[i * N + j] - low) / (high - low + 1e-3f);
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
