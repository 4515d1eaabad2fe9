// Response normalization over five neighbouring channels, one thread for each element.

//@ launch local_response<<<ceil_div(B * C * P, 256), 256>>>(x, out, B, C, P)
__global__ void local_response(const float* x, float* out, int B, int C, int P) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * C * P) {
    int c = i / P % C;
    float squares = 0.0f;
    for (int d = -2; d <= 2; ++d) {
      if (c + d >= 0 && c + d < C) {
        squares += x[i + d * P] * x[i + d * P];
      }
    }
    out[i] = x[i] / powf(2.0f + 0.0001f / 5.0f * squares, 0.75f);
  }
}
