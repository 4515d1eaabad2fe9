// On a GPU: a start kernel that adds many numbers one after the other is less precise than a candidate that
// splits the sums, at a size that is too expensive for results in double precision. That is not the
// candidate's fault.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "../backend/cuda/gpu.hpp"

using namespace mtmc;

namespace {

/// A layer norm over rows whose threads add `parts` neighbouring numbers one after the other, or every
/// `threads`-th.
std::string layer_norm(int threads, bool neighbours, const char* eps = "1e-5f") {
  const auto count = std::to_string(threads);
  const std::string each = neighbours
                               ? "const long part = (N + " + count + " - 1) / " + count +
                                     ";\n  const long first = lane * part, last = first + part < N ? first + "
                                     "part : N, step = 1;\n"
                               : "const long first = lane, last = N, step = " + count + ";\n";
  return "//@ launch layer_norm<<<M, " + count +
         ">>>(x, y, N)\n"
         "__device__ float total(float value, float* shared) {\n"
         "  shared[threadIdx.x] = value;\n"
         "  for (int half = " +
         count +
         " / 2; half > 0; half /= 2) {\n"
         "    __syncthreads();\n"
         "    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];\n"
         "  }\n"
         "  __syncthreads();\n"
         "  const float sum = shared[0];\n"
         "  __syncthreads();\n"
         "  return sum;\n"
         "}\n"
         "__global__ void layer_norm(const float* x, float* y, int N) {\n"
         "  __shared__ float shared[" +
         count +
         "];\n"
         "  const long lane = threadIdx.x;\n  " +
         each +
         "  x += long(blockIdx.x) * N;\n"
         "  y += long(blockIdx.x) * N;\n"
         "  float sum = 0;\n"
         "  for (long i = first; i < last; i += step) sum += x[i];\n"
         "  const float mean = total(sum, shared) / N;\n"
         "  float squares = 0;\n"
         "  for (long i = first; i < last; i += step) squares += (x[i] - mean) * (x[i] - mean);\n"
         "  const float scale = rsqrtf(total(squares, shared) / N + " +
         eps +
         ");\n"
         "  for (long i = first; i < last; i += step) y[i] = (x[i] - mean) * scale;\n"
         "}\n";
}

} // namespace

TEST_CASE("a candidate is not refused for rounding errors of the start kernel's, whatever the size") {
  if (mtmc_test::gpu() == nullptr) return;
  Task task{.name = "layer_norm", .kernel = {languages::cuda, layer_norm(64, true), {}}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"M", "N"}},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32, .value = "N"}};
  task.sizes = {{.symbols = {{"M", 16}, {"N", 64 * 256 * 256}}},
                {.symbols = {{"M", 3}, {"N", 1000}}, .weight = 0}};
  KernelEvaluator<AnyBackend> evaluator(AnyBackend(std::ref(*mtmc_test::gpu())), {.seed = 11});
  const auto judge = [&](const std::string& text) {
    return evaluator.evaluate({task, {languages::cuda, text, {}}, task.kernel, Purpose::explore, {}}, {});
  };
  const auto split = judge(layer_norm(1024, false));
  CAPTURE(split.diagnostics.size());
  if (!split.diagnostics.empty()) MESSAGE(split.diagnostics.front().message);
  CHECK(split.verdict == Verdict::correct);
  CHECK(split.environment.at("truth") == "f64");
  MESSAGE("largest error of the timed size, of what is allowed: ", split.sizes[0].largest_error);
  CHECK_FALSE(judge(layer_norm(1024, false, "1e-3f")).correct());
}
