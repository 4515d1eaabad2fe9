#pragma once
/// The library's own examples of rewriting (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view rewriting_examples = R"xml(<examples>

<example optimization="rewriting" language="cpp">
<title>Crest factor of each sensor's record: peak over effective value</title>
<action>rewriting the launches of peak_of, power_of and divide in line 5 to 7</action>
<why>Every record was read twice and in steps of S, by one core, and two intermediates went through memory. The task
needs each sample once: all cores take blocks of time steps, walk the samples as they lie in memory and keep peak and
power of all sensors in their own arrays, which are merged at the end in the order of time.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["T", "S"]}, {"name": "out", "shape": ["S"]}],
 "sizes": [{"T": 20000, "S": 96}, {"T": 131, "S": 13, "weight": 0}, {"T": 1, "S": 1, "weight": 0}],
 "flops": "4*T*S"}
]]></task>
<before><![CDATA[
#include <algorithm>
#include <cmath>
//@ scratch peak: f32[S]
//@ scratch power: f32[S]
//@ launch peak_of(x, peak, T, S)
//@ launch power_of(x, power, T, S)
//@ launch divide(peak, power, out, T, S)
void peak_of(const float* x, float* peak, int T, int S) {
  for (int s = 0; s < S; ++s) {
    float top = 0;
    for (int t = 0; t < T; ++t) top = std::max(top, std::fabs(x[t * S + s]));
    peak[s] = top;
  }
}
void power_of(const float* x, float* power, int T, int S) {
  for (int s = 0; s < S; ++s) {
    float sum = 0;
    for (int t = 0; t < T; ++t) sum += x[t * S + s] * x[t * S + s];
    power[s] = sum;
  }
}
void divide(const float* peak, const float* power, float* out, int T, int S) {
  for (int s = 0; s < S; ++s) out[s] = peak[s] / std::sqrt(power[s] / T + 1e-6f);
}
]]></before>
<after><![CDATA[
#include <algorithm>
#include <cmath>
//@ scratch parts: f32[ceil_div(T, 512), 2, S]
//@ launch crest(x, parts, out, T, S)
void crest(const float* x, float* parts, float* out, int T, int S) {
  const int blocks = (T + 511) / 512;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      float* peak = parts + (long)b * 2 * S;
      float* power = peak + S;
      for (int s = 0; s < S; ++s) peak[s] = power[s] = 0;
      for (int t = b * 512; t < std::min(T, b * 512 + 512); ++t) {
#pragma omp simd
        for (int s = 0; s < S; ++s) {
          const float value = x[t * S + s];
          peak[s] = std::max(peak[s], std::fabs(value));
          power[s] += value * value;
        }
      }
    }
#pragma omp for schedule(static)
    for (int s = 0; s < S; ++s) {
      float top = 0, sum = 0;
      for (int b = 0; b < blocks; ++b) {
        top = std::max(top, parts[(long)b * 2 * S + s]);
        sum += parts[(long)b * 2 * S + S + s];
      }
      out[s] = top / std::sqrt(sum / T + 1e-6f);
    }
  }
}
]]></after>
</example>

<example optimization="rewriting" language="cuda">
<title>Crest factor of each sensor's record: peak over effective value</title>
<action>rewriting the launches of peak_of, power_of and divide in line 3 to 5</action>
<why>One thread walked each record, twice, with its neighbours T elements away, and S threads leave most of the device
idle. The task needs each sample once: a block takes a record, its threads read neighbouring samples and keep peak and
power in registers, a tree in shared memory combines them, and nothing goes through memory between launches.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["S", "T"]}, {"name": "out", "shape": ["S"]}],
 "sizes": [{"S": 4096, "T": 4096}, {"S": 13, "T": 131, "weight": 0}, {"S": 1, "T": 1, "weight": 0}],
 "flops": "4*T*S"}
]]></task>
<before><![CDATA[
//@ scratch peak: f32[S]
//@ scratch power: f32[S]
//@ launch peak_of<<<ceil_div(S, 256), 256>>>(x, peak, S, T)
//@ launch power_of<<<ceil_div(S, 256), 256>>>(x, power, S, T)
//@ launch divide<<<ceil_div(S, 256), 256>>>(peak, power, out, S, T)
__global__ void peak_of(const float* x, float* peak, int S, int T) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= S) return;
  float top = 0;
  for (int t = 0; t < T; ++t) top = fmaxf(top, fabsf(x[s * T + t]));
  peak[s] = top;
}
__global__ void power_of(const float* x, float* power, int S, int T) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= S) return;
  float sum = 0;
  for (int t = 0; t < T; ++t) sum += x[s * T + t] * x[s * T + t];
  power[s] = sum;
}
__global__ void divide(const float* peak, const float* power, float* out, int S, int T) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s < S) out[s] = peak[s] / sqrtf(power[s] / T + 1e-6f);
}
]]></before>
<after><![CDATA[
//@ launch crest<<<S, 256>>>(x, out, T)
__global__ void crest(const float* x, float* out, int T) {
  __shared__ float peaks[256];
  __shared__ float powers[256];
  const float* record = x + (long long)blockIdx.x * T;
  float top = 0, sum = 0;
  for (int t = threadIdx.x; t < T; t += 256) {
    const float value = record[t];
    top = fmaxf(top, fabsf(value));
    sum += value * value;
  }
  peaks[threadIdx.x] = top;
  powers[threadIdx.x] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      peaks[threadIdx.x] = fmaxf(peaks[threadIdx.x], peaks[threadIdx.x + half]);
      powers[threadIdx.x] += powers[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = peaks[0] / sqrtf(powers[0] / T + 1e-6f);
}
]]></after>
</example>

<example optimization="rewriting" language="triton">
<title>Each spectrum between 0, its lowest line, and 1, its highest</title>
<action>rewriting the amin, amax and subtraction, the addition and the division in line 9 to 11</action>
<why>Five operators went over memory one after the other. One kernel holds a spectrum in registers: it is read once and
written once, and both extremes come of the same values. Lanes beyond the row are infinite where they must not be the
lowest or the highest, and are not stored; the small constant keeps a flat spectrum from dividing by zero, as before.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[5, 77]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        low = x.amin(dim=1, keepdim=True)
        high = x.amax(dim=1, keepdim=True)
        return (x - low) / (high - low + 1e-6)
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rescale(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    v = tl.load(x + row + lane, mask=inside, other=0.0)
    low = tl.min(tl.where(inside, v, float("inf")), 0)
    high = tl.max(tl.where(inside, v, float("-inf")), 0)
    tl.store(out + row + lane, (v - low) / (high - low + 1e-6), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rescale[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
