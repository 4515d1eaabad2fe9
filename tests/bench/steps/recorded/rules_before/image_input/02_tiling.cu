// Two launches: intensities in [0, 1] made linear and standardized, and moved to planes.

//@ scratch standard: f32[B, P, 3]
//@ launch linearize_standardize<<<ceil_div(3 * B * P, 256), 256>>>(image, centre, spread, standard, 3 * B * P)
//@ launch to_planes<<<ceil_div(B * P, 512), 256>>>(standard, out, B, P)
__global__ void linearize_standardize(const float* __restrict__ image, const float* __restrict__ centre,
                                      const float* __restrict__ spread, float* __restrict__ standard, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int channel = i % 3;
    float value = image[i] / 255.0f;
    float linear = value * value;
    standard[i] = (linear - centre[channel]) / spread[channel];
  }
}

__global__ void __launch_bounds__(256) to_planes(const float* __restrict__ standard, float* __restrict__ out, int B, int P) {
  __shared__ float tile[3 * 512];
  int t = threadIdx.x;
  int first = blockIdx.x * 512;
  int count = min(512, B * P - first);
  const float* from = standard + 3 * first;
  if (count == 512) {
    float values[6];
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      values[k] = from[t + 256 * k];
    }
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      tile[t + 256 * k] = values[k];
    }
  } else {
    for (int k = t; k < 3 * count; k += 256) {
      tile[k] = from[k];
    }
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    int local = t + 256 * k;
    if (local < count) {
      int image_index = (first + local) / P;
      int pixel = (first + local) - image_index * P;
      float* to = out + 3 * image_index * P + pixel;
      to[0] = tile[3 * local];
      to[P] = tile[3 * local + 1];
      to[2 * P] = tile[3 * local + 2];
    }
  }
}
