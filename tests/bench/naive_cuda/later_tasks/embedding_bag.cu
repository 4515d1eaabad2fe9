// EmbeddingBag with weights: out[b] = sum over i of weights[b][i] * table[ids[b][i]]
//@ launch embedding_bag<<<ceil_div(bags * dim, 256), 256>>>(table, ids, weights, out, bags, per_bag, dim)

__global__ void embedding_bag(const float* table, const int* ids, const float* weights, float* out, int bags,
                              int per_bag, int dim) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < bags * dim) {
    int bag = index / dim;
    int d = index - bag * dim;
    float sum = 0.0f;
    for (int i = 0; i < per_bag; ++i) {
      int id = ids[bag * per_bag + i];
      sum += weights[bag * per_bag + i] * table[id * dim + d];
    }
    out[index] = sum;
  }
}
