#pragma once
/// The library's own examples of tiling (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view tiling_examples = R"xml(<examples>

<example optimization="tiling" language="cpp">
<title>Shortest two-leg routes: C[i][j] is the least A[i][k] + B[k][j]</title>
<action>tiling the i, k, j loop nest of routes in line 10 to 16</action>
<why>The k and j loops are cut into tiles, and the tile loops are moved out of the i loop, so that 64 x 512 numbers
of B (128 KB) stay in the second-level cache while all rows of A meet them; before, all of B came from memory again for
each row. The tile loops end at the smaller of tile and extent, so the last, incomplete tiles are covered. Each
C[i][j] still takes the least over the same sums, in the same order of k.</why>
<task><![CDATA[
{"arguments": [{"name": "A", "shape": ["M", "K"]}, {"name": "B", "shape": ["K", "N"]}, {"name": "C", "shape": ["M", "N"]}],
 "sizes": [{"M": 96, "N": 1500, "K": 1000}, {"M": 7, "N": 513, "K": 65, "weight": 0}, {"M": 5, "N": 3, "K": 2, "weight": 0}],
 "flops": "2*M*N*K"}
]]></task>
<before><![CDATA[
#include <algorithm>

//@ launch routes(A, B, C, M, N, K)
void routes(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      C[i * N + j] = 1e30f;
    }
  }
  for (int i = 0; i < M; ++i) {
    for (int k = 0; k < K; ++k) {
      for (int j = 0; j < N; ++j) {
        C[i * N + j] = std::min(C[i * N + j], A[i * K + k] + B[k * N + j]);
      }
    }
  }
}
]]></before>
<after><![CDATA[
#include <algorithm>

//@ launch routes(A, B, C, M, N, K)
void routes(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      C[i * N + j] = 1e30f;
    }
  }
  // 64 x 512 numbers of B stay in the cache while all rows of A meet them.
  for (int k0 = 0; k0 < K; k0 += 64) {
    const int k1 = std::min(k0 + 64, K);
    for (int j0 = 0; j0 < N; j0 += 512) {
      const int j1 = std::min(j0 + 512, N);
      for (int i = 0; i < M; ++i) {
        for (int k = k0; k < k1; ++k) {
          for (int j = j0; j < j1; ++j) {
            C[i * N + j] = std::min(C[i * N + j], A[i * K + k] + B[k * N + j]);
          }
        }
      }
    }
  }
}
]]></after>
</example>

<example optimization="tiling" language="cuda">
<title>Potential of point charges at the place of each of them</title>
<action>tiling the j loop of potential in line 6 to 10</action>
<why>All threads of a block need the same charges, so each of them brings one of the next 128 into shared memory, with
neighbouring accesses, and all compute on these from there: a charge comes from global memory once a block. One barrier
makes the tile complete before it is read, a second keeps it until all are done. Threads beyond N take part in both and
only store nothing; in the last tile the inner loop ends at the last charge.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["N"], "domain": ["-1", "1"]}, {"name": "y", "shape": ["N"], "domain": ["-1", "1"]},
               {"name": "charge", "shape": ["N"]}, {"name": "v", "shape": ["N"]}],
 "sizes": [{"N": 16384}, {"N": 640, "weight": 0}, {"N": 131, "weight": 0}, {"N": 1, "weight": 0}],
 "flops": "7*N*N"}
]]></task>
<before><![CDATA[
//@ launch potential<<<ceil_div(N, 128), 128>>>(x, y, charge, v, N)
__global__ void potential(const float* x, const float* y, const float* charge, float* v, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      float dx = x[i] - x[j];
      float dy = y[i] - y[j];
      sum += charge[j] / (dx * dx + dy * dy + 0.01f);
    }
    v[i] = sum;
  }
}
]]></before>
<after><![CDATA[
//@ launch potential<<<ceil_div(N, 128), 128>>>(x, y, charge, v, N)
__global__ void potential(const float* x, const float* y, const float* charge, float* v, int N) {
  __shared__ float tile_x[128];
  __shared__ float tile_y[128];
  __shared__ float tile_charge[128];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  float at_x = i < N ? x[i] : 0.0f;
  float at_y = i < N ? y[i] : 0.0f;
  float sum = 0.0f;
  for (int j0 = 0; j0 < N; j0 += 128) {
    if (j0 + t < N) {
      tile_x[t] = x[j0 + t];
      tile_y[t] = y[j0 + t];
      tile_charge[t] = charge[j0 + t];
    }
    __syncthreads();
    int count = min(128, N - j0);
    for (int k = 0; k < count; ++k) {
      float dx = at_x - tile_x[k];
      float dy = at_y - tile_y[k];
      sum += tile_charge[k] / (dx * dx + dy * dy + 0.01f);
    }
    __syncthreads();
  }
  if (i < N) {
    v[i] = sum;
  }
}
]]></after>
</example>

<example optimization="tiling" language="opencl">
<title>Squared distance of each point to the nearest site</title>
<action>tiling the s loop of nearest in line 8 to 12</action>
<why>All work-items of a group look at the same sites, so each of them brings one of the next 64 into local memory and
all read them from there: a site comes from global memory once a group. One barrier makes the tile complete, a second
keeps it until all are done; work-items beyond N take part in both. The inner loop of the last tile ends at the last
site, and the least of the same distances is the same in any order.</why>
<task><![CDATA[
{"arguments": [{"name": "px", "role": "input", "dtype": "f32", "shape": ["N"]},
               {"name": "py", "role": "input", "dtype": "f32", "shape": ["N"]},
               {"name": "sx", "role": "input", "dtype": "f32", "shape": ["S"]},
               {"name": "sy", "role": "input", "dtype": "f32", "shape": ["S"]},
               {"name": "out", "role": "output", "dtype": "f32", "shape": ["N"]},
               {"name": "N", "role": "scalar", "dtype": "i32", "value": "N"},
               {"name": "S", "role": "scalar", "dtype": "i32", "value": "S"}],
 "sizes": [{"N": 4096, "S": 300}, {"N": 67, "S": 65, "weight": 0}, {"N": 1, "S": 1, "weight": 0}],
 "flops": "6*N*S"}
]]></task>
<before><![CDATA[
//@ launch nearest<<<ceil_div(N, 64), 64>>>(px, py, sx, sy, out, N, S)
__kernel void nearest(__global const float* px, __global const float* py, __global const float* sx,
                      __global const float* sy, __global float* out, int N, int S) {
  int i = get_global_id(0);
  if (i >= N) return;
  float x = px[i], y = py[i];
  float best = INFINITY;
  for (int s = 0; s < S; ++s) {
    float dx = x - sx[s];
    float dy = y - sy[s];
    best = fmin(best, dx * dx + dy * dy);
  }
  out[i] = best;
}
]]></before>
<after><![CDATA[
//@ launch nearest<<<ceil_div(N, 64), 64>>>(px, py, sx, sy, out, N, S)
__kernel void nearest(__global const float* px, __global const float* py, __global const float* sx,
                      __global const float* sy, __global float* out, int N, int S) {
  __local float tile_x[64];
  __local float tile_y[64];
  int t = get_local_id(0);
  int i = get_global_id(0);
  float x = i < N ? px[i] : 0.0f, y = i < N ? py[i] : 0.0f;
  float best = INFINITY;
  for (int s0 = 0; s0 < S; s0 += 64) {
    if (s0 + t < S) {
      tile_x[t] = sx[s0 + t];
      tile_y[t] = sy[s0 + t];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int count = min(64, S - s0);
    for (int k = 0; k < count; ++k) {
      float dx = x - tile_x[k];
      float dy = y - tile_y[k];
      best = fmin(best, dx * dx + dy * dy);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i < N) out[i] = best;
}
]]></after>
</example>

<example optimization="tiling" language="triton">
<title>Largest distance of each point to a set of sites</title>
<action>tiling the kernel farthest in line 8 to 17</action>
<why>A program now computes the distances of 16 points to 64 sites at once, so that each site that it loads serves 16
points instead of one, and the sites are read 16 times less. The grid has a program for every 16 points; masks keep
the last block of points and of sites correct: a site that is not there counts as distance zero, which is never
larger.</why>
<task><![CDATA[
{"constructor": [], "calls": [[[37, 3], [70, 3]], [[1, 2], [1, 2]]]}
]]></task>
<before><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def farthest(p, s, out, n, m, D: tl.constexpr):
    i = tl.program_id(0)
    best = 0.0
    for j in range(0, m):
        total = 0.0
        for d in tl.static_range(D):
            gap = tl.load(p + i * D + d) - tl.load(s + j * D + d)
            total += gap * gap
        best = tl.maximum(best, total)
    tl.store(out + i, best)


class ModelNew(nn.Module):
    def forward(self, points, sites):
        out = torch.empty(points.shape[0], device=points.device)
        farthest[(points.shape[0],)](points, sites, out, points.shape[0], sites.shape[0], D=points.shape[1])
        return out
]]></before>
<after><![CDATA[
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def farthest(p, s, out, n, m, D: tl.constexpr, I: tl.constexpr, J: tl.constexpr):
    i = tl.program_id(0) * I + tl.arange(0, I)
    best = tl.zeros([I], tl.float32)
    for j0 in range(0, m, J):
        j = j0 + tl.arange(0, J)
        total = tl.zeros([I, J], tl.float32)
        for d in tl.static_range(D):
            a = tl.load(p + i * D + d, mask=i < n, other=0.0)
            b = tl.load(s + j * D + d, mask=j < m, other=0.0)
            gap = a[:, None] - b[None, :]
            total += gap * gap
        best = tl.maximum(best, tl.max(tl.where(j[None, :] < m, total, 0.0), 1))
    tl.store(out + i, best, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, points, sites):
        n = points.shape[0]
        out = torch.empty(n, device=points.device)
        grid = (triton.cdiv(n, 16),)
        farthest[grid](points, sites, out, n, sites.shape[0], D=points.shape[1], I=16, J=64)
        return out
]]></after>
</example>

</examples>
)xml";

} // namespace mtmc::detail
