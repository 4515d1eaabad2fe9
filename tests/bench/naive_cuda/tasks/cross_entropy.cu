// Cross entropy of logits and class labels, averaged over the batch.
//@ scratch losses: f32[batch]
//@ launch cross_entropy<<<ceil_div(batch, 256), 256>>>(logits, labels, losses, batch, classes)
//@ launch average<<<1, 1>>>(losses, loss, batch)

__device__ float max_of(const float* row, int n)
{
    float best = row[0];
    for (int i = 1; i < n; ++i)
    {
        if (row[i] > best) best = row[i];
    }
    return best;
}

__device__ float log_sum_exp(const float* row, int n)
{
    float shift = max_of(row, n);
    float sum = 0.0f;
    for (int i = 0; i < n; ++i)
    {
        sum += expf(row[i] - shift);
    }
    return shift + logf(sum);
}

__global__ void cross_entropy(const float* logits, const int* labels, float* losses, int batch, int classes)
{
    int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample < batch)
    {
        const float* row = logits + sample * classes;
        losses[sample] = log_sum_exp(row, classes) - row[labels[sample]];
    }
}

__global__ void average(const float* losses, float* loss, int batch)
{
    float total = 0.0f;
    for (int i = 0; i < batch; ++i) total += losses[i];
    loss[0] = total / (float)batch;
}
