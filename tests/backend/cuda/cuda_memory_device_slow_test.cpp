// Candidates that ask a real GPU for more than it has; skipped where there is none.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

const std::string body = "__global__ void f(const float* a, float* b, int n) {\n"
                         "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                         "  if (i < n) b[i] = 2 * a[i] + 1;\n}\n";
const std::string lines = "//@ launch f<<<ceil_div(n, 128), 128>>>(a, b, n)\n";

/// b = 2 a + 1, in some microseconds, so that it is timed in groups.
Task vector_task() {
  Task task;
  task.name = "vector";
  task.kernel = {languages::cuda, lines + body, {}};
  task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "b", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {
      {.symbols = {{"n", 1 << 16}}}, {.symbols = {{"n", 1 << 12}}}, {.symbols = {{"n", 1001}}, .weight = 0}};
  return task;
}

std::string scratch(std::int64_t bytes) { return "//@ scratch T: i8[" + std::to_string(bytes) + "]\n"; }

struct Greedy {
  std::string what;
  std::string text;
  std::vector<Verdict> verdicts{Verdict::launch_error};
};

/// The kernel launched in another way.
std::string launched(const std::string& configuration) {
  return "//@ launch f<<<" + configuration + ">>>(a, b, n)\n" + body;
}

} // namespace

TEST_SUITE("memory of a GPU") {
  TEST_CASE("what a CUDA kernel asks for costs its own verdict, and the next one is accepted") {
    if (gpu() == nullptr) return;
    // NVRTC spends all the time and memory that it has on a table beyond all memory: only a process of its
    // own ends it.
    KernelEvaluator<CudaBackend> evaluator{
        CudaBackend{{.compiler_command = {std::string(MTMC_TEST_PROGRAMS) + "/compiler_program"}}},
        {.explore_seconds = 0.2, .compile_seconds = 10}};
    const auto task = vector_task();
    const auto memory = evaluator.device().memory_bytes;
    const auto judge = [&](const std::string& text, Purpose purpose) {
      return evaluator.evaluate({task, {languages::cuda, text, {}}, task.kernel, purpose, {}}, {});
    };
    const auto accepted = [&] {
      const auto answer = judge(lines + body, Purpose::explore);
      CHECK(answer.correct());
      CHECK(answer.speed_up);
    };
    accepted();
    // 16 GiB on an H100, which is allowed once: not for a group of calls, nor for two sizes at a time.
    for (const auto purpose : {Purpose::explore, Purpose::promote}) {
      const auto once = judge(scratch(memory / 5) + lines + body, purpose);
      CHECK(once.correct());
      for (const auto& diagnostic : once.diagnostics) MESSAGE(diagnostic.message);
      accepted();
    }
    {
      // The same while somebody else has most of the memory.
      auto& others = *gpu();
      std::vector<CudaBackend::Buffer> taken;
      taken.push_back(others.allocate(static_cast<std::size_t>(memory / 10 * 9 - (std::int64_t{2} << 30))));
      const auto refused = judge(scratch(memory / 5) + lines + body, Purpose::explore);
      CHECK(refused.verdict == Verdict::launch_error);
      CHECK(refused.rule == refusal_rule::memory);
      accepted();
    }
    CHECK(judge(scratch(memory / 5) + lines + body, Purpose::explore).correct());
    const std::string most = "9223372036854775807";
    for (const auto& candidate : std::vector<Greedy>{
             {"more scratch than is allowed", scratch(memory / 3) + lines + body},
             {"more scratch than any device has", scratch(std::int64_t{1} << 60) + lines + body},
             {"a grid too wide", launched(most + ", 128")},
             {"a grid too high", launched("(1, " + most + "), 128")},
             {"a block too wide", launched("1, " + most)},
             {"a block of too many threads", launched("1, (1024, 1024, 1024)")},
             {"more dynamic shared memory than there is", launched("ceil_div(n, 128), 128, 1 * 1048576")},
             {"more dynamic shared memory than a number holds", launched("ceil_div(n, 128), 128, " + most)},
             {"a cluster too large", launched("1024, 128, cluster(1024)")},
             {"a frame of which all threads together need more than there is",
              "//@ launch f<<<4096, 1024>>>(a, b, n)\n"
              "__global__ void f(const float* a, float* b, int n) {\n"
              "  volatile float frame[100000];\n"
              "  for (int i = 0; i < 100000; i += n) frame[i] = a[i % n];\n"
              "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  if (i < n) b[i] = 2 * a[i] + 1 + 0 * frame[n % 100000];\n}\n",
              {Verdict::launch_error, Verdict::correct, Verdict::timeout, Verdict::compile_error}},
             {"tables beyond all memory",
              lines + "__device__ const float table[1ull << 36] = {};\n"
                      "__global__ void f(const float* a, float* b, int n) {\n"
                      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                      "  if (i < n) b[i] = 2 * a[i] + 1 + table[(size_t)i << 20];\n}\n",
              {Verdict::launch_error, Verdict::compile_error, Verdict::compile_timeout, Verdict::refused}}}) {
      CAPTURE(candidate.what);
      const auto answer = judge(candidate.text, Purpose::explore);
      CHECK_MESSAGE(std::find(candidate.verdicts.begin(), candidate.verdicts.end(), answer.verdict) !=
                        candidate.verdicts.end(),
                    std::string(to_string(answer.verdict)));
      if (!answer.correct()) REQUIRE_FALSE(answer.diagnostics.empty());
      if (!answer.correct()) MESSAGE(candidate.what, ": ", answer.diagnostics.front().message);
      accepted();
    }
  }
}
