// Neighbouring threads lie along memory: axes of a launch change places, or the parts of a single number do,
// with the same bits at every size.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "grid_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
/// Kernels whose neighbouring threads jump, each with a result of its own.
const std::vector<std::string> jumping{"square/threads:xy",   "guards/threads:xy", "product/threads:xy",
                                       "deep/threads:xyz",    "turned/threads:x",  "planes/threads:x",
                                       "nested/threads:x",    "counted/threads:x", "subtracted/threads:x",
                                       "unguarded/threads:xy"};
Task launches() {
  return TaskBuilder{"launches"}
      .kernel(languages::cuda,
              R"(//@ launch square<<<(ceil_div(M, 16), ceil_div(N, 16)), (16, 16)>>>(x, square_out, M, N)
//@ launch guards<<<((M + 63) / 64, N), (64, 1)>>>(x, guards_out, M, N)
//@ launch product<<<(ceil_div(M, 16), ceil_div(N, 8)), (16, 8)>>>(x, w, product_out, M, N)
//@ launch deep<<<(ceil_div(C, 4), ceil_div(M, 8), ceil_div(N, 8)), (4, 8, 8)>>>(v, deep_out, M, N, C)
//@ launch turned<<<ceil_div(M * N, 256), 256>>>(x, turned_out, M, N)
//@ launch planes<<<ceil_div(C * M * N, 256), 256>>>(v, planes_out, M, N, C)
//@ launch nested<<<ceil_div(C * M * N, 256), 256>>>(v, nested_out, M, N, C)
//@ launch counted<<<ceil_div(M * N, 256), 256>>>(x, counted_out, M, M * N)
//@ launch subtracted<<<ceil_div(M * N, 256), 256>>>(x, subtracted_out, M, N)
//@ launch unguarded<<<(M, N), (2, 4)>>>(u, unguarded_out, N)
__global__ void square(const float* x, float* square_out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < M && j < N) {
    square_out[i * N + j] = x[i * N + j] * x[i * N + j];
  }
}
__global__ void guards(const float* x, float* guards_out, unsigned M, unsigned N) {
  const unsigned j = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M || j >= N) return;
  guards_out[j + i * N] = x[j + i * N] + j;
}
__global__ void product(const float* x, const float* w, float* product_out, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M) return;
  if (j >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < N; ++k) sum += x[i * N + k] * w[k * N + j];
  product_out[i * N + j] = sum;
}
__global__ void deep(const float* v, float* deep_out, int M, int N, int C) {
  int c = threadIdx.x + blockIdx.x * blockDim.x;
  int i = threadIdx.y + blockIdx.y * blockDim.y;
  int j = threadIdx.z + blockIdx.z * blockDim.z;
  if (c < C && i < M && j < N) deep_out[(c * M + i) * N + j] = v[(c * M + i) * N + j] + c;
}
__global__ void turned(const float* x, float* turned_out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) {
    int i = at % M;
    int j = at / M;
    turned_out[i * N + j] = x[i * N + j] + i;
  }
}
__global__ void planes(const float* v, float* planes_out, int M, int N, int C) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= C * M * N) return;
  int c = at % C;
  int i = (at / C) % M;
  int j = at / (C * M);
  planes_out[(c * M + i) * N + j] = v[(c * M + i) * N + j] + c * 2 + i;
}
__global__ void nested(const float* v, float* nested_out, int M, int N, int C) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  int rest = at / C;
  int c = at % C;
  int i = rest % M;
  int j = rest / M;
  if (at < C * M * N) nested_out[(c * M + i) * N + j] = v[(c * M + i) * N + j] - j;
}
__global__ void counted(const float* x, float* counted_out, int M, long long count) {
  long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (at < count) {
    const int j = at / M;
    const int i = at % M;
    const int N = count / M;
    counted_out[i * N + j] = x[i * N + j] * 2.0f;
  }
}
__global__ void subtracted(const float* x, float* subtracted_out, int M, int N) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < M * N) {
    int j = at / M;
    int i = at - j * M;
    subtracted_out[i * N + j] = x[i * N + j] * 3.0f;
  }
}
__global__ void unguarded(const float* u, float* unguarded_out, int N) {
  int i = blockIdx.x * 2 + threadIdx.x;
  int j = blockIdx.y * 4 + threadIdx.y;
  unguarded_out[i * N * 4 + j] = u[i * N * 4 + j] * 3.0f;
}
)")
      .shape("x", {"M", "N"})
      .shape("w", {"N", "N"})
      .shape("v", {"C", "M", "N"})
      .shape("u", {"2 * M", "4 * N"})
      .shape("square_out", {"M", "N"})
      .shape("guards_out", {"M", "N"})
      .shape("product_out", {"M", "N"})
      .shape("deep_out", {"C", "M", "N"})
      .shape("turned_out", {"M", "N"})
      .shape("planes_out", {"C", "M", "N"})
      .shape("nested_out", {"C", "M", "N"})
      .shape("counted_out", {"M", "N"})
      .shape("subtracted_out", {"M", "N"})
      .shape("unguarded_out", {"2 * M", "4 * N"})
      .size({{"M", 512}, {"N", 1024}, {"C", 64}})
      .check({{"M", 19}, {"N", 53}, {"C", 3}})
      .check({{"M", 5}, {"N", 48}, {"C", 7}})
      .check({{"M", 1}, {"N", 1}, {"C", 1}})
      .build();
}
} // namespace

namespace {
std::string reason(const std::string& line, const std::string& body) {
  const Task task =
      TaskBuilder{"one"}
          .kernel(languages::cuda, "//@ launch one<<<" + line +
                                       ">>>(x, y, M, N)\n"
                                       "__global__ void one(const float* x, float* y, int M, int N) {\n" +
                                       body + "}\n")
          .shape("x", {"M", "N"})
          .shape("y", {"M", "N"})
          .size({{"M", 1 << 20}, {"N", 64}})
          .check({{"M", 5}, {"N", 3}})
          .build();
  const bool flat = line.find(", (") == std::string::npos;
  return grid_draft(task, task.kernel, flat ? "reordering|one/threads:x" : "reordering|one/threads:xy")
      .message;
}
const std::string two_axes = "(ceil_div(M, 16), ceil_div(N, 16)), (16, 16)";
const std::string wide = "(ceil_div(M, 32), ceil_div(N, 8)), (32, 8)";
const std::string numbers = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                            "  int j = blockIdx.y * blockDim.y + threadIdx.y;\n";
const std::string one_axis = "ceil_div(M * N, 256), 256";
const std::string number = "  int at = blockIdx.x * blockDim.x + threadIdx.x;\n";
} // namespace

TEST_CASE("x and another axis change places, on the launch line and where the function numbers its threads") {
  const Task task = launches();
  const std::string source = grid_source_after(task, {"reordering|square/threads:xy"});
  CHECK(has(source, "//@ launch square<<<(ceil_div(N, 32), ceil_div(M, 8)), (32, 8)>>>"));
  CHECK(has(source, "  int i = blockIdx.y * blockDim.y + threadIdx.y;\n"
                    "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n"));
  CHECK(has(grid_source_after(task, {"reordering|square/threads:xy@1"}),
            "square<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>"));
  CHECK(has(grid_source_after(task, {"reordering|deep/threads:xyz"}),
            "deep<<<(ceil_div(N, 32), ceil_div(M, 8), C), (32, 8, 1)>>>"));
}

TEST_CASE("blocks keep their shape where no guard leaves out what is beyond the last result") {
  const std::string source = grid_source_after(launches(), {"reordering|unguarded/threads:xy"});
  CHECK(has(source, "unguarded<<<(N, M), (4, 2)>>>"));
  CHECK(has(source, "  int i = blockIdx.y * 2 + threadIdx.y;\n  int j = blockIdx.x * 4 + threadIdx.x;\n"));
}

TEST_CASE("a single number is taken apart in another order") {
  const Task task = launches();
  CHECK(has(grid_source_after(task, {"reordering|turned/threads:x"}),
            "    int i = at / N;\n    int j = at % N;\n"));
  CHECK(has(grid_source_after(task, {"reordering|planes/threads:x"}),
            "  int c = at / N % C;\n  int i = at / (N * C);\n  int j = at % N;\n"));
  CHECK(has(grid_source_after(task, {"reordering|counted/threads:x"}), "const int j = at % (count / M);"));
  CHECK_FALSE(has(grid_source_after(task, {"reordering|nested/threads:x"}), "int rest"));
}

TEST_CASE("other neighbours compute the same bits, at every size, in every shape") {
  if (!mtmc_test::can_emulate) return;
  const Task task = launches();
  for (int sample = 0; sample < 3; ++sample) {
    CAPTURE(sample);
    std::vector<std::string> keys;
    for (const std::string& region : jumping)
      if (grid_draft(task, task.kernel, "reordering|" + region, sample).kernel)
        keys.push_back("reordering|" + region + '@' + std::to_string(sample));
    CHECK(keys.size() >= (sample == 0 ? jumping.size() : 3));
    if (sample == 0) { // then vectors along the new x
      keys.push_back("vectorization|square/threads:xy");
      keys.push_back("vectorization|turned/threads:x");
    }
    CHECK(grid_difference(task, grid_source_after(task, keys)) == 0);
  }
}

TEST_CASE("another order is offered where it helps") {
  const Task task = launches();
  const auto actions =
      ActionSpace::extended().legal_actions(AstRegionFinder{}.find(task, task.kernel), h100());
  for (const std::string& region : jumping) {
    CAPTURE(region);
    CHECK(std::any_of(actions.begin(), actions.end(),
                      [&](const Action& action) { return action.key() == "reordering|" + region; }));
  }
}

TEST_CASE("what gains nothing or cannot be exchanged is declined with the reason") {
  const std::string copy = "  if (i < M && j < N) y[i * N + j] = x[i * N + j];\n";
  CHECK(has(reason(wide, numbers + "  if (i < M && j < N) y[j * M + i] = x[i * N + j];\n"),
            "no other axis of one"));
  CHECK(has(reason(wide, numbers + "  if (i < M && j < N) y[i] = x[i];\n"),
            "lets neighbouring threads touch neighbouring elements more often"));
  CHECK(has(reason(two_axes, numbers + copy), "more than 65535 blocks along y"));
  CHECK(has(reason(two_axes, numbers + "  if (threadIdx.x > 3) return;\n" + copy),
            "speaks of threads or blocks"));
  CHECK(has(reason(two_axes, numbers + copy + "  __syncthreads();\n"), "the threads wait for each other"));
  CHECK(has(reason(two_axes, "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < M) y[i] = x[i];\n"),
            "no variables number the threads of one along two axes"));
  const auto parts = [](const std::string& statements) {
    return reason(one_axis, number + "  if (at < M * N) {\n" + statements + "  }\n");
  };
  CHECK(has(parts("    int i = at % M;\n    int j = at / M;\n    y[i * N + j] = x[at];\n"),
            "at is used for more than its parts"));
  CHECK(has(parts("    int i = at / N;\n    int j = at % N;\n    y[i * N + j] = x[i * N + j];\n"),
            "no other order of the parts of at"));
  CHECK(has(parts("    int i = at % 7;\n    int j = at / 7;\n    y[i * N + j] = x[i * N + j];\n"),
            "it is not proved that the parts of at take all values"));
  CHECK(has(parts("    y[0] = x[0];\n"), "is not taken apart"));
}
