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
<title>Level of a spectrum in decibels</title>
<action>fusing the multiplication and the addition, addition, log and multiplication in line 9 to 12</action>
<why>Four statements wrote and read tensors of the size of the spectrum again and again. One kernel reads the real and the
imaginary part once, keeps power and logarithm in registers, and writes the level once. The mask keeps the last,
incomplete block correct, and the constant of the logarithm is the same as before.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[5, 33], [5, 33]], [[1, 1], [1, 1]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, re, im):
        power = re * re + im * im
        power = power + 0.001
        level = torch.log(power)
        return level * 4.3429448
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spectrum_level(re, im, level, total, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    real = tl.load(re + at, mask=inside, other=0.0)
    imaginary = tl.load(im + at, mask=inside, other=0.0)
    power = real * real + imaginary * imaginary
    tl.store(level + at, 4.3429448 * tl.log(power + 0.001), mask=inside)


class ModelNew(nn.Module):
    def forward(self, re, im):
        re, im = re.contiguous(), im.contiguous()
        level = torch.empty_like(re)
        spectrum_level[(triton.cdiv(re.numel(), 1024),)](re, im, level, re.numel(), BLOCK=1024)
        return level
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
