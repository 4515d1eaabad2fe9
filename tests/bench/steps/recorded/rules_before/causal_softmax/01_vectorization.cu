// Softmax of the scores at and before the diagonal, zeros behind it; one thread for each row.

//@ launch causal_softmax<<<ceil_div(H * T, 64), 64>>>(x, out, H, T)
__global__ void causal_softmax(const float* x, float* out, int H, int T) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < H * T) {
    int i = row % T;
    float largest = x[row * T];
    for (int j = 1; j <= i; ++j) {
      largest = fmaxf(largest, x[row * T + j]);
    }
    float total = 0.0f;
    for (int j = 0; j <= i; ++j) {
      total += expf(x[row * T + j] - largest);
    }
    int head = min((4 - ((row * T) & 3)) & 3, T);
    int j = 0;
    for (; j < head; ++j) {
      out[row * T + j] = j <= i ? expf(x[row * T + j] - largest) / total : 0.0f;
    }
    for (; j + 3 < T; j += 4) {
      float4 result = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (j <= i) {
        float4 v = *reinterpret_cast<const float4*>(x + row * T + j);
        result.x = expf(v.x - largest) / total;
        result.y = j + 1 <= i ? expf(v.y - largest) / total : 0.0f;
        result.z = j + 2 <= i ? expf(v.z - largest) / total : 0.0f;
        result.w = j + 3 <= i ? expf(v.w - largest) / total : 0.0f;
      }
      *reinterpret_cast<float4*>(out + row * T + j) = result;
    }
    for (; j < T; ++j) {
      out[row * T + j] = j <= i ? expf(x[row * T + j] - largest) / total : 0.0f;
    }
  }
}
