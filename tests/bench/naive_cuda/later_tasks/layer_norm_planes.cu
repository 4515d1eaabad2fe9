// LayerNorm over the last two dimensions of [N, H, W], with weight and bias of shape [H, W].
// The first kernel finds mean and 1 / standard deviation of each sample, the second one applies them.

//@ scratch mu: f32[N]
//@ scratch rstd: f32[N]
//@ launch moments<<<ceil_div(N, 64), 64>>>(x, mu, rstd, N, H, W, eps)
//@ launch apply<<<(ceil_div(W, 32), ceil_div(H, 8), N), (32, 8)>>>(x, mu, rstd, weight, bias, y, H, W)

__global__ void moments(const float* __restrict__ x, float* __restrict__ mu, float* __restrict__ rstd, int N, int H,
                        int W, float eps)
{
    const int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= N) return;

    const int size = H * W;
    const float* plane = x + n * size;

    float total = 0.f;
    for (int i = 0; i < size; ++i) total += plane[i];
    const float mean = total / size;

    float var = 0.f;
    for (int i = 0; i < size; ++i) var += (plane[i] - mean) * (plane[i] - mean);
    var /= size;

    mu[n] = mean;
    rstd[n] = rsqrtf(var + eps);
}

__global__ void apply(const float* __restrict__ x, const float* __restrict__ mu, const float* __restrict__ rstd,
                      const float* __restrict__ weight, const float* __restrict__ bias, float* __restrict__ y, int H,
                      int W)
{
    const int w = blockIdx.x * blockDim.x + threadIdx.x;
    const int h = blockIdx.y * blockDim.y + threadIdx.y;
    const int n = blockIdx.z;
    if (h >= H || w >= W) return;

    const int hw = h * W + w;
    const int i = n * H * W + hw;
    y[i] = (x[i] - mu[n]) * rstd[n] * weight[hw] + bias[hw];
}
