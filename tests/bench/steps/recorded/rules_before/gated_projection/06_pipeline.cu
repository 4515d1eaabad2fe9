// Two products of one input, and one result gated by the other: two launches, 8 x 8 elements for each thread of both.

//@ scratch gate: f32[M, N]
//@ launch project<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(x, W, gate, M, N, K)
//@ launch project_combine<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(x, V, gate, out, M, N, K)
__device__ __forceinline__ void copy_4(float* to, const float* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(at), "l"(from) : "memory");
}

// zero where it is not there; from is a valid address in any case
__device__ __forceinline__ void copy_4_or_zero(float* to, const float* from, bool there) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  int bytes = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_16(float* to, const float* from) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(at), "l"(from) : "memory");
}

// starts the copies of the tile at depth k0
__device__ __forceinline__ void bring(float (*tile_x)[132], float (*tile_w)[128], const float* x, const float* W, int M,
                                      int N, int K, int i0, int j0, int k0, int xk, int xr, int warp, int lane,
                                      bool inside, bool wide_w) {
  if (inside && k0 + 16 <= K) {
    const float* px = x + ((i0 + xr) * K + k0 + xk);
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      #pragma unroll
      for (int q = 0; q < 2; ++q) {
        copy_4(&tile_x[xk + q * 8][xr + p * 32], px + p * 32 * K + q * 8);
      }
    }
    if (wide_w) {
      const float* pw = W + ((k0 + warp) * N + j0 + lane * 4);
      #pragma unroll
      for (int p = 0; p < 2; ++p) {
        copy_16(&tile_w[warp + p * 8][lane * 4], pw + p * 8 * N);
      }
    } else {
      const float* pw = W + ((k0 + warp) * N + j0 + lane);
      #pragma unroll
      for (int p = 0; p < 2; ++p) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          copy_4(&tile_w[warp + p * 8][lane + q * 32], pw + p * 8 * N + q * 32);
        }
      }
    }
  } else {
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      int i = i0 + xr + p * 32;
      #pragma unroll
      for (int q = 0; q < 2; ++q) {
        int k = k0 + xk + q * 8;
        bool there = i < M && k < K;
        copy_4_or_zero(&tile_x[xk + q * 8][xr + p * 32], there ? x + (i * K + k) : x, there);
      }
    }
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      int k = k0 + warp + p * 8;
      #pragma unroll
      for (int q = 0; q < 4; ++q) {
        int j = j0 + lane + q * 32;
        bool there = j < N && k < K;
        copy_4_or_zero(&tile_w[warp + p * 8][lane + q * 32], there ? W + (k * N + j) : W, there);
      }
    }
  }
}

__global__ void __launch_bounds__(256, 2) project(const float* x, const float* W, float* y, int M, int N, int K) {
  __shared__ __align__(16) float tile_x[2][16][132];
  __shared__ __align__(16) float tile_w[2][16][128];
  int t = threadIdx.x;
  int lane = t & 31;
  int warp = t >> 5;
  int tx = (warp & 1) * 8 + (lane & 7);
  int ty = (warp >> 1) * 4 + (lane >> 3);
  int j0 = blockIdx.x * 128;
  int i0 = blockIdx.y * 128;
  // what the thread brings of x: rows xr + 32 p, depths xk + 8 q
  int xk = lane & 7;
  int xr = warp * 4 + (lane >> 3);
  bool inside = i0 + 128 <= M && j0 + 128 <= N;
  bool wide_w = (N & 3) == 0 && (reinterpret_cast<size_t>(W) & 15) == 0;
  float sum[8][8];
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    #pragma unroll
    for (int b = 0; b < 8; ++b) {
      sum[a][b] = 0.0f;
    }
  }
  bring(tile_x[0], tile_w[0], x, W, M, N, K, i0, j0, 0, xk, xr, warp, lane, inside, wide_w);
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += 16) {
    // the present tile is there for all, and all have left the other one
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    __syncthreads();
    if (k0 + 16 < K) {
      bring(tile_x[now ^ 1], tile_w[now ^ 1], x, W, M, N, K, i0, j0, k0 + 16, xk, xr, warp, lane, inside, wide_w);
    }
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 a0 = *reinterpret_cast<const float4*>(&tile_x[now][k][ty * 4]);
      float4 a1 = *reinterpret_cast<const float4*>(&tile_x[now][k][64 + ty * 4]);
      float4 b0 = *reinterpret_cast<const float4*>(&tile_w[now][k][tx * 4]);
      float4 b1 = *reinterpret_cast<const float4*>(&tile_w[now][k][64 + tx * 4]);
      float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      float bv[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
      #pragma unroll
      for (int a = 0; a < 8; ++a) {
        #pragma unroll
        for (int b = 0; b < 8; ++b) {
          sum[a][b] += av[a] * bv[b];
        }
      }
    }
    now ^= 1;
  }
  bool wide = inside && (N & 3) == 0 && (reinterpret_cast<size_t>(y) & 15) == 0;
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    int i = i0 + (a >> 2) * 64 + ty * 4 + (a & 3);
    if (wide) {
      float* py = y + (i * N + j0 + tx * 4);
      *reinterpret_cast<float4*>(py) = make_float4(sum[a][0], sum[a][1], sum[a][2], sum[a][3]);
      *reinterpret_cast<float4*>(py + 64) = make_float4(sum[a][4], sum[a][5], sum[a][6], sum[a][7]);
    } else if (i < M) {
      #pragma unroll
      for (int b = 0; b < 8; ++b) {
        int j = j0 + (b >> 2) * 64 + tx * 4 + (b & 3);
        if (j < N) {
          y[i * N + j] = sum[a][b];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(256, 2) project_combine(const float* x, const float* V, const float* gate, float* out, int M, int N, int K) {
  __shared__ __align__(16) float tile_x[2][16][132];
  __shared__ __align__(16) float tile_w[2][16][128];
  int t = threadIdx.x;
  int lane = t & 31;
  int warp = t >> 5;
  int tx = (warp & 1) * 8 + (lane & 7);
  int ty = (warp >> 1) * 4 + (lane >> 3);
  int j0 = blockIdx.x * 128;
  int i0 = blockIdx.y * 128;
  // what the thread brings of x: rows xr + 32 p, depths xk + 8 q
  int xk = lane & 7;
  int xr = warp * 4 + (lane >> 3);
  bool inside = i0 + 128 <= M && j0 + 128 <= N;
  bool wide_v = (N & 3) == 0 && (reinterpret_cast<size_t>(V) & 15) == 0;
  float sum[8][8];
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    #pragma unroll
    for (int b = 0; b < 8; ++b) {
      sum[a][b] = 0.0f;
    }
  }
  bring(tile_x[0], tile_w[0], x, V, M, N, K, i0, j0, 0, xk, xr, warp, lane, inside, wide_v);
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += 16) {
    // the present tile is there for all, and all have left the other one
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    __syncthreads();
    if (k0 + 16 < K) {
      bring(tile_x[now ^ 1], tile_w[now ^ 1], x, V, M, N, K, i0, j0, k0 + 16, xk, xr, warp, lane, inside, wide_v);
    }
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
      float4 a0 = *reinterpret_cast<const float4*>(&tile_x[now][k][ty * 4]);
      float4 a1 = *reinterpret_cast<const float4*>(&tile_x[now][k][64 + ty * 4]);
      float4 b0 = *reinterpret_cast<const float4*>(&tile_w[now][k][tx * 4]);
      float4 b1 = *reinterpret_cast<const float4*>(&tile_w[now][k][64 + tx * 4]);
      float av[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
      float bv[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
      #pragma unroll
      for (int a = 0; a < 8; ++a) {
        #pragma unroll
        for (int b = 0; b < 8; ++b) {
          sum[a][b] += av[a] * bv[b];
        }
      }
    }
    now ^= 1;
  }
  bool wide = inside && (N & 3) == 0 && ((reinterpret_cast<size_t>(gate) | reinterpret_cast<size_t>(out)) & 15) == 0;
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    int i = i0 + (a >> 2) * 64 + ty * 4 + (a & 3);
    if (wide) {
      int at = i * N + j0 + tx * 4;
      float4 g0 = *reinterpret_cast<const float4*>(gate + at);
      float4 g1 = *reinterpret_cast<const float4*>(gate + at + 64);
      float4 r0;
      float4 r1;
      r0.x = g0.x / (1.0f + expf(-g0.x)) * sum[a][0];
      r0.y = g0.y / (1.0f + expf(-g0.y)) * sum[a][1];
      r0.z = g0.z / (1.0f + expf(-g0.z)) * sum[a][2];
      r0.w = g0.w / (1.0f + expf(-g0.w)) * sum[a][3];
      r1.x = g1.x / (1.0f + expf(-g1.x)) * sum[a][4];
      r1.y = g1.y / (1.0f + expf(-g1.y)) * sum[a][5];
      r1.z = g1.z / (1.0f + expf(-g1.z)) * sum[a][6];
      r1.w = g1.w / (1.0f + expf(-g1.w)) * sum[a][7];
      *reinterpret_cast<float4*>(out + at) = r0;
      *reinterpret_cast<float4*>(out + at + 64) = r1;
    } else if (i < M) {
      #pragma unroll
      for (int b = 0; b < 8; ++b) {
        int j = j0 + (b >> 2) * 64 + tx * 4 + (b & 3);
        if (j < N) {
          float g = gate[i * N + j];
          out[i * N + j] = g / (1.0f + expf(-g)) * sum[a][b];
        }
      }
    }
  }
}
