// Softmax along the rows, one block of 256 threads for each row. One pass finds the largest element and the sum
// together: where an element is larger than all before it, the sum so far is scaled down.

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
  for (int j = threadIdx.x; j < N; j += 256) {
    float value = x[row + j];
    float largest = fmaxf(part.largest, value);
    part.total = part.total * expf(part.largest - largest) + expf(value - largest);
    part.largest = largest;
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
  for (int j = threadIdx.x; j < N; j += 256) {
    y[row + j] = expf(x[row + j] - part.largest) * factor;
  }
}
