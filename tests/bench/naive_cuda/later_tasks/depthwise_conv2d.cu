// Depthwise convolution: each channel has a filter of R x R of its own. NCHW, bias, stride S, zero padding P.

//@ launch depthwise_conv<<<ceil_div(B * C * ((H + 2 * P - R) / S + 1) * ((W + 2 * P - R) / S + 1), 256), 256>>>(x, filter, bias, y, B, C, H, W, R, S, P)

__global__ void depthwise_conv(const float* x, const float* filter, const float* bias, float* y, int B, int C, int H,
                               int W, int R, int S, int P)
{
    int OH = (H + 2 * P - R) / S + 1;
    int OW = (W + 2 * P - R) / S + 1;
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid >= B * C * OH * OW)
        return;

    int ow = tid % OW;
    int oh = (tid / OW) % OH;
    int c = (tid / (OW * OH)) % C;
    int b = tid / (OW * OH * C);

    float acc = 0.0f;
    for (int r = 0; r < R; r++)
    {
        int ih = oh * S + r - P;
        if (ih < 0 || ih >= H)
            continue;
        for (int s = 0; s < R; s++)
        {
            int iw = ow * S + s - P;
            if (iw < 0 || iw >= W)
                continue;
            acc += x[((b * C + c) * H + ih) * W + iw] * filter[(c * R + r) * R + s];
        }
    }
    y[tid] = acc + bias[c];
}
