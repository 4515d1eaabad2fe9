// Mean over time of a [batch, time, channels] tensor.
//@ launch mean_over_time<<<ceil_div(batch * channels, 192), 192>>>(x, y, batch, time, channels)
__global__ void mean_over_time(const float* __restrict__ x, float* __restrict__ y,
                               int batch, int time, int channels)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= batch * channels) return;
    int b = index / channels;
    int c = index - b * channels;
    float mean = 0.0f;
    for (int t = 0; t < time; ++t)
        mean += x[(b * time + t) * channels + c];
    y[index] = mean / time;
}
