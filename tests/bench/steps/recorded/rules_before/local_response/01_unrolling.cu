// Response normalization over five neighbouring channels, one thread for eight channels of a position.

//@ launch local_response<<<ceil_div(B * ceil_div(C, 8) * P, 256), 256>>>(x, out, B, C, P)
__global__ void __launch_bounds__(256) local_response(const float* x, float* out, int B, int C, int P) {
  int groups = (C + 7) / 8;
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane < B * groups * P) {
    int row = lane / P;
    int p = lane - row * P;
    int b = row / groups;
    int c = (row - b * groups) * 8;
    int i = (b * C + c) * P + p;
    float v[12];
    #pragma unroll
    for (int r = 0; r < 12; ++r) {
      int at = c + r - 2;
      v[r] = at >= 0 && at < C ? x[i + (r - 2) * P] : 0.0f;
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
      if (c + r < C) {
        float squares = 0.0f;
        #pragma unroll
        for (int d = 0; d < 5; ++d) {
          squares += v[r + d] * v[r + d];
        }
        out[i + r * P] = v[r + 2] / powf(2.0f + 0.0001f / 5.0f * squares, 0.75f);
      }
    }
  }
}
