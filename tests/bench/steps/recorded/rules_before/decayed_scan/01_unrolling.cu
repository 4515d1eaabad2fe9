// A linear recurrence along the steps, one thread for each channel of each sequence.

//@ launch decayed_scan<<<ceil_div(B * C, 128), 128>>>(x, a, out, B, T, C)
__global__ void __launch_bounds__(128) decayed_scan(const float* x, const float* a, float* out, int B, int T, int C) {
  int lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane < B * C) {
    int first = lane / C * T * C + lane % C;
    float state = 0.0f;
    int t = 0;
    for (; t + 31 < T; t += 32) {
      float decay[32];
      float value[32];
      #pragma unroll
      for (int u = 0; u < 32; ++u) {
        decay[u] = a[first + (t + u) * C];
        value[u] = x[first + (t + u) * C];
      }
      #pragma unroll
      for (int u = 0; u < 32; ++u) {
        state = decay[u] * state + value[u];
        out[first + (t + u) * C] = state;
      }
    }
    for (; t < T; ++t) {
      state = a[first + t * C] * state + x[first + t * C];
      out[first + t * C] = state;
    }
  }
}
