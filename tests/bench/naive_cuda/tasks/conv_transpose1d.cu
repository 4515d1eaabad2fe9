// ConvTranspose1d, gathered: every output looks for the inputs that reach it.
// x: [B, C, L], w: [C, F, K], y: [B, F, (L - 1) * S + K]

//@ launch conv_transpose1d<<<(ceil_div((L - 1) * S + K, 128), F, B), 128>>>(x, w, y, C, L, F, K, S)

__global__ void conv_transpose1d(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                                 const int C, const int L, const int F, const int K, const int S)
{
    const int len = (L - 1) * S + K;
    const int o = blockIdx.x * blockDim.x + threadIdx.x;
    const int f = blockIdx.y;
    const int b = blockIdx.z;
    if (o >= len)
        return;

    float acc = 0.0f;
    for (int c = 0; c < C; ++c)
    {
        for (int k = 0; k < K; ++k)
        {
            const int t = o - k;
            if (t < 0 || t % S != 0)
                continue;
            const int l = t / S;
            if (l < L)
                acc += x[(b * C + c) * L + l] * w[(c * F + f) * K + k];
        }
    }
    y[(b * F + f) * len + o] = acc;
}
