// Softmax with the maximum and the sum found in a single pass over the row.

//@ launch online_softmax<<<ceil_div(rows, 128), 128>>>(input, output, rows, cols)
__global__ void online_softmax(const float* __restrict__ input, float* __restrict__ output, int rows, int cols) {
  int row = blockDim.x * blockIdx.x + threadIdx.x;
  if (row >= rows) return;

  const float* in = input + row * cols;
  float* out = output + row * cols;

  float m = -3.402823466e+38f;
  float l = 0.0f;
  for (int i = 0; i < cols; i++) {
    float value = in[i];
    if (value > m) {
      l = l * expf(m - value);
      m = value;
    }
    l += expf(value - m);
  }
  for (int i = 0; i < cols; i++) {
    out[i] = expf(in[i] - m) / l;
  }
}
