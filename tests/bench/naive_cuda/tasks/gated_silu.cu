// SwiGLU: the first half of each token's features gates the second half. One thread per token.

//@ launch swiglu<<<ceil_div(tokens, 64), 64>>>(in, out, tokens, hidden)

__device__ inline float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

__global__ void swiglu(const float* in, float* out, int tokens, int hidden) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens) return;

    const float* gate = in + t * 2 * hidden;
    const float* up = gate + hidden;
    for (int h = 0; h < hidden; h++) {
        float g = gate[h];
        out[t * hidden + h] = g * sigmoid(g) * up[h];
    }
}
