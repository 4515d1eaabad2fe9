// Causal self-attention, one thread per query. The scores of a query lie in a row of scratch memory.
//@ scratch att: f32[H, T, T]
//@ launch causal_attention<<<(ceil_div(T, 64), H), 64>>>(q, k, v, att, out, T, D, scale)

__global__ void causal_attention(const float* q, const float* k, const float* v, float* att, float* out,
                                 int T, int D, float scale) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int h = blockIdx.y;
    if (t >= T) return;

    const float* query = q + (h * T + t) * D;
    float* scores = att + (h * T + t) * T;

    // pass 1: q . k and the maximum
    float maxval = -10000.0f;
    for (int t2 = 0; t2 <= t; t2++) {
        const float* key = k + (h * T + t2) * D;
        float val = 0.0f;
        for (int i = 0; i < D; i++) {
            val += query[i] * key[i];
        }
        val *= scale;
        if (val > maxval) {
            maxval = val;
        }
        scores[t2] = val;
    }

    // pass 2: exp and sum
    float expsum = 0.0f;
    for (int t2 = 0; t2 <= t; t2++) {
        float e = expf(scores[t2] - maxval);
        expsum += e;
        scores[t2] = e;
    }

    // pass 3: weighted sum of the values
    for (int i = 0; i < D; i++) {
        float acc = 0.0f;
        for (int t2 = 0; t2 <= t; t2++) {
            acc += scores[t2] * v[(h * T + t2) * D + i];
        }
        out[(h * T + t) * D + i] = acc / expsum;
    }
}
