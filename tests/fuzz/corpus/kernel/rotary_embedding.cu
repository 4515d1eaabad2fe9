// Rotary position embedding: each pair of a head's numbers is turned by an angle that grows with its position.

//@ launch rotate<<<ceil_div(T * H * D, 256), 256>>>(q, out, T, H, D)
__global__ void rotate(const float* q, float* out, int T, int H, int D) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < T * H * D) {
    int pair = at % D;
    int t = at / (H * D);
    float angle = t * powf(10000.0f, -(float)pair / D);
    float c = cosf(angle);
    float s = sinf(angle);
    float a = q[2 * at];
    float b = q[2 * at + 1];
    out[2 * at] = a * c - b * s;
    out[2 * at + 1] = a * s + b * c;
  }
}
