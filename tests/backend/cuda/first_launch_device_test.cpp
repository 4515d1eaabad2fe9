// First launches of functions that need more local memory than any before: the driver makes room for it once
// all that is queued has run. Skipped where there is no GPU.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/cuda_evaluator.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

/// b = 2 a + 1, by way of a frame of that many bytes.
std::string function_with_frame(const std::string& name, int bytes) {
  return "__global__ void " + name +
         "(const float* a, float* b, int n) {\n"
         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
         "  volatile float frame[" +
         std::to_string(bytes / 4) +
         "];\n"
         "  if (i >= n) return;\n"
         "  frame[i % 7] = a[i];\n"
         "  b[i] = 2 * frame[i % 7] + 1;\n"
         "}\n";
}

std::string launch_of(const std::string& name) {
  return "//@ launch " + name + "<<<ceil_div(n, 128), 128>>>(a, b, n)\n";
}

Task vector_task() {
  Task task;
  task.name = "vector";
  task.kernel = {languages::cuda, launch_of("f") + function_with_frame("f", 64), {}};
  task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "b", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"n", 1 << 20}}}, {.symbols = {{"n", 1001}}, .weight = 0}};
  return task;
}

} // namespace

TEST_CASE("a program may be timed before it has ever run") {
  if (gpu() == nullptr) return;
  const auto task = vector_task();
  constexpr std::size_t bytes = 4004;
  const auto a = gpu()->allocate(bytes);
  const auto b = gpu()->allocate(bytes);
  for (const int frame : {16 << 10, 48 << 10, 128 << 10}) {
    CAPTURE(frame);
    const Kernel kernel{languages::cuda, launch_of("f") + function_with_frame("f", frame), {}};
    auto plan = plan_launches(parse_launch_lines(kernel), task, task.sizes[1], 132);
    for (auto& argument : plan.launches[0].arguments)
      if (argument.kind == LaunchArgument::Kind::buffer)
        argument.bound = {argument.name == "a" ? a.handle() : b.handle(), 0, bytes};
    auto compiled = gpu()->compile(kernel, {.plan = plan}, {});
    REQUIRE(compiled.program);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    const auto timed = gpu()->time(*compiled.program, {&plan, 1}, false, deadline);
    CHECK_MESSAGE(timed.status.finished(), timed.status.message);
  }
}

TEST_CASE("a launch without end has its deadline, whatever stands behind it") {
  if (gpu() == nullptr) return;
  WorkerOptions worker;
  worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
  KernelEvaluatorOptions options;
  options.launch_seconds = 0.5;
  CudaEvaluator judge({}, options, worker);
  const auto task = vector_task();
  const std::string endless = "__global__ void spin(const float* a, float* b, int n) {\n"
                              "  volatile float* v = b;\n"
                              "  while (v[0] == v[0] || v[1] != 7) v[0] = 1;\n"
                              "}\n";
  const Kernel hostile{
      languages::cuda, launch_of("spin") + launch_of("f") + endless + function_with_frame("f", 64 << 10), {}};
  const auto begin = std::chrono::steady_clock::now();
  const auto answer = judge.evaluate({task, hostile, task.kernel, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::timeout);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{60});
  CHECK(judge.evaluate({task, task.kernel, task.kernel, Purpose::explore, {}}, {}).correct());
}
