// Feed-forward block of a transformer: y = relu(x W1 + b1)^2 W2 + b2. One thread per element of each product.

//@ scratch hidden: f32[T, H]
//@ launch up_projection<<<(ceil_div(H, 32), ceil_div(T, 8)), (32, 8)>>>(x, w1, b1, hidden, T, D, H)
//@ launch down_projection<<<(ceil_div(D, 16), ceil_div(T, 16)), (16, 16)>>>(hidden, w2, b2, y, T, H, D)

__device__ float squared_relu(float v)
{
    v = v > 0.0f ? v : 0.0f;
    return v * v;
}

__global__ void up_projection(const float* __restrict__ x, const float* __restrict__ w1, const float* __restrict__ b1,
                              float* __restrict__ hidden, int T, int D, int H)
{
    int h = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y * blockDim.y + threadIdx.y;

    if (t < T && h < H)
    {
        float sum = 0.0f;
        for (int d = 0; d < D; d++)
            sum += x[t * D + d] * w1[d * H + h];
        hidden[t * H + h] = squared_relu(sum + b1[h]);
    }
}

__global__ void down_projection(const float* __restrict__ hidden, const float* __restrict__ w2,
                                const float* __restrict__ b2, float* __restrict__ y, int T, int H, int D)
{
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    int t = blockIdx.y * blockDim.y + threadIdx.y;

    if (t >= T || d >= D) return;
    float sum = b2[d];
    for (int h = 0; h < H; h++)
        sum += hidden[t * H + h] * w2[h * D + d];
    y[t * D + d] = sum;
}
