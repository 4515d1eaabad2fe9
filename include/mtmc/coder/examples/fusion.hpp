#pragma once
/// The library's own examples of fusion (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view fusion_examples = R"xml(<examples>

<example optimization="fusion" language="cpp">
<title>Pressure of the wind on a sail, from the wind's two components</title>
<action>fusing the launches of square_of_speed and pressure_on_sail in line 14 to 15</action>
<why>Both functions go over the same N elements, and element i of the second needs only element i of the first, so one
loop does both and keeps the square in a register. The scratch buffer and its launch line are gone, and with them a write
and a read of N numbers. Each element is computed by the same operations in the same order.</why>
<task><![CDATA[
{"arguments": [{"name": "u", "shape": ["N"]}, {"name": "v", "shape": ["N"]}, {"name": "pressure", "shape": ["N"]}],
 "sizes": [{"N": 500000}, {"N": 1001, "weight": 0}, {"N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
void square_of_speed(const float* u, const float* v, float* square, int N) {
  for (int i = 0; i < N; ++i) {
    square[i] = u[i] * u[i] + v[i] * v[i];
  }
}

void pressure_on_sail(const float* square, float* pressure, int N) {
  for (int i = 0; i < N; ++i) {
    pressure[i] = 0.6f * square[i] / (1.0f + 0.02f * square[i]);
  }
}

//@ scratch square: f32[N]
//@ launch square_of_speed(u, v, square, N)
//@ launch pressure_on_sail(square, pressure, N)
]]></before>
<after><![CDATA[
void wind_pressure(const float* u, const float* v, float* pressure, int N) {
  for (int i = 0; i < N; ++i) {
    float square = u[i] * u[i] + v[i] * v[i];
    pressure[i] = 0.6f * square / (1.0f + 0.02f * square);
  }
}

//@ launch wind_pressure(u, v, pressure, N)
]]></after>
</example>

<example optimization="fusion" language="cuda">
<title>Level of a spectrum in decibels</title>
<action>fusing the launches of spectrum_power and to_decibel in line 2 to 3</action>
<why>Each thread of the second kernel needs only the element that the same thread of the first one makes, so one kernel
does both and keeps the value in a register. The scratch buffer and one launch are gone: a write and a read of N numbers
through memory and the start of a kernel are saved. The grid and the guard for the last block stay as they were.</why>
<task><![CDATA[
{"arguments": [{"name": "re", "shape": ["N"]}, {"name": "im", "shape": ["N"]}, {"name": "level", "shape": ["N"]}],
 "sizes": [{"N": 16000000}, {"N": 100000, "weight": 0}, {"N": 257, "weight": 0}, {"N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ scratch power: f32[N]
//@ launch spectrum_power<<<ceil_div(N, 256), 256>>>(re, im, power, N)
//@ launch to_decibel<<<ceil_div(N, 256), 256>>>(power, level, N)

__global__ void spectrum_power(const float* re, const float* im, float* power, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    power[i] = re[i] * re[i] + im[i] * im[i];
  }
}

__global__ void to_decibel(const float* power, float* level, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    level[i] = 10.0f * log10f(power[i] + 0.001f);
  }
}
]]></before>
<after><![CDATA[
//@ launch spectrum_level<<<ceil_div(N, 256), 256>>>(re, im, level, N)

__global__ void spectrum_level(const float* re, const float* im, float* level, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float power = re[i] * re[i] + im[i] * im[i];
    level[i] = 10.0f * log10f(power + 0.001f);
  }
}
]]></after>
</example>

<example optimization="fusion" language="triton">
<title>Gate of a linear layer</title>
<action>fusing the Linear, sigmoid and multiplication in line 13 to 15</action>
<why>The product stays with the library, which is hard to beat there; what follows it (bias, sigmoid, product with the
input) is one kernel that reads the product once and writes the result once, instead of three passes over memory. The
layer keeps its initialisers and order, so the weights are the same; the mask keeps the last block correct.</why>
<task><![CDATA[
{"constructor": [33], "calls": [[[5, 33]], [[1, 33]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        g = self.gate(x)
        g = torch.sigmoid(g)
        return g * x
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(g, bias, x, out, total, width, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    value = tl.load(g + at, mask=inside) + tl.load(bias + at % width, mask=inside)
    value = tl.load(x + at, mask=inside) / (1.0 + tl.exp(-value))
    tl.store(out + at, value, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        x = x.contiguous()
        g = torch.matmul(x, self.gate.weight.t())
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        gate_kernel[grid](g, self.gate.bias, x, out, x.numel(), x.shape[-1], BLOCK=1024)
        return out
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
