// Acceleration of each of N bodies (x, y, z, mass) by all of them, one thread for each body.

//@ launch attraction<<<ceil_div(N, 128), 128>>>(body, out, softening, N)
__global__ void attraction(const float* body, float* out, float softening, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < N; ++j) {
      float dx = body[j * 4] - body[i * 4];
      float dy = body[j * 4 + 1] - body[i * 4 + 1];
      float dz = body[j * 4 + 2] - body[i * 4 + 2];
      float square = dx * dx + dy * dy + dz * dz + softening;
      float pull = body[j * 4 + 3] / (square * sqrtf(square));
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    out[i * 3] = ax;
    out[i * 3 + 1] = ay;
    out[i * 3 + 2] = az;
  }
}
