// Launches in OpenCL C: the same transformations as in CUDA C++, in the words of OpenCL C.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "opencl_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

bool has(const std::string& source, const std::string& text) {
  return source.find(text) != std::string::npos;
}
/// The text after one step.
std::string after(const Task& task, const std::string& key, int sample = 0) {
  const Draft draft = opencl_draft(task, task.kernel, key, sample);
  if (!draft.kernel) throw std::runtime_error(key + ": " + draft.message);
  return draft.kernel->source;
}
std::string reason(const Task& task, const std::string& key) {
  return opencl_draft(task, task.kernel, key).message;
}

/// C = A B, an element for each work-item.
Task product(const std::string& source = R"(
//@ launch product<<<(ceil_div(N, 8), ceil_div(M, 8)), (8, 8)>>>(A, B, C, M, N, K)
__kernel void product(__global const float* A, __global const float* B, __global float* C, int M, int N, int K) {
  int j = get_global_id(0);
  int i = get_global_id(1);
  if (i < M && j < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
    C[i * N + j] = sum;
  }
}
)") {
  return TaskBuilder{"product"}
      .kernel(languages::opencl, source)
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("C", {"M", "N"})
      .size({{"M", 512}, {"N", 512}, {"K", 512}})
      .check({{"M", 67}, {"N", 35}, {"K", 29}})
      .check({{"M", 1}, {"N", 1}, {"K", 1}})
      .build();
}

/// Rows of N elements in `x`, results in `y`.
Task rows(const std::string& body, const std::string& qualifiers = "__kernel void") {
  return TaskBuilder{"rows"}
      .kernel(languages::opencl, "//@ launch rows<<<ceil_div(M, 64), 64>>>(x, y, M, N)\n" + qualifiers +
                                     " rows(__global float* restrict x, __global float* restrict y, int M, "
                                     "int N) {\n"
                                     "  const int i = get_global_id(0);\n" +
                                     body + "}\n")
      .shape("x", {"M", "N"})
      .role("x", ArgumentRole::inout)
      .shape("y", {"M", "N"})
      .size({{"M", 4096}, {"N", 1024}})
      .check({{"M", 5}, {"N", 77}})
      .check({{"M", 1}, {"N", 1}})
      .build();
}
const std::string softmax_body = R"(  if (i >= M) return;
  float largest = x[i * N];
  for (int j = 1; j < N; ++j) largest = fmax(largest, x[i * N + j]);
  float total = 0.0f;
  for (int j = 0; j < N; ++j) {
    y[i * N + j] = exp(x[i * N + j] - largest);
    total += y[i * N + j];
  }
  for (int j = 0; j < N; ++j) y[i * N + j] /= total;
)";

void check_all_variants(const Task& task, const std::string& key, int at_least) {
  CAPTURE(key);
  int variants = 0;
  for (int sample = 0; sample < 8; ++sample) {
    CAPTURE(sample);
    const Draft draft = opencl_draft(task, task.kernel, key, sample);
    if (!draft.kernel) continue;
    ++variants;
    CAPTURE(draft.kernel->source);
    if (OpenClDevice::first() != nullptr) CHECK(opencl_difference(task, draft.kernel->source) < 1e-5);
  }
  CHECK(variants >= at_least);
}

} // namespace

TEST_CASE("work-items are threads to the analysis: regions, bounds and facts are those of CUDA") {
  const Task task = product();
  const Structure structure = AstRegionFinder{}.find(task, task.kernel);
  const Region* const nest = structure.find_region("product/threads:xy");
  REQUIRE(nest != nullptr);
  REQUIRE(nest->facts.threads.size() == 2);
  CHECK(nest->facts.threads[0].variable == "j");
  CHECK(nest->facts.threads[0].trip_count == 512);
  CHECK(structure.find_region("product/k")->facts.loops[0].reduction);
}

TEST_CASE("a work-group shares the row of a work-item, and adds up through local memory") {
  const Task task = rows(softmax_body, "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void");
  const std::string source = after(task, "parallelization|rows/threads:x");
  CHECK(has(source, "//@ launch rows<<<M, 128>>>(x, y, M, N)\n"));
  CHECK(has(source, "// Sum of the values of all threads of the work-group, for each of them.\n"
                    "float sum_of_block(float value, __local float* parts) {\n"
                    "  const int thread = get_local_id(0);\n"
                    "  parts[thread] = value;\n"
                    "  for (int distance = 64; distance > 0; distance /= 2) {\n"));
  CHECK(has(source, "value = fmax(value, parts[thread + distance]);"));
  CHECK(has(source, "  __local float sum_of_block_parts[128];\n"));
  CHECK(has(source, "reqd_work_group_size(128, 1, 1)")); // as the launch line says
  CHECK(has(source, "  const int i = get_group_id(0);\n  const int lane = get_local_id(0);\n"));
  CHECK(has(source, "  total = sum_of_block(total, sum_of_block_parts);\n"));
  check_all_variants(task, "parallelization|rows/threads:x", 3);
}

TEST_CASE("tiles of a product lie in local memory") {
  const std::string source = after(product(), "tiling|product/k");
  CHECK(has(source, "__kernel void product(__global const float* A, __global const float* B, __global float* C, "
                    "int M, int N, int K) {\n"
                    "  __local __attribute__((aligned(16))) float A_tile[16][68];\n"));
  CHECK(has(source, "  const int first_i = get_group_id(1) * 64;\n"));
  CHECK(has(source, "    barrier(CLK_LOCAL_MEM_FENCE);\n")); // nothing goes through global memory
  check_all_variants(product(), "tiling|product/k", 3);
}

TEST_CASE("work-items make several results each") {
  const std::string source = after(product(), "unrolling|product/threads:xy");
  CHECK(has(source, "  int first_i = get_global_id(1) * 4;\n"));
  CHECK(has(source, "const int i = min(first_i + each_i, M - 1);"));
  check_all_variants(product(), "unrolling|product/threads:xy", 3);
}
