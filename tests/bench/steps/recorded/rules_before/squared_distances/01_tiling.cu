// Squared distances between two sets of points, one thread for each pair, the coordinates in tiles of 32.

//@ launch squared_distances<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(q, p, out, M, N, D)
__global__ void __launch_bounds__(256) squared_distances(const float* __restrict__ q, const float* __restrict__ p,
                                                         float* __restrict__ out, int M, int N, int D) {
  __shared__ __align__(16) float tile_q[16][36];
  __shared__ __align__(16) float tile_p[16][36];
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int t = threadIdx.y * 16 + threadIdx.x;
  int column = t & 31;
  int row = t >> 5;
  int qi = blockIdx.y * 16 + row;
  int pj = blockIdx.x * 16 + row;
  float sum = 0.0f;
  for (int d0 = 0; d0 < D; d0 += 32) {
    int d = d0 + column;
    bool inside = d < D;
    float q0 = inside && qi < M ? q[qi * D + d] : 0.0f;
    float q1 = inside && qi + 8 < M ? q[(qi + 8) * D + d] : 0.0f;
    float p0 = inside && pj < N ? p[pj * D + d] : 0.0f;
    float p1 = inside && pj + 8 < N ? p[(pj + 8) * D + d] : 0.0f;
    tile_q[row][column] = q0;
    tile_q[row + 8][column] = q1;
    tile_p[row][column] = p0;
    tile_p[row + 8][column] = p1;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k += 4) {
      float4 a = *reinterpret_cast<const float4*>(&tile_q[threadIdx.y][k]);
      float4 b = *reinterpret_cast<const float4*>(&tile_p[threadIdx.x][k]);
      float difference = a.x - b.x;
      sum += difference * difference;
      difference = a.y - b.y;
      sum += difference * difference;
      difference = a.z - b.z;
      sum += difference * difference;
      difference = a.w - b.w;
      sum += difference * difference;
    }
    __syncthreads();
  }
  if (i < M && j < N) {
    out[i * N + j] = sum;
  }
}
