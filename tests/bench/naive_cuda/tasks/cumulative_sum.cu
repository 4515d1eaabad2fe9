// inclusive prefix sum along each row
//@ launch cumsum<<<ceil_div(M, 256), 256>>>(x, out, M, N)
__global__ void cumsum(const float* x, float* out, int M, int N) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M) return;
    float running = 0.0f;
    for (int j = 0; j < N; ++j) {
        running += x[row * N + j];
        out[row * N + j] = running;
    }
}
