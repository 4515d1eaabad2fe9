// Gradient of a linear layer's weights: dw = x^T dy, summed over a long batch.
//@ launch weight_gradient<<<(ceil_div(M, 16), ceil_div(N, 16)), (16, 16)>>>(x, dy, dw, M, N, K)

__global__ void weight_gradient(const float *x, const float *dy, float *dw, int M, int N, int K)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N)
        return;

    float acc = 0;
    for (int k = 0; k < K; k++)
        acc += x[k * M + row] * dy[k * N + col];
    dw[row * N + col] = acc;
}
