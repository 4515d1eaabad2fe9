// Token embeddings, then layer norm of each token.

//@ scratch embedded: f32[T, D]
//@ launch lookup<<<(ceil_div(D, 256), T), 256>>>(table, ids, embedded, D)
//@ launch layer_norm<<<ceil_div(T, 128), 128>>>(embedded, weight, bias, out, T, D, eps)

__global__ void lookup(const float* table, const int* ids, float* embedded, int D) {
  int d = blockIdx.x * blockDim.x + threadIdx.x;
  int t = blockIdx.y;
  if (d < D) embedded[t * D + d] = table[ids[t] * D + d];
}

__global__ void layer_norm(const float* embedded, const float* weight, const float* bias, float* out, int T, int D,
                           float eps) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < T) {
    float m = 0.0f;
    for (int d = 0; d < D; d++) {
      m += embedded[t * D + d];
    }
    m = m / D;

    float v = 0.0f;
    for (int d = 0; d < D; d++) {
      float shifted = embedded[t * D + d] - m;
      v += shifted * shifted;
    }
    v = v / D;

    float s = 1.0f / sqrtf(v + eps);
    for (int d = 0; d < D; d++) {
      float normalized = s * (embedded[t * D + d] - m);
      out[t * D + d] = normalized * weight[d] + bias[d];
    }
  }
}
