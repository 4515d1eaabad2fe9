#pragma once
/// Kernels that go along rows, as different people write them.

#include <mtmc/analysis/task_builder.hpp>

#include <string>
#include <vector>

namespace mtmc::testing {

/// Sizes at which rows are checked: that fit and do not, that vectors divide and do not.
[[nodiscard]] inline Task with_row_sizes(TaskBuilder builder) {
  builder.size({{"M", 4096}, {"N", 1024}});
  for (const std::int64_t length : {1, 3, 4, 77, 996, 1024, 1032}) builder.check({{"M", 3}, {"N", length}});
  return builder.build();
}

/// Rows of `x`, and of `y`, which may change; `v` has one row.
[[nodiscard]] inline Task row_task(const std::string& source, bool with_vector = false) {
  TaskBuilder builder{"rows"};
  builder.kernel(languages::cuda, source);
  builder.shape("x", {"M", "N"}).shape("y", {"M", "N"}).role("y", ArgumentRole::inout);
  if (source.find("(float* x") != std::string::npos) builder.role("x", ArgumentRole::inout);
  if (with_vector) builder.shape("v", {"N"});
  return with_row_sizes(std::move(builder));
}

/// A kernel of that list, and what is done to it before its rows are shared.
struct RowKernel {
  std::string name{};
  std::string source{};
  bool with_vector = false;
  std::vector<std::string> before{};
};

[[nodiscard]] inline std::vector<RowKernel> row_kernels() {
  const std::vector<std::string> spread{"parallelization|rows/threads:x"};
  const std::vector<std::string> spread_to_warps{"parallelization|rows/threads:x@1"};
  return {
      {"log of softmax",
       R"(//@ launch rows<<<ceil_div(M, 128), 128>>>(x, y, M, N)
__global__ void rows(const float* __restrict__ x, float* __restrict__ y, int M, int N) {
  const int row = threadIdx.x + blockDim.x * blockIdx.x;
  if (row >= M) return;
  float top = -INFINITY;
  for (int col = 0; col < N; col++) top = fmaxf(top, x[row * N + col]);
  float sum = 0.f;
  for (int col = 0; col < N; col++) sum += expf(x[row * N + col] - top);
  const float shift = top + logf(sum);
  for (int col = 0; col < N; col++) y[row * N + col] = x[row * N + col] - shift;
}
)",
       false, spread},
      {"rows of length one",
       R"(//@ launch rows<<<ceil_div(M, 64), 64>>>(x, y, M, N)
__global__ void rows(const float* x, float* y, unsigned M, unsigned N) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i < M) {
    float squares = 0.0f;
    for (unsigned j = 0; j < N; ++j) {
      float value = x[j + i * N];
      squares += value * value;
    }
    float factor = rsqrtf(squares + 1e-6f);
    for (unsigned j = 0; j < N; ++j) y[j + i * N] = x[j + i * N] * factor;
  }
}
)",
       false, spread_to_warps},
      {"between least and largest",
       R"(//@ launch rows<<<M, 128>>>(x, y, N)
__global__ void rows(const float* x, float* y, int N) {
  __shared__ float lows[128];
  __shared__ float highs[128];
  const float* row = x + (size_t)blockIdx.x * N;
  float low = row[0], high = row[0];
  for (int j = threadIdx.x; j < N; j += blockDim.x) {
    low = fminf(low, row[j]);
    high = fmaxf(high, row[j]);
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  __syncthreads();
  for (int s = 64; s > 0; s >>= 1) {
    if (threadIdx.x < s) {
      lows[threadIdx.x] = fminf(lows[threadIdx.x], lows[threadIdx.x + s]);
      highs[threadIdx.x] = fmaxf(highs[threadIdx.x], highs[threadIdx.x + s]);
    }
    __syncthreads();
  }
  float scale = 1.0f / (highs[0] - lows[0] + 1e-3f);
  for (int j = threadIdx.x; j < N; j += blockDim.x) {
    y[(size_t)blockIdx.x * N + j] = (row[j] - lows[0]) * scale;
  }
}
)"},
      {"root mean square with a residual",
       R"(//@ launch rows<<<ceil_div(M, 128), 128>>>(x, y, v, M, N)
__global__ void rows(float* x, float* y, const float* v, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float squares = 0.0f;
    for (int j = 0; j < N; ++j) {
      int at = i * N + j;
      float sum = x[at] + y[at];
      x[at] = sum;
      squares += sum * sum;
    }
    float factor = 1.0f / sqrtf(squares / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
      int at = i * N + j;
      y[at] = x[at] * factor * v[j];
    }
  }
}
)",
       true, spread},
      {"product of two rows",
       R"(//@ launch rows<<<M, 256>>>(x, y, N)
__global__ void rows(const float* x, float* y, int N) {
  __shared__ float parts[256];
  int tid = threadIdx.x;
  float sum = 0.0f;
  for (int j = tid; j < N; j += 256) sum += x[blockIdx.x * N + j] * y[blockIdx.x * N + j];
  parts[tid] = sum;
  __syncthreads();
  for (int j = tid; j < N; j += 256) {
    float all = 0.0f;
    for (int part = 0; part < 256; ++part) all += parts[part];
    y[blockIdx.x * N + j] = all;
  }
}
)"},
      {"softmax of what a mask leaves",
       R"(//@ launch rows<<<ceil_div(M, 128), 128>>>(x, y, v, M, N)
__global__ void rows(const float* x, float* y, const float* v, int M, int N) {
  const float scale = 0.125f;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float largest = -1e30f;
    for (int j = 0; j < N; ++j) {
      float s = v[j] > 0.0f ? x[i * N + j] * scale : -1e30f;
      largest = fmaxf(largest, s);
    }
    float total = 0.0f;
    for (int j = 0; j < N; ++j) {
      float s = v[j] > 0.0f ? x[i * N + j] * scale : -1e30f;
      float e = expf(s - largest);
      y[i * N + j] = e;
      total += e;
    }
    float factor = 1.0f / total;
    for (int j = 0; j < N; ++j) y[i * N + j] *= factor;
  }
}
)",
       true, spread},
      {"a matrix and a vector, a warp for each row",
       R"(//@ launch rows<<<ceil_div(M, 4), 128>>>(x, y, v, M, N)
__global__ void rows(const float* __restrict__ x, float* __restrict__ y, const float* __restrict__ v, int M,
                     int N) {
  int warp = threadIdx.x >> 5;
  int lane = threadIdx.x & 31;
  int row = blockIdx.x * 4 + warp;
  if (row >= M) return;
  float sum = 0.0f;
  for (int k = lane; k < N; k += 32) {
    sum += __ldg(&x[row * N + k]) * __ldg(v + k);
  }
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (lane == 0) y[row * N] = sum;
}
)",
       true},
      {"in its place, to the sum 1",
       R"(//@ launch rows<<<ceil_div(M, 128), 128>>>(x, y, M, N)
__global__ void rows(float* x, float* y, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M) {
    float total = 1e-3f;
    for (int j = 0; j < N; ++j) total += fabsf(x[i * N + j]);
    for (int j = 0; j < N; ++j) x[i * N + j] /= total;
    float squares = 0.0f;
    for (int j = 1; j < N; ++j) squares += x[i * N + j] * x[i * N + j];
    for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * squares + y[i * N + j];
  }
}
)",
       false, spread},
  };
}

} // namespace mtmc::testing
