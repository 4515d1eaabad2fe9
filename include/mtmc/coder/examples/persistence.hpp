#pragma once
/// The library's own examples of persistent blocks (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view persistence_examples = R"xml(<examples>

<example optimization="persistence" language="cuda">
<title>What a gauge reads, by its calibration table</title>
<action>keeping alive the blocks of the i threads of calibrate in line 3 to 13</action>
<why>Each block loaded a table of 1024 numbers for 256 readings of its own, so four times as much was fetched for tables as
for readings, and 39,000 blocks came and went. Now 1056 blocks, eight to a multiprocessor, load the table once and go
through the readings with a stride of the grid. The barrier stands in front of that loop, where all threads pass it.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"], "domain": ["0", "1022"]}, {"name": "table", "shape": ["1024"]},
               {"name": "out", "shape": ["N"]}],
 "sizes": [{"N": 10000000}, {"N": 1000, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "4*N"}
]]></task>
<before><![CDATA[
//@ launch calibrate<<<ceil_div(N, 256), 256>>>(x, table, out, N)
__global__ void calibrate(const float* x, const float* table, float* out, int N) {
  __shared__ float known[1024];
  for (int k = threadIdx.x; k < 1024; k += 256) {
    known[k] = table[k];
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    int k = (int)x[i];
    float part = x[i] - k;
    out[i] = known[k] + part * (known[k + 1] - known[k]);
  }
}
]]></before>
<after><![CDATA[
//@ launch calibrate<<<min(ceil_div(N, 256), 1056), 256>>>(x, table, out, N)
__global__ void calibrate(const float* x, const float* table, float* out, int N) {
  __shared__ float known[1024];
  for (int k = threadIdx.x; k < 1024; k += 256) {
    known[k] = table[k];
  }
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) {
    int k = (int)x[i];
    float part = x[i] - k;
    out[i] = known[k] + part * (known[k + 1] - known[k]);
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
