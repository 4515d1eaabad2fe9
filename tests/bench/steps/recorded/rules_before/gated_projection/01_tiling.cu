// Two products of one input, and one result gated by the other: three launches, one thread for each element.

//@ scratch gate: f32[M, N]
//@ scratch value: f32[M, N]
//@ launch project<<<(ceil_div(N, 32), ceil_div(M, 32)), (32, 32)>>>(x, W, gate, M, N, K)
//@ launch project<<<(ceil_div(N, 32), ceil_div(M, 32)), (32, 32)>>>(x, V, value, M, N, K)
//@ launch combine<<<ceil_div(M * N, 256), 256>>>(gate, value, out, M * N)
__global__ void __launch_bounds__(1024, 2) project(const float* x, const float* W, float* y, int M, int N, int K) {
  __shared__ __align__(16) float tile_x[32][64];
  __shared__ __align__(16) float tile_w[64][32];
  int tx = threadIdx.x;
  int ty = threadIdx.y;
  int j = blockIdx.x * 32 + tx;
  int i = blockIdx.y * 32 + ty;
  float sum = 0.0f;
  for (int k0 = 0; k0 < K; k0 += 64) {
    float x0 = i < M && k0 + tx < K ? x[i * K + k0 + tx] : 0.0f;
    float x1 = i < M && k0 + tx + 32 < K ? x[i * K + k0 + tx + 32] : 0.0f;
    float w0 = j < N && k0 + ty < K ? W[(k0 + ty) * N + j] : 0.0f;
    float w1 = j < N && k0 + ty + 32 < K ? W[(k0 + ty + 32) * N + j] : 0.0f;
    tile_x[ty][tx] = x0;
    tile_x[ty][tx + 32] = x1;
    tile_w[ty][tx] = w0;
    tile_w[ty + 32][tx] = w1;
    __syncthreads();
    if (k0 + 64 <= K) {
      #pragma unroll 16
      for (int k = 0; k < 64; ++k) {
        sum += tile_x[ty][k] * tile_w[k][tx];
      }
    } else {
      int count = K - k0;
      for (int k = 0; k < count; ++k) {
        sum += tile_x[ty][k] * tile_w[k][tx];
      }
    }
    __syncthreads();
  }
  if (i < M && j < N) {
    y[i * N + j] = sum;
  }
}

__global__ void combine(const float* gate, const float* value, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = gate[i] / (1.0f + expf(-gate[i])) * value[i];
  }
}
