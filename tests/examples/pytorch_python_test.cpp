// The example of PyTorch: as far as it goes without a GPU, and a clear message without torch.

#include <mtmc/support/file_io.hpp>

#include "../backend/python/python_for_tests.hpp"
#include "programs.hpp"

using doctest::Contains;
using programs::shown;

TEST_CASE("06_pytorch: without torch it says what to install, and ends with code 3") {
  programs::Tasks files;
  const auto done =
      programs::run("06_pytorch", {"--python", "no-such-python", "--output", files.path("launcher.hpp")});
  CHECK(done.code == 3);
  CHECK(shown(done.error) == Contains("Install Python 3.9 or later with torch and triton"));
  CHECK(done.output.empty());
}

TEST_CASE("06_pytorch: modules are recorded and lowered, and the launcher compiles") {
  const auto options = python_for_tests();
  if (!options) return;
  programs::Tasks files;
  const auto launcher = files.path("launcher.hpp");
  const auto done = programs::run("06_pytorch", {"--python", options->interpreter, "--output", launcher});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(shown(done.output) == Contains("the candidate: 1 steps, 1 kernels\n"));
  CHECK(shown(done.output) == Contains("its weights and results are the problem's\n"));
  CHECK(shown(done.output) == Contains("kernel gated_normal: 256 threads, "));
  CHECK(shown(done.output) == Contains("judged")); // or "not judged: " and why
  const auto main = files.add_text("main.cpp", R"(#include "launcher.hpp"
int main() {
  launcher_gated_normal launcher;
  launcher_gated_normal::Weights weights;
  const float *x = nullptr, *residual = nullptr, *gate = nullptr;
  weights.gain = weights.shift = x;
  float* out = nullptr;
  launcher(nullptr, nullptr, weights, x, residual, gate, out);
}
)");
  const auto compiled =
      mtmc::run_process({.arguments = {"c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                                       "-Wshadow", "-Werror", "-c", main, "-o", files.path("main.o")}});
  CHECK_MESSAGE(compiled.succeeded(), compiled.error);
}
