#pragma once
/// The library's own examples of finishing (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view finishing_examples = R"xml(<examples>

<example optimization="finishing" language="cuda">
<title>Energy of a long record</title>
<action>finishing in one launch the launches of energy_of_parts and add in line 2 to 3</action>
<why>The second launch was one block that waited for all others and then added a few hundred numbers; starting it took longer
than its work. Now each block stores its part, makes it visible by a fence, and counts itself. The one that counts last
finds all parts and adds them as the second launch did, in the same order, so that the sum does not depend on who was last.
The counter is zero at the start of each call.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "out", "shape": ["1"]}],
 "sizes": [{"N": 4000000}, {"N": 20001, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "2*N"}
]]></task>
<before><![CDATA[
//@ scratch parts: f32[ceil_div(N, 8192)]
//@ launch energy_of_parts<<<ceil_div(N, 8192), 256>>>(x, parts, N)
//@ launch add<<<1, 256>>>(parts, out, ceil_div(N, 8192))
__device__ float sum_of_block(float own) {
  __shared__ float sums[256];
  sums[threadIdx.x] = own;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}
__global__ void energy_of_parts(const float* x, float* parts, int N) {
  float own = 0;
  int end = min(N, (blockIdx.x + 1) * 8192);
  for (int i = blockIdx.x * 8192 + threadIdx.x; i < end; i += 256) {
    own += x[i] * x[i];
  }
  float sum = sum_of_block(own);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
__global__ void add(const float* parts, float* out, int P) {
  float own = 0;
  for (int p = threadIdx.x; p < P; p += 256) {
    own += parts[p];
  }
  float sum = sum_of_block(own);
  if (threadIdx.x == 0) out[0] = sum;
}
]]></before>
<after><![CDATA[
//@ scratch parts: f32[ceil_div(N, 8192)]
//@ scratch done: u32[1] zero
//@ launch energy<<<ceil_div(N, 8192), 256>>>(x, parts, done, out, N)
__device__ float sum_of_block(float own) {
  __shared__ float sums[256];
  __syncthreads();
  sums[threadIdx.x] = own;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return sums[0];
}
__global__ void energy(const float* x, float* parts, unsigned* done, float* out, int N) {
  __shared__ bool is_last;
  float own = 0;
  int end = min(N, (blockIdx.x + 1) * 8192);
  for (int i = blockIdx.x * 8192 + threadIdx.x; i < end; i += 256) {
    own += x[i] * x[i];
  }
  float sum = sum_of_block(own);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  own = 0;
  for (int p = threadIdx.x; p < gridDim.x; p += 256) {
    own += ((volatile float*)parts)[p];
  }
  sum = sum_of_block(own);
  if (threadIdx.x == 0) out[0] = sum;
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
