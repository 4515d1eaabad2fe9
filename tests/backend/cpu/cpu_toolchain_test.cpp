#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <algorithm>
#include <filesystem>

#include "kernels.hpp"

namespace {

/// What the compiler says about a kernel that must not compile.
std::vector<Diagnostic> errors_of(std::string_view text, CpuBackend& backend = shared_backend()) {
  const auto result = compile(backend, vector_task(text));
  CHECK(result.program == nullptr);
  CHECK_FALSE(result.timed_out);
  REQUIRE(!result.diagnostics.empty());
  CHECK(result.diagnostics.front().severity == Severity::error);
  for (const auto& diagnostic : result.diagnostics)
    CHECK_MESSAGE(diagnostic.message.find("/tmp/mtmc-") == std::string::npos, diagnostic.message);
  return result.diagnostics;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// The C++ compilers of this machine that the library supports.
std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const auto* const name : {"g++", "clang++", "clang++-14"})
    if (!detail::find_program(name, CpuBackendOptions{}.search_path).empty()) found.emplace_back(name);
  return found;
}

} // namespace

TEST_SUITE("compilation") {
  TEST_CASE("an error has its place in the kernel's own text, and a remedy where one is known") {
    const auto errors = errors_of("// a comment\n"
                                  "//@ launch f(y, n)\n"
                                  "void f(float* y, int n) {\n"
                                  "  for (int i = 0; i < n; ++i)\n"
                                  "    y[i] = scale * i;\n"
                                  "}\n");
    CHECK(errors.size() == 1);
    CHECK(errors[0].line == 5);
    CHECK(errors[0].column == 12);
    CHECK(has(errors[0].message, "'scale'"));
    CHECK(has(errors[0].remedy, "Declare it"));
  }

  TEST_CASE("a missing header is named") {
    CHECK(errors_of("//@ launch f(y)\nvoid f(float* y) { std::vector<float> v(3); y[0] = v[1]; }\n")[0]
              .remedy == "Add `#include <vector>`");
    CHECK(errors_of("//@ launch f(y)\nvoid f(float* y) { y[0] = _mm_cvtss_f32(_mm_setzero_ps()); }\n")[0]
              .remedy == "Add `#include <immintrin.h>`");
    CHECK(errors_of("//@ launch f(y)\nvoid f(float* y) { y[0] = std::exp(y[1]); }\n")[0].remedy ==
          "Add `#include <cmath>`");
  }

  TEST_CASE("a header that is not there, an undefined function and an unfinished text are explained") {
    const auto header = errors_of("#include \"mine.h\"\n//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n");
    CHECK(header[0].line == 1);
    CHECK(has(header[0].remedy, "Only the standard library"));
    const auto undefined = errors_of("//@ launch f(y)\nfloat g(float);\nvoid f(float* y) { y[0] = g(1); }\n");
    CHECK(undefined[0].message == "`g(float)` is declared and used but defined nowhere");
    const auto open = errors_of("//@ launch f(y)\nvoid f(float* y) {\n  y[0] = 1;\n");
    CHECK(open.size() == 1);
    CHECK(open[0].line == 3);
    CHECK(has(open[0].message, "ends inside an open brace"));
  }

  TEST_CASE("a launch line must agree with its function") {
    const auto fewer =
        errors_of("//@ launch f(x, y, n, a)\nvoid f(const float* x, float* y, int n) { y[n] = x[n]; }\n");
    CHECK(fewer.size() == 1);
    CHECK(fewer[0].line == 1);
    CHECK(fewer[0].message == "this launch line passes 4 arguments, but `f` has 3 parameters");

    const auto types =
        errors_of("\n//@ launch f(x, y, n, a)\nvoid f(const double* x, float y, float* n, int a) {}\n");
    REQUIRE(types.size() == 4);
    CHECK(types[0].line == 2);
    CHECK(types[0].message ==
          "argument 1 (`x`) is a buffer of f32, so parameter 1 of `f` must be `const float*` or `float*`");
    CHECK(has(types[1].message, "argument 2 (`y`)"));
    CHECK(has(types[2].message, "argument 3 (`n`) is an integer"));
    CHECK(has(types[3].message, "argument 4 (`a`) is a floating-point number"));

    const auto unknown = errors_of("//@ launch gem(y)\nvoid gemm(float* y) { y[0] = 1; }\n");
    CHECK(unknown.size() == 1);
    CHECK(unknown[0].message == "the launch line calls `gem`, which the kernel does not define");
    CHECK(has(unknown[0].remedy, "perhaps `gemm` was meant"));

    const auto generic = errors_of("//@ launch f(y)\ntemplate <class T> void f(T* y) { y[0] = 1; }\n");
    CHECK(generic.size() == 1);
    CHECK(has(generic[0].message, "overloaded or a template"));
    const auto variable = errors_of("//@ launch f(y)\nauto f = [](float* y) { y[0] = 1; };\n");
    CHECK(variable[0].message == "`f` is not an ordinary function");
  }

  TEST_CASE("an error inside a header is reported where the kernel caused it") {
    const auto errors = errors_of("#include <algorithm>\nstruct S {};\n//@ launch f(y)\n"
                                  "void f(float* y) {\n  S s[2];\n  std::sort(s, s + 2);\n  y[0] = 1;\n}\n");
    CHECK(errors[0].line == 6);
    CHECK(has(errors[0].message, "(in <"));
  }

  TEST_CASE("what a GPU has and a CPU has not is refused at the launch line") {
    auto& backend = shared_backend();
    const auto task = vector_task("void f(float* y) {}\n//@ launch f<<<4, 32>>>(y)\n");
    const auto grid = compile(backend, task);
    REQUIRE(grid.diagnostics.size() == 1);
    CHECK(grid.diagnostics[0].line == 2);
    CHECK(has(grid.diagnostics[0].message, "without a grid"));
    auto cuda = vector_task("//@ launch f(y)\n__global__ void f(float* y) {}\n");
    const auto plan = plan_of(cuda, 8);
    cuda.kernel.language = languages::cuda;
    const auto language = backend.compile(cuda.kernel, {.plan = plan}, {});
    CHECK(has(language.diagnostics.at(0).message, "compiles C++, not cuda"));
    CHECK_FALSE(backend.compile(cpp("void f() {}\n"), {}, {}).diagnostics.empty());
  }

  TEST_CASE("a text that takes too long to compile is timed out") {
    const auto task =
        vector_task("//@ launch f(y)\n"
                    "template <int n, int salt> struct Bomb {\n"
                    "  static constexpr unsigned value = Bomb<n - 1, 2 * salt>::value + Bomb<n - 1, 2 * salt "
                    "+ 1>::value;\n"
                    "};\n"
                    "template <int salt> struct Bomb<0, salt> { static constexpr unsigned value = salt; };\n"
                    "void f(float* y) { y[0] = Bomb<22, 1>::value; }\n");
    auto& backend = shared_backend();
    const auto begin = std::chrono::steady_clock::now();
    const auto result = backend.compile(task.kernel, {.plan = plan_of(task, 8), .deadline = in(300ms)}, {});
    for (const auto& diagnostic : result.diagnostics) FAIL_CHECK(diagnostic.message);
    CHECK(result.timed_out);
    CHECK(result.program == nullptr);
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    std::stop_source stop;
    stop.request_stop();
    CHECK(backend.compile(task.kernel, {.plan = plan_of(task, 8)}, stop.get_token()).timed_out);
  }

  TEST_CASE("a text that needs too much memory to compile is an error that says so") {
    const auto task = vector_task("//@ launch f(y)\n#include <algorithm>\n#include <map>\n#include "
                                  "<string>\nvoid f(float* y) { std::sort(y, y + 8); }\n");
    const auto result =
        shared_backend().compile(task.kernel, {.plan = plan_of(task, 8), .memory_limit = 80 << 20}, {});
    CHECK(result.program == nullptr);
    REQUIRE(result.diagnostics.size() == 1);
    CHECK(result.diagnostics[0].message == "the compiler needs more memory than the limit of 80 MiB");
  }

  TEST_CASE("a compiler that somebody kills is asked once more, and what it failed at is not kept") {
    const TemporaryFolder folder;
    const auto compiler = folder.path() + "/compiler";
    const auto kills = folder.path() + "/kills";
    const auto real = detail::find_uncached(detail::find_program("g++", CpuBackendOptions{}.search_path),
                                            CpuBackendOptions{}.search_path);
    write_file_atomic(compiler, "#!/bin/sh\nif [ -s " + kills + " ]; then\n  sed -i 1d " + kills +
                                    "\n  kill -9 $$\nfi\nexec " + real + " \"$@\"\n");
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
    CpuBackend backend({.compiler = compiler, .defences = {.compiler_fence = false}});
    const auto task = vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n");
    CHECK(compile(backend, task).program != nullptr);

    const auto other = vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 2; }\n");
    write_file_atomic(kills, "1\n");
    CHECK(compile(backend, other).program != nullptr);

    const auto third = vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 3; }\n");
    write_file_atomic(kills, "1\n2\n");
    const auto killed = compile(backend, third);
    CHECK(killed.program == nullptr);
    CHECK_FALSE(killed.timed_out);
    REQUIRE(killed.diagnostics.size() == 1);
    CHECK(has(killed.diagnostics[0].message, "lack of memory"));
    CHECK(compile(backend, third).program != nullptr);
  }

  TEST_CASE("a compiler that is missing, is none, or cannot work is an error with the remedy") {
    const auto error_of = [](CpuBackendOptions options) {
      try {
        CpuBackend backend(std::move(options));
        (void)compile(backend, vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n"));
      } catch (const Error& error) {
        return error.id() == error_id::backend_compiler ? std::string(error.what()) : "another error";
      }
      return std::string("no error");
    };
    CHECK(has(error_of({.compiler = "no-such-compiler"}), "tried no-such-compiler"));
    CHECK(has(error_of({.search_path = "/nowhere"}), "tried c++, g++, clang++ in /nowhere"));
    CHECK(has(error_of({.compiler = "true"}), "/true is not GCC"));
    CHECK(has(error_of({.extra_flags = {"-fno-such-flag"}}), "-fno-such-flag"));
    CHECK(has(error_of({.extra_flags = {"-lno-such-library"}}), "no-such-library"));
  }

  TEST_CASE("a private folder that cannot be made is an error") {
    CHECK_THROWS_AS(CpuBackend({.temporary_folder = "/proc/nowhere"}), Error);
  }

  TEST_CASE("every supported compiler gives working programs and the same kind of errors") {
    for (const auto& compiler : compilers()) {
      CAPTURE(compiler);
      CpuBackend backend({.compiler = compiler, .threads = 2});
      try { // a Clang that another package brought along may lack its OpenMP
        (void)compile(backend, vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n"));
      } catch (const Error& error) {
        REQUIRE(compiler != "g++");
        MESSAGE(std::string(error.what()));
        continue;
      }
      CHECK(has(backend.device().software.at("compiler"), "14.0") == has(compiler, "clang"));
      Bench bench(backend,
                  "//@ launch f(x, y, n, a)\n"
                  "void f(const float* __restrict__ x, float* __restrict__ y, int n, float a) {\n"
                  "#pragma omp parallel for\n"
                  "  for (int i = 0; i < n; ++i) y[i] = a * x[i] + 1;\n"
                  "}\n",
                  100'000);
      for (auto& value : bench.of<float>("x")) value = 4;
      for (int i = 0; i < 3; ++i) {
        bench.of<float>("y")[99'999] = 0;
        const auto timed = bench.time();
        REQUIRE_MESSAGE(timed.status.finished(), timed.status.message);
        CHECK(bench.of<float>("y")[99'999] == 3);
      }
      const auto errors =
          errors_of("//@ launch f(y)\n\nvoid f(float* y, int n) {\n  y[0] = m;\n}\n", backend);
      REQUIRE(errors.size() == 2);
      CHECK(errors[0].line == 4);
      CHECK(errors[1].line == 1);
      CHECK(errors[1].message == "this launch line passes 1 argument, but `f` has 2 parameters");
      const auto open = errors_of("//@ launch f(y)\nvoid f(float* y) {\n", backend);
      CHECK(has(open[0].message, "ends inside an open brace"));
    }
  }

  TEST_CASE("warnings come with the program") {
    const auto result =
        compile(shared_backend(),
                vector_task("//@ launch f(y)\nvoid f(float* y) {\n  int unused;\n  y[0] = 1;\n}\n"));
    CHECK(result.program);
    REQUIRE(result.diagnostics.size() == 1);
    CHECK(result.diagnostics[0].severity == Severity::warning);
    CHECK(result.diagnostics[0].line == 3);
  }

  TEST_CASE("a kernel's macros and names do not get into the way of the trampolines") {
    Bench bench(shared_backend(),
                "#define Word nothing at all\n#define Buffer (\n#define slots [\n#define Function\n"
                "namespace { void mtmc_launch(float* y) { y[0] = 5; } }\n"
                "//@ launch mtmc_launch(y)\n");
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == 5);
  }
}
