// RMS normalization over the channels of every position (x is [B, C, P]).
//@ launch rms_channels<<<(ceil_div(P, 128), B), 128>>>(x, weight, y, C, P, eps)
__global__ void rms_channels(const float* x, const float* weight, float* y, int C, int P, float eps)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    int b = blockIdx.y;
    if (p >= P) return;

    float ss = 0;
    for (int c = 0; c < C; c++) {
        float v = x[b * C * P + c * P + p];
        ss += v * v;
    }
    float rms = sqrtf(ss / C + eps);

    for (int c = 0; c < C; c++)
        y[b * C * P + c * P + p] = x[b * C * P + c * P + p] / rms * weight[c];
}
