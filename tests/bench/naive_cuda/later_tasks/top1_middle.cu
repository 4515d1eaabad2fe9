// Best step of each channel: scores is [B, T, C], the maximum and its position go over T.
//@ launch top1<<<ceil_div(B * C, 256), 256>>>(scores, best, where, B, T, C)

__global__ void top1(const float* scores, float* best, int* where, long long B, long long T, long long C)
{
    long long idx = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (idx >= B * C)
        return;

    long long b = idx / C;
    long long c = idx % C;

    float value = scores[b * T * C + c];
    long long position = 0;
    long long t = 1;
    while (t < T)
    {
        const float s = scores[(b * T + t) * C + c];
        if (s > value)
        {
            value = s;
            position = t;
        }
        t++;
    }

    best[idx] = value;
    where[idx] = (int)position;
}
