#include <doctest/doctest.h>

#include <string>

#include "draft.hpp"
#include "kernel_runner.hpp"
#include "odd_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

double worst_difference(const Task& task, const std::string& source) {
  const KernelRunner runner{task, {source}};
  double worst = 0;
  for (const ProblemSize& size : task.sizes)
    if (size.weight == 0) worst = std::max(worst, runner.difference(1, size));
  return worst;
}

} // namespace

TEST_CASE("innermost loops are marked, with a clause for what they reduce") {
  const Task task = cpu_task("softmax");
  const std::string source = source_after(task, {"vectorization|softmax/i/j"});
  CHECK(has(source, "#pragma omp simd reduction(max : largest)\n"));
  CHECK(worst_difference(task, source) == 0);
}

TEST_CASE("several reductions stand in one directive") {
  const Task task = vector_statistics();
  const std::string source = source_after(task, {"vectorization|statistics/i#2"});
  CHECK(has(source, "#pragma omp simd reduction(min : low) reduction(max : high)\n"));
  CHECK(worst_difference(task, source) == 0);
}

TEST_CASE("a sum into one element of an array goes through a scalar") {
  const Task task = matrix_vector();
  const std::string source = source_after(task, {"vectorization|gemv/i/j"});
  CHECK(has(source, "    float y_value = y[i];\n    #pragma omp simd reduction(+ : y_value)\n"));
  CHECK(has(source, "    y[i] = y_value;\n"));
  CHECK(worst_difference(task, source) < 1e-5);
}

TEST_CASE("exp of floats becomes a function without branches, written once") {
  const Task task = cpu_task("elementwise_chain");
  const std::string source = source_after(task, {"vectorization|silu/i"});
  CHECK(has(source, "out[i] = in[i] / (1.0f + vector_exp(-in[i]));"));
  CHECK(has(source, "#include <bit>\n"));
  CHECK(source.find("inline float vector_exp") == source.rfind("inline float vector_exp"));
  CHECK(worst_difference(task, source) < 1e-6);
}

TEST_CASE("tanh brings exp along") {
  const Task task = shared_buffers();
  const std::string source = source_after(task, {"vectorization|mix/k"});
  CHECK(has(source, "vector_tanh(b[k])"));
  CHECK(source.find("inline float vector_exp") < source.find("inline float vector_tanh"));
  CHECK(worst_difference(task, source) < 1e-6);
}

TEST_CASE("exp of doubles stays as it is") {
  const Task task = TaskBuilder{"sigmoid"}
                        .kernel(languages::cpp, R"cpp(#include <cmath>
void sigmoid(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = static_cast<float>(1.0 / (1.0 + std::exp(-1.0 * x[i])));
}
)cpp")
                        .shape("x", {"n"})
                        .shape("y", {"n"})
                        .size({{"n", 4096}})
                        .check({{"n", 17}})
                        .build();
  CHECK(!has(source_after(task, {"vectorization|sigmoid/i"}), "vector_exp"));
}

TEST_CASE("threads and vectors on one loop are one directive") {
  const Task task = cpu_task("elementwise_chain");
  CHECK(has(source_after(task, {"parallelization|add/i", "vectorization|add/i"}),
            "#pragma omp parallel for simd schedule(static)\n"));
}

TEST_CASE("recurrences, outer loops and loops already marked are declined") {
  CHECK(draft_of(recurrences(), "vectorization|sweep/y#2/x").failure == DraftFailure::declined);
  CHECK(draft_of(cpu_task("softmax"), "vectorization|softmax/i").message ==
        "the i loop contains other loops");
  const Task task = cpu_task("softmax");
  const Kernel marked{languages::cpp, source_after(task, {"vectorization|softmax/i/j"})};
  CHECK(draft_of(task, marked, "vectorization|softmax/i/j").message == "the j loop is vectorized already");
}
