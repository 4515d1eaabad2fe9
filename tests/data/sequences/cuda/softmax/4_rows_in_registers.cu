// Softmax along the rows, one warp for each row. A row of up to 1024 elements stays in the warp's registers: it
// is read once, eight loads of four elements in flight for each thread, and no warp waits for another. Longer
// rows, and those that are not aligned, are read twice.

// The largest element of a part of a row, and the sum of the exponentials relative to it.
struct Part {
  float largest;
  float total;
};

__device__ Part combine(Part a, Part b) {
  float largest = fmaxf(a.largest, b.largest);
  return {largest, a.total * expf(a.largest - largest) + b.total * expf(b.largest - largest)};
}

// Of a row of N elements from x to y, N divisible by 4 and at most 1024.
__device__ void softmax_in_registers(const float* x, float* y, int N, int lane) {
  // The least float, not infinity: a difference of infinities would be no number.
  constexpr float least = -3.402823466e+38f;
  float4 v[8];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    int j = 128 * n + 4 * lane;
    v[n] = j < N ? *reinterpret_cast<const float4*>(x + j) : make_float4(least, least, least, least);
  }
  float largest = least;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    largest = fmaxf(largest, fmaxf(fmaxf(v[n].x, v[n].y), fmaxf(v[n].z, v[n].w)));
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  float total = 0.0f;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    if (128 * n + 4 * lane < N) {
      v[n] = make_float4(expf(v[n].x - largest), expf(v[n].y - largest), expf(v[n].z - largest),
                         expf(v[n].w - largest));
      total += (v[n].x + v[n].y) + (v[n].z + v[n].w);
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    total += __shfl_xor_sync(0xffffffffu, total, distance);
  }
  float factor = 1.0f / total;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    int j = 128 * n + 4 * lane;
    if (j < N) {
      *reinterpret_cast<float4*>(y + j) =
          make_float4(v[n].x * factor, v[n].y * factor, v[n].z * factor, v[n].w * factor);
    }
  }
}

//@ launch softmax<<<ceil_div(M, 4), 128>>>(x, y, M, N)
__global__ void __launch_bounds__(128) softmax(const float* x, float* y, int M, int N) {
  int lane = threadIdx.x % 32;
  int i = blockIdx.x * 4 + threadIdx.x / 32;
  if (i >= M) {
    return;
  }
  x += static_cast<long long>(i) * N;
  y += static_cast<long long>(i) * N;
  if (N % 4 == 0 && N <= 1024) {
    softmax_in_registers(x, y, N, lane);
    return;
  }
  Part part = {-3.402823466e+38f, 0.0f};
  for (int j = lane; j < N; j += 32) {
    part = combine(part, {x[j], 1.0f});
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    Part other = {__shfl_xor_sync(0xffffffffu, part.largest, distance),
                  __shfl_xor_sync(0xffffffffu, part.total, distance)};
    part = combine(part, other);
  }
  float factor = 1.0f / part.total;
  for (int j = lane; j < N; j += 32) {
    y[j] = expf(x[j] - part.largest) * factor;
  }
}
