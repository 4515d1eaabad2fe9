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

<example optimization="retention" language="triton">
<title>Spread of the readings of each sensor, where there are few</title>
<action>keeping the values of the neighbouring start and start loops of spread in line 12 to 18</action>
<why>All readings of a sensor fit one block, so the program loads them once and keeps them in registers for both passes:
one read of each reading instead of two, and no loops. The block is the next power of two; lanes beyond the row add
nothing to the sum and are as far from the middle as nothing, so that the result is the same.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[4, 700]], [[1, 1]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spread(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row + start + lane, mask=start + lane < columns, other=0.0)
    middle = tl.sum(total, 0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        v = tl.load(x + row + start + lane, mask=start + lane < columns, other=middle)
        squares += (v - middle) * (v - middle)
    tl.store(out + tl.program_id(0), tl.sqrt(tl.sum(squares, 0) / columns))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        spread[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spread(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    v = tl.load(x + row + lane, mask=lane < columns, other=0.0)
    middle = tl.sum(v, 0) / columns
    gap = tl.where(lane < columns, v - middle, 0.0)
    tl.store(out + tl.program_id(0), tl.sqrt(tl.sum(gap * gap, 0) / columns))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        spread[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
