// running maximum along each row

//@ launch cummax<<<ceil_div(R, 32), 32>>>(in, out, R, L)

__global__ void cummax(const float* __restrict__ in, float* __restrict__ out, int R, int L) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= R) {
    return;
  }
  in += (size_t)r * L;
  out += (size_t)r * L;
  float highest = in[0];
  out[0] = highest;
  for (int i = 1; i < L; ++i) {
    if (in[i] > highest) highest = in[i];
    out[i] = highest;
  }
}
