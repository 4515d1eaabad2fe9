#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

TEST_CASE("a transpose is done in tiles of one cache line, neighbouring writes first") {
  const Task task = cpu_task("transpose");
  const std::string source = source_after(task, {"tiling|transpose/i"});
  CHECK(has(source, R"(  // full tiles
  for (int ii = 0; ii <= M - 16; ii += 16) {
    for (int jj = 0; jj <= N - 16; jj += 16) {
      for (int j = jj; j < jj + 16; ++j) {
        for (int i = ii; i < ii + 16; ++i) {
          out[j * M + i] = in[i * N + j];
)"));
  CHECK(has(source, "    // remainder of j\n"));
  CHECK(has(source, "  // remainder of i\n"));
}

TEST_CASE("every variant of every band gives the bits of the start kernel") {
  const std::pair<Task, std::string> bands[] = {{cpu_task("transpose"), "transpose/i"},
                                                {cpu_task("gemm"), "gemm/i"},
                                                {accumulating_gemm(), "gemm/i#2"},
                                                {cpu_task("stencil2d"), "stencil2d/y#2"}};
  for (const auto& band : bands) {
    const Task& task = band.first; // a structured binding cannot be captured, says Clang 14
    CAPTURE(task.name);
    std::vector<std::string> sources;
    for (int sample = 0;; ++sample) {
      const Draft draft = draft_of(task, "tiling|" + band.second, sample);
      if (!draft.kernel) break;
      sources.push_back(draft.kernel->source);
    }
    CHECK(sources.size() >= 4);
    const KernelRunner runner{task, sources};
    for (const ProblemSize& size : task.sizes)
      for (std::size_t k = 1; k <= sources.size() && size.weight == 0; ++k)
        CHECK(runner.difference(k, size) == 0);
  }
}

TEST_CASE("the last variant keeps one set of loops with minima as bounds") {
  const Task task = cpu_task("transpose");
  const std::string source = source_after(task, {"tiling|transpose/i@4"});
  CHECK(has(source, "#include <algorithm>\n"));
  CHECK(has(source, "i < std::min<int>(ii + 16, M)"));
  CHECK(!has(source, "remainder"));
}

TEST_CASE("bands that may not be permuted, and loops with too few iterations, are left alone") {
  CHECK(draft_of(recurrences(), "tiling|sweep/y").failure == DraftFailure::declined);
  CHECK(draft_of(cpu_task("gemm"), "tiling|gemm/i/j").message ==
        "fewer than two loops are nested without statements in between");
  CHECK(draft_of(triangle(), "tiling|lower/i").failure == DraftFailure::declined);
}
