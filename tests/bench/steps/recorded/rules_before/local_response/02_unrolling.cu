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
    if (c >= 2 && c + 10 <= C) {
      const float* from = x + (i - 2 * P);
      v[0] = from[0];
      from += P;
      v[1] = from[0];
      from += P;
      v[2] = from[0];
      from += P;
      v[3] = from[0];
      from += P;
      v[4] = from[0];
      from += P;
      v[5] = from[0];
      from += P;
      v[6] = from[0];
      from += P;
      v[7] = from[0];
      from += P;
      v[8] = from[0];
      from += P;
      v[9] = from[0];
      from += P;
      v[10] = from[0];
      from += P;
      v[11] = from[0];
    } else {
      v[0] = c >= 2 ? x[i - 2 * P] : 0.0f;
      v[1] = c >= 1 ? x[i - P] : 0.0f;
      v[2] = x[i];
      v[3] = c + 1 < C ? x[i + P] : 0.0f;
      v[4] = c + 2 < C ? x[i + 2 * P] : 0.0f;
      v[5] = c + 3 < C ? x[i + 3 * P] : 0.0f;
      v[6] = c + 4 < C ? x[i + 4 * P] : 0.0f;
      v[7] = c + 5 < C ? x[i + 5 * P] : 0.0f;
      v[8] = c + 6 < C ? x[i + 6 * P] : 0.0f;
      v[9] = c + 7 < C ? x[i + 7 * P] : 0.0f;
      v[10] = c + 8 < C ? x[i + 8 * P] : 0.0f;
      v[11] = c + 9 < C ? x[i + 9 * P] : 0.0f;
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
