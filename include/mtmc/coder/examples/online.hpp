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
<title>Logarithm of the softmax of each row</title>
<action>making one pass of the neighbouring start, start and start loops of log_softmax in line 12 to 22</action>
<why>One pass finds the largest element and the sum together: where the maximum of a lane grows, what was summed is scaled
to the new one, and the lanes are brought to the row's maximum at the end. The row is read twice instead of three
times. Lanes that have seen nothing carry minus infinity, so their scale is replaced by zero before it becomes a
difference of infinities.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[4, 2500]], [[2, 3]]]}
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
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        v = tl.load(x + row + start + lane, mask=start + lane < columns, other=float("-inf"))
        grown = tl.maximum(top, v)
        total = tl.where(grown > float("-inf"), total * tl.exp(top - grown) + tl.exp(v - grown), total)
        top = grown
    largest = tl.max(top, 0)
    scaled = tl.where(top > float("-inf"), total * tl.exp(top - largest), 0.0)
    shift = largest + tl.log(tl.sum(scaled, 0))
    for start in range(0, columns, BLOCK):
        v = tl.load(x + row + start + lane, mask=start + lane < columns)
        tl.store(out + row + start + lane, v - shift, mask=start + lane < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        log_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
