// Two products of one input, and one result gated by the other: two launches, 8 x 8 elements for each thread of both.

//@ scratch gate: f32[M, N]
//@ launch project<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(x, W, gate, M, N, K)
//@ launch project_combine<<<(ceil_div(N, 128), ceil_div(M, 128)), 256>>>(x, V, gate, out, M, N, K)
__global__ void __launch_bounds__(256, 2) project(const float* x, const float* W, float* y, int M, int N, int K) {
  __shared__ __align__(16) float tile_x[32][132];
  __shared__ __align__(16) float tile_w[32][128];
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
  float sum[8][8];
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    #pragma unroll
    for (int b = 0; b < 8; ++b) {
      sum[a][b] = 0.0f;
    }
  }
  for (int k0 = 0; k0 < K; k0 += 32) {
    float xs[4][4];
    float ws[4][4];
    if (inside && k0 + 32 <= K) {
      const float* px = x + ((i0 + xr) * K + k0 + xk);
      const float* pw = W + ((k0 + warp) * N + j0 + lane);
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          xs[p][q] = px[p * 32 * K + q * 8];
        }
      }
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          ws[p][q] = pw[p * 8 * N + q * 32];
        }
      }
    } else {
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        int i = i0 + xr + p * 32;
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          int k = k0 + xk + q * 8;
          xs[p][q] = i < M && k < K ? x[i * K + k] : 0.0f;
        }
      }
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        int k = k0 + warp + p * 8;
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          int j = j0 + lane + q * 32;
          ws[p][q] = j < N && k < K ? W[k * N + j] : 0.0f;
        }
      }
    }
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      #pragma unroll
      for (int q = 0; q < 4; ++q) {
        tile_x[xk + q * 8][xr + p * 32] = xs[p][q];
      }
    }
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      #pragma unroll
      for (int q = 0; q < 4; ++q) {
        tile_w[warp + p * 8][lane + q * 32] = ws[p][q];
      }
    }
    __syncthreads();
    #pragma unroll 8
    for (int k = 0; k < 32; ++k) {
      float4 a0 = *reinterpret_cast<const float4*>(&tile_x[k][ty * 4]);
      float4 a1 = *reinterpret_cast<const float4*>(&tile_x[k][64 + ty * 4]);
      float4 b0 = *reinterpret_cast<const float4*>(&tile_w[k][tx * 4]);
      float4 b1 = *reinterpret_cast<const float4*>(&tile_w[k][64 + tx * 4]);
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
    __syncthreads();
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
  __shared__ __align__(16) float tile_x[32][132];
  __shared__ __align__(16) float tile_w[32][128];
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
  float sum[8][8];
  #pragma unroll
  for (int a = 0; a < 8; ++a) {
    #pragma unroll
    for (int b = 0; b < 8; ++b) {
      sum[a][b] = 0.0f;
    }
  }
  for (int k0 = 0; k0 < K; k0 += 32) {
    float xs[4][4];
    float ws[4][4];
    if (inside && k0 + 32 <= K) {
      const float* px = x + ((i0 + xr) * K + k0 + xk);
      const float* pw = V + ((k0 + warp) * N + j0 + lane);
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          xs[p][q] = px[p * 32 * K + q * 8];
        }
      }
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          ws[p][q] = pw[p * 8 * N + q * 32];
        }
      }
    } else {
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        int i = i0 + xr + p * 32;
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          int k = k0 + xk + q * 8;
          xs[p][q] = i < M && k < K ? x[i * K + k] : 0.0f;
        }
      }
      #pragma unroll
      for (int p = 0; p < 4; ++p) {
        int k = k0 + warp + p * 8;
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
          int j = j0 + lane + q * 32;
          ws[p][q] = j < N && k < K ? V[k * N + j] : 0.0f;
        }
      }
    }
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      #pragma unroll
      for (int q = 0; q < 4; ++q) {
        tile_x[xk + q * 8][xr + p * 32] = xs[p][q];
      }
    }
    #pragma unroll
    for (int p = 0; p < 4; ++p) {
      #pragma unroll
      for (int q = 0; q < 4; ++q) {
        tile_w[warp + p * 8][lane + q * 32] = ws[p][q];
      }
    }
    __syncthreads();
    #pragma unroll 8
    for (int k = 0; k < 32; ++k) {
      float4 a0 = *reinterpret_cast<const float4*>(&tile_x[k][ty * 4]);
      float4 a1 = *reinterpret_cast<const float4*>(&tile_x[k][64 + ty * 4]);
      float4 b0 = *reinterpret_cast<const float4*>(&tile_w[k][tx * 4]);
      float4 b1 = *reinterpret_cast<const float4*>(&tile_w[k][64 + tx * 4]);
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
    __syncthreads();
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
