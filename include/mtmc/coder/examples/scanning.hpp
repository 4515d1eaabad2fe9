#pragma once
/// The library's own examples of scans (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view scanning_examples = R"xml(<examples>

<example optimization="scanning" language="cpp">
<title>Highest water mark of a gauge up to each day</title>
<action>scanning the t loop of high_water in line 4 to 7</action>
<why>Each mark needs the one before, so one core went through the days alone. The larger of two is associative: all cores
find the highest mark of blocks of 4096 days first, then each block begins with the highest of all blocks before it and goes
through its days again. That is twice the comparisons, by all cores, and the second time the days come from the cache. The
marks of blocks are scratch memory, the last block may be shorter.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["T"]}, {"name": "out", "shape": ["T"]}],
 "sizes": [{"T": 1000000}, {"T": 4097, "weight": 0}, {"T": 1, "weight": 0}],
 "flops": "T"}
]]></task>
<before><![CDATA[
//@ launch high_water(x, out, T)
void high_water(const float* x, float* out, int T) {
  float top = x[0];
  for (int t = 0; t < T; ++t) {
    top = x[t] > top ? x[t] : top;
    out[t] = top;
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ scratch tops: f32[ceil_div(T, 4096)]
//@ launch high_water(x, out, tops, T)
void high_water(const float* x, float* out, float* tops, int T) {
  const int blocks = (T + 4095) / 4096;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      float top = x[b * 4096];
      for (int t = b * 4096; t < std::min(T, b * 4096 + 4096); ++t) top = std::max(top, x[t]);
      tops[b] = top;
    }
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      float top = x[b * 4096];
      for (int c = 0; c < b; ++c) top = std::max(top, tops[c]);
      for (int t = b * 4096; t < std::min(T, b * 4096 + 4096); ++t) {
        top = std::max(top, x[t]);
        out[t] = top;
      }
    }
  }
}
]]></after>
</example>

<example optimization="scanning" language="cuda">
<title>Highest water mark of each gauge up to each day</title>
<action>scanning the t loop of high_water in line 6 to 9</action>
<why>One thread went through a gauge alone, its neighbours T days away. Now a block takes a gauge, 256 days at a time:
neighbouring threads read neighbouring days, and in eight rounds each takes the larger of its own and what its partner 1,
2, 4, ... places before holds, with a barrier before reading and one before writing. The last mark of a run of 256 is
carried to the next. Threads behind the end repeat the first day and write nothing.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["G", "T"]}, {"name": "out", "shape": ["G", "T"]}],
 "sizes": [{"G": 2000, "T": 5000}, {"G": 7, "T": 257, "weight": 0}, {"G": 3, "T": 1, "weight": 0}],
 "flops": "G*T"}
]]></task>
<before><![CDATA[
//@ launch high_water<<<ceil_div(G, 128), 128>>>(x, out, G, T)
__global__ void high_water(const float* x, float* out, int G, int T) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < G) {
    float top = x[g * T];
    for (int t = 0; t < T; ++t) {
      top = fmaxf(top, x[g * T + t]);
      out[g * T + t] = top;
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch high_water<<<G, 256>>>(x, out, T)
__global__ void high_water(const float* x, float* out, int T) {
  __shared__ float tops[256];
  int g = blockIdx.x;
  int own = threadIdx.x;
  float carried = x[g * T];
  for (int first = 0; first < T; first += 256) {
    int t = first + own;
    float top = t < T ? x[g * T + t] : x[g * T];
    for (int reach = 1; reach < 256; reach *= 2) {
      tops[own] = top;
      __syncthreads();
      if (own >= reach) top = fmaxf(top, tops[own - reach]);
      __syncthreads();
    }
    tops[own] = top;
    __syncthreads();
    if (t < T) out[g * T + t] = fmaxf(carried, top);
    carried = fmaxf(carried, tops[255]);
    __syncthreads();
  }
}
]]></after>
</example>

<example optimization="scanning" language="triton">
<title>Highest level so far of each gauge</title>
<action>scanning the cummax in line 9</action>
<why>A program scans a block of 1024 readings at once with `tl.associative_scan` and carries the highest of them to the
next block, where the library's operator goes along each row with few threads and also keeps the places. The larger of
two numbers is associative, so the scan may combine in any order; what lies beyond the row is minus infinity and not
stored.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[3, 2300]], [[1, 1]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cummax(x, dim=1).values
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def highest(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    before = float("-inf")
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < columns, other=float("-inf"))
        v = tl.maximum(tl.associative_scan(v, 0, larger), before)
        tl.store(out + row + at, v, mask=at < columns)
        before = tl.max(v, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        highest[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
