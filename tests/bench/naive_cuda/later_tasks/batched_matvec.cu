// y[b] = A[b] x[b]

//@ launch batched_gemv<<<(ceil_div(M, 128), batch), 128>>>(A, x, y, M, N)

extern "C" __global__ void batched_gemv(const float* A, const float* x, float* y, unsigned M, unsigned N)
{
    const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M)
    {
        const float* a = A + ((size_t)blockIdx.y * M + row) * N;
        const float* v = x + (size_t)blockIdx.y * N;
        float dot = 0.f;
        for (unsigned j = 0; j < N; ++j)
        {
            dot += a[j] * v[j];
        }
        y[blockIdx.y * M + row] = dot;
    }
}
