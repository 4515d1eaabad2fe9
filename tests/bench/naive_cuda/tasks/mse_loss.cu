//@ launch mse<<<1, 1>>>(prediction, target, loss, n)
__global__ void mse(const float* prediction, const float* target, float* loss, int n) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float diff = prediction[i] - target[i];
        sum += diff * diff;
    }
    loss[0] = sum / n;
}
