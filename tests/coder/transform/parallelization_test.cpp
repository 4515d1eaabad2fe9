#include <doctest/doctest.h>

#include <string>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

TEST_CASE("independent iterations go to threads in contiguous shares") {
  const Task task = cpu_task("softmax");
  const std::string source = source_after(task, {"parallelization|softmax/i"});
  CHECK(has(source, "  #pragma omp parallel for schedule(static)\n  for (int i = 0; i < M; ++i) {\n"));
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0)
      for (const int threads : {1, 2, 8}) CHECK(runner.difference(1, size, threads) == 0);
}

TEST_CASE("a compiler's hint about the loop makes room") {
  Task task = cpu_task("softmax");
  auto& source = task.kernel.source;
  const std::string loop = "  for (int i = 0; i < M; ++i) {";
  source.replace(source.find(loop), 0, "  // rows\n#pragma GCC ivdep\n");
  const std::string after = source_after(task, {"parallelization|softmax/i"});
  CHECK(has(after,
            "  // rows\n  #pragma omp parallel for schedule(static)\n  for (int i = 0; i < M; ++i) {\n"));
  CHECK_FALSE(has(after, "GCC"));
}

TEST_CASE("a loop of few iterations is spread together with the next one") {
  Task task = cpu_task("gemm_bias_relu");
  task.sizes.front().symbols["M"] = 4;
  CHECK(has(source_after(task, {"parallelization|add_bias/i"}),
            "omp parallel for collapse(2) schedule(static)"));
}

TEST_CASE("sums have the same bits with any number of threads") {
  const Task task = vector_statistics();
  const std::string source =
      source_after(task, {"parallelization|statistics/i#2", "parallelization|statistics/i"});
  CHECK(has(source, "float sum_parts[64];"));
  CHECK(has(source, "  // parts in fixed order\n"));
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes) {
    if (size.weight > 0) continue;
    CHECK(runner.difference(1, size) < 1e-6);
    CHECK(runner.run(1, size, 1) == runner.run(1, size, 2));
    CHECK(runner.run(1, size, 1) == runner.run(1, size, 7));
  }
}

TEST_CASE("scalars declared before the loop are private to a thread") {
  const Task task = matrix_vector();
  const std::string source = source_after(task, {"parallelization|gemv/k", "parallelization|gemv/i"});
  CHECK(has(source, "#pragma omp parallel for schedule(static) private(shift)\n"));
  CHECK(has(source, "#pragma omp parallel for schedule(static) private(scale)\n"));
  const KernelRunner runner{task, {source}};
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0) CHECK(runner.difference(1, size, 4) == 0);
}

TEST_CASE("dependences are in the way, and threads inside threads are") {
  CHECK(draft_of(recurrences(), "parallelization|sweep/y#2").message.find("through out") !=
        std::string::npos);
  CHECK(draft_of(recurrences(), "parallelization|sweep/y/x").failure == DraftFailure::declined);
  const Task task = cpu_task("gemm");
  const Kernel spread{languages::cpp, source_after(task, {"parallelization|gemm/i"})};
  CHECK(draft_of(task, spread, "parallelization|gemm/i/j").message ==
        "the j loop is spread over threads already");
}
