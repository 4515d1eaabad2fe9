// A linear recurrence along the steps, one thread for each channel of each sequence.

//@ launch decayed_scan<<<ceil_div(B * C, 128), 128>>>(x, a, out, B, T, C)
__global__ void decayed_scan(const float* x, const float* a, float* out, int B, int T, int C) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane < B * C) {
    int first = lane / C * T * C + lane % C;
    float state = 0.0f;
    for (int t = 0; t < T; ++t) {
      state = a[first + t * C] * state + x[first + t * C];
      out[first + t * C] = state;
    }
  }
}
