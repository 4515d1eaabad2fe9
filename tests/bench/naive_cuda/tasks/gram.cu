// Gram matrix of the columns of X (rows are samples), divided by the number of samples.

//@ launch gram<<<(ceil_div(features, 16), ceil_div(features, 16)), (16, 16)>>>(X, G, samples, features)
extern "C" __global__ void gram(const float* X, float* G, int samples, int features)
{
    int fx = threadIdx.x + blockIdx.x * blockDim.x;
    int fy = threadIdx.y + blockIdx.y * blockDim.y;

    if (fx < features && fy < features)
    {
        float sum = 0.0f;

        for (int s = 0; s < samples; s++)
        {
            float a = X[s * features + fy];
            float b = X[s * features + fx];
            sum += a * b;
        }

        G[fy * features + fx] = sum / (float)samples;
    }
}
