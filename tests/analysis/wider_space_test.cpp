// Where retention, online algorithms, scanning, splitting and strength reduction are offered, and where not.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda_kernels.hpp"

using namespace cuda_kernels;

namespace {

/// Whether an action of this key is legal for a CUDA kernel over `x` and `y` of M rows and N columns.
bool offers(const std::string& source, const std::string& key, std::int64_t M = 4096, std::int64_t N = 1024) {
  auto task = matrix_task(source.c_str(), "x", "y");
  for (auto& size : task.sizes) size.symbols = {{"M", M}, {"N", N}};
  const auto keys = actions_of(task);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// A block for each row, which goes through it with `first` and then with `second`.
std::string two_passes(const std::string& first, const std::string& second) {
  return "//@ launch f<<<M, 256>>>(x, y, N)\n"
         "__global__ void f(const float* x, float* y, int N) {\n"
         "  __shared__ float parts[256];\n"
         "  int i = blockIdx.x;\n"
         "  float sum = 0;\n" +
         first +
         "  parts[threadIdx.x] = sum;\n"
         "  __syncthreads();\n" +
         second + "}\n";
}
const std::string sums_x = "  for (int j = threadIdx.x; j < N; j += 256) { sum += x[i * N + j]; }\n";
const std::string writes_x_less_part =
    "  for (int j = threadIdx.x; j < N; j += 256) { y[i * N + j] = x[i * N + j] - parts[0]; }\n";

} // namespace

TEST_CASE("values are kept where a later pass reads them again, if they are few to a thread") {
  const auto kernel = two_passes(sums_x, writes_x_less_part);
  CHECK(offers(kernel, "retention|f/threads:x"));
  CHECK_FALSE(offers(kernel, "retention|f/threads:x", 64, 1 << 20)); // 4096 values to a thread
  CHECK_FALSE(offers(two_passes(sums_x, "  if (threadIdx.x == 0) { y[i * N] = parts[0]; }\n"),
                     "retention|f/threads:x"));
}

TEST_CASE("two reductions of the same data become one pass, where the first stores nothing") {
  const auto kernel = [](const std::string& second) {
    return "//@ launch f<<<ceil_div(M, 128), 128>>>(x, y, M, N)\n"
           "__global__ void f(const float* x, float* y, int M, int N) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i < M) {\n"
           "    float top = x[i * N];\n"
           "    for (int j = 0; j < N; ++j) { top = fmaxf(top, x[i * N + j]); }\n"
           "    float sum = 0;\n"
           "    for (int j = 0; j < N; ++j) { " +
           second +
           " }\n"
           "    y[i * N] = sum;\n"
           "  }\n"
           "}\n";
  };
  CHECK(offers(kernel("sum += expf(x[i * N + j] - top);"), "online|f/j+j#2"));
  CHECK_FALSE(offers(kernel("sum += j * top;"), "online|f/j+j#2"));                    // other data
  CHECK_FALSE(offers(kernel("y[i * N + j] = x[i * N + j] - top;"), "online|f/j+j#2")); // no reduction
}

TEST_CASE("a recurrence that stores every state is scanned, a sum and independent work are not") {
  const auto kernel = [](const std::string& body) {
    return "//@ launch f<<<ceil_div(M, 128), 128>>>(x, y, M, N)\n"
           "__global__ void f(const float* x, float* y, int M, int N) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i < M) {\n"
           "    float state = 0;\n"
           "    for (int j = 0; j < N; ++j) { " +
           body +
           " }\n"
           "    y[i * N] = state;\n"
           "  }\n"
           "}\n";
  };
  CHECK(offers(kernel("state += x[i * N + j]; y[i * N + j] = state;"), "scanning|f/j"));
  CHECK(offers(kernel("state = 0.5f * state + x[i * N + j]; y[i * N + j] = state;"), "scanning|f/j"));
  CHECK_FALSE(offers(kernel("state += x[i * N + j];"), "scanning|f/j"));
  CHECK_FALSE(offers(kernel("y[i * N + j] = x[i * N + j];"), "scanning|f/j"));
  CHECK_FALSE(
      offers(kernel("state += x[i * N + j]; y[i * N + j] = state;"), "scanning|f/j", 4096, 8)); // short
}

TEST_CASE("a long sum is split over blocks where there are few results") {
  const auto kernel = two_passes(sums_x, "  if (threadIdx.x == 0) { y[i * N] = parts[0]; }\n");
  CHECK(offers(kernel, "splitting|f/j", 16, 1 << 20));
  CHECK_FALSE(offers(kernel, "splitting|f/j", 4096, 1 << 18)); // a block for each is enough
  CHECK_FALSE(offers(kernel, "splitting|f/j", 16, 1024));      // four numbers to a thread
}

TEST_CASE("cheaper functions are sought where dear ones are called") {
  const auto kernel = [](const std::string& value) {
    return "//@ launch f<<<ceil_div(M * N, 256), 256>>>(x, y, M * N)\n"
           "__global__ void f(const float* x, float* y, int n) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i < n) { y[i] = " +
           value + "; }\n}\n";
  };
  CHECK(offers(kernel("powf(x[i], 1.5f)"), "strength_reduction|f/threads:x"));
  CHECK_FALSE(offers(kernel("x[i] * x[i]"), "strength_reduction|f/threads:x"));
}
