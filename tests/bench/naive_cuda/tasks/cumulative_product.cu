//@ launch cumprod<<<(ceil_div(C, 64), B), (64, 1)>>>(x, y, B, T, C)

/* y[b][t][c] = x[b][0][c] * ... * x[b][t][c] */
__global__ void cumprod(const float *x, float *y, unsigned int B, unsigned int T, unsigned int C)
{
    unsigned int c = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int b = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= C || b >= B) return;
    size_t base = (size_t)b * T * C + c;
    y[base] = x[base];
    for (unsigned int t = 1; t < T; ++t)
    {
        y[base + t * C] = y[base + (t - 1) * C] * x[base + t * C];
    }
}
