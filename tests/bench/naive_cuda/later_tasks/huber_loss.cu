// Mean Huber loss. One thread sums up one sample, then a single thread takes the mean of all.

//@ scratch per_sample: f32[batch]
//@ launch huber_rows<<<ceil_div(batch, 96), 96>>>(prediction, target, per_sample, delta, batch, features)
//@ launch mean_of_samples<<<1, 1>>>(per_sample, loss, batch, features)

__device__ __forceinline__ float huber(float error, float delta)
{
  float a = fabsf(error);
  if (a <= delta)
    return 0.5f * error * error;
  return delta * (a - 0.5f * delta);
}

__global__ void huber_rows(const float* prediction, const float* target, float* per_sample, float delta, size_t batch,
                           size_t features)
{
  size_t b = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= batch) return;
  float acc = 0;
  for (size_t f = 0; f < features; f++)
    acc += huber(prediction[b * features + f] - target[b * features + f], delta);
  per_sample[b] = acc;
}

__global__ void mean_of_samples(const float* per_sample, float* loss, size_t batch, size_t features)
{
  float acc = 0;
  for (size_t b = 0; b < batch; b++) acc += per_sample[b];
  *loss = acc / (batch * features);
}
