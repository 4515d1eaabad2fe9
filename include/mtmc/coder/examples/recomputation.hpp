#pragma once
/// The library's own examples of recomputation (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view recomputation_examples = R"xml(<examples>

<example optimization="recomputation" language="cpp">
<title>Bends of a road, of its smoothed height</title>
<action>recomputing what lies between the launches of smoothen and bend in line 4 to 5</action>
<why>Each bend needs three smoothed heights, its own and its neighbours', so the two loops cannot simply be merged. A smoothed
height is three products of numbers that are in the nearest cache anyway: the second loop computes the three it needs
and nothing is stored between. The buffer, a write and a read of N numbers are gone, at the price of six products.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 2000000}, {"N": 67, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "8*N"}
]]></task>
<before><![CDATA[
#include <algorithm>

//@ scratch smooth: f32[N]
//@ launch smoothen(x, smooth, N)
//@ launch bend(smooth, out, N)
void smoothen(const float* x, float* smooth, int N) {
  for (int i = 0; i < N; ++i) {
    smooth[i] = 0.5f * x[i] + 0.25f * (x[std::max(i - 1, 0)] + x[std::min(i + 1, N - 1)]);
  }
}

void bend(const float* smooth, float* out, int N) {
  for (int i = 0; i < N; ++i) {
    out[i] = smooth[std::max(i - 1, 0)] - 2.0f * smooth[i] + smooth[std::min(i + 1, N - 1)];
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ launch bend(x, out, N)
static float smoothed(const float* x, int i, int N) {
  return 0.5f * x[i] + 0.25f * (x[std::max(i - 1, 0)] + x[std::min(i + 1, N - 1)]);
}

void bend(const float* x, float* out, int N) {
  for (int i = 0; i < N; ++i) {
    const int before = std::max(i - 1, 0), behind = std::min(i + 1, N - 1);
    out[i] = smoothed(x, before, N) - 2.0f * smoothed(x, i, N) + smoothed(x, behind, N);
  }
}
]]></after>
</example>

<example optimization="recomputation" language="cuda">
<title>Bends of a road, of its smoothed height</title>
<action>recomputing what lies between the launches of smoothen and bend in line 2 to 3</action>
<why>Each bend needs three smoothed heights, two of which other threads made, perhaps in another block: the launches could not
be merged as they were. A smoothed height is three products of numbers that are in the cache for the neighbours anyway, so
each thread computes the three it needs. The buffer is gone, and with it a launch and a write and a read of N numbers.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 16000000}, {"N": 1000, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "8*N"}
]]></task>
<before><![CDATA[
//@ scratch smooth: f32[N]
//@ launch smoothen<<<ceil_div(N, 256), 256>>>(x, smooth, N)
//@ launch bend<<<ceil_div(N, 256), 256>>>(smooth, out, N)
__global__ void smoothen(const float* x, float* smooth, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    smooth[i] = 0.5f * x[i] + 0.25f * (x[max(i - 1, 0)] + x[min(i + 1, N - 1)]);
  }
}

__global__ void bend(const float* smooth, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = smooth[max(i - 1, 0)] - 2.0f * smooth[i] + smooth[min(i + 1, N - 1)];
  }
}
]]></before>
<after><![CDATA[
//@ launch bend<<<ceil_div(N, 256), 256>>>(x, out, N)
__device__ float smoothed(const float* x, int i, int N) {
  return 0.5f * x[i] + 0.25f * (x[max(i - 1, 0)] + x[min(i + 1, N - 1)]);
}

__global__ void bend(const float* x, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = smoothed(x, max(i - 1, 0), N) - 2.0f * smoothed(x, i, N) + smoothed(x, min(i + 1, N - 1), N);
  }
}
]]></after>
</example>

<example optimization="recomputation" language="triton">
<title>Second differences of a smoothed series</title>
<action>recomputing what lies between the smooth and bend in line 28 to 29</action>
<why>The second kernel computed its result from three neighbours in the buffer that the first one wrote. Each program now
smooths those three elements itself, from the input that is in the cache anyway: three times as many additions, but
one write and one read of the buffer and a launch less. The neighbours' neighbours are masked as they were.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[1300]], [[2]], [[1]], [[513]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smooth(x, smoothed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)
    right = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(smoothed + i, 0.5 * (left + right), mask=i < n)


@triton.jit
def bend(smoothed, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(smoothed + i - 1, mask=(i > 0) & (i < n), other=0.0)
    right = tl.load(smoothed + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(out + i, left - 2.0 * tl.load(smoothed + i, mask=i < n) + right, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        smoothed = torch.empty_like(x)
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        smooth[grid](x, smoothed, x.numel(), BLOCK=512)
        bend[grid](smoothed, out, x.numel(), BLOCK=512)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smooth_at(x, i, n):
    left = tl.load(x + i - 1, mask=(i > 0) & (i <= n), other=0.0)
    right = tl.load(x + i + 1, mask=(i >= -1) & (i + 1 < n), other=0.0)
    return tl.where((i >= 0) & (i < n), 0.5 * (left + right), 0.0)


@triton.jit
def bend_smoothed(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = smooth_at(x, i - 1, n) - 2.0 * smooth_at(x, i, n) + smooth_at(x, i + 1, n)
    tl.store(out + i, value, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        bend_smoothed[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
