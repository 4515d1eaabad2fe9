// y = relu(x W^T + b), W is [out_features, in_features]

//@ launch matmul_kernel<<<(ceil_div(O, 32), ceil_div(B, 32)), (32, 32)>>>(x, w, y, B, O, I)
//@ launch bias_kernel<<<(ceil_div(O, 128), B), 128>>>(y, bias, B, O)
//@ launch relu_kernel<<<ceil_div(B * O, 256), 256>>>(y, B * O)

__global__ void matmul_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                              float* __restrict__ output, int batch_size, int out_features, int in_features) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;

    if (row < batch_size && col < out_features) {
        float sum = 0.0f;
        for (int i = 0; i < in_features; i++) {
            sum += input[row * in_features + i] * weight[col * in_features + i];
        }
        output[row * out_features + col] = sum;
    }
}

__global__ void bias_kernel(float* output, const float* __restrict__ bias, int batch_size, int out_features) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y;
    if (col < out_features && row < batch_size) {
        output[row * out_features + col] += bias[col];
    }
}

__global__ void relu_kernel(float* output, int size) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < size) {
        output[idx] = output[idx] > 0.0f ? output[idx] : 0.0f;
    }
}
