// Three launches: intensities in [0, 1] made linear, standardized, and moved to planes.

//@ scratch linear: f32[B, P, 3]
//@ scratch standard: f32[B, P, 3]
//@ launch linearize<<<ceil_div(3 * B * P, 256), 256>>>(image, linear, 3 * B * P)
//@ launch standardize<<<ceil_div(3 * B * P, 256), 256>>>(linear, centre, spread, standard, 3 * B * P)
//@ launch to_planes<<<ceil_div(3 * B * P, 256), 256>>>(standard, out, B, P)
__global__ void linearize(const float* image, float* linear, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float value = image[i] / 255.0f;
    linear[i] = value * value;
  }
}

__global__ void standardize(const float* linear, const float* centre, const float* spread, float* standard, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    standard[i] = (linear[i] - centre[i % 3]) / spread[i % 3];
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
