// A residual is added, then each row is standardized: one launch, one block for each row, the row is kept in registers.

//@ launch add_standardize<<<M, 256>>>(x, r, out, M, N)
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
    v += __shfl_xor_sync(0xffffffffu, v, d);
  }
  return v;
}

__global__ void __launch_bounds__(256) add_standardize(const float* __restrict__ x, const float* __restrict__ r,
                                                       float* __restrict__ out, int M, int N) {
  constexpr int THREADS = 256;
  constexpr int WARPS = THREADS / 32;
  constexpr int VECS = 2;
  __shared__ float2 part[WARPS];
  __shared__ float part2[WARPS];

  const int t = threadIdx.x;
  const int lane = t & 31;
  const int warp = t >> 5;
  const size_t base = (size_t)blockIdx.x * (size_t)N;

  if ((N & 3) == 0 && N <= THREADS * VECS * 4) {
    const int nv = N >> 2;
    const float4* __restrict__ xv = reinterpret_cast<const float4*>(x + base);
    const float4* __restrict__ rv = reinterpret_cast<const float4*>(r + base);
    float4* __restrict__ ov = reinterpret_cast<float4*>(out + base);
    float4 a[VECS], b[VECS];
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
      int j = t + k * THREADS;
      a[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      b[k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (j < nv) {
        a[k] = __ldcs(xv + j);
        b[k] = __ldcs(rv + j);
      }
    }
    float s = 0.0f;
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
      a[k].x += b[k].x;
      a[k].y += b[k].y;
      a[k].z += b[k].z;
      a[k].w += b[k].w;
      s += (a[k].x + a[k].y) + (a[k].z + a[k].w);
    }
    s = warp_sum(s);

    // elements that this warp holds
    int count = 0;
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
      count += min(max(nv - (warp * 32 + k * THREADS), 0), 32) * 4;
    }
    const float wmean = count > 0 ? s / (float)count : 0.0f;
    float q = 0.0f;
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
      if (t + k * THREADS < nv) {
        float d0 = a[k].x - wmean;
        float d1 = a[k].y - wmean;
        float d2 = a[k].z - wmean;
        float d3 = a[k].w - wmean;
        q += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
      }
    }
    q = warp_sum(q);
    if (lane == 0) {
      part[warp] = make_float2(s, q);
    }
    __syncthreads();

    float2 p[WARPS];
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      p[w] = part[w];
      total += p[w].x;
    }
    const float mean = total / N;
    float variance = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      int c = 0;
#pragma unroll
      for (int k = 0; k < VECS; ++k) {
        c += min(max(nv - (w * 32 + k * THREADS), 0), 32) * 4;
      }
      if (c > 0) {
        float d = p[w].x / (float)c - mean;
        variance += p[w].y + (float)c * d * d;
      }
    }
    const float scale = rsqrtf(variance / N + 1e-5f);
#pragma unroll
    for (int k = 0; k < VECS; ++k) {
      int j = t + k * THREADS;
      if (j < nv) {
        float4 o;
        o.x = (a[k].x - mean) * scale;
        o.y = (a[k].y - mean) * scale;
        o.z = (a[k].z - mean) * scale;
        o.w = (a[k].w - mean) * scale;
        __stcs(ov + j, o);
      }
    }
  } else {
    const float* __restrict__ xr = x + base;
    const float* __restrict__ rr = r + base;
    float* __restrict__ orow = out + base;
    float s = 0.0f;
#pragma unroll 4
    for (int j = t; j < N; j += THREADS) {
      s += xr[j] + rr[j];
    }
    s = warp_sum(s);
    if (lane == 0) {
      part[warp].x = s;
    }
    __syncthreads();
    float mean = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      mean += part[w].x;
    }
    mean /= N;
    float q = 0.0f;
#pragma unroll 4
    for (int j = t; j < N; j += THREADS) {
      float d = (xr[j] + rr[j]) - mean;
      q += d * d;
    }
    q = warp_sum(q);
    if (lane == 0) {
      part2[warp] = q;
    }
    __syncthreads();
    float variance = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      variance += part2[w];
    }
    const float scale = rsqrtf(variance / N + 1e-5f);
#pragma unroll 4
    for (int j = t; j < N; j += THREADS) {
      orow[j] = ((xr[j] + rr[j]) - mean) * scale;
    }
  }
}
