#pragma once
/// The library's own examples of strength reduction (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view strength_reduction_examples = R"xml(<examples>

<example optimization="strength_reduction" language="cpp">
<title>Force between a point and each body, by distance</title>
<action>reducing the strength of the i loop of force in line 5 to 8</action>
<why>A power with an exponent that is no variable needs no logarithm: r^-1.5 of the squared distance is one root, one
product and one division, each rounded once, so the result is closer to the truth than before. The compiler has
vector instructions for all three, and none for `pow`. Nothing is assumed of the values: the square is at least a half.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "y", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 200000}, {"N": 67, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "8*N"}
]]></task>
<before><![CDATA[
#include <cmath>

//@ launch force(x, y, out, N)
void force(const float* x, const float* y, float* out, int N) {
  for (int i = 0; i < N; ++i) {
    float square = x[i] * x[i] + y[i] * y[i] + 0.5f;
    out[i] = x[i] * std::pow(square, -1.5f);
  }
}
]]></before>
<after><![CDATA[
#include <cmath>

//@ launch force(x, y, out, N)
void force(const float* x, const float* y, float* out, int N) {
#pragma omp simd
  for (int i = 0; i < N; ++i) {
    float square = x[i] * x[i] + y[i] * y[i] + 0.5f;
    out[i] = x[i] / (square * std::sqrt(square));
  }
}
]]></after>
</example>

<example optimization="strength_reduction" language="cuda">
<title>What is left of each sample's activity</title>
<action>reducing the strength of the i threads of decay in line 3 to 6</action>
<why>A power whose base is a power of two needs no logarithm: half to the power of u is two to the power of -u, which the
device has an instruction for, with a little arithmetic around it for full precision. The general power takes some
hundred operations and is the larger part of this kernel's work. The result is as exact as before: `exp2f` errs by less than
the power did.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "age", "shape": ["N"], "domain": ["0", "40"]},
               {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 4000000}, {"N": 1000, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "10*N"}
]]></task>
<before><![CDATA[
//@ launch decay<<<ceil_div(N, 256), 256>>>(x, age, out, N)
__global__ void decay(const float* x, const float* age, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = x[i] * powf(0.5f, age[i]);
  }
}
]]></before>
<after><![CDATA[
//@ launch decay<<<ceil_div(N, 256), 256>>>(x, age, out, N)
__global__ void decay(const float* x, const float* age, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = x[i] * exp2f(-age[i]);
  }
}
]]></after>
</example>

<example optimization="strength_reduction" language="triton">
<title>Bells around zero</title>
<action>reducing the strength of the kernel bells in line 8 to 11</action>
<why>`exp(-x * x / (2 * s * s))` becomes a power of two of `x * x * c`, where `c` is computed once outside of the kernel:
the quotient is gone, and `exp2` is the instruction that `exp` is made of, without the product in front. What is
rounded otherwise is as exact as before, a few units in the last place.</why>
<task><![CDATA[
{"constructor": [0.7], "calls": [[[50, 60]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bells(x, out, total, s, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < total)
    tl.store(out + at, tl.exp(-v * v / (2.0 * s * s)), mask=at < total)


class ModelNew(nn.Module):
    def __init__(self, spread):
        super().__init__()
        self.spread = float(spread)

    def forward(self, x):
        out = torch.empty_like(x)
        bells[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), self.spread, BLOCK=1024)
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bells(x, out, total, c, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < total)
    tl.store(out + at, tl.math.exp2(v * v * c), mask=at < total)


class ModelNew(nn.Module):
    def __init__(self, spread):
        super().__init__()
        self.spread = float(spread)

    def forward(self, x):
        out = torch.empty_like(x)
        c = -1.4426950408889634 / (2.0 * self.spread * self.spread)  # log2(e)
        bells[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), c, BLOCK=1024)
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
