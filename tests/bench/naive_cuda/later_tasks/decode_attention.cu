// One decoding step of multi-head attention: a query for each head, keys and values of T earlier tokens in a cache
// of shape [B, T, H, D]. Three kernels: scores, softmax, weighted sum of the values.

//@ scratch scores: f32[B, H, T]
//@ launch attention_scores<<<(ceil_div(T, 128), H, B), 128>>>(q, k_cache, scores, scale, T, H, D)
//@ launch softmax_inplace<<<ceil_div(B * H, 32), 32>>>(scores, B * H, T)
//@ launch attention_output<<<(ceil_div(D, 64), H, B), 64>>>(scores, v_cache, out, T, H, D)

__global__ void attention_scores(const float* q, const float* k_cache, float* scores, float scale, int T, int H, int D)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int h = blockIdx.y;
    int b = blockIdx.z;
    if (t < T)
    {
        const float* query = q + (b * H + h) * D;
        const float* key = k_cache + ((b * T + t) * H + h) * D;
        float dot = 0.0f;
        for (int d = 0; d < D; ++d)
        {
            dot += query[d] * key[d];
        }
        scores[(b * H + h) * T + t] = dot * scale;
    }
}

__global__ void softmax_inplace(float* scores, int rows, int T)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;

    float* s = scores + row * T;
    float highest = s[0];
    for (int t = 1; t < T; ++t)
    {
        highest = fmaxf(highest, s[t]);
    }
    float sum = 0.0f;
    for (int t = 0; t < T; ++t)
    {
        s[t] = expf(s[t] - highest);
        sum += s[t];
    }
    for (int t = 0; t < T; ++t)
    {
        s[t] /= sum;
    }
}

__global__ void attention_output(const float* scores, const float* v_cache, float* out, int T, int H, int D)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int h = blockIdx.y;
    int b = blockIdx.z;
    if (d < D)
    {
        float acc = 0.0f;
        for (int t = 0; t < T; ++t)
        {
            acc += scores[(b * H + h) * T + t] * v_cache[((b * T + t) * H + h) * D + d];
        }
        out[(b * H + h) * D + d] = acc;
    }
}
