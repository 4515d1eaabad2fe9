//@ scratch mean: f32[N * G]
//@ scratch rstd: f32[N * G]
//@ launch group_stats<<<ceil_div(N * G, 32), 32>>>(x, mean, rstd, N * G, D * P, epsilon)
//@ launch group_apply<<<ceil_div(N * G * D * P, 512), 512>>>(x, mean, rstd, weight, bias, y, N, G, D, P)

// one thread per group
__global__ void group_stats(const float* x, float* mean, float* rstd, int groups, int size, float epsilon) {
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g < groups) {
        float m = 0.0f;
        for (int i = 0; i < size; i++) {
            m += x[g * size + i];
        }
        m = m / size;
        float v = 0.0f;
        for (int i = 0; i < size; i++) {
            v += (x[g * size + i] - m) * (x[g * size + i] - m);
        }
        v = v / size;
        mean[g] = m;
        rstd[g] = rsqrtf(v + epsilon);
    }
}

// one thread per element, D channels in each of the G groups
__global__ void group_apply(const float* x, const float* mean, const float* rstd, const float* weight,
                            const float* bias, float* y, int N, int G, int D, int P) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N * G * D * P) {
        int channel = i / P % (G * D);
        int group = i / (P * D);
        y[i] = (x[i] - mean[group]) * rstd[group] * weight[channel] + bias[channel];
    }
}
