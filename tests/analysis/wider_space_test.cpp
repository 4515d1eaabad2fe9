// Where the optimisations that only language models write are offered, and where not.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda_kernels.hpp"

using namespace cuda_kernels;
using namespace mtmc;

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

namespace {

/// A thread for each row, whose body this is.
std::string thread_a_row(const std::string& body) {
  return "//@ launch f<<<ceil_div(M, 128), 128>>>(x, y, M, N)\n"
         "__global__ void f(const float* x, float* y, int M, int N) {\n"
         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  if (i < M) {\n" +
         body + "  }\n}\n";
}

/// The first launch of `blocks` blocks fills `between`, the second one, of one block, reads `read` of it.
std::string two_launches(const std::string& make, const std::string& read, const std::string& second_grid) {
  return "//@ scratch between: f32[M * N]\n"
         "//@ launch make<<<ceil_div(M * N, 256), 256>>>(x, between, M * N)\n"
         "//@ launch use<<<" +
         second_grid +
         ", 256>>>(between, y, M * N)\n"
         "__global__ void make(const float* x, float* between, int n) {\n"
         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  if (i < n) { " +
         make +
         " }\n}\n"
         "__global__ void use(const float* between, float* y, int n) {\n"
         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
         read + "}\n";
}
const std::string everywhere = "ceil_div(M * N, 256)";

/// Whether an action of this key is legal for a C++ kernel over `x` and `y` of M rows and N columns.
bool offers_on_processor(const std::string& source, const std::string& key) {
  auto task = matrix_task(source.c_str(), "x", "y");
  task.kernel.language = languages::cpp;
  Device processor;
  processor.kind = "cpu";
  processor.compute_units = 8;
  const auto structure = AstRegionFinder{}.find(task, task.kernel);
  const auto actions = ActionSpace::extended().legal_actions(structure, processor);
  return std::any_of(actions.begin(), actions.end(),
                     [&](const Action& action) { return action.key() == key; });
}

std::string function_of(const std::string& body) {
  return "//@ launch f(x, y, M, N)\nvoid f(const float* x, float* y, int M, int N) {\n" + body + "}\n";
}

} // namespace

TEST_CASE("an operand is packed where it is read with jumps, again and again") {
  const auto products = [](const std::string& read) {
    return function_of(
        "  for (int i = 0; i < M; ++i)\n    for (int j = 0; j < N; ++j) {\n      float sum = 0;\n"
        "      for (int k = 0; k < N; ++k) sum += x[i * N + k] * x[" +
        read + "];\n      y[i * N + j] = sum;\n    }\n");
  };
  CHECK(offers_on_processor(products("k * N + j"), "packing|f/i"));
  CHECK_FALSE(offers_on_processor(products("j * N + k"), "packing|f/i")); // in order
  CHECK_FALSE(
      offers_on_processor(function_of("  for (int j = 0; j < N; ++j)\n"
                                      "    for (int i = 0; i < M; ++i) y[i * N + j] = x[i * N + j];\n"),
                          "packing|f/j")); // once
}

TEST_CASE("what an inner loop does not change is hoisted, if it is dear") {
  const auto kernel = [](const std::string& factor) {
    return thread_a_row("    for (int j = 0; j < 8; ++j) {\n"
                        "      for (int k = 0; k < N; ++k) { y[i * N + k] = x[i * N + k] * " +
                        factor + "; }\n    }\n");
  };
  CHECK(offers(kernel("expf(x[j])"), "hoisting|f/j"));
  CHECK_FALSE(offers(kernel("x[j]"), "hoisting|f/j"));       // cheap
  CHECK_FALSE(offers(kernel("expf(x[k])"), "hoisting|f/j")); // changes
}

TEST_CASE("an element that a loop reads and writes again becomes a scalar") {
  CHECK(offers(thread_a_row("    for (int j = 0; j < N; ++j) { y[i * N] += x[i * N + j]; }\n"),
               "scalar_replacement|f/j"));
  CHECK_FALSE(offers(thread_a_row("    for (int j = 0; j < N; ++j) { y[i * N + j] += x[i * N + j]; }\n"),
                     "scalar_replacement|f/j"));
  CHECK(offers_on_processor(function_of("  for (int j = 0; j < N; ++j) y[0] += x[j];\n"),
                            "scalar_replacement|f/j"));
}

TEST_CASE("a loop is distributed where one of its results needs the iteration before, and others do not") {
  const std::string scratch = "//@ scratch z: f32[N]\n//@ launch f(x, y, z, N)\n"
                              "void f(const float* x, float* y, float* z, int N) {\n"
                              "  for (int j = 1; j < N; ++j) {\n";
  CHECK(offers_on_processor(scratch + "    y[j] = y[j - 1] + x[j];\n    z[j] = 2.0f * x[j];\n  }\n}\n",
                            "fission|f/j"));
  CHECK_FALSE(
      offers_on_processor(scratch + "    y[j] = x[j];\n    z[j] = 2.0f * x[j];\n  }\n}\n", "fission|f/j"));
  CHECK_FALSE(offers_on_processor(scratch + "    y[j] = y[j - 1] + x[j];\n    z[j] = z[j - 1] * 2;\n  }\n}\n",
                                  "fission|f/j"));
}

TEST_CASE("what one launch makes by no loop of its own another one computes where it cannot be merged") {
  const std::string key = "recomputation|launch:make+launch:use";
  const std::string neighbours = "  if (i > 0 && i < n - 1) { y[i] = between[i - 1] + between[i + 1]; }\n";
  CHECK(offers(two_launches("between[i] = 2 * x[i];", neighbours, everywhere), key));
  CHECK_FALSE(
      offers(two_launches("between[i] = 2 * x[i];", "  if (i < n) { y[i] = between[i]; }\n", everywhere),
             key)); // fusion
  CHECK_FALSE(
      offers(two_launches("float s = 0; for (int k = 0; k < 64; ++k) { s += x[k] * x[i]; } between[i] = s;",
                          neighbours, everywhere),
             key)); // dear
}

TEST_CASE("the last block finishes where a launch of few blocks waits for many") {
  const std::string key = "finishing|launch:make+launch:use";
  const std::string all =
      "  float s = 0;\n  for (int k = i; k < n; k += 256) { s += between[k]; }\n  y[i] = s;\n";
  CHECK(offers(two_launches("between[i] = 2 * x[i];", all, "1"), key));
  auto alone = two_launches("between[i] = 2 * x[i];", all, "1");
  alone.replace(alone.find("<<<1, 256>>>"), 12, "<<<1, 1>>>");
  CHECK(offers(alone, key));
  CHECK_FALSE(offers(two_launches("between[i] = 2 * x[i];", all, everywhere), key));
  CHECK_FALSE(
      offers(two_launches("between[i] = 2 * x[i];", all, "64"), key)); // enough for a launch of its own
}

TEST_CASE("blocks live on where many more of them than fit prepare the same") {
  const auto kernel = two_passes(sums_x, writes_x_less_part);
  CHECK(offers(kernel, "persistence|f/threads:x", 65536, 1024));
  CHECK_FALSE(offers(kernel, "persistence|f/threads:x", 1024, 1024));
  CHECK_FALSE(offers(thread_a_row("    y[i] = x[i];\n"), "persistence|f/threads:x", 1 << 20,
                     8)); // nothing to prepare
}
