// 3x3 max pooling with stride 2 and padding 1, NCHW.

//@ launch max_pool<<<(ceil_div((W - 1) / 2 + 1, 16), ceil_div((H - 1) / 2 + 1, 16), B * C), (16, 16)>>>(x, y, H, W, (H - 1) / 2 + 1, (W - 1) / 2 + 1)

#define KERNEL 3
#define STRIDE 2
#define PADDING 1

__global__ void max_pool(const float* x, float* y, int H, int W, int out_h, int out_w)
{
    int ow = blockIdx.x * blockDim.x + threadIdx.x;
    int oh = blockIdx.y * blockDim.y + threadIdx.y;
    int bc = blockIdx.z;
    if (ow >= out_w || oh >= out_h) return;

    float best = -3.4e38f;
    for (int kh = 0; kh < KERNEL; kh++)
    {
        for (int kw = 0; kw < KERNEL; kw++)
        {
            int ih = oh * STRIDE - PADDING + kh;
            int iw = ow * STRIDE - PADDING + kw;
            if (ih >= 0 && ih < H && iw >= 0 && iw < W)
            {
                best = fmaxf(best, x[(bc * H + ih) * W + iw]);
            }
        }
    }
    y[(bc * out_h + oh) * out_w + ow] = best;
}
