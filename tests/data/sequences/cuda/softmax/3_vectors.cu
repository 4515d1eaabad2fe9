// Softmax along the rows, one block of 256 threads for each row. One pass finds the largest element and the sum
// together. Where rows are aligned, a thread moves four elements at a time and scales its sum once for them.

// The largest element of a part of a row, and the sum of the exponentials relative to it.
struct Part {
  float largest;
  float total;
};

__device__ Part combine(Part a, Part b) {
  float largest = fmaxf(a.largest, b.largest);
  return {largest, a.total * expf(a.largest - largest) + b.total * expf(b.largest - largest)};
}

//@ launch softmax<<<M, 256>>>(x, y, M, N)
__global__ void softmax(const float* x, float* y, int M, int N) {
  __shared__ Part of_warps[8];
  long long row = static_cast<long long>(blockIdx.x) * N;
  // The least float, not infinity: a difference of infinities would be no number.
  Part part = {-3.402823466e+38f, 0.0f};
  // Elements that are moved four at a time: all where rows are aligned, else none.
  int by_four = N % 4 == 0 ? N : 0;
  for (int j = 4 * threadIdx.x; j < by_four; j += 1024) {
    float4 v = *reinterpret_cast<const float4*>(x + row + j);
    float largest = fmaxf(fmaxf(part.largest, fmaxf(v.x, v.y)), fmaxf(v.z, v.w));
    part.total = part.total * expf(part.largest - largest) + (expf(v.x - largest) + expf(v.y - largest)) +
                 (expf(v.z - largest) + expf(v.w - largest));
    part.largest = largest;
  }
  for (int j = by_four + threadIdx.x; j < N; j += 256) {
    part = combine(part, {x[row + j], 1.0f});
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    Part other = {__shfl_xor_sync(0xffffffffu, part.largest, distance),
                  __shfl_xor_sync(0xffffffffu, part.total, distance)};
    part = combine(part, other);
  }
  if (threadIdx.x % 32 == 0) {
    of_warps[threadIdx.x / 32] = part;
  }
  __syncthreads();
  part = of_warps[0];
  for (int warp = 1; warp < 8; ++warp) {
    part = combine(part, of_warps[warp]);
  }
  float factor = 1.0f / part.total;
  for (int j = 4 * threadIdx.x; j < by_four; j += 1024) {
    float4 v = *reinterpret_cast<const float4*>(x + row + j);
    *reinterpret_cast<float4*>(y + row + j) =
        make_float4(expf(v.x - part.largest) * factor, expf(v.y - part.largest) * factor,
                    expf(v.z - part.largest) * factor, expf(v.w - part.largest) * factor);
  }
  for (int j = by_four + threadIdx.x; j < N; j += 256) {
    y[row + j] = expf(x[row + j] - part.largest) * factor;
  }
}
