// Conv1d with bias, no padding, stride 1. x: [B, C, L], w: [F, C, K], y: [B, F, L - K + 1]

//@ launch conv1d_kernel<<<ceil_div(B * F * (L - K + 1), 256), 256>>>(x, w, bias, y, B, C, L, F, K)

__global__ void conv1d_kernel(const float* x, const float* w, const float* bias, float* y,
                              long long B, long long C, long long L, long long F, long long K)
{
    const long long out_len = L - K + 1;
    const long long idx = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= B * F * out_len) return;

    const long long pos = idx % out_len;
    const long long f = (idx / out_len) % F;
    const long long b = idx / (out_len * F);

    float acc = bias[f];
    for (long long c = 0; c < C; ++c)
        for (long long k = 0; k < K; ++k)
            acc += x[(b * C + c) * L + pos + k] * w[(f * C + c) * K + k];

    y[idx] = acc;
}
