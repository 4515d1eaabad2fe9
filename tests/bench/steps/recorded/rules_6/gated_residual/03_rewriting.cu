// One launch: a block takes 1024 columns of 4 rows, a thread 4 columns of each of them.

#include <cstdint>

//@ launch gated_residual<<<ceil_div(M, 4) * ceil_div(N, 1024), 256>>>(x, b, mask, r, out, M, N)

constexpr int kThreads = 256;
constexpr int kRows = 4;
constexpr int kColumns = 4 * kThreads;

__device__ __forceinline__ float element(float x, float b, float mask, float r) {
  const float biased = x + b;
  const float gated = biased / (1.0f + expf(-biased));
  const float masked = __fmul_rn(__fmul_rn(gated, mask), 1.25f);
  return __fadd_rn(masked, r);
}

__device__ __forceinline__ float4 elements(float4 x, float4 b, float4 mask, float4 r) {
  float4 o;
  o.x = element(x.x, b.x, mask.x, r.x);
  o.y = element(x.y, b.y, mask.y, r.y);
  o.z = element(x.z, b.z, mask.z, r.z);
  o.w = element(x.w, b.w, mask.w, r.w);
  return o;
}

__global__ void __launch_bounds__(kThreads, 4)
    gated_residual(const float* __restrict__ x, const float* __restrict__ b, const float* __restrict__ mask,
                   const float* __restrict__ r, float* __restrict__ out, int M, int N) {
  const int column_blocks = (N + kColumns - 1) / kColumns;
  const int row_block = blockIdx.x / column_blocks;
  const int column0 = (blockIdx.x - row_block * column_blocks) * kColumns;
  const int row0 = row_block * kRows;

  const uintptr_t bases = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(b) |
                          reinterpret_cast<uintptr_t>(mask) | reinterpret_cast<uintptr_t>(r) |
                          reinterpret_cast<uintptr_t>(out);

  if ((N & 3) == 0 && (bases & 15) == 0) {
    const int column = column0 + 4 * threadIdx.x;
    if (column >= N) return;
    const size_t stride = static_cast<size_t>(N) / 4;
    const size_t start = (static_cast<size_t>(row0) * N + column) / 4;
    const float4* xs = reinterpret_cast<const float4*>(x) + start;
    const float4* masks = reinterpret_cast<const float4*>(mask) + start;
    const float4* rs = reinterpret_cast<const float4*>(r) + start;
    float4* outs = reinterpret_cast<float4*>(out) + start;
    const float4 bias = __ldg(reinterpret_cast<const float4*>(b + column));

    if (row0 + kRows <= M) {
      float4 xv[kRows], mv[kRows], rv[kRows];
#pragma unroll
      for (int k = 0; k < kRows; ++k) xv[k] = __ldcs(xs + k * stride);
#pragma unroll
      for (int k = 0; k < kRows; ++k) mv[k] = __ldcs(masks + k * stride);
#pragma unroll
      for (int k = 0; k < kRows; ++k) rv[k] = __ldcs(rs + k * stride);
#pragma unroll
      for (int k = 0; k < kRows; ++k) __stcs(outs + k * stride, elements(xv[k], bias, mv[k], rv[k]));
    } else {
      for (int k = 0; row0 + k < M; ++k) {
        const size_t at = k * stride;
        __stcs(outs + at, elements(__ldcs(xs + at), bias, __ldcs(masks + at), __ldcs(rs + at)));
      }
    }
  } else {
    const int last_row = min(M, row0 + kRows);
    const int last_column = min(N, column0 + kColumns);
    for (int column = column0 + threadIdx.x; column < last_column; column += kThreads) {
      const float bias = b[column];
      for (int row = row0; row < last_row; ++row) {
        const size_t at = static_cast<size_t>(row) * N + column;
        out[at] = element(x[at], bias, mask[at], r[at]);
      }
    }
  }
}
