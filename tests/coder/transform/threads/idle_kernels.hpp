#pragma once
/// CUDA tasks whose launches leave most of a device idle: few threads, or few results of long sums.

#include <mtmc/analysis/task_builder.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::testing {

/// A task from a kernel and the shapes of its buffers; the first size is the one that counts.
[[nodiscard]] inline Task
idle_task(std::string_view name, std::string source,
          const std::vector<std::pair<std::string, std::vector<std::string>>>& shapes,
          const std::vector<Symbols>& sizes) {
  TaskBuilder builder{std::string(name)};
  builder.kernel(languages::cuda, std::move(source));
  for (const auto& [argument, shape] : shapes) builder.shape(argument, shape);
  bool first = true;
  for (const Symbols& symbols : sizes) {
    builder.size(symbols, first ? 1 : 0);
    first = false;
  }
  return builder.build();
}

/// The sum of a vector in one thread.
[[nodiscard]] inline Task sum_in_one_thread() {
  return idle_task("vector_sum",
                   "//@ launch vector_sum<<<1, 1>>>(x, out, N)\n"
                   "__global__ void vector_sum(const float* x, float* out, int N) {\n"
                   "  float sum = 0.0f;\n"
                   "  for (int i = 0; i < N; ++i) {\n"
                   "    sum += x[i];\n"
                   "  }\n"
                   "  out[0] = sum;\n"
                   "}\n",
                   {{"x", {"N"}}, {"out", {"1"}}},
                   {{{"N", 1 << 24}}, {{"N", 1}}, {{"N", 1003}}, {{"N", 70001}}});
}

/// The same in one block, whose threads combine their sums in shared memory.
[[nodiscard]] inline Task sum_in_one_block() {
  return idle_task(
      "block_sum",
      "//@ launch block_sum<<<1, 256>>>(x, out, N)\n"
      "__global__ void block_sum(const float* __restrict__ x, float* __restrict__ out, int N) {\n"
      "  __shared__ float partial[256];\n"
      "  int tid = threadIdx.x;\n"
      "  float sum = 0.0f;\n"
      "  for (int i = tid; i < N; i += blockDim.x) {\n"
      "    sum += x[i];\n"
      "  }\n"
      "  partial[tid] = sum;\n"
      "  __syncthreads();\n"
      "  for (int s = blockDim.x / 2; s > 0; s >>= 1) {\n"
      "    if (tid < s) partial[tid] += partial[tid + s];\n"
      "    __syncthreads();\n"
      "  }\n"
      "  if (tid == 0) out[0] = partial[0];\n"
      "}\n",
      {{"x", {"N"}}, {"out", {"1"}}}, {{{"N", 1 << 24}}, {{"N", 1}}, {{"N", 1003}}, {{"N", 70001}}});
}

/// The mean squared error in one thread.
[[nodiscard]] inline Task mean_squared_error() {
  return idle_task(
      "mse",
      "//@ launch mse<<<1, 1>>>(predictions, targets, loss, B, D)\n"
      "__global__ void mse(const float* predictions, const float* targets, float* loss,\n"
      "                    int batch, int features) {\n"
      "  // all errors, one after the other\n"
      "  float total = 0.0f;\n"
      "  const int count = batch * features;\n"
      "  for (int i = 0; i < count; i++) {\n"
      "    const float error = predictions[i] - targets[i];\n"
      "    total = total + error * error;\n"
      "  }\n"
      "  *loss = total / (float)count;\n"
      "}\n",
      {{"predictions", {"B", "D"}}, {"targets", {"B", "D"}}, {"loss", {"1"}}},
      {{{"B", 128}, {"D", 4096}}, {{"B", 1}, {"D", 1}}, {{"B", 7}, {"D", 131}}, {{"B", 130}, {"D", 257}}});
}

/// Sums of columns, one thread for each.
[[nodiscard]] inline Task column_sums() {
  return idle_task(
      "column_sums",
      "//@ launch column_sums<<<ceil_div(N, 256), 256>>>(x, sums, M, N)\n"
      "__global__ void column_sums(const float* x, float* sums, int M, int N) {\n"
      "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (j >= N) return;\n"
      "  float sum = 0.0f;\n"
      "  for (int i = 0; i < M; ++i) sum += x[i * N + j];\n"
      "  sums[j] = sum;\n"
      "}\n",
      {{"x", {"M", "N"}}, {"sums", {"N"}}},
      {{{"M", 8192}, {"N", 2048}}, {{"M", 1}, {"N", 1}}, {{"M", 77}, {"N", 301}}, {{"M", 1025}, {"N", 33}}});
}

/// The mean of each channel of a batch of pictures.
[[nodiscard]] inline Task channel_mean() {
  return idle_task("channel_mean",
                   "//@ launch channel_mean<<<ceil_div(C, 64), 64>>>(x, mean, N, C, H * W)\n"
                   "__global__ void channel_mean(const float* x, float* mean, int N, int C, int HW) {\n"
                   "  const int c = threadIdx.x + blockIdx.x * blockDim.x;\n"
                   "  if (c < C) {\n"
                   "    float acc = 0.f;\n"
                   "    for (int n = 0; n < N; n++) {\n"
                   "      for (int p = 0; p < HW; p++) {\n"
                   "        acc += x[(n * C + c) * HW + p];\n"
                   "      }\n"
                   "    }\n"
                   "    mean[c] = acc / (N * HW);\n"
                   "  }\n"
                   "}\n",
                   {{"x", {"N", "C", "H", "W"}}, {"mean", {"C"}}},
                   {{{"N", 64}, {"C", 64}, {"H", 56}, {"W", 56}},
                    {{"N", 1}, {"C", 1}, {"H", 1}, {"W", 1}},
                    {{"N", 5}, {"C", 3}, {"H", 17}, {"W", 33}},
                    {{"N", 2}, {"C", 70}, {"H", 7}, {"W", 5}}});
}

/// Mean and reciprocal deviation of each feature over a batch.
[[nodiscard]] inline Task batch_statistics() {
  return idle_task(
      "batch_statistics",
      "//@ launch batch_statistics<<<ceil_div(F, 128), 128>>>(x, mean, scale, B, F)\n"
      "__global__ void batch_statistics(const float* __restrict__ x, float* __restrict__ mean,\n"
      "                                 float* __restrict__ scale, int B, int F) {\n"
      "  unsigned int f = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (f >= F) return;\n"
      "  float sum = 0.0f, squares = 0.0f;\n"
      "  for (int b = 0; b < B; ++b) {\n"
      "    float value = x[(size_t)b * F + f];\n"
      "    sum += value;\n"
      "    squares += value * value;\n"
      "  }\n"
      "  float average = sum / B;\n"
      "  mean[f] = average;\n"
      "  scale[f] = 1.0f / sqrtf(squares / B - average * average + 1e-5f);\n"
      "}\n",
      {{"x", {"B", "F"}}, {"mean", {"F"}}, {"scale", {"F"}}},
      {{{"B", 65536}, {"F", 512}}, {{"B", 2}, {"F", 3}}, {{"B", 777}, {"F", 65}}, {{"B", 33}, {"F", 130}}});
}

/// The maximum over the middle of three dimensions.
[[nodiscard]] inline Task middle_maximum() {
  return idle_task("middle_maximum",
                   "//@ launch middle_maximum<<<(ceil_div(N, 128), B), 128>>>(x, y, B, M, N)\n"
                   "__global__ void middle_maximum(const float* x, float* y, int B, int M, int N) {\n"
                   "  int n = blockIdx.x * 128 + threadIdx.x;\n"
                   "  int b = blockIdx.y;\n"
                   "  if (n < N) {\n"
                   "    float best = x[b * M * N + n];\n"
                   "    for (int m = 1; m < M; ++m) {\n"
                   "      best = fmaxf(best, x[(b * M + m) * N + n]);\n"
                   "    }\n"
                   "    y[b * N + n] = best;\n"
                   "  }\n"
                   "}\n",
                   {{"x", {"B", "M", "N"}}, {"y", {"B", "N"}}},
                   {{{"B", 4}, {"M", 8192}, {"N", 256}},
                    {{"B", 1}, {"M", 1}, {"N", 1}},
                    {{"B", 3}, {"M", 130}, {"N", 35}},
                    {{"B", 2}, {"M", 2}, {"N", 300}}});
}

/// A dot product that threads of several blocks share by a guard around one of them.
[[nodiscard]] inline Task dot_product() {
  return idle_task("dot",
                   "//@ launch dot<<<1, 32>>>(a, b, out, N)\n"
                   "__global__ void dot(const float* a, const float* b, float* out, size_t n) {\n"
                   "  size_t i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                   "  if (i > 0) return;\n"
                   "  float s = 0.0f;\n"
                   "  for (size_t k = 0; k < n; ++k) s += a[k] * b[k];\n"
                   "  out[0] = sqrtf(fabsf(s));\n"
                   "}\n",
                   {{"a", {"N"}}, {"b", {"N"}}, {"out", {"1"}}},
                   {{{"N", 1 << 22}}, {{"N", 1}}, {{"N", 999}}, {{"N", 40000}}});
}

/// A pointwise operation on a tensor in one thread.
[[nodiscard]] inline Task pointwise_in_one_thread() {
  return idle_task(
      "shift_and_scale",
      "//@ launch shift_and_scale<<<1, 1>>>(x, shift, y, B, C, P)\n"
      "__global__ void shift_and_scale(const float* x, const float* shift, float* y, int B, int C,\n"
      "                                int P) {\n"
      "  const float scale = 2.0f;\n"
      "  for (int b = 0; b < B; b++)\n"
      "    for (int c = 0; c < C; c++)\n"
      "      for (int p = 0; p < P; p++) {\n"
      "        int at = (b * C + c) * P + p;\n"
      "        y[at] = x[at] * scale + shift[c];\n"
      "      }\n"
      "}\n",
      {{"x", {"B", "C", "P"}}, {"shift", {"C"}}, {"y", {"B", "C", "P"}}},
      {{{"B", 32}, {"C", 64}, {"P", 1024}},
       {{"B", 1}, {"C", 1}, {"P", 1}},
       {{"B", 3}, {"C", 5}, {"P", 77}},
       {{"B", 2}, {"C", 3}, {"P", 300}}});
}

/// A matrix with few rows times a vector, a thread for each row.
[[nodiscard]] inline Task short_gemv() {
  return idle_task(
      "gemv",
      "//@ launch gemv<<<ceil_div(M, 32), 32>>>(A, x, y, M, K)\n"
      "__global__ void gemv(const float* A, const float* x, float* y, int M, int K) {\n"
      "  int row = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (row < M) {\n"
      "    const float* a = A + row * K;\n"
      "    float dot = 0.0f;\n"
      "    for (int k = 0; k < K; ++k) dot += a[k] * x[k];\n"
      "    y[row] = dot > 0.0f ? dot : 0.01f * dot;\n"
      "  }\n"
      "}\n",
      {{"A", {"M", "K"}}, {"x", {"K"}}, {"y", {"M"}}},
      {{{"M", 8}, {"K", 1 << 20}}, {{"M", 1}, {"K", 1}}, {{"M", 40}, {"K", 1001}}, {{"M", 3}, {"K", 20000}}});
}

/// A small product with a long sum.
[[nodiscard]] inline Task thin_gemm() {
  return idle_task(
      "thin_gemm",
      "//@ launch thin_gemm<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)\n"
      "__global__ void thin_gemm(const float* A, const float* B, float* C, int M, int N, int K) {\n"
      "  int row = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  int col = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (row < M && col < N) {\n"
      "    float acc = 0.0f;\n"
      "    for (int k = 0; k < K; ++k) {\n"
      "      acc += A[row * K + k] * B[k * N + col];\n"
      "    }\n"
      "    C[row * N + col] = acc;\n"
      "  }\n"
      "}\n",
      {{"A", {"M", "K"}}, {"B", {"K", "N"}}, {"C", {"M", "N"}}},
      {{{"M", 16}, {"N", 16}, {"K", 65536}},
       {{"M", 1}, {"N", 1}, {"K", 1}},
       {{"M", 17}, {"N", 3}, {"K", 1001}},
       {{"M", 5}, {"N", 33}, {"K", 300}}});
}

/// Few long rows, each done by a block that combines sums by a function.
[[nodiscard]] inline Task long_rows() {
  return idle_task(
      "row_norms",
      "__device__ float sum_of_block(float value) {\n"
      "  __shared__ float parts[32];\n"
      "  for (int distance = 16; distance > 0; distance /= 2) {\n"
      "    value = value + __shfl_xor_sync(0xffffffffu, value, distance);\n"
      "  }\n"
      "  __syncthreads();\n"
      "  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;\n"
      "  __syncthreads();\n"
      "  value = parts[0];\n"
      "  for (int part = 1; part < blockDim.x / 32; ++part) {\n"
      "    value = value + parts[part];\n"
      "  }\n"
      "  return value;\n"
      "}\n"
      "//@ launch row_norms<<<M, 256>>>(x, norms, M, N)\n"
      "__global__ void row_norms(const float* x, float* norms, int M, int N) {\n"
      "  int i = blockIdx.x;\n"
      "  const int lane = threadIdx.x;\n"
      "  float sum = 0.0f;\n"
      "  for (int j = lane; j < N; j += 256) sum += x[i * N + j] * x[i * N + j];\n"
      "  sum = sum_of_block(sum);\n"
      "  if (lane == 0) norms[i] = sqrtf(sum);\n"
      "}\n",
      {{"x", {"M", "N"}}, {"norms", {"M"}}},
      {{{"M", 8}, {"N", 1 << 20}}, {{"M", 1}, {"N", 1}}, {{"M", 3}, {"N", 1001}}, {{"M", 2}, {"N", 70000}}});
}

/// All of them.
[[nodiscard]] inline std::vector<Task> idle_tasks() {
  return {sum_in_one_thread(), sum_in_one_block(), mean_squared_error(),
          column_sums(),       channel_mean(),     batch_statistics(),
          middle_maximum(),    dot_product(),      pointwise_in_one_thread(),
          short_gemv(),        thin_gemm(),        long_rows()};
}

} // namespace mtmc::testing
