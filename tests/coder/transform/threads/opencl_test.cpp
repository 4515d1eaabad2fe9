// Launches in OpenCL C: the same transformations as in CUDA C++, in the words of OpenCL C.

#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/table.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "opencl_runner.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

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
  for (int sample = 0; sample < 4; ++sample) {
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
  CHECK(has(source,
            "__kernel void product(__global const float* A, __global const float* B, __global float* C, "
            "int M, int N, int K) {\n"
            "  __local __attribute__((aligned(16))) float A_tile[32][36];\n"));
  CHECK(has(source, "  const int first_i = get_group_id(1) * 32;\n"));
  CHECK(has(source, "    barrier(CLK_LOCAL_MEM_FENCE);\n")); // nothing goes through global memory
  check_all_variants(product(), "tiling|product/k", 3);
}

TEST_CASE("work-items make several results each") {
  const std::string source = after(product(), "unrolling|product/threads:xy");
  CHECK(has(source, "  int first_i = get_global_id(1) * 4;\n"));
  CHECK(has(source, "const int i = min(first_i + each_i, M - 1);"));
  check_all_variants(product(), "unrolling|product/threads:xy", 3);
}

TEST_CASE("an array is turned through local memory, in the spelling of the text") {
  const Task task = TaskBuilder{"transpose"}
                        .kernel(languages::opencl, R"(
//@ launch transpose<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(x, y, M, N)
kernel void transpose(global const float* restrict x, global float* restrict y, int M, int N) {
  int j = get_group_id(0) * get_local_size(0) + get_local_id(0), i = get_global_id(1);
  if (i < M && j < N) y[j * M + i] = x[i * N + j];
}
)")
                        .shape("x", {"M", "N"})
                        .shape("y", {"N", "M"})
                        .size({{"M", 1024}, {"N", 1024}})
                        .check({{"M", 45}, {"N", 70}})
                        .check({{"M", 1}, {"N", 1}})
                        .build();
  const std::string source = after(task, "tiling|transpose/threads:xy");
  CHECK(has(source,
            "kernel void transpose(global const float* restrict x, global float* restrict y, int M, int N)"));
  CHECK(has(source, "  local float y_tile[32][33];\n"));
  CHECK(has(source, "for (int at = get_local_id(0); at < 1024; at += 256) {"));
  check_all_variants(task, "tiling|transpose/threads:xy", 3);
}

TEST_CASE("launches are fused, and what they do not touch stays byte for byte") {
  const std::string untouched = R"(
float twice(float v) { return 2 * v; }  // helper
__constant float weights[2] = {0.5f,   2.0f};
__kernel   __attribute__((reqd_work_group_size(64,1,1))) void
other(__global  const float *x, __local float* own) { own[get_local_id( 0 )] = 1; barrier( CLK_LOCAL_MEM_FENCE ); }
)";
  const Task task = TaskBuilder{"chain"}
                        .kernel(languages::opencl, R"(
//@ scratch T: f32[M * N]
//@ launch scale<<<ceil_div(M * N, 256), 256>>>(x, T, M * N)
//@ launch shift<<<ceil_div(M * N, 256), 256>>>(T, y, M * N)
)" + untouched + R"(
__kernel void scale(__global const float *x, __global float *t, const uint n) {
  const uint i = get_global_id(0);
  if (i < n) t[i] = twice(x[i]);
}

__kernel void shift(__global const float *t, __global float *y, const uint n) {
  const uint i = get_global_id(0);
  if (i < n) { y[i] = t[i] + 1.0f; }
}
)")
                        .shape("x", {"M", "N"})
                        .shape("y", {"M", "N"})
                        .role("x", ArgumentRole::input)
                        .role("y", ArgumentRole::output)
                        .size({{"M", 64}, {"N", 64}})
                        .check({{"M", 5}, {"N", 77}})
                        .check({{"M", 1}, {"N", 1}})
                        .build();
  const std::string source = after(task, "fusion|launch:scale+launch:shift");
  CHECK(has(source, untouched));
  CHECK(has(source, "__kernel void scale_shift(__global const float *x, const uint n, __global float *y) {\n"
                    "  const uint i = get_global_id(0);\n"));
  CHECK(has(source, "y[i_2] = T_value + 1.0f;"));
  check_all_variants(task, "fusion|launch:scale+launch:shift", 1);
}

TEST_CASE("functions that add up are found again by the next step, and stay as they are") {
  const std::string kernel = R"(
__kernel void $(__global const float* x, __global float* y, int M, int N) {
  int i = get_global_id(0);
  if (i < M) {
    float total = 0.0f;
    for (int j = 0; j < N; ++j) total += x[i * N + j];
    for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] / total;
  }
}
)";
  const auto named = [&](const std::string& name) {
    std::string text = kernel;
    return text.replace(text.find('$'), 1, name);
  };
  const Task task =
      TaskBuilder{"twice"}
          .kernel(languages::opencl, "//@ scratch T: f32[M, N]\n"
                                     "//@ launch first<<<ceil_div(M, 64), 64>>>(x, T, M, N)\n"
                                     "//@ launch second<<<ceil_div(M, 64), 64>>>(T, y, M, N)\n" +
                                         named("first") + named("second"))
          .shape("x", {"M", "N"})
          .shape("y", {"M", "N"})
          .role("x", ArgumentRole::input)
          .role("y", ArgumentRole::output)
          .size({{"M", 4096}, {"N", 1024}})
          .check({{"M", 5}, {"N", 77}})
          .check({{"M", 1}, {"N", 1}})
          .build();
  const Kernel once{languages::opencl, after(task, "parallelization|first/threads:x"), {}};
  const Draft twice = opencl_draft(task, once, "parallelization|second/threads:x");
  REQUIRE(twice.kernel);
  CAPTURE(twice.kernel->source);
  const std::size_t begin = once.source.find("// Sum of the values"),
                    end = once.source.find("__kernel void second");
  CHECK(has(twice.kernel->source, once.source.substr(begin, end - begin)));
  CHECK(has(twice.kernel->source.substr(twice.kernel->source.find("void second")),
            "total = sum_of_block(total, sum_of_block_parts);"));
  if (OpenClDevice::first() != nullptr) CHECK(opencl_difference(task, twice.kernel->source) < 1e-5);
}

TEST_CASE("a step on a loop of one work-item leaves the rest as it was") {
  const std::string source = after(product(), "unrolling|product/k");
  CHECK(has(source, "  int j = get_global_id(0);\n  int i = get_global_id(1);\n"));
  check_all_variants(product(), "unrolling|product/k", 1);
}

// --------------------------------------------------------------------------------------------------
// The way back from CUDA's words, whoever wrote them: a step of the test's own puts statements in the place
// of a kernel's body, and functions in front of it.

namespace {

Draft written(const std::string& statements, const std::string& before = "", const std::string& source = R"(
//@ launch f<<<N, 64>>>(x, y, N)
__kernel void f(__global const float* x, __global float* y, int N) {
  y[get_global_id(0)] = x[get_global_id(0)];
}
)") {
  const TransformationEntry entry{
      "tiling", [&](const TransformRequest& request) {
        SyntaxNode tree = request.tree;
        SyntaxNode first = parse(before);
        function_body(*find_function(tree, "f")).children = parse_statements(statements);
        tree.children.insert(tree.children.begin() + 1, first.children.begin(), first.children.end());
        return tree;
      }};
  CodingRequest request;
  request.seen.task.kernel = request.seen.kernel = {languages::opencl, source, {}};
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = "tiling";
  request.action.region = "f";
  return TransformCoder{{entry}}.implement(request, {});
}
/// The text after such a step, which the compiler takes, or the reason why there is none.
std::string text_of(const std::string& statements, const std::string& before = "") {
  static const Task task = TaskBuilder{"f"}
                               .kernel(languages::opencl, "//@ launch f<<<N, 64>>>(x, y, N)\n"
                                                          "__kernel void f(__global const float* x, __global "
                                                          "float* y, int N) { y[0] = x[0]; }\n")
                               .shape("x", {"1024 * N"})
                               .shape("y", {"1024 * N"})
                               .size({{"N", 1}})
                               .build();
  const Draft draft = written(statements, before);
  if (!draft.kernel) return "declined: " + draft.message;
  if (OpenClDevice::first() != nullptr) {
    CAPTURE(draft.kernel->source);
    CHECK_NOTHROW((void)OpenClDevice::first()->results(task, draft.kernel->source, task.sizes.front()));
  }
  return draft.kernel->source;
}

} // namespace

TEST_CASE("pointers get the address space of what they point into") {
  CHECK(has(text_of("const float* row = x + 4 * N;\ny[0] = *row;"),
            "  __global const float* row = x + 4 * N;\n"));
  CHECK(has(text_of("__shared__ float tile[64];\nfloat* half_of_it = tile + 32;\ny[0] = half_of_it[0];"),
            "  __local float tile[64];\n  __local float* half_of_it = tile + 32;\n"));
  CHECK(has(text_of("float own[4];\nfloat* p = &own[1];\ny[0] = *p;"), "  float* p = &own[1];\n"));
  CHECK(text_of("float* p;\np = y;\n*p = x[0];") == "declined: it is not known what memory p points into");
  CHECK(has(text_of("y[0] = first(x, N);",
                    "__device__ float first(const float* row, int n) { return row[n - 1]; }"),
            "float first(__global const float* row, int n)"));
}

TEST_CASE("vectors, casts and functions are those of OpenCL C") {
  CHECK(has(
      text_of("const float4 four = reinterpret_cast<const float4*>(x)[threadIdx.x];\n"
              "*reinterpret_cast<float4*>(&y[4 * threadIdx.x]) = make_float4(four.x, four.y, 0.0f, 1.0f);"),
      "  const float4 four = ((__global const float4*)x)[get_local_id(0)];\n"
      "  *(__global float4*)&y[4 * get_local_id(0)] = (float4)(four.x, four.y, 0.0f, 1.0f);\n"));
  CHECK(has(text_of("if (reinterpret_cast<unsigned long long>(x) % 16 == 0) y[0] = static_cast<float>(N);"),
            "if ((unsigned long)x % 16 == 0)\n    y[0] = (float)N;\n"));
  CHECK(has(text_of("y[0] = fmaxf(expf(__ldg(&x[0])), rsqrtf(x[1])) + __expf(x[2]);"),
            "y[0] = fmax(exp(x[0]), rsqrt(x[1])) + native_exp(x[2]);"));
  CHECK(
      has(text_of("for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < N; i += gridDim.x * blockDim.x)\n"
                  "  y[i] = std::max<float>(x[i], 0.0f);"),
          "for (int i = get_global_id(0); i < N; i += get_num_groups(0) * get_local_size(0))\n"
          "    y[i] = max(x[i], 0.0f);\n"));
  CHECK(has(text_of("float sums[4] = {};\ny[0] = sums[0];"), "float sums[4] = {0};"));
}

TEST_CASE("of two types, the smaller one is chosen with ?:") {
  CHECK(has(text_of("const int last = N - 1;\ny[0] = x[min(last, N)];"), "x[min(last, N)]"));
  CHECK(has(text_of("const size_t last = N - 1;\ny[0] = x[min(last, N)];"), "x[last < N ? last : N]"));
}

TEST_CASE("shared memory stands in the outermost block of a kernel, and is handed to functions") {
  const std::string source = text_of("if (N > 0) {\n"
                                     "  __shared__ float tile[64];\n"
                                     "  tile[threadIdx.x] = x[threadIdx.x];\n"
                                     "  __syncthreads();\n"
                                     "  y[threadIdx.x] = both(tile[63]);\n}",
                                     "__device__ float kept(float v) {\n"
                                     "  __shared__ float one;\n  one = v;\n  return one;\n}\n"
                                     "__device__ float both(float v) { return kept(v) + kept(v); }\n");
  CAPTURE(source);
  CHECK(has(source, "float kept(float v, __local float* one) {\n  one[0] = v;\n  return one[0];\n}"));
  CHECK(has(source, "float both(float v, __local float* kept_one) {\n"
                    "  return kept(v, kept_one) + kept(v, kept_one);\n}"));
  CHECK(has(source, "  __local float tile[64];\n"));
  CHECK(source.find("__local float tile[64]") < source.find("if (N > 0)"));
}

TEST_CASE("barriers order global memory where a kernel reads what it writes") {
  CHECK(has(text_of("y[threadIdx.x] = x[0];\n__syncthreads();\ny[0] = y[1] + 1;"),
            "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"));
}

TEST_CASE("work-items without a loop get groups of another size") {
  const Task task = rows("  if (i >= M) return;\n  y[i] = x[i];\n");
  const Draft draft = opencl_draft(task, task.kernel, "parallelization|rows/threads:x");
  REQUIRE(draft.kernel);
  CHECK(has(draft.kernel->source, "//@ launch rows<<<ceil_div(M, 256), 256>>>(x, y, M, N)\n"));
  CHECK(has(draft.kernel->source, "  const int i = get_global_id(0);\n  if (i >= M) return;\n"));
}

TEST_CASE("what OpenCL C lacks is declined with the reason") {
  CHECK(text_of("y[0] = __shfl_xor_sync(0xffffffffu, x[0], 1);") ==
        "declined: OpenCL C has no function __shfl_xor_sync");
  CHECK(text_of("__syncwarp();") == "declined: OpenCL C has no function __syncwarp");
  CHECK(text_of("const auto v = x[0];\ny[0] = v;") == "declined: OpenCL C has no auto");
  CHECK(text_of("const float& v = x[0];\ny[0] = v;") == "declined: OpenCL C has no references");
  CHECK(text_of("const int n = 4;\nfloat a[n];\ny[0] = a[0];") ==
        "declined: OpenCL C has no arrays whose size is a variable, n");
  CHECK(text_of("extern __shared__ float tile[];\ny[0] = tile[0];") ==
        "declined: OpenCL C has no shared memory whose size the launch line gives");
  CHECK(text_of("y[0] = other;") == "declined: OpenCL C has no other");
  CHECK(text_of("y[0] = f2(x[0]);",
                "__device__ float f2(float v) {\n  __shared__ float t[2][2];\n  t[0][0] = v;\n"
                "  return t[0][0];\n}\n") ==
        "declined: OpenCL C has shared memory only in the outermost block of a kernel: t of f2 has two axes");
  const Task hidden = TaskBuilder{"hidden"}
                          .kernel(languages::opencl, R"(
#define COLUMN get_global_id(0)
//@ launch f<<<N, 64>>>(x, y, N)
__kernel void f(__global const float* x, __global float* y, int N) {
  int i = COLUMN;
  if (i < N) { float s = 0; for (int k = 0; k < 9; ++k) s += x[k]; y[i] = s; }
}
)")
                          .shape("x", {"N"})
                          .shape("y", {"N"})
                          .size({{"N", 1024}})
                          .build();
  CHECK(reason(hidden, "unrolling|f/k") == "a macro hides the word get_global_id");
}
