#pragma once
/// The library's own examples of scans (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view scanning_examples = R"xml(<examples>

<example optimization="scanning" language="cpp">
<title>Running balance of an account</title>
<action>scanning the i loop of balance in line 4 to 7</action>
<why>Each balance needs the one before, so one core added alone. Addition is associative: all cores add up blocks of 4096
entries first, then each block begins with the sum of all blocks before it and goes through its entries again. That is
twice the additions, by all cores, and memory gives the entries of a block a second time from the cache. The sums of
blocks are scratch memory, the last block may be shorter.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"]}, {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 1000000}, {"N": 4097, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "N"}
]]></task>
<before><![CDATA[
//@ launch balance(x, out, N)
void balance(const float* x, float* out, int N) {
  float sum = 0;
  for (int i = 0; i < N; ++i) {
    sum += x[i];
    out[i] = sum;
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ scratch sums: f32[ceil_div(N, 4096)]
//@ launch balance(x, out, sums, N)
void balance(const float* x, float* out, float* sums, int N) {
  const int blocks = (N + 4095) / 4096;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      float sum = 0;
      for (int i = b * 4096; i < std::min(N, b * 4096 + 4096); ++i) sum += x[i];
      sums[b] = sum;
    }
#pragma omp for schedule(static)
    for (int b = 0; b < blocks; ++b) {
      float sum = 0;
      for (int c = 0; c < b; ++c) sum += sums[c];
      for (int i = b * 4096; i < std::min(N, b * 4096 + 4096); ++i) {
        sum += x[i];
        out[i] = sum;
      }
    }
  }
}
]]></after>
</example>

<example optimization="scanning" language="cuda">
<title>Running balance of each account</title>
<action>scanning the j loop of balance in line 6 to 9</action>
<why>One thread went through an account alone, its neighbours N entries away. Now a block takes an account, 256 entries at
a time: neighbouring threads read neighbouring entries, and in eight rounds each adds what its partner 1, 2, 4, ... places
before holds, with a barrier before reading and one before writing. The last sum of a round of 256 is carried to
the next. Threads behind the end add 0 and write nothing.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["M", "N"]}, {"name": "out", "shape": ["M", "N"]}],
 "sizes": [{"M": 2000, "N": 5000}, {"M": 7, "N": 257, "weight": 0}, {"M": 3, "N": 1, "weight": 0}],
 "flops": "M*N"}
]]></task>
<before><![CDATA[
//@ launch balance<<<ceil_div(M, 128), 128>>>(x, out, M, N)
__global__ void balance(const float* x, float* out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float sum = 0;
    for (int j = 0; j < N; ++j) {
      sum += x[i * N + j];
      out[i * N + j] = sum;
    }
  }
}
]]></before>
<after><![CDATA[
//@ launch balance<<<M, 256>>>(x, out, N)
__global__ void balance(const float* x, float* out, int N) {
  __shared__ float sums[256];
  int i = blockIdx.x;
  int t = threadIdx.x;
  float carried = 0;
  for (int first = 0; first < N; first += 256) {
    int j = first + t;
    float sum = j < N ? x[i * N + j] : 0;
    for (int reach = 1; reach < 256; reach *= 2) {
      sums[t] = sum;
      __syncthreads();
      if (t >= reach) sum += sums[t - reach];
      __syncthreads();
    }
    sums[t] = sum;
    __syncthreads();
    if (j < N) out[i * N + j] = carried + sum;
    carried += sums[255];
    __syncthreads();
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
