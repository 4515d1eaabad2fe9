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

<example optimization="persistence" language="triton">
<title>Squared overlaps of waves, by as many programs as there are multiprocessors</title>
<action>keeping alive the blocks of the kernel overlaps in line 8 to 19</action>
<why>Each program goes through the blocks of `c` with a stride of the grid instead of ending after one, so the device
starts them once, and the loads of the next block are under way while one is stored. The number of multiprocessors
comes from the device's properties; with fewer blocks than that, some programs have nothing to do. Blocks and sums are
the same as before.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[200, 50], [90, 50]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def overlaps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    m = (pm * BM + tl.arange(0, BM))[:, None]
    n = (pn * BN + tl.arange(0, BN))[None, :]
    k = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(a + m * K + (k0 + k)[None, :], mask=(m < M) & ((k0 + k)[None, :] < K), other=0.0)
        y = tl.load(b + n * K + (k0 + k)[:, None], mask=(n < N) & ((k0 + k)[:, None] < K), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + m * N + n, total * total, mask=(m < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[0]
        c = torch.empty(M, N, device=a.device)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        overlaps[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def overlaps(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        m = (tile // columns * BM + tl.arange(0, BM))[:, None]
        n = (tile % columns * BN + tl.arange(0, BN))[None, :]
        k = tl.arange(0, BK)
        total = tl.zeros([BM, BN], tl.float32)
        for k0 in range(0, K, BK):
            x = tl.load(a + m * K + (k0 + k)[None, :], mask=(m < M) & ((k0 + k)[None, :] < K), other=0.0)
            y = tl.load(b + n * K + (k0 + k)[:, None], mask=(n < N) & ((k0 + k)[:, None] < K), other=0.0)
            total = tl.dot(x, y, total, input_precision="ieee")
        tl.store(c + m * N + n, total * total, mask=(m < M) & (n < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[0]
        c = torch.empty(M, N, device=a.device)
        units = torch.cuda.get_device_properties(a.device).multi_processor_count
        grid = (min(units, triton.cdiv(M, 64) * triton.cdiv(N, 64)),)
        overlaps[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
        return c
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
