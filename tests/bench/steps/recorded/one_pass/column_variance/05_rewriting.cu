// The variance of each column: chunks of rows give mean and sum of squared deviations, a second launch merges them.

//@ scratch pmean: f32[min(64, ceil_div(M, 256)), N]
//@ scratch psq: f32[min(64, ceil_div(M, 256)), N]
//@ launch column_partial<<<(ceil_div(N, 128), min(64, ceil_div(M, 256))), 256>>>(x, pmean, psq, M, N, min(64, ceil_div(M, 256)))
//@ launch column_merge<<<ceil_div(N, 32), (32, 16)>>>(pmean, psq, out, M, N, min(64, ceil_div(M, 256)))

template <bool VEC>
__device__ __forceinline__ float4 load_four(const float* p, bool c0, bool c1, bool c2, bool c3) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (VEC) {
    if (c0) {
      v = __ldcs(reinterpret_cast<const float4*>(p));
    }
  } else {
    if (c0) v.x = p[0];
    if (c1) v.y = p[32];
    if (c2) v.z = p[64];
    if (c3) v.w = p[96];
  }
  return v;
}

template <bool VEC>
__device__ __forceinline__ void partial_rows(const float* __restrict__ x, int r0, int r1, int N, int col0,
                                             float4& mean, float4& sq) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int c = VEC ? col0 + lane * 4 : col0 + lane;
  const bool c0 = c < N;
  const bool c1 = c + 32 < N;
  const bool c2 = c + 64 < N;
  const bool c3 = c + 96 < N;
  const size_t stride = (size_t)N * 8;
  int row = r0 + warp;
  const float* p = x + (size_t)row * (size_t)N + c;
  float n = 0.0f;
  for (; row + 56 < r1; row += 64) {
    float4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      v[u] = load_four<VEC>(p, c0, c1, c2, c3);
      p += stride;
    }
    float4 g;
    g.x = ((v[0].x + v[1].x) + (v[2].x + v[3].x)) + ((v[4].x + v[5].x) + (v[6].x + v[7].x));
    g.y = ((v[0].y + v[1].y) + (v[2].y + v[3].y)) + ((v[4].y + v[5].y) + (v[6].y + v[7].y));
    g.z = ((v[0].z + v[1].z) + (v[2].z + v[3].z)) + ((v[4].z + v[5].z) + (v[6].z + v[7].z));
    g.w = ((v[0].w + v[1].w) + (v[2].w + v[3].w)) + ((v[4].w + v[5].w) + (v[6].w + v[7].w));
    g.x *= 0.125f;
    g.y *= 0.125f;
    g.z *= 0.125f;
    g.w *= 0.125f;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      float d;
      d = v[u].x - g.x; sq.x += d * d;
      d = v[u].y - g.y; sq.y += d * d;
      d = v[u].z - g.z; sq.z += d * d;
      d = v[u].w - g.w; sq.w += d * d;
    }
    const float w = 8.0f / (n + 8.0f);
    const float nw = n * w;
    float d;
    d = g.x - mean.x; mean.x += d * w; sq.x += (d * nw) * d;
    d = g.y - mean.y; mean.y += d * w; sq.y += (d * nw) * d;
    d = g.z - mean.z; mean.z += d * w; sq.z += (d * nw) * d;
    d = g.w - mean.w; mean.w += d * w; sq.w += (d * nw) * d;
    n += 8.0f;
  }
  for (; row < r1; row += 8) {
    const float4 v = load_four<VEC>(p, c0, c1, c2, c3);
    p += stride;
    const float w = 1.0f / (n + 1.0f);
    const float nw = n * w;
    float d;
    d = v.x - mean.x; mean.x += d * w; sq.x += (d * nw) * d;
    d = v.y - mean.y; mean.y += d * w; sq.y += (d * nw) * d;
    d = v.z - mean.z; mean.z += d * w; sq.z += (d * nw) * d;
    d = v.w - mean.w; mean.w += d * w; sq.w += (d * nw) * d;
    n += 1.0f;
  }
}

__global__ void __launch_bounds__(256, 4) column_partial(const float* __restrict__ x, float* __restrict__ pmean,
                                                         float* __restrict__ psq, int M, int N, int S) {
  __shared__ __align__(16) float smean[8][128];
  __shared__ __align__(16) float ssq[8][128];
  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const int chunk = (M + S - 1) / S;
  const int r0 = blockIdx.y * chunk;
  const int r1 = min(M, r0 + chunk);
  const int col0 = blockIdx.x * 128;

  float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 sq = mean;
  if ((N & 3) == 0) {
    partial_rows<true>(x, r0, r1, N, col0, mean, sq);
    reinterpret_cast<float4*>(smean[warp])[lane] = mean;
    reinterpret_cast<float4*>(ssq[warp])[lane] = sq;
  } else {
    partial_rows<false>(x, r0, r1, N, col0, mean, sq);
    smean[warp][lane] = mean.x;
    smean[warp][lane + 32] = mean.y;
    smean[warp][lane + 64] = mean.z;
    smean[warp][lane + 96] = mean.w;
    ssq[warp][lane] = sq.x;
    ssq[warp][lane + 32] = sq.y;
    ssq[warp][lane + 64] = sq.z;
    ssq[warp][lane + 96] = sq.w;
  }
  __syncthreads();
  if (t < 128 && col0 + t < N) {
    const int R = max(0, r1 - r0);
    float m[8];
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      m[w] = smean[w][t];
      const float nw = (float)(R > w ? (R - w + 7) / 8 : 0);
      total += nw * m[w];
    }
    const float mu = R > 0 ? total / (float)R : 0.0f;
    float s = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const float nw = (float)(R > w ? (R - w + 7) / 8 : 0);
      const float d = m[w] - mu;
      s += ssq[w][t] + (nw * d) * d;
    }
    const size_t o = (size_t)blockIdx.y * (size_t)N + col0 + t;
    pmean[o] = mu;
    psq[o] = s;
  }
}

__global__ void __launch_bounds__(512) column_merge(const float* __restrict__ pmean, const float* __restrict__ psq,
                                                    float* __restrict__ out, int M, int N, int S) {
  __shared__ float red[2][16][32];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int col = blockIdx.x * 32 + tx;
  const int chunk = (M + S - 1) / S;
  float m[4], q[4], n[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int s = ty + 16 * k;
    m[k] = 0.0f;
    q[k] = 0.0f;
    n[k] = 0.0f;
    if (s < S && col < N) {
      const size_t o = (size_t)s * (size_t)N + col;
      m[k] = pmean[o];
      q[k] = psq[o];
      n[k] = (float)max(0, min(chunk, M - s * chunk));
    }
  }
  float total = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    total += n[k] * m[k];
  }
  red[0][ty][tx] = total;
  __syncthreads();
  float mu = 0.0f;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    mu += red[0][k][tx];
  }
  mu /= (float)M;
  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float d = m[k] - mu;
    squares += q[k] + (n[k] * d) * d;
  }
  red[1][ty][tx] = squares;
  __syncthreads();
  if (ty == 0 && col < N) {
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      s += red[1][k][tx];
    }
    out[col] = s / (float)M;
  }
}
