// The launchers are compiled and run with the real compiler, as an engine would.

#include <mtmc/backend/cpu.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/loop/result.hpp>
#include <mtmc/support/elf.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/sha256.hpp>
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

/// Strict, as engines have it.
const std::vector<std::string> strict{"-O1",          "-Wall",    "-Wextra", "-Wpedantic",
                                      "-Wconversion", "-Wshadow", "-Werror"};

mtmc::ProcessResult compile(const mtmc::TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> command{"c++", "-std=c++17"};
  command.insert(command.end(), strict.begin(), strict.end());
  command.insert(command.end(), more.begin(), more.end());
  return mtmc::run_process({.arguments = command, .working_folder = folder.path()});
}

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
  CHECK(text.find(chain.kernel.source.substr(chain.kernel.source.find("//@ scratch"))) != std::string::npos);
  CHECK(run(text, "void launch_scaled_sum(const float*, float*, std::int32_t, std::int32_t, float)",
            "float A[6] = {1, 2, 3, 4, 5, 6}, S[2];\n"
            "launch_scaled_sum(A, S, 2, 3, 2.5f);\n"
            "std::printf(\"%g %g\", S[0], S[1]);") == "15 37.5");
}

TEST_CASE("a launcher fills scratch memory of zeros in every call, before it is used") {
  const auto counted = task(
      "counted", R"(
//@ scratch tickets: i32[N] zero
//@ launch copy(A, S, N)
//@ launch count(tickets, S, N)
void copy(const float* A, float* S, int N) {
  for (int i = 0; i < N; ++i) S[i] = A[i];
}
void count(int* tickets, float* S, int N) {
  for (int i = 0; i < N; ++i) S[i] += static_cast<float>(++tickets[i]);
}
)",
      {argument("A", input, f32, {"N"}), argument("S", output, f32, {"N"}), argument("N", scalar, i32, {})});
  const auto text = mtmc::launcher_source(counted.kernel, counted, 4);
  CHECK(run(text, "void launch_counted(const float*, float*, std::int32_t)",
            "float A[2] = {1, 2}, S[2];\n"
            "for (int i = 0; i < 3; ++i) launch_counted(A, S, 2);\n"
            "std::printf(\"%g %g\", S[0], S[1]);") == "2 3");
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

TEST_CASE("nothing of a kernel but its launcher can be seen from outside") {
  // Two kernels of one name, with types, functions and templates of one name; the engine has them all, too.
  const auto steps = [](const std::string& name, const std::string& factor) {
    return task(
        name,
        "#include <cmath>\nstruct Tile {\n  float value;\n  float get() { return " + factor +
            " * value; }\n};\ntemplate <class T> T twice(T value) { return " + factor +
            " * value; }\ninline float helped(float value) { return " + factor +
            " + value; }\nextern \"C\" {\nfloat helper(float value);\nint kept = 0;\n}\n"
            "extern \"C\"\ndouble hypot(double, double);\n"
            "extern \"C\" __attribute__((visibility(\"default\"))) void step(const float* A, float* B, int "
            "N) "
            "{\n  for (int i = 0; i < N; ++i) {\n    Tile tile{A[i]};\n    B[i] = tile.get() + "
            "twice(1.0f) + helped(0) + ::helper(static_cast<float>(hypot(3, 4)));\n  }\n}\nextern \"C\" "
            "float helper(float value) { return " +
            factor + " * value; }\n//@ launch step(A, B, N)\n",
        {argument("A", input, f32, {"N"}), argument("B", output, f32, {"N"}),
         argument("N", scalar, i32, {})});
  };
  const mtmc::TemporaryFolder folder;
  for (const auto& [name, factor] : {std::pair{"one", "10"}, std::pair{"two", "20"}}) {
    const auto made = steps(name, factor);
    const auto path = folder.path() + '/' + name;
    mtmc::write_file_atomic(path + ".cpp", mtmc::launcher_source(made.kernel, made, 1));
    mtmc::write_file_atomic(path + ".hpp", mtmc::launcher_header(made.kernel, made));
  }
  mtmc::write_file_atomic(folder.path() + "/main.cpp", R"(#include "one.hpp"
#include "two.hpp"
#include "one.hpp"
#include <cstdio>
struct Tile {
  float value;
  float get() { return value; }
};
template <class T> T twice(T value) { return value; }
inline float helped(float value) { return value; }
extern "C" float helper(float value) { return value; }
extern "C" int kept;
int kept = 0;
extern "C" void step(float* B) {
  Tile tile{1};
  *B = tile.get() + twice(1.0f) + helped(1) + helper(1);
}
int main() {
  const float A[1] = {2};
  float one[1], two[1], own[1];
  launch_one(A, one, 1);
  launch_two(A, two, 1);
  step(own);
  std::printf("%g %g %g", static_cast<double>(one[0]), static_cast<double>(two[0]), static_cast<double>(own[0]));
}
)");
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"one.cpp", "two.cpp", "main.cpp"}, {"main.cpp", "two.cpp", "one.cpp"}}) {
    std::vector<std::string> more{"-O0", "-o", "program"};
    more.insert(more.end(), order.begin(), order.end());
    const auto compiled = compile(folder, more);
    REQUIRE_MESSAGE(compiled.succeeded(), compiled.error << mtmc::read_file(folder.path() + "/one.cpp"));
    CHECK(mtmc::run_process({.arguments = {folder.path() + "/program"}}).output == "90 180 4");
  }
  // Of the launcher itself there is one symbol for the linker.
  REQUIRE(compile(folder, {"-c", "one.cpp", "-o", "one.o"}).succeeded());
  const auto file = mtmc::read_elf(mtmc::read_file(folder.path() + "/one.o"));
  REQUIRE(file);
  std::vector<std::string> global;
  for (const auto& symbol : file->symbols)
    if (symbol.defined() && symbol.binding != STB_LOCAL) global.push_back(symbol.name);
  CHECK(global == std::vector<std::string>{"_Z10launch_onePKfPfi"});
}

TEST_CASE("in its namespace a kernel means what it meant without") {
  // Headers under conditions and behind a guard, macros that are defined anew, overloads of the libraries'
  // functions, entries with names of the C library.
  const auto odd = task(
      "odd", R"(#ifndef ODD_KERNEL
#define ODD_KERNEL
#pragma once
#define WIDTH 4
#if WIDTH > 2
#include <cmath>
#include <cstdlib> /* for abs
                      of integers */
#else
#include <there_is_no_such_header>
#endif
#undef WIDTH
#define WIDTH 8
#define EXPORT extern "C"
struct Pair { float a, b; };
static Pair abs(Pair p) { return {p.a < 0 ? -p.a : p.a, p.b < 0 ? -p.b : p.b}; }
//@ launch kill(A, B, N)
EXPORT void kill(const float* A, float* B, int N) {
  const Pair pair = abs(Pair{A[0], A[1]});
  B[0] = pair.a + pair.b;
  B[1] = static_cast<float>(abs(-N) + WIDTH);
  B[2] = static_cast<float>(std::sqrt(16.0));
}
//@ launch malloc(B, N)
extern "C" void malloc(float* B, long N) { B[3] = static_cast<float>(N); }
#endif
)",
      {argument("A", input, f32, {"N"}), argument("B", output, f32, {"N"}), argument("N", scalar, i32, {})});
  // The C library's malloc is known to <cstdlib>, so this is no kernel that the judge would take; the
  // launcher has no trouble with it.
  CHECK(run(mtmc::launcher_source(odd.kernel, odd, 1), "void launch_odd(const float*, float*, std::int32_t)",
            "const float A[4] = {-1, -2, 0, 0}; float B[4];\nlaunch_odd(A, B, 4);\n"
            "std::printf(\"%g %g %g %g\", B[0], B[1], B[2], B[3]);") == "3 12 4 4");
}

TEST_CASE("the head says what was proved, with what, and how to compile") {
  const auto made =
      task("t", "//@ launch k(A)\nvoid k(float* A) { A[0] = 1; }\n", {argument("A", output, f32, {"1"})});
  mtmc::LauncherEvidence evidence{
      .compile_command = "/usr/bin/c++ -fPIC -O3 -march=native",
      .seconds = 1.14e-3,
      .compiler = "g++ (Debian 12.2.0) 12.2.0",
      .device = "Some CPU",
      .arch = "x86-64 avx2",
      .speed_up = mtmc::SpeedUp{.value = 2.074, .low = 2.011, .high = 2.126},
      .verified_sizes = {{.symbols = {{"M", 1024}, {"N", 2}}}, {.symbols = {{"M", 3}}}}};
  auto head = "// t\n//\n"
              "// Compile:     /usr/bin/c++ -fPIC -O3 -march=native -c launcher.cpp\n"
              "// Compiler:    g++ (Debian 12.2.0) 12.2.0\n"
              "// Device:      Some CPU (x86-64 avx2)\n"
              "// Speed-up:    2.07x [2.01, 2.13] over the start kernel, at 95 % confidence\n"
              "// Time:        1.14 ms a call\n"
              "// Verified at: M=1024 N=2; M=3\n"
              "// Kernel:      " +
              made.kernel.id() + "\n// Written by:  mtmc " + mtmc::version_string + "\n";
  CHECK(mtmc::launcher_source(made.kernel, made, 1, evidence).substr(0, head.size()) == head);
  const auto header = mtmc::launcher_header(made.kernel, made, evidence);
  CHECK(header.find("// Speed-up:    2.07x") != std::string::npos);
  CHECK(header.find("#pragma once") != std::string::npos);
  CHECK(header.find("void launch_t(float* A);\n") != std::string::npos);
  // No text of a task or a machine gets out of its comment.
  evidence.device = "CPU\nint clash; \\";
  evidence.arch.clear();
  CHECK(mtmc::launcher_source(made.kernel, made, 1, evidence).find("// Device:      CPU int clash;\n") !=
        std::string::npos);
  CHECK(mtmc::launcher_source(made.kernel, made, 1).find("Speed-up") == std::string::npos);
}

TEST_CASE("the head names the binary that was judged, and no binary goes into a C++ kernel's launcher") {
  const auto made =
      task("t", "//@ launch k(A)\nvoid k(float* A) { A[0] = 1; }\n", {argument("A", output, f32, {"1"})});
  mtmc::LauncherEvidence evidence{.binary_hash = mtmc::sha256_hex("a shared object")};
  const auto line = "// Judged:      binary of SHA-256 " + evidence.binary_hash + "\n";
  CHECK(mtmc::launcher_source(made.kernel, made, 1, evidence).find(line) != std::string::npos);
  CHECK(mtmc::launcher_header(made.kernel, made, evidence).find(line) != std::string::npos);
  CHECK(mtmc::launcher_source(made.kernel, made, 1).find("Judged") == std::string::npos);
  evidence.binary = mtmc::ProgramBinary{"a shared object", {"k"}};
  CHECK_THROWS_WITH_AS((void)mtmc::launcher_source(made.kernel, made, 1, evidence),
                       doctest::Contains("only the launcher of a CUDA kernel can hold a binary"),
                       mtmc::Error);
}

TEST_CASE("a launcher of threads does not compile without them") {
  const auto with = [](const std::string& body) {
    return task("t", "//@ launch k(A)\n" + body, {argument("A", output, f32, {"8"})});
  };
  for (const auto& made :
       {with("void k(float* A) {\n#pragma omp parallel for\n  for (int i = 0; i < 8; ++i) A[i] = 1;\n}\n"),
        with("void k(float* A) {\n  _Pragma(\"omp parallel for\")\n  for (int i = 0; i < 8; ++i) A[i] = "
             "1;\n}\n"),
        with("#include <omp.h>\nvoid k(float* A) { A[0] = static_cast<float>(omp_get_max_threads()); }\n")}) {
    const mtmc::TemporaryFolder folder;
    const auto source =
        mtmc::launcher_source(made.kernel, made, 1, {.kernel_environment = "OMP_PROC_BIND=spread"});
    CHECK(source.find("// Link:        with -fopenmp\n// Run with:    OMP_PROC_BIND=spread\n") !=
          std::string::npos);
    mtmc::write_file_atomic(folder.path() + "/launcher.cpp", source);
    const auto alone = compile(folder, {"-Wno-unknown-pragmas", "-c", "launcher.cpp"});
    CHECK_FALSE(alone.succeeded());
    CHECK(alone.error.find("#error") != std::string::npos);
    CHECK(alone.error.find("-fopenmp") != std::string::npos);
    CHECK(compile(folder, {"-fopenmp", "-c", "launcher.cpp"}).succeeded());
  }
  const auto sequential = with("void k(float* A) { A[0] = 1; } // not omp\n");
  CHECK(mtmc::launcher_source(sequential.kernel, sequential, 1).find("_OPENMP") == std::string::npos);
}

TEST_CASE("the command in the head is the judge's: it compiles, and with the flags of the measurement") {
  const mtmc::CpuBackend backend(
      {.flags = {"-std=gnu++20", "-O2", "-fopenmp"}, .extra_flags = {"-DSCALE=(1 + 2)", "-DNAME=\"it's\""}});
  const auto made =
      task("t",
           "//@ launch k(A)\nvoid k(float* A) {\n#pragma omp parallel for\n  for (int i = 0; i < 8; ++i) "
           "A[i] = SCALE + (NAME[2] == '\\'');\n}\n",
           {argument("A", output, f32, {"8"})});
  mtmc::Result result;
  result.task = made;
  result.best = made.kernel;
  result.device = backend.device();
  const auto source = result.launcher_source();
  const mtmc::TemporaryFolder folder;
  mtmc::write_file_atomic(folder.path() + "/launcher.cpp", source);
  mtmc::write_file_atomic(folder.path() + "/launcher.hpp", result.launcher_header());
  mtmc::write_file_atomic(
      folder.path() + "/main.cpp",
      "#include \"launcher.hpp\"\nint main() {\n  float A[8];\n  launch_t(A);\n  return A[7] == "
      "4 ? 0 : 1;\n}\n");
  const std::string title = "// Compile:     ";
  const auto at = source.find(title);
  REQUIRE(at != std::string::npos);
  const auto command = source.substr(at + title.size(), source.find('\n', at) - at - title.size());
  CHECK(command.find(" -fPIC -std=gnu++20 -O2 -fopenmp ") != std::string::npos);
  const auto compiled =
      mtmc::run_process({.arguments = {"sh", "-c", command}, .working_folder = folder.path()});
  REQUIRE_MESSAGE(compiled.succeeded(), compiled.error);
  REQUIRE(compile(folder, {"-fopenmp", "main.cpp", "launcher.o", "-o", "program"}).succeeded());
  CHECK(mtmc::run_process({.arguments = {folder.path() + "/program"}}).succeeded());
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
  CHECK(result.launcher_header().find("void launch_t(float* A, std::int64_t N);") != std::string::npos);
  CHECK_FALSE(result.improved());

  result.evaluation.verdict = mtmc::Verdict::correct;
  result.evaluation.sizes = {{.size = size}};
  result.evaluation.environment = {{"compiler", "cc 1"}, {"compile_command", "cc -O3"}};
  result.device.name = "Toy";
  result.device.arch = "toy-1";
  result.device.software = {{"compiler", "cc 2"}};
  result.speed_up = {.value = 1.5, .low = 1.4, .high = 1.6};
  auto evidence = result.evidence();
  CHECK(evidence.compiler == "cc 1");
  CHECK(evidence.compile_command == "cc -O3");
  CHECK(evidence.device == "Toy");
  CHECK(evidence.arch == "toy-1");
  CHECK(evidence.verified_sizes == std::vector{size});
  CHECK_FALSE(evidence.speed_up); // it is the start kernel
  result.best.source += "// faster\n";
  CHECK(result.evidence().speed_up == result.speed_up);
}
