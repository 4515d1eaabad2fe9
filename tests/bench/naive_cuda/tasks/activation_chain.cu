// hardtanh(x * scale + shift), leaky relu, softsign: each is a kernel of its own
//@ scratch t1: f32[B, C, P]
//@ scratch t2: f32[B, C, P]
//@ launch scale_shift_clamp<<<ceil_div(B * C * P, 256), 256>>>(x, scale, shift, t1, lo, hi, B, C, P)
//@ launch leaky_relu<<<ceil_div(B * C * P, 256), 256>>>(t1, t2, slope, B * C * P)
//@ launch softsign<<<ceil_div(B * C * P, 256), 256>>>(t2, y, B * C * P)

__global__ void scale_shift_clamp(const float* x, const float* scale, const float* shift, float* out, float lo,
                                  float hi, int B, int C, int P) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < B * C * P) {
    int c = (id / P) % C;
    float v = x[id] * scale[c] + shift[c];
    out[id] = fminf(fmaxf(v, lo), hi);
  }
}

__global__ void leaky_relu(const float* in, float* out, float slope, int total) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < total) {
    if (in[id] > 0)
      out[id] = in[id];
    else
      out[id] = slope * in[id];
  }
}

__global__ void softsign(const float* in, float* out, int total) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < total) out[id] = in[id] / (1.0f + fabsf(in[id]));
}
