//@ launch gelu_forward<<<ceil_div(n, 512), 512>>>(x, y, n)

#define SQRT_2_OVER_PI 0.7978845608f

__device__ float gelu(float x)
{
    float inner = SQRT_2_OVER_PI * (x + 0.044715f * powf(x, 3.0f));
    return 0.5f * x * (1.0f + tanhf(inner));
}

__global__ void gelu_forward(const float *x, float *y, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = gelu(x[i]);
}
