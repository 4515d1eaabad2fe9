// Threads of pointwise launches do several neighbouring elements each, loaded and stored together: the same
// bits as before, at every size, wherever buffers begin.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// Kernels as people write them, each with a result of its own.
const std::vector<std::string> pointwise_kernels{
    "relu",    "silu_gate", "add_bias",  "scale_rows", "residual", "clamp",  "integers",
    "doubles", "bytes",     "in_place",  "channels",   "shifted",  "masked", "rows",
    "pairs",   "window",    "unguarded", "bits",       "mixed"};
Task pointwise() {
  return TaskBuilder{"pointwise"}
      .kernel(languages::cuda, R"(//@ launch relu<<<ceil_div(M * N, 256), 256>>>(x, relu_out, M * N)
//@ launch silu_gate<<<(M * N + 127) / 128, 128>>>(x, z, silu_out, M, N)
//@ launch add_bias<<<ceil_div(M * N, 256), 256>>>(x, b, bias_out, M, N)
//@ launch scale_rows<<<ceil_div(M * N, 256), 256>>>(x, s, scale_out, M, N)
//@ launch residual<<<ceil_div(M * N, 256), 256>>>(x, z, residual_out, M * N)
//@ launch clamp<<<ceil_div(M * N, 256), 256>>>(x, clamp_out, M * N)
//@ launch integers<<<ceil_div(M * N, 256), 256>>>(k, integers_out, M * N)
//@ launch doubles<<<ceil_div(M * N, 64), 64>>>(d, x, doubles_out, M * N)
//@ launch bytes<<<ceil_div(M * N, 64), 64>>>(q, b, bytes_out, M, N)
//@ launch in_place<<<ceil_div(M * N, 256), 256>>>(w, w, M * N)
//@ launch channels<<<ceil_div(M * N, 256), 256>>>(x, s, channels_out, M, N)
//@ launch shifted<<<ceil_div(M * N, 256), 256>>>(x, shifted_out, M * N, 1)
//@ launch masked<<<ceil_div(M * N, 256), 256>>>(x, z, masked_out, M * N)
//@ launch rows<<<(ceil_div(N, 32), ceil_div(M, 8)), (32, 8)>>>(x, s, rows_out, M, N)
//@ launch pairs<<<ceil_div(M * N, 256), 256>>>(p, pairs_out, M * N)
//@ launch window<<<ceil_div(M * N, 256), 256>>>(x, window_out, M * N)
//@ launch unguarded<<<M, 1024>>>(u, unguarded_out)
//@ launch bits<<<ceil_div(M * 64, 256), 256>>>(u, b, bits_out, M * 64)
//@ launch mixed<<<ceil_div(M * N, 256), 256>>>(x, mixed_out, M, N)
__device__ float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

__global__ void relu(const float* __restrict__ x, float* __restrict__ relu_out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) relu_out[i] = fmaxf(x[i], 0.0f);
}
__global__ void silu_gate(const float* x, const float* z, float* silu_out, int M, int N) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x;
  unsigned int n = M * N;
  if (i >= n)
    return;
  float v = x[i]; // the gate
  silu_out[i] = v * sigmoid(v) * z[i];
}
__global__ void add_bias(const float* x, const float* b, float* bias_out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int col = i % N;
  if (i >= M * N) { return; }
  bias_out[i] = x[i] + b[col];
}
__global__ void scale_rows(const float* x, const float* s, float* scale_out, int M, int N) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (size_t)M * N) {
    int row = i / N;
    int col = i % N;
    scale_out[row * N + col] = x[i] * s[row];
  }
}
__global__ void residual(const float* x, const float* z, float* residual_out, long long n) {
  long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (at < n) {
    residual_out[at] = 0.5f;
    residual_out[at] += x[at];
    residual_out[at] += z[at];
  }
}
__global__ void clamp(const float* x, float* clamp_out, int n) {
  auto i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (n > i) {
    float v = x[i];
    if (v > 0.5f) v = 0.5f;
    if (v < -0.5f) {
      clamp_out[i] = -0.5f;
    } else {
      clamp_out[i] = v;
    }
  }
}
__global__ void integers(const int* k, int* integers_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n - 1) integers_out[i] = k[i] * 3 + i % 7;
}
__global__ void doubles(const double* d, const float* x, double* doubles_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) doubles_out[i] = d[i] * x[i];
}
__global__ void bytes(const signed char* q, const float* b, float* bytes_out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M * N) bytes_out[i] = (float)q[i] * b[i % N];
}
__global__ void in_place(float* w, const float* same, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    if (same[i] < 0.0f) w[i] = 0.1f * same[i];
  }
}
__global__ void channels(const float* x, const float* s, float* channels_out, int M, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < M * N) {
    int w = idx % N;
    int h = (idx / N) % M;
    int c = idx / (N * M);
    channels_out[(c * M + h) * N + w] = x[idx] * s[h] + w;
  }
}
__global__ void shifted(const float* x, float* shifted_out, int n, int offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float* from = x + offset;
  if (i < n) shifted_out[i + offset] = from[i - offset];
}
__global__ void masked(const float* x, const float* z, float* masked_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    masked_out[i] = 0.0f;
    if (x[i] > 0.0f) masked_out[i] = z[i];
  }
}
__global__ void rows(const float* x, const float* s, float* rows_out, int M, int N) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) rows_out[row * N + col] = x[row * N + col] + s[row];
}
__global__ void pairs(const float* p, float* pairs_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    pairs_out[2 * i] = p[2 * i] - p[2 * i + 1];
    pairs_out[2 * i + 1] = p[i * 2 + 1] + p[i * 2];
  }
}
__global__ void window(const float* x, float* window_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float left = i > 0 ? x[i - 1] : 0.0f;
    float right = i + 1 < n ? x[i + 1] : 0.0f;
    window_out[i] = x[i] + 0.25f * (left + right);
  }
}
__global__ void unguarded(const float* u, float* unguarded_out) {
  int i = blockIdx.x * 1024 + threadIdx.x;
  unguarded_out[i] = u[i] * 2.0f;
}
__global__ void bits(const float* u, const float* b, float* bits_out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) bits_out[i] = u[i & 63] + (i >> 6) + u[i / 16];
}
__global__ void mixed(const float* x, float* mixed_out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int row = i / N;
  if (i < M * N && row % 2 == 0) mixed_out[i] = x[i];
  else if (i < M * N) mixed_out[i] = -x[i];
}
)")
      .shape("x", {"M", "N"})
      .shape("z", {"M", "N"})
      .shape("b", {"N"})
      .shape("s", {"M"})
      .shape("k", {"M", "N"})
      .shape("d", {"M", "N"})
      .shape("q", {"M", "N"})
      .shape("p", {"M", "N", "2"})
      .shape("u", {"M", "1024"})
      .shape("w", {"M", "N"})
      .role("w", ArgumentRole::inout)
      .shape("relu_out", {"M", "N"})
      .shape("silu_out", {"M", "N"})
      .shape("bias_out", {"M", "N"})
      .shape("scale_out", {"M", "N"})
      .shape("residual_out", {"M", "N"})
      .shape("clamp_out", {"M", "N"})
      .shape("integers_out", {"M", "N"})
      .shape("doubles_out", {"M", "N"})
      .shape("bytes_out", {"M", "N"})
      .shape("channels_out", {"M", "N"})
      .shape("shifted_out", {"M * N + 1"})
      .shape("masked_out", {"M", "N"})
      .shape("rows_out", {"M", "N"})
      .shape("pairs_out", {"M", "N", "2"})
      .shape("window_out", {"M", "N"})
      .shape("unguarded_out", {"M", "1024"})
      .shape("bits_out", {"M", "64"})
      .shape("mixed_out", {"M", "N"})
      .size({{"M", 1024}, {"N", 4096}})
      .check({{"M", 19}, {"N", 53}})
      .check({{"M", 5}, {"N", 48}})
      .check({{"M", 1}, {"N", 1}})
      .build();
}

/// The action on one of them.
std::string vectorization_of(const std::string& name) {
  return "vectorization|" + name + (name == "rows" ? "/threads:xy" : "/threads:x");
}

/// A launch over N elements of `x` and `y`, the work as given.
Task one(const std::string& work, const std::string& line = "one<<<ceil_div(N, 128), 128>>>(x, y, N)") {
  return TaskBuilder{"one"}
      .kernel(languages::cuda,
              "//@ launch " + line + "\n__global__ void one(float* x, float* y, int N) {\n" + work + "}\n")
      .shape("x", {"N + 8"})
      .shape("y", {"N"})
      .role("y", ArgumentRole::inout)
      .size({{"N", 1 << 20}})
      .check({{"N", 77}})
      .build();
}
std::string reason(const Task& task) {
  return grid_draft(task, task.kernel, "vectorization|one/threads:x").message;
}
const std::string number = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
} // namespace

TEST_CASE("threads do four elements each where addresses allow it, and one by one at the end") {
  const Task task = one(number + "  if (i >= N) return;\n  y[i] = 2.0f * x[i]; // twice\n");
  CHECK(grid_source_after(task, {"vectorization|one/threads:x"}) ==
        R"(//@ launch one<<<ceil_div(ceil_div(N, 4), 128), 128>>>(x, y, N)
__global__ void one(float* x, float* y, int N) {
  int first_i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (first_i < N) {
    const bool aligned = (reinterpret_cast<size_t>(x) | reinterpret_cast<size_t>(y)) % 16 == 0;
    if (aligned && N - first_i >= 4) {
      __align__(16) float x_values[4];
      *reinterpret_cast<float4*>(x_values) = *reinterpret_cast<const float4*>(x + first_i);
      __align__(16) float y_values[4];
      #pragma unroll
      for (int each = 0; each < 4; ++each) {
        y_values[each] = 2.0f * x_values[each]; // twice
      }
      *reinterpret_cast<float4*>(y + first_i) = *reinterpret_cast<const float4*>(y_values);
    } else {
      for (int i = first_i; i < N && i - first_i < 4; ++i) {
        y[i] = 2.0f * x[i]; // twice
      }
    }
  }
}
)");
}

TEST_CASE("vectors of elements give the bits of single ones at every size, in every width") {
  if (!mtmc_test::can_emulate) return;
  const Task task = pointwise();
  for (int sample = 0; sample < 3; ++sample) {
    CAPTURE(sample);
    std::vector<std::string> keys;
    for (const std::string& name : pointwise_kernels) {
      const Draft draft = grid_draft(task, task.kernel, vectorization_of(name), sample);
      if (draft.kernel) keys.push_back(vectorization_of(name) + '@' + std::to_string(sample));
    }
    CHECK(keys.size() >= pointwise_kernels.size() - 3);
    CHECK(grid_difference(task, grid_source_after(task, keys)) == 0);
  }
}

TEST_CASE("rows whose length is a multiple of the width give vectors of biases and one quotient for all") {
  const Task task = pointwise();
  const std::string source =
      grid_source_after(task, {"vectorization|add_bias/threads:x", "vectorization|channels/threads:x"});
  CHECK(has(source, "| reinterpret_cast<size_t>(bias_out)) % 16 == 0 && N % 4 == 0;"));
  CHECK(
      has(source, "*reinterpret_cast<float4*>(b_values) = *reinterpret_cast<const float4*>(b + first_col);"));
  CHECK(has(source, "      int first_w = first_idx % N;\n      int h = first_idx / N % M;\n"));
}

TEST_CASE("pairs of elements are loaded by two threads' work, or by one thread") {
  const Task task = cuda_task("rotary_embedding");
  const std::string four = grid_source_after(task, {"vectorization|rotate/threads:x"});
  CHECK(has(four, "*reinterpret_cast<const float4*>(q + 2 * first_at);"));
  CHECK(has(four, "float b = q_values[2 * each + 1];"));
  const std::string two = grid_source_after(task, {"vectorization|rotate/threads:x@2"});
  CHECK(has(two, "*reinterpret_cast<const float2*>(q + 2 * at);"));
  CHECK(has(two, "<<<ceil_div(T * H * D, 256), 256>>>"));
  if (!mtmc_test::can_emulate) return;
  CHECK(grid_difference(task, four) == 0);
  CHECK(grid_difference(task, two) == 0);
}

TEST_CASE(
    "elements are not loaded where they are only overwritten, nor where it is not sure that they exist") {
  const Task task = pointwise();
  const std::string source =
      grid_source_after(task, {"vectorization|residual/threads:x", "vectorization|clamp/threads:x",
                               "vectorization|masked/threads:x", "vectorization|in_place/threads:x"});
  const auto elements = one(number + "  if (i < N) {\n    y[i] = x[i + 1];\n    x[i] = 0.0f;\n  }\n");
  CHECK(has(grid_source_after(elements, {"vectorization|one/threads:x"}),
            "        y_values[each] = x[i + 1];\n        x[i] = 0.0f;\n"));
  CHECK_FALSE(has(source, "*reinterpret_cast<float4*>(residual_out_values) ="));
  CHECK_FALSE(has(source, "*reinterpret_cast<float4*>(clamp_out_values) ="));
  CHECK(has(source, "masked_out_values[each] = z[i];"));
  CHECK(has(source, "same_values[each] = 0.1f * same_values[each];"));
}

TEST_CASE("eight elements in half precision make 16 bytes") {
  const Task task =
      TaskBuilder{"half"}
          .kernel(languages::cuda,
                  "#include <cuda_fp16.h>\n"
                  "//@ launch relu<<<ceil_div(N, 256), 256>>>(x, y, N)\n"
                  "__global__ void relu(const __half* __restrict__ x, __half* y, int N) {\n" +
                      number + "  if (i < N) y[i] = __float2half(fmaxf(__half2float(x[i]), 0.0f));\n}\n")
          .shape("x", {"N"})
          .shape("y", {"N"})
          .size({{"N", 1 << 20}})
          .build();
  const std::string source = grid_source_after(task, {"vectorization|relu/threads:x"});
  CHECK(has(source, "ceil_div(ceil_div(N, 8), 256)"));
  CHECK(has(source, "__align__(16) __half x_values[8];"));
  CHECK(has(source, "*reinterpret_cast<uint4*>(x_values) = *reinterpret_cast<const uint4*>(x + first_i);"));
}

TEST_CASE("fused launches get vectors, too") {
  const Task task = cuda_task("gemm_bias_gelu");
  const std::string source = grid_source_after(
      task, {"fusion|launch:add_bias+launch:gelu", "vectorization|add_bias_gelu/threads:x"});
  CHECK(has(source, "const float shifted_value = in_values[each] + b_values[each];"));
  if (mtmc_test::can_emulate) CHECK(grid_difference(task, source) == 0);
}

TEST_CASE("vectors are offered for all of them") {
  const Task task = pointwise();
  const auto actions =
      ActionSpace::extended().legal_actions(AstRegionFinder{}.find(task, task.kernel), h100());
  for (const std::string& name : pointwise_kernels) {
    CAPTURE(name);
    CHECK(std::any_of(actions.begin(), actions.end(),
                      [&](const Action& action) { return action.key() == vectorization_of(name); }));
  }
}

TEST_CASE("what cannot be done in vectors is declined with the reason") {
  const auto guarded = [](const std::string& work) {
    return one(number + "  if (i < N) {\n" + work + "  }\n");
  };
  CHECK(has(reason(guarded("    y[N - 1 - i] = x[N - 1 - i];\n")),
            "no access moves by one element from thread to thread, for every element"));
  CHECK(has(reason(guarded("    if (i % 2 == 0) y[i] = x[i + 8];\n")),
            "no access moves by one element from thread to thread, for every element"));
  CHECK_FALSE(reason(guarded("    for (int k = 0; k < 4; ++k) y[i] += x[i + k];\n")).empty());
  CHECK(has(reason(guarded("    if (x[i] > 0.0f) return;\n    y[i] = x[i];\n")),
            "what is done to an element may end the thread"));
  CHECK(has(reason(guarded("    y[i] = x[i] + threadIdx.x;\n")), "speaks of threads or blocks"));
  CHECK(has(reason(guarded("    { float v = x[i]; y[i] = v; }\n    { float v = x[i]; y[i] += v; }\n")),
            "two variables of one are called v"));
  CHECK(has(reason(one(number + "  float v = x[i];\n  if (i < N) y[i] = v;\n")),
            "line 4 touches memory in front of the guard"));
  CHECK(has(reason(one(number + "  if (i < N) y[i] = x[i];\n", "one<<<4096, 256>>>(x, y, N)")),
            "it is not proved that one has as many threads as N"));
  CHECK(has(reason(one(number + "  if (i < N) y[i] = x[i];\n  __syncthreads();\n")),
            "the threads wait for each other"));
  const Task task = guarded("    y[i] = x[i];\n");
  CHECK(has(grid_draft(task, task.kernel, "vectorization|one/threads:x", 3).message, "no further variant"));
}
