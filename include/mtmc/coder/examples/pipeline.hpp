#pragma once
/// The library's own examples of pipeline (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view pipeline_examples = R"xml(<examples>

<example optimization="pipeline" language="cpp">
<title>Force on particles from the field values of the cells they are in</title>
<action>pipelining the i, k loop nest of push in line 3 to 10</action>
<why>Which cell a particle needs is known long before, but no hardware prefetcher can guess it, so each iteration waits
for memory. Now an iteration asks for the cell of the particle 16 places ahead and computes on its own, which was asked
for 16 iterations ago: movement and computation overlap. Near the end the last particle's cell is asked for again,
which reads nothing beyond the array; a prefetch changes no value.</why>
<task><![CDATA[
{"arguments": [{"name": "cells", "shape": ["C", "16"]}, {"name": "where", "shape": ["N"], "domain": ["0", "C - 1"]},
               {"name": "charge", "shape": ["N"]}, {"name": "force", "shape": ["N"]}],
 "sizes": [{"N": 60000, "C": 60000}, {"N": 37, "C": 5, "weight": 0}, {"N": 1, "C": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch push(cells, where, charge, force, N)
void push(const float* cells, const int* where, const float* charge, float* force, int N) {
  for (int i = 0; i < N; ++i) {
    const float* cell = cells + 16 * where[i];
    float field = 0.0f;
    for (int k = 0; k < 16; ++k) {
      field += cell[k];
    }
    force[i] = charge[i] * field;
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ launch push(cells, where, charge, force, N)
void push(const float* cells, const int* where, const float* charge, float* force, int N) {
  for (int i = 0; i < N; ++i) {
    __builtin_prefetch(cells + 16 * where[std::min(i + 16, N - 1)]);
    const float* cell = cells + 16 * where[i];
    float field = 0.0f;
    for (int k = 0; k < 16; ++k) {
      field += cell[k];
    }
    force[i] = charge[i] * field;
  }
}
]]></after>
</example>

<example optimization="pipeline" language="cuda">
<title>Density of weighted sites around each point, by Gaussian bells</title>
<action>pipelining the m0, k loop nest of density in line 9 to 19</action>
<why>While a block computes on one tile, the loads of the next one are on their way into registers, and go into the
second half of the shared memory in the next iteration, so computation hides the latency of memory. One barrier an
iteration is enough: a half is written again only two iterations later, and by the barrier in between all threads have
left it. Behind the last site the loads are left out; their weight is zero.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"], "domain": ["-2", "2"]}, {"name": "site", "shape": ["M"], "domain": ["-2", "2"]},
               {"name": "weight", "shape": ["M"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 16384, "M": 16384},
           {"N": 512, "M": 600, "weight": 0}, {"N": 131, "M": 257, "weight": 0}, {"N": 1, "M": 1, "weight": 0}],
 "flops": "4*N*M"}
]]></task>
<before><![CDATA[
//@ launch density<<<ceil_div(N, 128), 128>>>(x, site, weight, out, N, M)
__global__ void density(const float* x, const float* site, const float* weight, float* out, int N, int M) {
  __shared__ float s[128];
  __shared__ float w[128];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  float at = i < N ? x[i] : 0.0f;
  float sum = 0.0f;
  for (int m0 = 0; m0 < M; m0 += 128) {
    int m = m0 + t;
    s[t] = m < M ? site[m] : 0.0f;
    w[t] = m < M ? weight[m] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 128; ++k) {
      float d = at - s[k];
      sum += w[k] * expf(-d * d);
    }
    __syncthreads();
  }
  if (i < N) {
    out[i] = sum;
  }
}
]]></before>
<after><![CDATA[
//@ launch density<<<ceil_div(N, 128), 128>>>(x, site, weight, out, N, M)
__global__ void density(const float* x, const float* site, const float* weight, float* out, int N, int M) {
  __shared__ float s[2][128];
  __shared__ float w[2][128];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  float at = i < N ? x[i] : 0.0f;
  float sum = 0.0f;
  float next_s = t < M ? site[t] : 0.0f;
  float next_w = t < M ? weight[t] : 0.0f;
  int now = 0;
  for (int m0 = 0; m0 < M; m0 += 128) {
    s[now][t] = next_s;
    w[now][t] = next_w;
    __syncthreads();
    int m = m0 + 128 + t;
    next_s = m < M ? site[m] : 0.0f;
    next_w = m < M ? weight[m] : 0.0f;
    for (int k = 0; k < 128; ++k) {
      float d = at - s[now][k];
      sum += w[now][k] * expf(-d * d);
    }
    now ^= 1;
  }
  if (i < N) {
    out[i] = sum;
  }
}
]]></after>
</example>

<example optimization="pipeline" language="triton">
<title>Dot products of the rows of two matrices</title>
<action>pipelining the start loop of row_dots in line 11 to 14</action>
<why>`num_stages=4` in the loop's range has the compiler bring the blocks of the next iterations into shared memory while
the program adds up the present one; before, each iteration waited for its own loads. The loads depend on nothing but
the loop's index, and the order of the sum is the same, so the bits are the same.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[3, 2500], [3, 2500]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_dots(a, b, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(a + row + at, mask=at < columns, other=0.0)
        total += x * tl.load(b + row + at, mask=at < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], device=a.device)
        row_dots[(a.shape[0],)](a, b, out, a.shape[1], BLOCK=1024)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_dots(a, b, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, columns, BLOCK, num_stages=4):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(a + row + at, mask=at < columns, other=0.0)
        total += x * tl.load(b + row + at, mask=at < columns, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape[0], device=a.device)
        row_dots[(a.shape[0],)](a, b, out, a.shape[1], BLOCK=1024)
        return out
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
