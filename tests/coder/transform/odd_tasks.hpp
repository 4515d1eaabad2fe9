#pragma once
/// Kernels in styles that the repository's tasks do not show: other types and heads of loops, scalars
/// declared early, branches, triangles, recurrences, buffers used twice.

#include <mtmc/analysis/task_builder.hpp>

#include <string_view>
#include <vector>

namespace mtmc::testing {

/// Matrix product with `std::size_t`, row pointers and no braces.
[[nodiscard]] inline Task row_pointer_gemm() {
  return TaskBuilder{"row_pointer_gemm"}
      .kernel(languages::cpp, R"cpp(#include <cstddef>

void gemm(const float* A, const float* B, float* C, std::size_t M, std::size_t N, std::size_t K) {
  for (std::size_t i = 0; i < M; i++) {
    const float* a = A + i * K;
    float* c = C + i * N;
    for (std::size_t j = 0; j < N; j++) {
      float sum = 0;
      for (std::size_t k = 0; k < K; k++)
        sum += a[k] * B[k * N + j];
      c[j] = sum;
    }
  }
}

//@ launch gemm(A, B, C, M, N, K)
)cpp")
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("C", {"M", "N"})
      .size({{"M", 256}, {"N", 256}, {"K", 256}})
      .check({{"M", 13}, {"N", 67}, {"K", 19}})
      .check({{"M", 1}, {"N", 1}, {"K", 1}})
      .build();
}

/// Matrix product as a perfect nest that adds up in memory, after a nest that clears.
[[nodiscard]] inline Task accumulating_gemm() {
  return TaskBuilder{"accumulating_gemm"}
      .kernel(languages::cpp, R"cpp(void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j)
      C[i * N + j] = 0.0f;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j)
      for (int k = 0; k < K; ++k)
        C[i * N + j] += A[i * K + k] * B[k * N + j];
}

//@ launch gemm(A, B, C, M, N, K)
)cpp")
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("C", {"M", "N"})
      .size({{"M", 256}, {"N", 256}, {"K", 256}})
      .check({{"M", 21}, {"N", 67}, {"K", 19}})
      .check({{"M", 1}, {"N", 1}, {"K", 1}})
      .build();
}

/// Sums and maxima of columns, walking down each column.
[[nodiscard]] inline Task column_statistics() {
  return TaskBuilder{"column_statistics"}
      .kernel(languages::cpp, R"cpp(#include <algorithm>

void columns(const float* in, float* sums, float* peaks, int rows, int cols) {
  for (int c = 0; c < cols; ++c) {
    float sum = 0.0f;
    float peak = in[c];
    for (int r = 0; r < rows; ++r) {
      sum += in[r * cols + c];
      peak = std::max(peak, in[r * cols + c]);
    }
    sums[c] = sum / static_cast<float>(rows);
    peaks[c] = peak;
  }
}

//@ launch columns(in, sums, peaks, rows, cols)
)cpp")
      .shape("in", {"rows", "cols"})
      .shape("sums", {"cols"})
      .shape("peaks", {"cols"})
      .size({{"rows", 512}, {"cols", 512}})
      .check({{"rows", 31}, {"cols", 101}})
      .check({{"rows", 3}, {"cols", 1}})
      .build();
}

/// Sum, largest and smallest element of a vector.
[[nodiscard]] inline Task vector_statistics() {
  return TaskBuilder{"vector_statistics"}
      .kernel(languages::cpp, R"cpp(void statistics(const float* x, float* result, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  float low = x[0], high = x[0];
  for (int i = 1; i < n; ++i) {
    if (x[i] < low) low = x[i];
    high = x[i] > high ? x[i] : high;
  }
  result[0] = sum;
  result[1] = low;
  result[2] = high;
}

//@ launch statistics(x, result, n)
)cpp")
      .shape("x", {"n"})
      .shape("result", {"3"})
      .size({{"n", 1 << 20}})
      .check({{"n", 1001}})
      .check({{"n", 65}})
      .check({{"n", 1}})
      .build();
}

/// Matrix times vector, adding up in memory, scalars declared early.
[[nodiscard]] inline Task matrix_vector() {
  return TaskBuilder{"matrix_vector"}
      .kernel(languages::cpp, R"cpp(void gemv(const float* A, const float* x, float* y, int m, int n) {
  int i, j;
  float scale;
  for (i = 0; i < m; i++) {
    scale = 0.5f;
    y[i] = 0;
    for (j = 0; j < n; j++) {
      y[i] += A[i * n + j] * x[j] * scale;
    }
  }
  float shift;
  for (int k = 0; k < m; ++k) {
    shift = y[k] > 0.0f ? 1.0f : 2.0f;
    y[k] = y[k] + shift;
  }
}

//@ launch gemv(A, x, y, m, n)
)cpp")
      .shape("A", {"m", "n"})
      .shape("x", {"n"})
      .shape("y", {"m"})
      .size({{"m", 512}, {"n", 512}})
      .check({{"m", 37}, {"n", 53}})
      .check({{"m", 1}, {"n", 1}})
      .build();
}

/// Convolution that keeps the image's size: the window is cut off at the border by branches.
[[nodiscard]] inline Task padded_convolution() {
  return TaskBuilder{"padded_convolution"}
      .kernel(languages::cpp,
              R"cpp(void blur(const float* in, const float* weight, float* out, int H, int W) {
  for (int x = 0; x < W; ++x) {
    for (int y = 0; y < H; ++y) {
      float sum = 0.0f;
      for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) {
          const int yy = y + r - 1;
          const int xx = x + s - 1;
          if (yy >= 0 && yy < H && xx >= 0 && xx < W) {
            sum += in[yy * W + xx] * weight[r * 3 + s];
          }
        }
      }
      out[y * W + x] = sum;
    }
  }
}

//@ launch blur(in, weight, out, H, W)
)cpp")
      .shape("in", {"H", "W"})
      .shape("weight", {"3", "3"})
      .shape("out", {"H", "W"})
      .size({{"H", 512}, {"W", 512}})
      .check({{"H", 41}, {"W", 67}})
      .check({{"H", 2}, {"W", 1}})
      .build();
}

/// The lower triangle of A * transpose(A): inner bounds depend on outer loops; steps of 2, `<=`, `!=`.
[[nodiscard]] inline Task triangle() {
  return TaskBuilder{"triangle"}
      .kernel(languages::cpp, R"cpp(void lower(const float* A, float* C, int n, int k) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      float sum = 0.0f;
      for (int p = 0; p != k; ++p) sum += A[i * k + p] * A[j * k + p];
      C[i * n + j] = sum;
    }
    for (int j = i + 1; j < n; j++) C[i * n + j] = 0.0f;
  }
  for (int i = 1; i < n; i += 2) {
    C[i * n] = -C[i * n];
  }
}

//@ launch lower(A, C, n, k)
)cpp")
      .shape("A", {"n", "k"})
      .shape("C", {"n", "n"})
      .size({{"n", 256}, {"k", 256}})
      .check({{"n", 37}, {"k", 29}})
      .check({{"n", 1}, {"k", 1}})
      .build();
}

/// A running sum along rows, then a sweep that uses its own results: little of it may be reordered.
[[nodiscard]] inline Task recurrences() {
  return TaskBuilder{"recurrences"}
      .kernel(languages::cpp, R"cpp(void sweep(const float* in, float* out, int H, int W) {
  for (int y = 0; y < H; ++y) {
    float run = 0.0f;
    for (int x = 0; x < W; ++x) {
      run += in[y * W + x];
      out[y * W + x] = run;
    }
  }
  for (int y = 1; y < H; ++y) {
    for (int x = 1; x < W; ++x) {
      out[y * W + x] = 0.25f * (out[(y - 1) * W + x] + out[y * W + x - 1]) + 0.5f * out[y * W + x];
    }
  }
  for (int y = 0; y < H - 1; ++y)
    for (int x = 0; x < W; ++x)
      out[y * W + x] += 0.125f * out[(y + 1) * W + x];
}

//@ launch sweep(in, out, H, W)
)cpp")
      .shape("in", {"H", "W"})
      .shape("out", {"H", "W"})
      .size({{"H", 256}, {"W", 256}})
      .check({{"H", 23}, {"W", 71}})
      .check({{"H", 1}, {"W", 1}})
      .build();
}

/// Launches that share buffers in awkward ways: in place, one buffer twice, one function twice, a scratch
/// buffer with a neighbour's element.
[[nodiscard]] inline Task shared_buffers() {
  return TaskBuilder{"shared_buffers"}
      .kernel(languages::cpp, R"cpp(#include <cmath>

void scale(const float* in, float* out, int n) {
  const float factor = 0.5f;
  for (int i = 0; i < n; ++i) out[i] = factor * in[i];
}

void mix(const float* a, const float* b, float* out, int count) {
  const float factor = 2.0f;
  for (int k = 0; k < count; ++k) {
    const float left = a[k];
    out[k] = left + factor * std::tanh(b[k]);
  }
}

void shift(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = in[n - 1 - i];
}

//@ scratch half: f32[N]
//@ scratch mixed: f32[N]
//@ launch scale(x, half, N)
//@ launch mix(half, x, mixed, N)
//@ launch mix(mixed, mixed, mixed, N)
//@ launch shift(mixed, half, N)
//@ launch scale(half, y, N)
//@ launch mix(y, x, y, N)
)cpp")
      .shape("x", {"N"})
      .shape("y", {"N"})
      .size({{"N", 1 << 18}})
      .check({{"N", 1001}})
      .check({{"N", 3}})
      .check({{"N", 1}})
      .build();
}

/// All of them.
[[nodiscard]] inline std::vector<Task> odd_tasks() {
  return {row_pointer_gemm(),  accumulating_gemm(), column_statistics(),
          vector_statistics(), matrix_vector(),     padded_convolution(),
          triangle(),          recurrences(),       shared_buffers()};
}

} // namespace mtmc::testing
