// One launch for all four operations, one thread for four neighbouring elements.

//@ launch gated_residual<<<ceil_div(M * N, 1024), 256>>>(x, b, mask, r, out, M * N, N)
__device__ __forceinline__ float gate_one(float x, float b, float m, float residual) {
  float biased = x + b;
  float gated = biased / (1.0f + expf(-biased));
  float masked = gated * m * 1.25f;
  return masked + residual;
}

__global__ void __launch_bounds__(256) gated_residual(const float* __restrict__ x, const float* __restrict__ b,
                                                      const float* __restrict__ mask, const float* __restrict__ r,
                                                      float* __restrict__ out, int n, int N) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {
    float4 m = *reinterpret_cast<const float4*>(mask + i);
    float4 residual = *reinterpret_cast<const float4*>(r + i);
    float4 v = *reinterpret_cast<const float4*>(x + i);
    int column = i % N;
    float4 bias;
    if (N % 4 == 0) {
      bias = *reinterpret_cast<const float4*>(b + column);
    } else {
      bias.x = b[column];
      column = column + 1 == N ? 0 : column + 1;
      bias.y = b[column];
      column = column + 1 == N ? 0 : column + 1;
      bias.z = b[column];
      column = column + 1 == N ? 0 : column + 1;
      bias.w = b[column];
    }
    float4 result;
    result.x = gate_one(v.x, bias.x, m.x, residual.x);
    result.y = gate_one(v.y, bias.y, m.y, residual.y);
    result.z = gate_one(v.z, bias.z, m.z, residual.z);
    result.w = gate_one(v.w, bias.w, m.w, residual.w);
    *reinterpret_cast<float4*>(out + i) = result;
  } else {
    for (; i < n; ++i) {
      out[i] = gate_one(x[i], b[i % N], mask[i], r[i]);
    }
  }
}
