// Softmax of the scores at and before the diagonal, zeros behind it; one warp for each pair of rows (i, T-1-i).

//@ launch causal_softmax<<<(ceil_div(ceil_div(T, 2), 4), H, 1), 128>>>(x, out, H, T)

#define NEG_INF_F __int_as_float((int)0xff800000u)

// Any T, any alignment: one warp walks one row.
__device__ __forceinline__ void softmax_row_any(const float* __restrict__ xr, float* __restrict__ orow,
                                                int i, int T, int lane) {
  float largest = NEG_INF_F;
  for (int j = lane; j <= i; j += 32) largest = fmaxf(largest, xr[j]);
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, s));
  float total = 0.0f;
  for (int j = lane; j <= i; j += 32) total += expf(xr[j] - largest);
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) total += __shfl_xor_sync(0xffffffffu, total, s);
  for (int j = lane; j < T; j += 32) {
    float r = 0.0f;
    if (j <= i) r = expf(xr[j] - largest) / total;
    orow[j] = r;
  }
}

__global__ void __launch_bounds__(128, 6)
causal_softmax(const float* __restrict__ x, float* __restrict__ out, int H, int T) {
  constexpr int SLOTS = 13;    // chunks of 128 floats that the two rows of a pair need together, T <= 1536
  constexpr int LO_SLOTS = 6;  // the upper row of a pair (i < 768) never needs more than these

  const int lane = threadIdx.x & 31;
  const int lo = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (lo >= ((T + 1) >> 1)) return;
  const int hi = T - 1 - lo;

  const size_t plane = (size_t)blockIdx.y * (size_t)T * (size_t)T;
  const float* xlo = x + plane + (size_t)lo * T;
  const float* xhi = x + plane + (size_t)hi * T;
  float* olo = out + plane + (size_t)lo * T;
  float* ohi = out + plane + (size_t)hi * T;

  const bool vectors = (T & 3) == 0 && T <= 1536 &&
                       ((((size_t)x) | ((size_t)out)) & 15) == 0;
  if (!vectors) {
    softmax_row_any(xlo, olo, lo, T, lane);
    if (hi != lo) softmax_row_any(xhi, ohi, hi, T, lane);
    return;
  }

  // Slots 0 .. n0-1 hold the chunks of row lo, slots n0 .. 12 the chunks 0 .. 12-n0 of row hi.
  const int n0 = (lo >> 7) + 1;
  const int clo = lane * 4;             // column of slot 0, counted for row lo
  const int chi = lane * 4 - n0 * 128;  // the same, counted for row hi
  const int dlo = lo - clo;             // distance to the diagonal
  const int dhi = hi - chi;

  float4 v[SLOTS];
#pragma unroll
  for (int k = 0; k < SLOTS; ++k) {
    const bool is_lo = k == 0 || (k < LO_SLOTS && k < n0);
    const int d = (is_lo ? dlo : dhi) - 128 * k;
    const float* p = (is_lo ? xlo + clo : xhi + chi) + 128 * k;
    v[k] = make_float4(NEG_INF_F, NEG_INF_F, NEG_INF_F, NEG_INF_F);
    if (d >= 0) v[k] = __ldg(reinterpret_cast<const float4*>(p));
  }

  // Chunks that no slot holds are all zeros: store them while the loads are under way.
  {
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int c = n0 * 128 + lane * 4; c < T; c += 128) __stcs(reinterpret_cast<float4*>(olo + c), zero);
    for (int c = (SLOTS - n0) * 128 + lane * 4; c < T; c += 128) __stcs(reinterpret_cast<float4*>(ohi + c), zero);
  }

  float max_lo = NEG_INF_F, max_hi = NEG_INF_F;
#pragma unroll
  for (int k = 0; k < SLOTS; ++k) {
    const bool is_lo = k == 0 || (k < LO_SLOTS && k < n0);
    const int d = (is_lo ? dlo : dhi) - 128 * k;
    v[k].y = d >= 1 ? v[k].y : NEG_INF_F;
    v[k].z = d >= 2 ? v[k].z : NEG_INF_F;
    v[k].w = d >= 3 ? v[k].w : NEG_INF_F;
    const float m = fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w));
    if (is_lo) max_lo = fmaxf(max_lo, m);
    else max_hi = fmaxf(max_hi, m);
  }
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    const float a = __shfl_xor_sync(0xffffffffu, max_lo, s);
    const float b = __shfl_xor_sync(0xffffffffu, max_hi, s);
    max_lo = fmaxf(max_lo, a);
    max_hi = fmaxf(max_hi, b);
  }

  float sum_lo = 0.0f, sum_hi = 0.0f;
#pragma unroll
  for (int k = 0; k < SLOTS; ++k) {
    const bool is_lo = k == 0 || (k < LO_SLOTS && k < n0);
    const float m = is_lo ? max_lo : max_hi;
    v[k].x = expf(v[k].x - m);
    v[k].y = expf(v[k].y - m);
    v[k].z = expf(v[k].z - m);
    v[k].w = expf(v[k].w - m);
    const float s = (v[k].x + v[k].y) + (v[k].z + v[k].w);
    if (is_lo) sum_lo += s;
    else sum_hi += s;
  }
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) {
    const float a = __shfl_xor_sync(0xffffffffu, sum_lo, s);
    const float b = __shfl_xor_sync(0xffffffffu, sum_hi, s);
    sum_lo += a;
    sum_hi += b;
  }
  const float inv_lo = 1.0f / sum_lo;
  const float inv_hi = 1.0f / sum_hi;

#pragma unroll
  for (int k = 0; k < SLOTS; ++k) {
    const bool is_lo = k == 0 || (k < LO_SLOTS && k < n0);
    const int c = (is_lo ? clo : chi) + 128 * k;
    const int d = (is_lo ? dlo : dhi) - 128 * k;
    const float inv = is_lo ? inv_lo : inv_hi;
    float* p = (is_lo ? olo + clo : ohi + chi) + 128 * k;
    float4 r;
    r.x = d >= 0 ? v[k].x * inv : 0.0f;
    r.y = d >= 1 ? v[k].y * inv : 0.0f;
    r.z = d >= 2 ? v[k].z * inv : 0.0f;
    r.w = d >= 3 ? v[k].w * inv : 0.0f;
    if (c < T) __stcs(reinterpret_cast<float4*>(p), r);
  }
}
