// Regions of kernels with their facts, and the actions they lead to, checked by hand.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/task_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysed.hpp"

namespace {

const char* const gemm_source = R"(void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += A[i * K + k] * B[k * N + j];
      }
      C[i * N + j] = sum;
    }
  }
}

//@ launch gemm(A, B, C, M, N, K)
)";

mtmc::Task gemm_task(const std::string& source = gemm_source) {
  return mtmc::TaskBuilder{"gemm"}
      .kernel(mtmc::languages::cpp, source)
      .shape("A", {"M", "K"})
      .shape("B", {"K", "N"})
      .shape("C", {"M", "N"})
      .size({{"M", 10}, {"N", 20}, {"K", 30}})
      .build();
}

mtmc::Structure structure_of(const mtmc::Task& task) {
  return mtmc::AstRegionFinder{}.find(task, task.kernel);
}

mtmc::Device cpu() {
  mtmc::Device device;
  device.kind = "cpu";
  device.compute_units = 4;
  return device;
}

std::vector<std::string> actions_of(const mtmc::Task& task) {
  std::vector<std::string> keys;
  for (const auto& action : mtmc::ActionSpace::extended().legal_actions(structure_of(task), cpu()))
    keys.push_back(action.key());
  return keys;
}

std::vector<std::string> paths_of(const mtmc::Structure& structure) {
  std::vector<std::string> paths;
  for (const auto& region : structure.regions) paths.push_back(region.path);
  return paths;
}

using Strides = std::vector<std::optional<std::int64_t>>;

const mtmc::AccessFacts& access(const mtmc::Region& region, const std::string& array) {
  for (const auto& one : region.facts.accesses)
    if (one.array == array) return one;
  throw std::runtime_error("no access to " + array);
}

} // namespace

TEST_CASE("regions of a matrix product") {
  const auto structure = structure_of(gemm_task());
  CHECK(paths_of(structure) ==
        std::vector<std::string>{"gemm", "gemm/i", "gemm/i/j", "gemm/i/j/k", "launch:gemm"});
  CHECK(structure.opaque_statements == 0);
  CHECK(structure.notes.empty());
  CHECK(structure.flops == 2.0 * 10 * 20 * 30);

  const auto& nest = *structure.find_region("gemm/i");
  CHECK(nest.label == "the i, j, k loop nest of gemm");
  CHECK(nest.first_line == 2);
  CHECK(nest.last_line == 10);
  REQUIRE(nest.facts.loops.size() == 3);
  CHECK(nest.facts.loops[0].parallel);
  CHECK(nest.facts.loops[1].parallel);
  CHECK_FALSE(nest.facts.loops[2].parallel);
  CHECK(nest.facts.loops[2].reduction);
  CHECK(nest.facts.loops[0].perfect);
  CHECK_FALSE(nest.facts.loops[1].perfect);
  CHECK(nest.facts.loops[2].innermost);
  CHECK(nest.facts.loops[1].trip_count == 20);
  CHECK(nest.facts.loops[0].upper == "M");
  CHECK(access(nest, "A").subscript == "K*i + k");
  CHECK(access(nest, "A").strides == Strides{30, 0, 1});
  CHECK(access(nest, "B").strides == Strides{0, 1, 20});
  CHECK(access(nest, "C").strides == Strides{20, 1, 0});
  CHECK(access(nest, "C").write);
  REQUIRE(nest.facts.dependences.size() == 1);
  CHECK(nest.facts.dependences[0].variable == "sum");
  CHECK(nest.facts.dependences[0].direction == "==<");
  CHECK(nest.facts.dependences[0].reduction);
  CHECK(nest.facts.reads == std::vector<std::string>{"A", "B"});
  CHECK(nest.facts.writes == std::vector<std::string>{"C"});
  CHECK(nest.facts.interchangeable);
  CHECK(nest.facts.tileable);
  CHECK(nest.facts.vectorizable);
  CHECK(nest.facts.flops == 2.0 * 10 * 20 * 30);
  CHECK(nest.facts.bytes == 4.0 * (2 * 10 * 20 * 30 + 10 * 20));
  CHECK(nest.facts.reuse == doctest::Approx((2.0 * 6000 + 200) / (300 + 600 + 200)));

  const auto& k = *structure.find_region("gemm/i/j/k");
  CHECK(k.label == "the k loop of gemm");
  CHECK(k.facts.loops.size() == 1);
}

TEST_CASE("actions on a matrix product") {
  CHECK(actions_of(gemm_task()) ==
        std::vector<std::string>{"packing|gemm/i", "parallelization|gemm/i", "reordering|gemm/i",
                                 "reordering|gemm/i/j", "rewriting|launch:gemm", "tiling|gemm/i",
                                 "tiling|gemm/i/j", "unrolling|gemm/i", "unrolling|gemm/i/j",
                                 "unrolling|gemm/i/j/k", "vectorization|gemm/i/j/k", "stop"});
}

TEST_CASE("directives that are there are not offered again") {
  std::string source = gemm_source;
  source.insert(source.find("  for (int i"), "#pragma omp parallel for\n");
  source.insert(source.find("      for (int k"), "#pragma omp simd reduction(+ : sum)\n");
  const auto structure = structure_of(gemm_task(source));
  CHECK(structure.find_region("gemm/i")->facts.directives ==
        std::vector<std::string>{"omp parallel for", "omp simd reduction(+ : sum)"});
  for (const auto& key : actions_of(gemm_task(source))) {
    CHECK(key.find("parallelization") == std::string::npos);
    CHECK(key.find("vectorization") == std::string::npos);
  }
}

TEST_CASE("three launches: their flow, and fusing them") {
  const auto task = mtmc::TaskBuilder{"dense"}
                        .kernel(mtmc::languages::cpp, R"(
void linear(const float* X, const float* W, float* Y, int M, int N, int K) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += X[i * K + k] * W[k * N + j];
      Y[i * N + j] = sum;
    }
}
void bias(const float* in, const float* b, float* out, int M, int N) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) out[i * N + j] = in[i * N + j] + b[j];
}
void relu(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) out[i * N + j] = in[i * N + j] > 0.0f ? in[i * N + j] : 0.0f;
}
//@ scratch T: f32[M, N]
//@ scratch U: f32[M, N]
//@ launch linear(X, W, T, M, N, K)
//@ launch bias(T, b, U, M, N)
//@ launch relu(U, Y, M, N)
)")
                        .shape("X", {"M", "K"})
                        .shape("W", {"K", "N"})
                        .shape("b", {"N"})
                        .shape("Y", {"M", "N"})
                        .size({{"M", 8}, {"N", 8}, {"K", 8}})
                        .build();
  const auto structure = structure_of(task);
  REQUIRE(structure.edges.size() == 2);
  CHECK(structure.edges[0].producer == "launch:linear");
  CHECK(structure.edges[0].consumer == "launch:bias");
  CHECK(structure.edges[0].buffer == "T");
  const auto* all = structure.find_region("launch:linear+launch:bias+launch:relu");
  REQUIRE(all != nullptr);
  CHECK(all->label == "the launches of linear, bias and relu");
  CHECK(all->facts.intermediates == std::vector<std::string>{"T", "U"});
  CHECK(all->facts.fusable);
  const auto* launch = structure.find_region("launch:bias");
  REQUIRE(launch != nullptr);
  CHECK(launch->facts.reads == std::vector<std::string>{"T", "b"});
  const auto actions = actions_of(task);
  for (const char* key : {"fusion|launch:linear+launch:bias", "fusion|launch:bias+launch:relu",
                          "fusion|launch:linear+launch:bias+launch:relu"})
    CHECK_MESSAGE(std::count(actions.begin(), actions.end(), key) == 1, std::string(key));
}

TEST_CASE("softmax: neighbouring loops that hand a sum on cannot be fused") {
  const auto task = mtmc::TaskBuilder{"softmax"}
                        .kernel(mtmc::languages::cpp, R"(#include <cmath>
void softmax(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float largest = in[i * N];
    for (int j = 1; j < N; ++j)
      if (in[i * N + j] > largest) largest = in[i * N + j];
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = std::exp(in[i * N + j] - largest);
      sum += out[i * N + j];
    }
    for (int j = 0; j < N; ++j) out[i * N + j] /= sum;
  }
}
//@ launch softmax(in, out, M, N)
)")
                        .shape("in", {"M", "N"})
                        .shape("out", {"M", "N"})
                        .size({{"M", 4}, {"N", 4}})
                        .build();
  const auto structure = structure_of(task);
  CHECK(paths_of(structure) == std::vector<std::string>{"softmax", "softmax/i", "softmax/i/j",
                                                        "softmax/i/j#2", "softmax/i/j#3", "softmax/i/j+j#2",
                                                        "softmax/i/j#2+j#3", "softmax/i/j+j#2+j#3",
                                                        "launch:softmax"});
  const auto& pair = *structure.find_region("softmax/i/j#2+j#3");
  CHECK(pair.kind == mtmc::RegionKind::loop_sequence);
  CHECK(pair.label == "the neighbouring j and j loops of softmax");
  CHECK(pair.facts.intermediates == std::vector<std::string>{"out"});
  CHECK_FALSE(pair.facts.fusable);
  CHECK(structure.find_region("softmax/i")->facts.transcendental);
  CHECK(structure.find_region("softmax/i/j")->facts.branches);
  CHECK(actions_of(task) ==
        std::vector<std::string>{"parallelization|softmax/i", "rewriting|launch:softmax",
                                 "strength_reduction|softmax/i/j#2", "unrolling|softmax/i",
                                 "unrolling|softmax/i/j", "unrolling|softmax/i/j#2",
                                 "unrolling|softmax/i/j#3", "vectorization|softmax/i/j",
                                 "vectorization|softmax/i/j#2", "vectorization|softmax/i/j#3", "stop"});
}

TEST_CASE("neighbouring loops: pairs, the whole run, and the longest fusable part of it") {
  const auto task = mtmc::TaskBuilder{"chain"}
                        .kernel(mtmc::languages::cpp, R"(
void chain(const float* a, float* b, float* c, float* d, int n) {
  for (int i = 0; i < n; ++i) b[i] = a[i];
  for (int i = 0; i < n; ++i) c[i] = b[i];
  for (int i = 0; i < n; ++i) d[i] = c[i];
  for (int i = 0; i < n; ++i) b[i] = d[n - 1 - i];
}
//@ launch chain(a, b, c, d, N)
)")
                        .shape("a", {"N"})
                        .shape("b", {"N"})
                        .shape("c", {"N"})
                        .shape("d", {"N"})
                        .size({{"N", 16}})
                        .build();
  const auto structure = structure_of(task);
  CHECK(structure.find_region("chain/i+i#2")->facts.fusable);
  CHECK_FALSE(structure.find_region("chain/i#3+i#4")->facts.fusable);
  CHECK_FALSE(structure.find_region("chain/i+i#2+i#3+i#4")->facts.fusable);
  REQUIRE(structure.find_region("chain/i+i#2+i#3") != nullptr);
  CHECK(structure.find_region("chain/i+i#2+i#3")->facts.fusable);
}

TEST_CASE("every path of every region leads to nodes of the tree") {
  const auto task = gemm_task();
  const mtmc::SyntaxNode tree = mtmc::parse(task.kernel.source);
  for (const auto& region : structure_of(task).regions)
    CHECK_MESSAGE(!mtmc::locate(tree, region.path).empty(), region.path);
}

TEST_CASE("keys of actions stay when lines shift") {
  CHECK(actions_of(gemm_task()) == actions_of(gemm_task("// a remark\n\n\n" + std::string(gemm_source))));
}

TEST_CASE("what is not understood is counted, noted with its line, and nothing is claimed of it") {
  std::string source = gemm_source;
  source.insert(source.find("      C[i * N + j]"), "      report(i, j);\n");
  const auto task = gemm_task(source);
  const auto structure = structure_of(task);
  CHECK(structure.opaque_statements == 1);
  REQUIRE(structure.notes.size() == 1);
  CHECK(structure.notes[0].line == 8);
  CHECK(structure.notes[0].message.find("line 8") != std::string::npos);
  CHECK(structure.notes[0].message.find("report") != std::string::npos);
  CHECK(structure.find_region("gemm/i")->facts.opaque);
  CHECK_FALSE(structure.find_region("gemm/i")->facts.tileable);
  CHECK_FALSE(structure.find_region("gemm/i/j/k")->facts.opaque);
  for (const auto& key : actions_of(task)) // rewriting the whole claims nothing of its loops
    CHECK((key == "stop" || key == "rewriting|launch:gemm" || key.find("gemm/i/j/k") != std::string::npos));
}

TEST_CASE("indirect accesses have no stride") {
  const auto task = mtmc::TaskBuilder{"gather"}
                        .kernel(mtmc::languages::cpp, R"(
void gather(const float* in, const int* index, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = in[index[i]];
}
//@ launch gather(in, index, out, N)
)")
                        .shape("in", {"N"})
                        .shape("index", {"N"})
                        .shape("out", {"N"})
                        .size({{"N", 16}})
                        .build();
  const auto structure = structure_of(task);
  const auto& loop = *structure.find_region("gather/i");
  CHECK(loop.facts.indirect);
  CHECK(access(loop, "in").strides == Strides{std::nullopt});
  CHECK(access(loop, "out").strides == Strides{1});
  CHECK(loop.facts.loops[0].parallel);
  CHECK(loop.facts.vectorizable);
}

TEST_CASE("malformed and strange texts give a structure, never an exception") {
  auto task = gemm_task();
  const mtmc::AstRegionFinder finder;
  for (const char* text :
       {"", "}", "void f(", "void f() { for (;;) {", "//@ launch", "//@ launch f(", "//@ launch f(a)",
        "void f(int n) { for (int i = 0; i < n; ++i", "#define X\n#if 0\nvoid f() {}\n#endif",
        "template <class T> void f(T* a) { for (int i = 0; i < 3; ++i) a[i] = i; }",
        "void f(float* a) { auto g = [&](int i) { a[i] = 0; }; for (int i = 0; i < 3; ++i) g(i); }",
        "void f(int n) { int a[n]; for (int i = 0; i < n; i++) a[a[i]]++; }",
        "void f(float (*a)[4]) { for (int i = 0; i < 4; ++i) a[i][i] = 0; }", "\xff\xfe\x00 binary \x01"}) {
    task.kernel.source = text;
    const auto structure = finder.find(task, task.kernel);
    CHECK(structure.kernel_id == task.kernel.id());
    (void)mtmc::ActionSpace::extended().legal_actions(structure, cpu());
  }
}

TEST_CASE("a kernel in another family of languages gives a note and no regions") {
  auto task = gemm_task();
  task.kernel = {mtmc::languages::triton, "def f(x): pass\n", {}};
  const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  CHECK(structure.regions.empty());
  REQUIRE(structure.notes.size() == 1);
  CHECK(structure.notes[0].message.find("triton") != std::string::npos);
}

TEST_CASE("CUDA and OpenCL texts give regions") {
  auto task = gemm_task();
  task.kernel = {mtmc::languages::cuda,
                 R"(
__global__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* C, int M, int N, int K) {
  __shared__ float As[16][16];
  __shared__ float Bs[16][16];
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < (K + 15) / 16; ++t) {
    As[threadIdx.y][threadIdx.x] = A[row * K + t * 16 + threadIdx.x];
    Bs[threadIdx.y][threadIdx.x] = B[(t * 16 + threadIdx.y) * N + col];
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}
//@ launch gemm<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>(A, B, C, M, N, K)
)",
                 {}};
  auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  REQUIRE(structure.find_region("gemm/t/k") != nullptr);
  CHECK(structure.find_region("gemm/t/k")->facts.loops[0].trip_count == 16);
  CHECK(structure.find_region("gemm/t/k")->facts.directives == std::vector<std::string>{"unroll"});
  CHECK(structure.find_region("gemm/t")->facts.block_barriers == 2);
  CHECK_FALSE(structure.find_region("gemm/t")->facts.loops[0].reduction); // nothing moves across a barrier
  CHECK(structure.find_region("launch:gemm") != nullptr);
  CHECK(structure.opaque_statements == 0);

  task.kernel = {mtmc::languages::opencl,
                 R"(
__kernel void scale(__global const float* in, __global float* out, const int n) {
  const int i = get_global_id(0);
  for (int k = 0; k < 4; ++k)
    if (4 * i + k < n) out[4 * i + k] = 2.0f * in[4 * i + k];
}
//@ launch scale<<<1, 1>>>(A, C, M)
)",
                 {}};
  structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  REQUIRE(structure.find_region("scale/k") != nullptr);
  CHECK(structure.find_region("scale/k")->facts.loops[0].parallel);
}

TEST_CASE("one function launched twice counts twice") {
  const auto task = mtmc::TaskBuilder{"twice"}
                        .kernel(mtmc::languages::cpp, R"(
void twice(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = 2.0f * in[i];
}
//@ scratch T: f32[N]
//@ launch twice(x, T, N)
//@ launch twice(T, y, N)
)")
                        .shape("x", {"N"})
                        .shape("y", {"N"})
                        .role("x", mtmc::ArgumentRole::input)
                        .role("y", mtmc::ArgumentRole::output)
                        .size({{"N", 100}})
                        .build();
  const auto structure = structure_of(task);
  CHECK(structure.flops == 200);
  CHECK(structure.find_region("twice/i")->facts.flops == 200);
  CHECK(structure.find_region("launch:twice#2")->facts.flops == 100);
  const auto* both = structure.find_region("launch:twice+launch:twice#2");
  REQUIRE(both != nullptr);
  CHECK(both->facts.fusable);
}
