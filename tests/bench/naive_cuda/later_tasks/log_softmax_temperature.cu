//@ launch log_softmax<<<ceil_div(rows, 128), 128>>>(logits, out, temperature, rows, vocab)

// log probabilities of a language model's logits at a temperature
__global__ void log_softmax(const float* logits, float* out, float temperature, int rows, int vocab) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        const float* in = logits + row * vocab;
        float* o = out + row * vocab;

        // scale
        for (int v = 0; v < vocab; v++) {
            o[v] = in[v] / temperature;
        }

        // subtract the maximum
        float m = o[0];
        for (int v = 1; v < vocab; v++) {
            m = max(m, o[v]);
        }

        // log of the sum of exponentials
        float s = 0.0f;
        for (int v = 0; v < vocab; v++) {
            s += expf(o[v] - m);
        }
        float lse = m + logf(s);

        for (int v = 0; v < vocab; v++) {
            o[v] -= lse;
        }
    }
}
