#pragma once
/// The library's own examples of split reductions (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view splitting_examples = R"xml(<examples>

<example optimization="splitting" language="cuda">
<title>Energy of a few long records</title>
<action>splitting the j loop of energy in line 6 to 8</action>
<why>There are 16 records and so 16 blocks: most of the device had nothing to do. Now 64 blocks share a record, each takes
every 64th run of 256 samples, and a second launch adds their 64 sums, always in the same order, so that the
result is the same each time. The sums between are scratch memory of 64 numbers a record, next to nothing beside what is
read.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M"]}],
 "sizes": [{"M": 16, "N": 500000}, {"M": 5, "N": 1000, "weight": 0}, {"M": 1, "N": 1, "weight": 0}],
 "flops": "2*M*N"}
]]></task>
<before><![CDATA[
//@ launch energy<<<M, 256>>>(x, out, N)
__global__ void energy(const float* x, float* out, int N) {
  __shared__ float parts[256];
  int i = blockIdx.x;
  float sum = 0;
  for (int j = threadIdx.x; j < N; j += 256) {
    sum += x[i * N + j] * x[i * N + j];
  }
  parts[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[i] = parts[0];
}
]]></before>
<after><![CDATA[
//@ scratch sums: f32[M, 64]
//@ launch energy<<<(64, M), 256>>>(x, sums, N)
//@ launch add<<<ceil_div(M, 64), 64>>>(sums, out, M)
__global__ void energy(const float* x, float* sums, int N) {
  __shared__ float parts[256];
  int i = blockIdx.y;
  float sum = 0;
  for (int j = blockIdx.x * 256 + threadIdx.x; j < N; j += 64 * 256) {
    sum += x[i * N + j] * x[i * N + j];
  }
  parts[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[i * 64 + blockIdx.x] = parts[0];
}
__global__ void add(const float* sums, float* out, int M) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float sum = 0;
    for (int b = 0; b < 64; ++b) sum += sums[i * 64 + b];
    out[i] = sum;
  }
}
]]></after>
</example>

<example optimization="splitting" language="triton">
<title>Energy of a signal</title>
<action>splitting the start loop of energy in line 10 to 13</action>
<why>One program went through all samples while the rest of the device was idle. Now 512 programs each sum their share into
a buffer of partial sums, and a second, small launch adds these. Each program takes every 512th block, partial sums
are added in a fixed order, and two calls give the same bits; no atomic addition is needed.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[1200, 700]], [[1, 1]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def energy(x, out, total, BLOCK: tl.constexpr):
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(0, total, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < total, other=0.0)
        part += v * v
    tl.store(out, 0.5 * tl.sum(part, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((), device=x.device)
        energy[(1,)](x, out, x.numel(), BLOCK=1024)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def parts_of_energy(x, parts, total, BLOCK: tl.constexpr):
    part = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0) * BLOCK, total, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < total, other=0.0)
        part += v * v
    tl.store(parts + tl.program_id(0), tl.sum(part, 0))


@triton.jit
def add_parts(parts, out, PARTS: tl.constexpr):
    tl.store(out, 0.5 * tl.sum(tl.load(parts + tl.arange(0, PARTS)), 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty((), device=x.device)
        parts = torch.empty(512, device=x.device)
        parts_of_energy[(512,)](x, parts, x.numel(), BLOCK=1024)
        add_parts[(1,)](parts, out, PARTS=512)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
