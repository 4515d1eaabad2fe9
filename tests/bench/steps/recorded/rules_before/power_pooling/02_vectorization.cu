// Pooling by effective value, one thread for each window.

//@ launch power_pooling<<<ceil_div(P * H * W, 256), 256>>>(x, out, P, H, W)
__global__ void __launch_bounds__(256) power_pooling(const float* __restrict__ x, float* __restrict__ out, int P, int H, int W) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < P * H * W) {
    int plane = at / (H * W);
    int i = at / W % H;
    int j = at % W;
    int width = 2 * W + 1;
    int begin = (plane * (2 * H + 1) + 2 * i) * width + 2 * j;
    float2 pair[3];
    float single[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      int first = begin + a * width;
      int odd = first & 1;
      // Even: the pair is 0, 1 and the single one 2; odd: the single one is 0 and the pair 1, 2.
      pair[a] = *reinterpret_cast<const float2*>(x + first + odd);
      single[a] = x[first + 2 - 2 * odd];
    }
    float squares = 0.0f;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      bool odd = ((begin + a * width) & 1) != 0;
      float value0 = odd ? single[a] : pair[a].x;
      float value1 = odd ? pair[a].x : pair[a].y;
      float value2 = odd ? pair[a].y : single[a];
      squares += value0 * value0;
      squares += value1 * value1;
      squares += value2 * value2;
    }
    out[at] = sqrtf(squares);
  }
}
