// The launchers are compiled and run with the real compiler, as an engine would.

#include <mtmc/loop/launcher.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include "arguments.hpp"

using mtmc_test::argument;

namespace {

mtmc::Task task(std::string name, std::string source, std::vector<mtmc::Argument> arguments) {
  mtmc::Task result;
  result.name = std::move(name);
  result.kernel = {mtmc::languages::cpp, std::move(source)};
  result.arguments = std::move(arguments);
  return result;
}

using enum mtmc::ArgumentRole;
using enum mtmc::DataType;

/// Compiles a launcher and a main that uses it; what the program prints.
std::string run(const std::string& launcher, const std::string& declaration, const std::string& statements) {
  const mtmc::TemporaryFolder folder;
  mtmc::write_file_atomic(folder.path() + "/launcher.cpp", launcher);
  mtmc::write_file_atomic(folder.path() + "/main.cpp",
                          "#include <cstdint>\n#include <cstdio>\n#include <vector>\n" + declaration +
                              ";\nint main() {\n" + statements + "\n}\n");
  std::string output;
  for (const char* standard : {"-std=c++17", "-std=c++20"}) {
    const auto compiled = mtmc::run_process(
        {.arguments = {"c++", standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
                       "-Werror", "-fopenmp", "launcher.cpp", "main.cpp", "-o", "program"},
         .working_folder = folder.path()});
    CHECK_MESSAGE(compiled.succeeded(), compiled.error << launcher);
    const auto ran = mtmc::run_process({.arguments = {folder.path() + "/program"}});
    CHECK_MESSAGE(ran.succeeded(), ran.message);
    output = ran.output;
  }
  return output;
}

} // namespace

TEST_CASE("a launcher calls the launches in order, with scratch memory between them") {
  const auto chain = task("scaled-sum", R"(#include <cstddef>
//@ scratch T: f32[M, ceil_div(N, 2) * 2]
//@ launch scale(A, T, M, N, factor)
//@ launch scaled_sum(T, S, M, N)
void scale(const float* A, float* __restrict__ T, int M, int N, float factor) {
  for (int i = 0; i < M * N; ++i) T[i] = factor * A[i];
}
void scaled_sum(const float* T, float* S, int M, int N) {
  for (int i = 0; i < M; ++i) {
    S[i] = 0;
    for (int j = 0; j < N; ++j) S[i] += T[i * N + j];
  }
}
)",
                          {argument("A", input, f32, {"M", "N"}), argument("S", output, f32, {"M"}),
                           argument("M", scalar, i32, {}), argument("N", scalar, i32, {}),
                           argument("factor", scalar, f32, {}, "2.5")});
  const auto text = mtmc::launcher_source(chain.kernel, chain, 4);
  CHECK(text.find(chain.kernel.source) != std::string::npos);
  CHECK(run(text, "void launch_scaled_sum(const float*, float*, std::int32_t, std::int32_t, float)",
            "float A[6] = {1, 2, 3, 4, 5, 6}, S[2];\n"
            "launch_scaled_sum(A, S, 2, 3, 2.5f);\n"
            "std::printf(\"%g %g\", S[0], S[1]);") == "15 37.5");
}

TEST_CASE(
    "symbols that no scalar holds become parameters, and expressions mean what they mean in launch lines") {
  const auto odd = task("odd", R"(
//@ launch fill(out, max(N, 2*K) - -007 % 4, min(N, K, 3), round_up(N, 8), next_pow2(N), ceil_div(N, K), compute_units)
void fill(long long* out, long long a, int b, unsigned c, double d, long e, const int& f) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = static_cast<long long>(d); out[4] = e; out[5] = f;
}
)",
                        {argument("out", output, i64, {"6"}), argument("count", scalar, i64, {}, "N")});
  const auto text = mtmc::launcher_source(odd.kernel, odd, 12);
  CHECK(run(text, "void launch_odd(std::int64_t*, std::int64_t, std::int64_t K)",
            "std::int64_t out[6];\nlaunch_odd(out, 5, 4);\n"
            "for (const auto value : out) std::printf(\"%lld \", static_cast<long long>(value));") ==
        "11 3 8 8 2 12 ");
}

TEST_CASE(
    "entries may take what the judge lets them take: pointers without const, half floats, arrays of arrays") {
  const auto types = task("types", R"(#include <cstdint>
struct bfloat { std::uint16_t bits; };
//@ launch work(in, half, table, out)
void work(float* in, const bfloat* half, const int (*table)[3], float* out) {
  out[0] = in[0] + static_cast<float>(half[1].bits) + static_cast<float>(table[1][2]);
}
int launch_types = 1;
)",
                          {argument("in", input, f32, {"1"}), argument("half", input, bf16, {"2"}),
                           argument("table", input, i32, {"2", "3"}), argument("out", output, f32, {"1"})});
  const auto text = mtmc::launcher_source(types.kernel, types, 1);
  CHECK(run(text, "void launch_types_(const float*, const void*, const std::int32_t*, float*)",
            "const float in = 0.5f; const std::uint16_t half[2] = {1, 2}; float out = 0;\n"
            "const std::int32_t table[6] = {0, 1, 2, 3, 4, 5};\n"
            "launch_types_(&in, half, table, &out);\nstd::printf(\"%g\", out);") == "7.5");
}

TEST_CASE("OpenMP kernels and names that look like the launcher's own are no trouble") {
  const auto parallel = task(
      "sum", R"(
//@ scratch mtmc_size: f64[compute_units]
//@ launch sum(A, mtmc_size, S, N, compute_units)
void sum(const double* A, double* partial, double* S, long N, int parts) {
#pragma omp parallel for
  for (int p = 0; p < parts; ++p) {
    partial[p] = 0;
    for (long i = p * N / parts; i < (p + 1) * N / parts; ++i) partial[p] += A[i];
  }
  *S = 0;
  for (int p = 0; p < parts; ++p) *S += partial[p];
}
)",
      {argument("A", input, f64, {"N"}), argument("S", output, f64, {"1"}), argument("N", scalar, i64, {})});
  CHECK(run(mtmc::launcher_source(parallel.kernel, parallel, 3),
            "void launch_sum(const double*, double*, std::int64_t)",
            "std::vector<double> A(1000, 0.5); double S = 0;\n"
            "launch_sum(A.data(), &S, 1000);\nstd::printf(\"%g\", S);") == "500");
}

TEST_CASE("what has no launcher says why") {
  auto gpu = task("gpu", "//@ launch k<<<1, 1>>>(tensor_map(A))\n__global__ void k(float* A) {}\n",
                  {argument("A", output, f32, {"1"})});
  gpu.kernel.language = mtmc::languages::cuda;
  CHECK_THROWS_WITH_AS((void)mtmc::launcher_source(gpu.kernel, gpu, 1), doctest::Contains("tensor maps"),
                       mtmc::Error);
  gpu.kernel.language = mtmc::languages::opencl;
  CHECK_THROWS_WITH_AS((void)mtmc::launcher_source(gpu.kernel, gpu, 1),
                       doctest::Contains("C++ and CUDA kernels only, and this one is opencl"), mtmc::Error);
  auto bare = task("bare", "void k() {}\n", {});
  CHECK_THROWS_WITH_AS((void)mtmc::launcher_source(bare.kernel, bare, 1),
                       doctest::Contains("[mtmc.launch.001]"), mtmc::Error);
}

TEST_CASE("a result gives its launch plan and its launcher") {
  mtmc::Result result;
  result.task =
      task("t", "//@ launch k(A, N * compute_units)\nvoid k(float* A, int n) { A[0] = float(n); }\n",
           {argument("A", output, f32, {"N"})});
  result.best = result.task.kernel;
  result.device.compute_units = 4;
  mtmc::ProblemSize size;
  size.symbols = {{"N", 3}};
  CHECK(result.plan(size).launches.at(0).arguments.at(1).integer == 12);
  CHECK(result.launcher_source().find("void launch_t(float* A, std::int64_t N)") != std::string::npos);
  CHECK_FALSE(result.improved());
}
