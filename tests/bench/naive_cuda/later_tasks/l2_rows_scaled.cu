// out = x / max(|x|, eps) * gain, row by row (query-key normalisation)

//@ launch l2_normalize_rows<<<ceil_div(rows, 192), 192>>>(x, gain, out, eps, rows, dim)

__device__ float norm_of(const float *v, unsigned int n) {
    float s = 0.0f;
    for (unsigned int i = 0; i < n; i++)
        s += v[i] * v[i];
    return sqrtf(s);
}

__global__ void l2_normalize_rows(const float *x, const float *gain, float *out, float eps, unsigned int rows,
                                  unsigned int dim) {
    unsigned int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        const float *row = x + r * dim;
        float norm = fmaxf(norm_of(row, dim), eps);
        for (unsigned int i = 0; i < dim; i++)
            out[r * dim + i] = row[i] / norm * gain[i];
    }
}
