// silu(x + bias + residual), a kernel for each step
//@ scratch tmp: f32[rows, cols]
//@ launch add_bias<<<(ceil_div(cols, 64), ceil_div(rows, 4)), (64, 4)>>>(x, bias, tmp, rows, cols)
//@ launch add_inplace<<<ceil_div(rows * cols, 256), 256>>>(tmp, residual, rows * cols)
//@ launch silu<<<ceil_div(rows * cols, 512), 512>>>(tmp, y, rows * cols)

__global__ void add_bias(const float *x, const float *bias, float *out, int rows, int cols) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < cols)
        out[i * cols + j] = x[i * cols + j] + bias[j];
}

__global__ void add_inplace(float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] += b[i];
}

__global__ void silu(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    out[i] = v / (1.0f + expf(-v));
}
