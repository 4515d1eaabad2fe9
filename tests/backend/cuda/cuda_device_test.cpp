// On a real GPU; skipped where there is none.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/cuda_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

/// b = 2 a + 1.
Task vector_task() {
  Task task;
  task.name = "vector";
  task.kernel = {languages::cuda,
                 "//@ launch f<<<ceil_div(n, 128), 128>>>(a, b, n)\n"
                 "__global__ void f(const float* a, float* b, int n) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i < n) b[i] = 2 * a[i] + 1;\n"
                 "}\n",
                 {}};
  task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "b", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"n", 1 << 20}}}, {.symbols = {{"n", 1001}}, .weight = 0}};
  return task;
}

/// The same function with another body.
Kernel with_body(const std::string& body) {
  return {languages::cuda,
          "//@ launch f<<<ceil_div(n, 128), 128>>>(a, b, n)\n"
          "__global__ void f(const float* a, float* b, int n) {\n"
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
              body + "\n}\n",
          {}};
}

CudaEvaluator evaluator() {
  WorkerOptions worker;
  worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
  KernelEvaluatorOptions options;
  options.launch_seconds = 0.5;
  return CudaEvaluator{{}, options, worker};
}

} // namespace

TEST_SUITE("a GPU") {
  TEST_CASE("launches that are impossible are refused with the reason, and cost nothing") {
    if (gpu() == nullptr) return;
    const auto refusal = [](const std::string& launch, const std::string& body) {
      auto task = vector_task();
      task.kernel.source = "//@ launch f" + launch +
                           "(a, b, n)\n__global__ void f(const float* a, float* b, int n) {" + body + "}\n";
      auto plan = plan_launches(parse_launch_lines(task.kernel), task, task.sizes[1], 132);
      auto compiled = gpu()->compile(task.kernel, {.plan = plan}, {});
      REQUIRE(compiled.program);
      const auto memory = gpu()->allocate(8192);
      for (auto& argument : plan.launches[0].arguments)
        if (argument.kind == LaunchArgument::Kind::buffer) argument.bound = {memory.handle(), 0, 4004};
      const auto status = gpu()->run(*compiled.program, plan, Deadline::max());
      CHECK((status.finished() || status.outcome == RunOutcome::launch_failed));
      return status.message;
    };
    CHECK(refusal("<<<1, 2048>>>", "b[0] = 1;").find("too many threads") != std::string::npos);
    CHECK(refusal("<<<1, (1, 1, 128)>>>", "b[0] = 1;").find("refused") != std::string::npos);
    CHECK(refusal("<<<(1, 70000), 1>>>", "b[0] = 1;").find("65535") != std::string::npos);
    CHECK(refusal("<<<1, 1, 1000000>>>", "b[0] = 1;").find("shared memory") != std::string::npos);
    // More than the 48 KiB that need no asking.
    CHECK(
        refusal("<<<1, 1, 100000>>>", "extern __shared__ float s[]; s[24999] = n; b[0] = s[24999];").empty());
  }

  TEST_CASE("in a worker a crash, a kernel without end and a wild write cost one verdict each") {
    if (gpu() == nullptr) return;
    const auto task = vector_task();
    auto judge = evaluator();
    const auto verdict_of = [&](const std::string& body) {
      const auto answer = judge.evaluate({task, with_body(body), task.kernel, Purpose::explore, {}}, {});
      CHECK((answer.correct() || !answer.diagnostics.empty()));
      return answer.verdict;
    };
    // A host with a context of its own, which keeps computing.
    auto plan = plan_launches(parse_launch_lines(task.kernel), task, task.sizes[1], 132);
    auto compiled = gpu()->compile(task.kernel, {.plan = plan}, {});
    REQUIRE(compiled.program);
    auto a = gpu()->allocate(4004);
    auto b = gpu()->allocate(4004);
    for (auto& argument : plan.launches[0].arguments)
      if (argument.kind == LaunchArgument::Kind::buffer)
        argument.bound = {argument.name == "a" ? a.handle() : b.handle(), 0, 4004};
    const auto host_computes = [&] {
      const std::vector<float> ones(1001, 1.0f);
      std::vector<float> result(1001);
      gpu()->upload(a, 0, std::as_bytes(std::span(ones)));
      CHECK(gpu()->run(*compiled.program, plan, Deadline::max()).finished());
      gpu()->download(b, 0, std::as_writable_bytes(std::span(result)));
      return result == std::vector<float>(1001, 3.0f);
    };
    CHECK(host_computes());
    CHECK(verdict_of("if (i < n) b[i] = a[i] * 2 + 1;") == Verdict::correct);
    CHECK(verdict_of("if (i < n) b[i] = a[i] * 2;") == Verdict::wrong_result);
    CHECK(verdict_of("b[(1ll << 40) + i] = 1;") == Verdict::crashed);
    CHECK(verdict_of("if (i < n) b[i] = a[i] * 2 + 1;") == Verdict::correct);
    CHECK(verdict_of("asm(\"trap;\");") == Verdict::crashed);
    CHECK(verdict_of("volatile float* v = b; if (i == 0) while (v[0] == v[0] || v[1] != 7) v[0] = 1;") ==
          Verdict::timeout);
    CHECK(verdict_of("if (i < n) b[i] = a[i] * 2 + 1;") == Verdict::correct);
    CHECK(verdict_of("if (i < n) b[i] = a[i] * 2 + 1; if (i == n) b[i] = 3;") == Verdict::out_of_bounds);
    CHECK(host_computes());
  }
}
