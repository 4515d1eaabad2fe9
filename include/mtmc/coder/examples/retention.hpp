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
<title>Logarithm of the softmax of each row, where rows are short</title>
<action>keeping the values of the neighbouring start, start and start loops of log_softmax in line 12 to 22</action>
<why>A whole row fits one block, so the program loads it once and keeps it in registers for the maximum, the sum and the
result: one read and one write of each element instead of three reads. The block is the next power of two; lanes
beyond the row hold minus infinity, which adds nothing to the sum, and are not stored.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[4, 700]], [[1, 1]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        top = tl.maximum(top, tl.load(x + row + start + lane, mask=start + lane < columns, other=float("-inf")))
    largest = tl.max(top, 0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        v = tl.load(x + row + start + lane, mask=start + lane < columns, other=float("-inf"))
        total += tl.exp(v - largest)
    shift = largest + tl.log(tl.sum(total, 0))
    for start in range(0, columns, BLOCK):
        v = tl.load(x + row + start + lane, mask=start + lane < columns)
        tl.store(out + row + start + lane, v - shift, mask=start + lane < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        log_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    v = tl.load(x + row + lane, mask=lane < columns, other=float("-inf"))
    largest = tl.max(v, 0)
    shift = largest + tl.log(tl.sum(tl.exp(v - largest), 0))
    tl.store(out + row + lane, v - shift, mask=lane < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        log_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
