// Batch normalization at inference (NCHW): normalize with the running statistics, then the affine part.
//@ scratch normalized: f32[N, C, H, W]
//@ launch normalize<<<(ceil_div(H * W, 256), C, N), 256>>>(x, mean, var, normalized, eps, C, H * W)
//@ launch affine<<<ceil_div(N * C * H * W, 256), 256>>>(normalized, gamma, beta, y, N, C, H, W)

__global__ void normalize(const float* x, const float* mean, const float* var, float* out, float eps, int C, int HW)
{
    int hw = blockIdx.x * blockDim.x + threadIdx.x;
    int c = blockIdx.y;
    int n = blockIdx.z;
    if (hw < HW)
    {
        int idx = (n * C + c) * HW + hw;
        out[idx] = (x[idx] - mean[c]) / sqrtf(var[c] + eps);
    }
}

__global__ void affine(const float* x, const float* gamma, const float* beta, float* y, int N, int C, int H, int W)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int total = N * C * H * W;
    if (idx >= total)
        return;
    int c = (idx / (H * W)) % C;
    y[idx] = x[idx] * gamma[c] + beta[c];
}
