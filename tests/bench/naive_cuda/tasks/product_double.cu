//@ launch dgemm<<<ceil_div(m * n, 128), 128>>>(a, b, c, m, n, k)
// C = A * B in double precision, one output per thread
__global__ void dgemm(const double *a, const double *b, double *c, size_t m, size_t n, size_t k) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid >= m * n) return;
    size_t r = tid / n, s = tid % n;
    double total = 0.0;
    for (size_t p = 0; p < k; p++) {
        total += a[r * k + p] * b[p * n + s];
    }
    c[tid] = total;
}
