// The gate of a feed-forward block, operator by operator: y = silu(x + bias) * up, scaled.

#include <cmath>

void add(const float* a, const float* b, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = a[i] + b[i];
  }
}

void silu(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = in[i] / (1.0f + std::exp(-in[i]));
  }
}

void multiply(const float* a, const float* b, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = a[i] * b[i];
  }
}

void scale(const float* in, float factor, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    out[i] = factor * in[i];
  }
}

//@ scratch shifted: f32[N]
//@ scratch gate: f32[N]
//@ scratch gated: f32[N]
//@ launch add(x, bias, shifted, N)
//@ launch silu(shifted, gate, N)
//@ launch multiply(gate, up, gated, N)
//@ launch scale(gated, factor, y, N)
