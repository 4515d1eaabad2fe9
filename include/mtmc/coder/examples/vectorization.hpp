#pragma once
/// The library's own examples of vectorization (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view vectorization_examples = R"xml(<examples>

<example optimization="vectorization" language="cpp">
<title>Autocorrelation of a signal at L lags</title>
<action>vectorizing the i loop of autocorrelation in line 5 to 7</action>
<why>A compiler may not change the order of a sum of floats by itself, so it ran one element after the other. `omp simd`
with the reduction clause says that partial sums are wanted, one a lane of a vector register. Both accesses move by one
element, no iteration needs another's result, and the compiler adds the loop for what remains; the sum differs only by
rounding.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N + L"]}, {"name": "r", "shape": ["L"]}],
 "sizes": [{"N": 8000, "L": 64}, {"N": 1001, "L": 3, "weight": 0}, {"N": 1, "L": 1, "weight": 0}],
 "flops": "2*N*L"}
]]></task>
<before><![CDATA[
//@ launch autocorrelation(x, r, N, L)
void autocorrelation(const float* x, float* r, int N, int L) {
  for (int l = 0; l < L; ++l) {
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) {
      sum += x[i] * x[i + l];
    }
    r[l] = sum;
  }
}
]]></before>
<after><![CDATA[
//@ launch autocorrelation(x, r, N, L)
void autocorrelation(const float* x, float* r, int N, int L) {
  for (int l = 0; l < L; ++l) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < N; ++i) {
      sum += x[i] * x[i + l];
    }
    r[l] = sum;
  }
}
]]></after>
</example>

<example optimization="vectorization" language="cuda">
<title>A front picture over a back picture</title>
<action>vectorizing the i threads of composite in line 3 to 6</action>
<why>A thread loads and stores four neighbouring elements by one access of 16 bytes each, so the same bytes need a
quarter of the instructions and more of them are in flight. The launch line starts a thread for every four elements.
Buffers begin at multiples of 16 bytes and i is a multiple of four, so each access is aligned; the last one to three
elements go the scalar way.</why>
<task><![CDATA[
{"arguments": [{"name": "front", "shape": ["N"]}, {"name": "alpha", "shape": ["N"], "domain": ["0", "1"]},
               {"name": "back", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 16000000}, {"N": 100000, "weight": 0}, {"N": 1027, "weight": 0}, {"N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch composite<<<ceil_div(N, 256), 256>>>(front, alpha, back, out, N)
__global__ void composite(const float* front, const float* alpha, const float* back, float* out, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    out[i] = alpha[i] * front[i] + (1.0f - alpha[i]) * back[i];
  }
}
]]></before>
<after><![CDATA[
//@ launch composite<<<ceil_div(N, 1024), 256>>>(front, alpha, back, out, N)
__global__ void composite(const float* front, const float* alpha, const float* back, float* out, int N) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < N) {
    float4 f = *reinterpret_cast<const float4*>(front + i);
    float4 a = *reinterpret_cast<const float4*>(alpha + i);
    float4 b = *reinterpret_cast<const float4*>(back + i);
    float4 result;
    result.x = a.x * f.x + (1.0f - a.x) * b.x;
    result.y = a.y * f.y + (1.0f - a.y) * b.y;
    result.z = a.z * f.z + (1.0f - a.z) * b.z;
    result.w = a.w * f.w + (1.0f - a.w) * b.w;
    *reinterpret_cast<float4*>(out + i) = result;
  } else {
    for (; i < N; ++i) {
      out[i] = alpha[i] * front[i] + (1.0f - alpha[i]) * back[i];
    }
  }
}
]]></after>
</example>

<example optimization="vectorization" language="opencl">
<title>A front picture over a back picture</title>
<action>vectorizing the function composite in line 2 to 7</action>
<why>A work-item loads and stores four neighbouring elements with `vload4` and `vstore4`, so the same bytes need a
quarter of the instructions, and a processor's vector unit is filled. The launch line starts a work-item for every four
elements; the last one to three elements go the scalar way.</why>
<task><![CDATA[
{"arguments": [{"name": "front", "role": "input", "dtype": "f32", "shape": ["N"]},
               {"name": "alpha", "role": "input", "dtype": "f32", "shape": ["N"], "domain": ["0", "1"]},
               {"name": "back", "role": "input", "dtype": "f32", "shape": ["N"]},
               {"name": "out", "role": "output", "dtype": "f32", "shape": ["N"]},
               {"name": "N", "role": "scalar", "dtype": "i32", "value": "N"}],
 "sizes": [{"N": 100000}, {"N": 1027, "weight": 0}, {"N": 1, "weight": 0}]}
]]></task>
<before><![CDATA[
//@ launch composite<<<ceil_div(N, 64), 64>>>(front, alpha, back, out, N)
__kernel void composite(__global const float* front, __global const float* alpha, __global const float* back,
                        __global float* out, int N) {
  int i = get_global_id(0);
  if (i >= N) return;
  out[i] = alpha[i] * front[i] + (1.0f - alpha[i]) * back[i];
}
]]></before>
<after><![CDATA[
//@ launch composite<<<ceil_div(N, 256), 64>>>(front, alpha, back, out, N)
__kernel void composite(__global const float* front, __global const float* alpha, __global const float* back,
                        __global float* out, int N) {
  int i = 4 * get_global_id(0);
  if (i + 3 < N) {
    float4 a = vload4(0, alpha + i);
    vstore4(a * vload4(0, front + i) + (1.0f - a) * vload4(0, back + i), 0, out + i);
  } else {
    for (; i < N; ++i) out[i] = alpha[i] * front[i] + (1.0f - alpha[i]) * back[i];
  }
}
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
