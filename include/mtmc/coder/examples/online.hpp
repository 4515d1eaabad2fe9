#pragma once
/// The library's own examples of online algorithms (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view online_examples = R"xml(<examples>

<example optimization="online" language="cpp">
<title>How often each gauge stood at its highest mark</title>
<action>making one pass of the neighbouring t and t loops of at_top in line 5 to 7</action>
<why>The count needed the highest mark of the whole record, so the record was read twice. Now one pass carries the highest
mark so far and how often it came: a higher one starts the count anew, the same one adds to it. Nothing is approximate, and
memory gives the record once. The first mark starts the pair, so a record of one is right.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["G", "T"]}, {"name": "out", "shape": ["G"]}],
 "sizes": [{"G": 300, "T": 20000}, {"G": 7, "T": 13, "weight": 0}, {"G": 1, "T": 1, "weight": 0}],
 "flops": "2*G*T"}
]]></task>
<before><![CDATA[
//@ launch at_top(x, out, G, T)
void at_top(const float* x, float* out, int G, int T) {
  for (int g = 0; g < G; ++g) {
    float top = x[g * T];
    for (int t = 0; t < T; ++t) top = x[g * T + t] > top ? x[g * T + t] : top;
    float count = 0;
    for (int t = 0; t < T; ++t) count += x[g * T + t] == top ? 1.0f : 0.0f;
    out[g] = count;
  }
}
]]></before>
<after><![CDATA[
//@ launch at_top(x, out, G, T)
void at_top(const float* x, float* out, int G, int T) {
  for (int g = 0; g < G; ++g) {
    float top = x[g * T];
    float count = 1;
    for (int t = 1; t < T; ++t) {
      const float mark = x[g * T + t];
      count = mark > top ? 1.0f : mark == top ? count + 1.0f : count;
      top = mark > top ? mark : top;
    }
    out[g] = count;
  }
}
]]></after>
</example>

<example optimization="online" language="cuda">
<title>How often each gauge stood at its highest mark</title>
<action>making one pass of the neighbouring t and t loops of at_top in line 6 to 12</action>
<why>The count needed the highest mark of the whole record, so memory gave the record twice. Now one pass carries the highest
mark so far and how often it came: a higher one starts the count anew, the same one adds to it, and both are chosen
without a branch. Two such pairs become one by the same rule, should a block share a record later. The first mark
starts the pair, so a record of one is right.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["T", "G"]}, {"name": "out", "shape": ["G"]}],
 "sizes": [{"G": 100000, "T": 100}, {"G": 131, "T": 13, "weight": 0}, {"G": 1, "T": 1, "weight": 0}],
 "flops": "2*G*T"}
]]></task>
<before><![CDATA[
//@ launch at_top<<<ceil_div(G, 128), 128>>>(x, out, G, T)
__global__ void at_top(const float* x, float* out, int G, int T) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < G) {
    float top = x[g];
    for (int t = 0; t < T; ++t) {
      top = fmaxf(top, x[t * G + g]);
    }
    float count = 0;
    for (int t = 0; t < T; ++t) {
      count += x[t * G + g] == top ? 1.0f : 0.0f;
    }
    out[g] = count;
  }
}
]]></before>
<after><![CDATA[
//@ launch at_top<<<ceil_div(G, 128), 128>>>(x, out, G, T)
__global__ void at_top(const float* x, float* out, int G, int T) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < G) {
    float top = x[g];
    float count = 1;
    for (int t = 1; t < T; ++t) {
      float mark = x[t * G + g];
      count = mark > top ? 1.0f : mark == top ? count + 1.0f : count;
      top = fmaxf(top, mark);
    }
    out[g] = count;
  }
}
]]></after>
</example>

<example optimization="online" language="triton">
<title>Spread of the readings of each sensor around their middle</title>
<action>making one pass of the neighbouring start and start loops of spread in line 12 to 18</action>
<why>One pass finds the middle and the squared distances from it together, as Welford does: each lane keeps the middle of
what it has seen, and corrects its sum of squares as that moves; the lanes are combined at the end. The readings are
read once instead of twice, and nothing cancels as in a difference of squares. Lanes without a reading count as none.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[4, 2500]], [[2, 3]]]}
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
    count = tl.zeros([BLOCK], tl.float32)
    middle = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        v = tl.load(x + row + start + lane, mask=inside, other=0.0)
        count += tl.where(inside, 1.0, 0.0)
        gap = tl.where(inside, v - middle, 0.0)
        middle += gap / tl.maximum(count, 1.0)
        squares += tl.where(inside, gap * (v - middle), 0.0)
    centre = tl.sum(count * middle, 0) / columns
    whole = tl.sum(squares + count * (middle - centre) * (middle - centre), 0)
    tl.store(out + tl.program_id(0), tl.sqrt(whole / columns))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        spread[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
