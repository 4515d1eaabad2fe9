// x / ||x||_F: partial sums of squares of a fixed number of threads, one thread that adds them up, and the division.

//@ scratch partial: f32[16384]
//@ scratch norm: f32[1]
//@ launch sum_of_squares<<<64, 256>>>(x, partial, n)
//@ launch finish<<<1, 1>>>(partial, norm, 16384)
//@ launch divide<<<256, 256>>>(x, norm, y, n)

__global__ void sum_of_squares(const float *x, float *partial, int n)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    float s = 0.0f;
    for (int i = tid; i < n; i += stride)
        s += x[i] * x[i];
    partial[tid] = s;
}

__global__ void finish(const float *partial, float *norm, int count)
{
    float s = 0.0f;
    for (int i = 0; i < count; i++)
        s += partial[i];
    *norm = sqrtf(s);
}

__global__ void divide(const float *x, const float *norm, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = x[i] / norm[0];
}
