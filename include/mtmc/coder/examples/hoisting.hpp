#pragma once
/// The library's own examples of hoisting (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view hoisting_examples = R"xml(<examples>

<example optimization="hoisting" language="cpp">
<title>Loudness of instruments, each at its distance</title>
<action>hoisting out of the i, t loop nest of mix in line 5 to 9</action>
<why>The damping depends on the instrument alone, but its exponential was computed for each sample, and the call kept the
inner loop from being one of vectors. Now it is computed once an instrument, in front of the inner loop, which is left
with a product. Each result comes of the same operations as before, so it is the same to the last bit.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N", "T"]}, {"name": "distance", "shape": ["N"], "domain": ["0", "30"]},
               {"name": "out", "shape": ["N", "T"]}],
 "sizes": [{"N": 300, "T": 1000}, {"N": 7, "T": 33, "weight": 0}, {"N": 1, "T": 1, "weight": 0}],
 "flops": "2*N*T"}
]]></task>
<before><![CDATA[
#include <cmath>

//@ launch mix(x, distance, out, N, T)
void mix(const float* x, const float* distance, float* out, int N, int T) {
  for (int i = 0; i < N; ++i) {
    for (int t = 0; t < T; ++t) {
      out[i * T + t] = x[i * T + t] * std::exp(-0.2f * distance[i]);
    }
  }
}
]]></before>
<after><![CDATA[
#include <cmath>

//@ launch mix(x, distance, out, N, T)
void mix(const float* x, const float* distance, float* out, int N, int T) {
  for (int i = 0; i < N; ++i) {
    const float damping = std::exp(-0.2f * distance[i]);
    for (int t = 0; t < T; ++t) {
      out[i * T + t] = x[i * T + t] * damping;
    }
  }
}
]]></after>
</example>

<example optimization="hoisting" language="cuda">
<title>Colour of a lamp, hour by hour</title>
<action>hoisting out of the h, c loop nest of glow in line 5 to 9</action>
<why>The brightness of a lamp at an hour does not change from channel to channel, but its power was computed in the loop over
channels, once for each. Now it is computed once an hour, in front of that loop: one dear function in place of C, and one
load of the age. The threads and what each of them writes stay as they were, and each result is the same product.</why>
<task><![CDATA[
{"arguments": [{"name": "age", "shape": ["H", "N"], "domain": ["0", "40"]}, {"name": "colour", "shape": ["C", "N"]},
               {"name": "out", "shape": ["H", "C", "N"]}],
 "sizes": [{"N": 100000, "H": 4, "C": 16}, {"N": 1001, "H": 3, "C": 5, "weight": 0}, {"N": 1, "H": 1, "C": 1, "weight": 0}],
 "flops": "10*N*H*C"}
]]></task>
<before><![CDATA[
//@ launch glow<<<ceil_div(N, 256), 256>>>(age, colour, out, N, H, C)
__global__ void glow(const float* age, const float* colour, float* out, int N, int H, int C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    for (int h = 0; h < H; ++h) {
      for (int c = 0; c < C; ++c) {
        out[(h * C + c) * N + i] = colour[c * N + i] * powf(0.9f, age[h * N + i]);
      }
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch glow<<<ceil_div(N, 256), 256>>>(age, colour, out, N, H, C)
__global__ void glow(const float* age, const float* colour, float* out, int N, int H, int C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    for (int h = 0; h < H; ++h) {
      const float brightness = powf(0.9f, age[h * N + i]);
      for (int c = 0; c < C; ++c) {
        out[(h * C + c) * N + i] = colour[c * N + i] * brightness;
      }
    }
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
