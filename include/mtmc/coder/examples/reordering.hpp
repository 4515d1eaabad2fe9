#pragma once
/// The library's own examples of reordering (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view reordering_examples = R"xml(<examples>

<example optimization="reordering" language="cpp">
<title>Exponential smoothing of many series that are stored time by time</title>
<action>reordering the s, t loop nest of smooth in line 6 to 10</action>
<why>The samples of one time stand next to each other, so the loop over the series is now the inner one and moves by one
element, where the loop over time moved by S: every byte of a cache line is used, and the compiler can vectorize it.
What an iteration needs is the value of the same series one time step before; with time outside, that is
still computed earlier.</why>
<task><![CDATA[
{"arguments": [{"name": "in", "shape": ["T", "S"]}, {"name": "out", "shape": ["T", "S"]}],
 "sizes": [{"T": 300, "S": 1024}, {"T": 7, "S": 67, "weight": 0}, {"T": 1, "S": 3, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch smooth(in, out, T, S)
void smooth(const float* in, float* out, int T, int S) {
  for (int s = 0; s < S; ++s) {
    out[s] = in[s];
  }
  for (int s = 0; s < S; ++s) {
    for (int t = 1; t < T; ++t) {
      out[t * S + s] = 0.25f * in[t * S + s] + 0.75f * out[(t - 1) * S + s];
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch smooth(in, out, T, S)
void smooth(const float* in, float* out, int T, int S) {
  for (int s = 0; s < S; ++s) {
    out[s] = in[s];
  }
  for (int t = 1; t < T; ++t) {
    for (int s = 0; s < S; ++s) {
      out[t * S + s] = 0.25f * in[t * S + s] + 0.75f * out[(t - 1) * S + s];
    }
  }
}
]]></after>
</example>

<example optimization="reordering" language="cuda">
<title>Sensor readings with a gain and an offset for each channel</title>
<action>reordering the s, c thread nest of calibrate in line 3 to 7</action>
<why>Neighbouring threads along x now take neighbouring samples of one channel, so a warp reads and writes whole lines
of memory; before, they lay N elements apart and each access of a warp touched 32 lines. The two axes of the grid change
places with them in the launch line. Every pair of c and s still has one thread, and the guard still covers both
edges.</why>
<task><![CDATA[
{"arguments": [{"name": "in", "shape": ["C", "N"]}, {"name": "gain", "shape": ["C"]}, {"name": "offset", "shape": ["C"]},
               {"name": "out", "shape": ["C", "N"]}],
 "sizes": [{"C": 4000, "N": 4000},
           {"C": 96, "N": 500, "weight": 0}, {"C": 17, "N": 33, "weight": 0}, {"C": 1, "N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch calibrate<<<(ceil_div(C, 32), ceil_div(N, 8)), (32, 8)>>>(in, gain, offset, out, C, N)
__global__ void calibrate(const float* in, const float* gain, const float* offset, float* out, int C, int N) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int s = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < C && s < N) {
    out[c * N + s] = gain[c] * (in[c * N + s] - offset[c]);
  }
}
]]></before>
<after><![CDATA[
//@ launch calibrate<<<(ceil_div(N, 32), ceil_div(C, 8)), (32, 8)>>>(in, gain, offset, out, C, N)
__global__ void calibrate(const float* in, const float* gain, const float* offset, float* out, int C, int N) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  int c = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < C && s < N) {
    out[c * N + s] = gain[c] * (in[c * N + s] - offset[c]);
  }
}
]]></after>
</example>

<example optimization="reordering" language="triton">
<title>Sensor readings with a gain and an offset for each channel</title>
<action>reordering the function calibrate in line 6 to 12</action>
<why>The elements of a block now lie along the samples of one channel, which stand next to each other in memory, so
each load and store moves whole lines; before, a block ran through the channels, N elements apart. The two
axes of the grid change places in the launch line, and the mask goes with the axis that a block runs along.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "role": "input", "dtype": "f32", "shape": ["C", "N"]},
               {"name": "gain", "role": "input", "dtype": "f32", "shape": ["C"]},
               {"name": "offset", "role": "input", "dtype": "f32", "shape": ["C"]},
               {"name": "out", "role": "output", "dtype": "f32", "shape": ["C", "N"]},
               {"name": "C", "role": "scalar", "dtype": "i32", "value": "C"},
               {"name": "N", "role": "scalar", "dtype": "i32", "value": "N"}],
 "sizes": [{"C": 1024, "N": 4096}, {"C": 129, "N": 131, "weight": 0}, {"C": 1, "N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
import triton
import triton.language as tl


#@ launch calibrate<<<(ceil_div(C, 128), N), 128>>>(x, gain, offset, out, C, N)
@triton.jit
def calibrate(x, gain, offset, out, C, N):
    c = tl.program_id(0) * 128 + tl.arange(0, 128)
    s = tl.program_id(1)
    value = tl.load(x + c * N + s, mask=c < C, other=0.0)
    value = tl.load(gain + c, mask=c < C, other=0.0) * (value - tl.load(offset + c, mask=c < C, other=0.0))
    tl.store(out + c * N + s, value, mask=c < C)
]]></before>
<after><![CDATA[
import triton
import triton.language as tl


#@ launch calibrate<<<(ceil_div(N, 128), C), 128>>>(x, gain, offset, out, C, N)
@triton.jit
def calibrate(x, gain, offset, out, C, N):
    s = tl.program_id(0) * 128 + tl.arange(0, 128)
    c = tl.program_id(1)
    value = tl.load(x + c * N + s, mask=s < N, other=0.0)
    value = tl.load(gain + c) * (value - tl.load(offset + c))
    tl.store(out + c * N + s, value, mask=s < N)
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
