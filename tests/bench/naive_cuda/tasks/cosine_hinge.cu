// Cosine embedding loss: 1 - cos for pairs that belong together, max(0, cos - margin) for the others.
//@ scratch losses: f32[pairs]
//@ launch pair_losses<<<ceil_div(pairs, 96), 96>>>(a, b, same, losses, margin, pairs, dim)
//@ launch mean_loss<<<1, 1>>>(losses, loss, pairs)

__global__ void pair_losses(const float* a, const float* b, const int* same, float* losses, float margin, int pairs,
                            int dim) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) {
        return;
    }
    float dot = 0.0f, norm_a = 0.0f, norm_b = 0.0f;
    for (int d = 0; d < dim; ++d) {
        float va = a[pair * dim + d];
        float vb = b[pair * dim + d];
        dot += va * vb;
        norm_a += va * va;
        norm_b += vb * vb;
    }
    float cosine = dot / sqrtf((norm_a + 1e-12f) * (norm_b + 1e-12f));
    if (same[pair] == 1) {
        losses[pair] = 1.0f - cosine;
    } else {
        losses[pair] = cosine - margin > 0.0f ? cosine - margin : 0.0f;
    }
}

__global__ void mean_loss(const float* losses, float* loss, int pairs) {
    float sum = 0.0f;
    for (int i = 0; i < pairs; ++i) {
        sum += losses[i];
    }
    loss[0] = sum / pairs;
}
