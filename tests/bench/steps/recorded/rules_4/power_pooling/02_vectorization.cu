// Pooling by effective value, one thread for each window.

//@ launch power_pooling<<<ceil_div(P * H * W, 256), 256>>>(x, out, P, H, W)
__global__ void power_pooling(const float* x, float* out, int P, int H, int W) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < P * H * W) {
    int plane = at / (H * W);
    int i = at / W % H;
    int j = at % W;
    float squares = 0.0f;
    #pragma unroll
    for (int a = 0; a < 3; ++a) {
      int start = (plane * (2 * H + 1) + 2 * i + a) * (2 * W + 1) + 2 * j;
      int odd = start & 1;
      float2 pair = *reinterpret_cast<const float2*>(x + start + odd);
      float single = x[start + 2 - 2 * odd];
      float value0 = odd ? single : pair.x;
      float value1 = odd ? pair.x : pair.y;
      float value2 = odd ? pair.y : single;
      squares += value0 * value0;
      squares += value1 * value1;
      squares += value2 * value2;
    }
    out[at] = sqrtf(squares);
  }
}
