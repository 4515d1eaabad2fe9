// Products of the features of each pixel with those of all pixels up to R away in another image; what lies outside of it
// is zero. One thread for each pixel and displacement.

//@ launch correlation_volume<<<(ceil_div(W, 32), H, (2 * R + 1) * (2 * R + 1)), 32>>>(f, g, out, H, W, C, R)
__global__ void correlation_volume(const float* f, const float* g, float* out, int H, int W, int C, int R) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  int side = 2 * R + 1;
  int there_x = x + (int)(blockIdx.z % side) - R;
  int there_y = y + (int)(blockIdx.z / side) - R;
  if (x < W) {
    float sum = 0.0f;
    if (there_x >= 0 && there_x < W && there_y >= 0 && there_y < H) {
      for (int c = 0; c < C; ++c) sum += f[(y * W + x) * C + c] * g[(there_y * W + there_x) * C + c];
    }
    out[((int)blockIdx.z * H + y) * W + x] = sum;
  }
}
