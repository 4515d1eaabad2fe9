// Kernels and their helpers may have names that a library of the process has, too.
#include <mtmc/backend/cpu/own_functions.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace {

/// Of the C library, its mathematical part, OpenMP's, and the C++ library.
const std::vector<std::string> library_names{"step",
                                             "index",
                                             "div",
                                             "time",
                                             "read",
                                             "write",
                                             "kill",
                                             "malloc",
                                             "clone",
                                             "remove",
                                             "advance",
                                             "rand",
                                             "signal",
                                             "select",
                                             "abort",
                                             "free",
                                             "calloc",
                                             "realloc",
                                             "exit",
                                             "open",
                                             "close",
                                             "send",
                                             "recv",
                                             "link",
                                             "pipe",
                                             "dup",
                                             "wait",
                                             "sleep",
                                             "alarm",
                                             "random",
                                             "srand",
                                             "abs",
                                             "labs",
                                             "strcpy",
                                             "strcmp",
                                             "puts",
                                             "printf",
                                             "getenv",
                                             "system",
                                             "raise",
                                             "qsort",
                                             "mmap",
                                             "brk",
                                             "sqrt",
                                             "expf",
                                             "exp",
                                             "logf",
                                             "pow",
                                             "sin",
                                             "fma",
                                             "tanh",
                                             "floor",
                                             "y0",
                                             "j1",
                                             "gamma",
                                             "signgam",
                                             "round",
                                             "frexp",
                                             "dlsym",
                                             "dlopen",
                                             "memchr",
                                             "_exit",
                                             "omp_get_num_threads",
                                             "omp_test",
                                             "omp_get_wtime",
                                             "__gxx_personality_v0"};

std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const auto* const name : {"g++", "clang++"})
    if (!detail::find_program(name, CpuBackendOptions{}.search_path).empty()) found.emplace_back(name);
  return found;
}

/// One function for each name: the i-th writes x[i] + i to y[i].
std::string functions(const std::string& before) {
  std::string text;
  for (std::size_t i = 0; i < library_names.size(); ++i) {
    const auto number = std::to_string(i);
    text += before + "void " + library_names[i] + "(const float* x, float* y, int n) {\n  if (" + number +
            " < n) y[" + number + "] = x[" + number + "] + " + number + ";\n}\n";
  }
  return text;
}

/// Runs a kernel and returns the names of the functions that were not called.
std::vector<std::string> not_called(CpuBackend& backend, const std::string& text) {
  const auto count = library_names.size();
  Bench bench(backend, text, static_cast<std::int64_t>(count));
  std::fill_n(bench.of<float>("x").begin(), count, 0.5F);
  std::fill_n(bench.of<float>("y").begin(), count, -1.0F);
  const auto status = bench.run();
  CHECK_MESSAGE(status.finished(), status.message);
  std::vector<std::string> missed;
  for (std::size_t i = 0; i < count; ++i)
    if (bench.of<float>("y")[i] != 0.5F + static_cast<float>(i)) missed.push_back(library_names[i]);
  return missed;
}

std::vector<Diagnostic> errors_of(CpuBackend& backend, std::string_view text, bool refused) {
  const auto result = compile(backend, vector_task(text));
  CHECK(result.program == nullptr);
  CHECK(result.refused == refused);
  REQUIRE_MESSAGE(!result.diagnostics.empty(), text);
  return result.diagnostics;
}

/// What y[0..3] are after a run of a kernel on x = 1, 2, 3...
std::vector<float> run(CpuBackend& backend, std::string_view text) {
  Bench bench(backend, text, 64);
  auto x = bench.of<float>("x");
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  const auto status = bench.run();
  CHECK_MESSAGE(status.finished(), status.message);
  const auto y = bench.of<float>("y");
  return {y.begin(), y.begin() + 4};
}

} // namespace

TEST_SUITE("own functions") {
  TEST_CASE("an entry is the kernel's own function, whatever else has its name") {
    std::string launches;
    for (const auto& name : library_names) launches += "//@ launch " + name + "(x, y, n)\n";
    for (const auto& compiler : compilers()) {
      CpuBackend backend({.compiler = compiler});
      CAPTURE(compiler);
      for (const char* before :
           {"extern \"C\" ", "", "extern \"C\" __attribute__((visibility(\"default\"))) "})
        CHECK(not_called(backend, launches + functions(before)) == std::vector<std::string>{});
    }
  }

  TEST_CASE("but for the names of what only the compiler calls") {
    for (const std::string name : {"GOMP_barrier", "__cxa_throw", "__kmpc_barrier", "_Unwind_Resume"}) {
      const auto errors = errors_of(shared_backend(),
                                    "extern \"C\" void " + name +
                                        "();\n//@ launch f(x, y, n)\n"
                                        "void f(const float* x, float* y, int n) { y[0] = x[n - 1]; }\n",
                                    true);
      CHECK(errors[0].message == "`" + name + "` is not allowed: only the compiler itself calls it");
      CHECK(errors[0].line == 1);
    }
  }

  TEST_CASE("so is a helper function") {
    for (const auto& compiler : compilers()) {
      CpuBackend backend({.compiler = compiler});
      CAPTURE(compiler);
      auto text = functions("extern \"C\" __attribute__((noinline, visibility(\"default\"))) ") +
                  "//@ launch all(x, y, n)\nvoid all(const float* x, float* y, int n) {\n";
      for (const auto& name : library_names) text += "  " + name + "(x, y, n);\n";
      CHECK(not_called(backend, text + "}\n") == std::vector<std::string>{});
    }
  }

  TEST_CASE("what the compiler knows of the library's function holds for no function of the same type") {
    // It would believe that abort never returns, that two results of malloc are two places, that abs has no
    // effect, and that nothing is left to do once strcmp was called.
    constexpr std::string_view text = R"(
extern "C" {
__attribute__((noinline)) void abort() {}
__attribute__((noinline)) void exit(int) {}
__attribute__((noinline)) void* malloc(unsigned long place) { return reinterpret_cast<void*>(place); }
__attribute__((noinline)) int abs(int value) { return value - 7; }
__attribute__((noinline)) int isdigit(int value) { return value + 40; }
}
//@ launch write(x, y, n)
extern "C" void write(const float* x, float* y, int n) {
  y[0] = x[0];
  abort();
  exit(0);
  auto* once = static_cast<float*>(malloc(reinterpret_cast<unsigned long>(y + 1)));
  auto* again = static_cast<float*>(malloc(reinterpret_cast<unsigned long>(y + 1)));
  *once = 1;
  *again = x[1];
  y[1] = *once;
  y[2] = static_cast<float>(abs(-3));
  y[3] = static_cast<float>(isdigit(2) + 0 * n);
}
)";
    for (const auto& compiler : compilers()) {
      CAPTURE(compiler);
      CpuBackend backend({.compiler = compiler});
      CHECK(run(backend, text) == std::vector<float>{1, 2, -10, 42});
    }
  }

  TEST_CASE("functions that the compiler calls by itself are refused with that reason") {
    for (const auto& compiler : compilers()) {
      CpuBackend backend({.compiler = compiler});
      CAPTURE(compiler);
      for (const std::string name : {"memcpy", "memmove", "memset", "memcmp"}) {
        const auto entry = errors_of(backend,
                                     "//@ launch " + name + "(x, y, n)\nextern \"C\" void " + name +
                                         "(const float* x, float* y, int n) {\n"
                                         "  for (int i = 0; i < n; ++i) y[i] = x[i];\n}\n",
                                     true);
        CHECK(entry.front().message ==
              "the kernel has a function of its own with the symbol `" + name +
                  "`, which the compiler calls by itself wherever it sees fit, and means the C library's");
        CHECK(entry.front().remedy == "Give the function another name");
      }
      // Of C++ they are other functions.
      CHECK(run(backend,
                "//@ launch memcpy(x, y, n)\nvoid memcpy(const float* x, float* y, int n) {\n"
                "  for (int i = 0; i < n; ++i) y[i] = x[i];\n}\n") == std::vector<float>{1, 2, 3, 4});
      const auto builtin =
          errors_of(backend,
                    "//@ launch expf(x, y, n)\nextern \"C\" void expf(const float* x, float* y, "
                    "int n) {\n  for (int i = 0; i < n; ++i) y[i] = __builtin_expf(x[i]);\n}\n",
                    true);
      CHECK(builtin.front().message.find("`expf`") != std::string::npos);
    }
  }

  TEST_CASE("a kernel cannot be called main") {
    const auto errors = errors_of(
        shared_backend(), "\n//@ launch main(x, y, n)\nvoid main(const float*, float*, int) {}\n", false);
    CHECK(errors.size() == 1);
    CHECK(errors.front().line == 2);
    CHECK(errors.front().message ==
          "a kernel cannot be called `main`: to a compiler that is where a program begins");
    // As a function beside the kernel it is nobody's business.
    CHECK(run(shared_backend(),
              "//@ launch f(x, y, n)\nvoid f(const float* x, float* y, int n) {\n"
              "  for (int i = 0; i < n; ++i) y[i] = x[i];\n}\nint main() { return 1; }\n") ==
          std::vector<float>{1, 2, 3, 4});
  }

  TEST_CASE("a conflict with a header that the text includes is the compiler's to report") {
    const auto errors =
        errors_of(shared_backend(),
                  "#include <cstdlib>\n//@ launch div(x, y, n)\n"
                  "extern \"C\" void div(const float* x, float* y, int n) { y[n - 1] = x[0]; }\n",
                  false);
    CHECK(errors.front().severity == Severity::error);
    CHECK(errors.front().message.find("div") != std::string::npos);
  }

  TEST_CASE("functions for real numbers are instructions still where a kernel overloads them") {
    const auto tokens =
        detail::OwnFunctions("struct v {}; v sqrt(v a) { return a; }\nint abs(v) { return 1; }\n"
                             "auto arrow(int) noexcept -> int { return 2; }\n"
                             "float declared(float);\nint used = abs(v{});\n",
                             {{"pow", 1}})
            .flags();
    CHECK(tokens == std::vector<std::string>{"-fno-builtin-abs", "-fno-builtin-arrow", "-fno-builtin-pow"});
  }
}
