// 3x3 average pooling of NHWC images, stride 2, padding 1; what lies outside of the image does not count.

//@ launch avg_pool_nhwc<<<(ceil_div(C, 64), (W - 1) / 2 + 1, B * ((H - 1) / 2 + 1)), 64>>>(x, y, H, W, C, (H - 1) / 2 + 1, (W - 1) / 2 + 1)

__global__ void avg_pool_nhwc(const float *x, float *y, int H, int W, int C, int OH, int OW)
{
    int c = threadIdx.x + blockIdx.x * blockDim.x;
    int ow = blockIdx.y;
    int oh = blockIdx.z % OH;
    int b = blockIdx.z / OH;
    if (c < C)
    {
        int h0 = max(oh * 2 - 1, 0);
        int w0 = max(ow * 2 - 1, 0);
        int h1 = min(oh * 2 + 2, H);
        int w1 = min(ow * 2 + 2, W);
        float sum = 0;
        for (int h = h0; h < h1; h++)
            for (int w = w0; w < w1; w++)
                sum += x[((b * H + h) * W + w) * C + c];
        y[((b * OH + oh) * OW + ow) * C + c] = sum / ((h1 - h0) * (w1 - w0));
    }
}
