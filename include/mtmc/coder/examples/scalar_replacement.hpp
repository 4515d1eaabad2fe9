#pragma once
/// The library's own examples of scalar replacement (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view scalar_replacement_examples = R"xml(<examples>

<example optimization="scalar_replacement" language="cpp">
<title>Energy of each record</title>
<action>replacing elements by scalars in the k loop of energy in line 5 to 7</action>
<why>The sum of a record lay in memory, and each sample waited for the store of the one before: the compiler may not keep it
in a register, since `out` and `x` could be the same memory. As a scalar it stays in a register, the loop is one of
vectors with partial sums, and the element is stored once, behind the loop.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N", "K"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 400, "K": 2000}, {"N": 7, "K": 33, "weight": 0}, {"N": 1, "K": 1, "weight": 0}],
 "flops": "2*N*K"}
]]></task>
<before><![CDATA[
//@ launch energy(x, out, N, K)
void energy(const float* x, float* out, int N, int K) {
  for (int i = 0; i < N; ++i) {
    out[i] = 0;
    for (int k = 0; k < K; ++k) {
      out[i] += x[i * K + k] * x[i * K + k];
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch energy(x, out, N, K)
void energy(const float* x, float* out, int N, int K) {
  for (int i = 0; i < N; ++i) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < K; ++k) {
      sum += x[i * K + k] * x[i * K + k];
    }
    out[i] = sum;
  }
}
]]></after>
</example>

<example optimization="scalar_replacement" language="cuda">
<title>Water that came down a river, hour by hour</title>
<action>replacing elements by scalars in the h loop of volume in line 6 to 8</action>
<why>Each hour's water was added to an element in memory, which was loaded and stored again every time, because the compiler
must reckon with `flow` and `out` being the same memory. In a scalar the sum stays in a register: of three accesses an
hour one is left, loads of several hours can be on their way at once, and the element is stored once, at the end.</why>
<task><![CDATA[
{"arguments": [{"name": "flow", "shape": ["H", "N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 100000, "H": 100}, {"N": 1001, "H": 7, "weight": 0}, {"N": 1, "H": 1, "weight": 0}],
 "flops": "N*H"}
]]></task>
<before><![CDATA[
//@ launch volume<<<ceil_div(N, 256), 256>>>(flow, out, N, H)
__global__ void volume(const float* flow, float* out, int N, int H) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = 0;
    for (int h = 0; h < H; ++h) {
      out[i] += flow[h * N + i];
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch volume<<<ceil_div(N, 256), 256>>>(flow, out, N, H)
__global__ void volume(const float* __restrict__ flow, float* __restrict__ out, int N, int H) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float sum = 0;
    for (int h = 0; h < H; ++h) {
      sum += flow[h * N + i];
    }
    out[i] = sum;
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
