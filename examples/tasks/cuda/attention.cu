// Attention of H heads over T positions with D numbers each: scores, softmax, and the weighted sum.

//@ scratch scores: f32[H, T, T]
//@ launch score<<<(ceil_div(T, 16), ceil_div(T, 16), H), (16, 16)>>>(q, k, scores, T, D, factor)
//@ launch soften<<<ceil_div(H * T, 128), 128>>>(scores, H * T, T)
//@ launch gather<<<(ceil_div(D, 16), ceil_div(T, 16), H), (16, 16)>>>(scores, v, out, T, D)

__global__ void score(const float* q, const float* k, float* scores, int T, int D, float factor) {
  int head = blockIdx.z;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < T && j < T) {
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) {
      sum += q[(head * T + i) * D + d] * k[(head * T + j) * D + d];
    }
    scores[(head * T + i) * T + j] = sum * factor;
  }
}

__global__ void soften(float* scores, int rows, int T) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float largest = scores[row * T];
    for (int j = 1; j < T; ++j) {
      largest = fmaxf(largest, scores[row * T + j]);
    }
    float total = 0.0f;
    for (int j = 0; j < T; ++j) {
      float e = expf(scores[row * T + j] - largest);
      scores[row * T + j] = e;
      total += e;
    }
    for (int j = 0; j < T; ++j) {
      scores[row * T + j] /= total;
    }
  }
}

__global__ void gather(const float* scores, const float* v, float* out, int T, int D) {
  int head = blockIdx.z;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int d = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < T && d < D) {
    float sum = 0.0f;
    for (int j = 0; j < T; ++j) {
      sum += scores[(head * T + i) * T + j] * v[(head * T + j) * D + d];
    }
    out[(head * T + i) * D + d] = sum;
  }
}
