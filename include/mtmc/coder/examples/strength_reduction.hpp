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
<title>The smooth gate of a layer</title>
<action>reducing the strength of the threads of gate in line 2 to 9</action>
<why>Half of one plus tanh(u) is 1 / (1 + exp(-2u)): an exponential and a division take the place of a hyperbolic tangent,
which has branches and more operations. It is also closer to the truth where u is far below zero, because nothing cancels.
The constants are folded into one factor. Where the exponential overflows the quotient is 0, as it should be.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 4000000}, {"N": 1000, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "10*N"}
]]></task>
<before><![CDATA[
//@ launch gate<<<ceil_div(N, 256), 256>>>(x, out, N)
__global__ void gate(const float* x, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float v = x[i];
    float u = 0.7978845608f * (v + 0.044715f * v * v * v);
    out[i] = 0.5f * v * (1.0f + tanhf(u));
  }
}
]]></before>
<after><![CDATA[
//@ launch gate<<<ceil_div(N, 256), 256>>>(x, out, N)
__global__ void gate(const float* x, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float v = x[i];
    float u = -1.5957691216f * (v + 0.044715f * v * v * v);
    out[i] = v / (1.0f + expf(u));
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
