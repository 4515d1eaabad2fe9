#pragma once
/// The library's own examples of reordering (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view reordering_examples = R"xml(<examples>

<example optimization="reordering" language="cpp">
<title>Exponential smoothing of many series that are stored time by time</title>
<action>reordering the s, t loop nest of smooth in line 6 to 10</action>
<why>The samples of one time stand next to each other, so the loop over the series is now the inner one and moves by one
element, where the loop over time moved by S: every byte of a cache line is used, and the compiler can vectorize it.
What an iteration needs is the value of the same series one time step before; with time outside, that is
still computed earlier.</why>
<task><![CDATA[
{"arguments": [{"name": "in", "shape": ["T", "S"]}, {"name": "out", "shape": ["T", "S"]}],
 "sizes": [{"T": 300, "S": 1024}, {"T": 7, "S": 67, "weight": 0}, {"T": 1, "S": 3, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch smooth(in, out, T, S)
void smooth(const float* in, float* out, int T, int S) {
  for (int s = 0; s < S; ++s) {
    out[s] = in[s];
  }
  for (int s = 0; s < S; ++s) {
    for (int t = 1; t < T; ++t) {
      out[t * S + s] = 0.25f * in[t * S + s] + 0.75f * out[(t - 1) * S + s];
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch smooth(in, out, T, S)
void smooth(const float* in, float* out, int T, int S) {
  for (int s = 0; s < S; ++s) {
    out[s] = in[s];
  }
  for (int t = 1; t < T; ++t) {
    for (int s = 0; s < S; ++s) {
      out[t * S + s] = 0.25f * in[t * S + s] + 0.75f * out[(t - 1) * S + s];
    }
  }
}
]]></after>
</example>

<example optimization="reordering" language="cuda">
<title>Sensor readings with a gain and an offset for each channel</title>
<action>reordering the s, c thread nest of calibrate in line 3 to 7</action>
<why>Neighbouring threads along x now take neighbouring samples of one channel, so a warp reads and writes whole lines
of memory; before, they lay N elements apart and each access of a warp touched 32 lines. The two axes of the grid change
places with them in the launch line. Every pair of c and s still has one thread, and the guard still covers both
edges.</why>
<task><![CDATA[
{"arguments": [{"name": "in", "shape": ["C", "N"]}, {"name": "gain", "shape": ["C"]}, {"name": "offset", "shape": ["C"]},
               {"name": "out", "shape": ["C", "N"]}],
 "sizes": [{"C": 4000, "N": 4000},
           {"C": 96, "N": 500, "weight": 0}, {"C": 17, "N": 33, "weight": 0}, {"C": 1, "N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch calibrate<<<(ceil_div(C, 32), ceil_div(N, 8)), (32, 8)>>>(in, gain, offset, out, C, N)
__global__ void calibrate(const float* in, const float* gain, const float* offset, float* out, int C, int N) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int s = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < C && s < N) {
    out[c * N + s] = gain[c] * (in[c * N + s] - offset[c]);
  }
}
]]></before>
<after><![CDATA[
//@ launch calibrate<<<(ceil_div(N, 32), ceil_div(C, 8)), (32, 8)>>>(in, gain, offset, out, C, N)
__global__ void calibrate(const float* in, const float* gain, const float* offset, float* out, int C, int N) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  int c = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < C && s < N) {
    out[c * N + s] = gain[c] * (in[c * N + s] - offset[c]);
  }
}
]]></after>
</example>

<example optimization="reordering" language="triton">
<title>Squared overlap of each wave of one set with each of another</title>
<action>reordering the kernel overlaps in line 8 to 19</action>
<why>Programs that run together now work on a group of eight rows of blocks, one column of blocks after the other, so that
the blocks of `b` that they load are still in the second-level cache for the next seven; before, a whole row of blocks
of `c` went through all of `b`. Each block of `c` is computed by exactly one program as before, in the same order of
its sum; the last group may have fewer rows.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[70, 50], [90, 50]], [[600, 40], [70, 40]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def overlaps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    m = (pm * BM + tl.arange(0, BM))[:, None]
    n = (pn * BN + tl.arange(0, BN))[None, :]
    k = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(a + m * K + (k0 + k)[None, :], mask=(m < M) & ((k0 + k)[None, :] < K), other=0.0)
        y = tl.load(b + n * K + (k0 + k)[:, None], mask=(n < N) & ((k0 + k)[:, None] < K), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + m * N + n, total * total, mask=(m < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[0]
        c = torch.empty(M, N, device=a.device)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        overlaps[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def overlaps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.cdiv(M, BM)
    group = tl.program_id(0) // (8 * tl.cdiv(N, BN))
    height = tl.minimum(rows - group * 8, 8)
    within = tl.program_id(0) % (8 * tl.cdiv(N, BN))
    pm = group * 8 + within % height
    pn = within // height
    m = (pm * BM + tl.arange(0, BM))[:, None]
    n = (pn * BN + tl.arange(0, BN))[None, :]
    k = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(a + m * K + (k0 + k)[None, :], mask=(m < M) & ((k0 + k)[None, :] < K), other=0.0)
        y = tl.load(b + n * K + (k0 + k)[:, None], mask=(n < N) & ((k0 + k)[:, None] < K), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + m * N + n, total * total, mask=(m < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[0]
        c = torch.empty(M, N, device=a.device)
        grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
        overlaps[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
