// Conv2d over a batch of images, NCHW, with stride and zero padding.
//@ launch conv2d<<<(ceil_div((W + 2 * P - R) / S + 1, 32), ceil_div((H + 2 * P - R) / S + 1, 4), B * F), (32, 4)>>>(input, weight, output, C, H, W, F, R, S, P)

__global__ void conv2d(const float* input, const float* weight, float* output,
                       int C, int H, int W, int F, int R, int S, int P) {
    int out_h = (H + 2 * P - R) / S + 1;
    int out_w = (W + 2 * P - R) / S + 1;

    int ox = blockIdx.x * blockDim.x + threadIdx.x;
    int oy = blockIdx.y * blockDim.y + threadIdx.y;
    int b = blockIdx.z / F;
    int f = blockIdx.z % F;

    if (ox < out_w && oy < out_h) {
        float sum = 0.0f;
        for (int c = 0; c < C; c++) {
            for (int ky = 0; ky < R; ky++) {
                int iy = oy * S + ky - P;
                if (iy < 0 || iy >= H) continue;
                for (int kx = 0; kx < R; kx++) {
                    int ix = ox * S + kx - P;
                    if (ix < 0 || ix >= W) continue;
                    sum += input[((b * C + c) * H + iy) * W + ix] * weight[((f * C + c) * R + ky) * R + kx];
                }
            }
        }
        output[((b * F + f) * out_h + oy) * out_w + ox] = sum;
    }
}
