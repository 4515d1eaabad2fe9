// Two launches: intensities in [0, 1] made linear and standardized, and moved to planes.

//@ scratch standard: f32[B, P, 3]
//@ launch linearize_standardize<<<ceil_div(3 * B * P, 256), 256>>>(image, centre, spread, standard, 3 * B * P)
//@ launch to_planes<<<ceil_div(3 * B * P, 256), 256>>>(standard, out, B, P)
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

__global__ void to_planes(const float* standard, float* out, int B, int P) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 3 * B * P) {
    int plane = i / P;
    int pixel = i % P;
    out[i] = standard[(plane / 3 * P + pixel) * 3 + plane % 3];
  }
}
