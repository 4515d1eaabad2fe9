// Assignment step of k-means: distance of each point to each centre, then the nearest centre of each point.

//@ scratch dist: f32[C, P]
//@ launch distances<<<(ceil_div(P, 32), ceil_div(C, 8)), (32, 8)>>>(points, centres, dist, P, C, D)
//@ launch nearest<<<ceil_div(P, 256), 256>>>(dist, label, best, P, C)

__device__ float sq(float v) { return v * v; }

__global__ void distances(const float *points, const float *centres, float *dist, int P, int C, int D) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    int c = blockIdx.y * blockDim.y + threadIdx.y;
    if (p >= P) return;
    if (c >= C) return;
    float d2 = 0.0f;
    for (int d = 0; d < D; d++)
        d2 += sq(points[p * D + d] - centres[c * D + d]);
    dist[c * P + p] = sqrtf(d2);
}

__global__ void nearest(const float *dist, int *label, float *best, int P, int C) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= P) return;
    int which = 0;
    float lowest = 1e30f;
    for (int c = 0; c < C; c++) {
        float d = dist[c * P + p];
        if (d < lowest) { lowest = d; which = c; }
    }
    label[p] = which;
    best[p] = lowest;
}
