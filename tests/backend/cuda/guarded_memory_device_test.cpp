// Memory of a real GPU with nothing beside it, and the whole judge in it; skipped where there is no GPU. Each
// fault costs its process the device, so that every one takes place in a worker.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/evaluator/protocol/refusal_rule.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace mtmc;

namespace {

/// Row sums; `more` is read and comes to nothing in the result.
Task row_sums(const std::string& more = {}) {
  Task task;
  task.name = "row_sums";
  task.kernel = {languages::cuda,
                 "//@ launch row_sums<<<ceil_div(M, 128), 128>>>(x, sums, M, N)\n"
                 "__global__ void row_sums(const float* x, float* sums, int M, int N) {\n"
                 "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                 "  if (i >= M) return;\n"
                 "  float sum = 0.0f;\n"
                 "  for (int j = 0; j < N; ++j) sum += x[i * N + j];\n" +
                     more + "  sums[i] = sum;\n}\n",
                 {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                    {.name = "sums", .role = ArgumentRole::output, .shape = {"M"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"M", 512}, {"N", 256}}}, {.symbols = {{"M", 64}, {"N", 64}}, .weight = 0}};
  return task;
}

/// Loads a value that the compiler may not leave out, and forgets it.
std::string reads(const std::string& address) {
  return "  float unused;\n  asm volatile(\"ld.volatile.global.f32 %0, [%1];\" : \"=f\"(unused) : \"l\"(" +
         address + "));\n";
}

/// A judge in a worker; null where there is no GPU.
std::unique_ptr<CudaEvaluator> judge() {
  WorkerOptions worker;
  worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
  KernelEvaluatorOptions options;
  options.explore_seconds = 0.1;
  auto made = std::make_unique<CudaEvaluator>(CudaBackendOptions{}, options, worker);
  try {
    (void)made->device();
  } catch (const Error& error) {
    MESSAGE("SKIPPED: ", std::string(error.what()));
    return nullptr;
  }
  return made;
}

} // namespace

TEST_SUITE("guarded memory of a GPU") {
  TEST_CASE("a load of the row behind the last, or before the first, is refused though it changes nothing") {
    const auto evaluator = judge();
    if (!evaluator) return;
    const auto verdict_on = [&](const std::string& more) {
      auto answer = evaluator->evaluate(
          {row_sums(), row_sums(more).kernel, row_sums().kernel, Purpose::explore, {}}, {});
      for (const auto& diagnostic : answer.diagnostics) MESSAGE(diagnostic.message);
      return answer;
    };
    const auto honest = verdict_on(reads("x + i * N"));
    CHECK(honest.verdict == Verdict::correct);
    const auto record = honest.environment.at("guarded_allocation");
    if (record != "observed") {
      MESSAGE("SKIPPED: guarded_allocation is ", record);
      return;
    }
    for (const auto* address : {"x + (long long)(i + 1) * N", "x + (long long)M * N", "x - 1", "sums + M",
                                "x + ((long long)i - 1) * N"}) {
      CAPTURE(address);
      const auto answer = verdict_on(reads(address));
      CHECK(answer.verdict == Verdict::out_of_bounds);
      CHECK(answer.rule == refusal_rule::guard_pages);
      // The worker has been replaced.
      CHECK(verdict_on({}).verdict == Verdict::correct);
    }
  }

  TEST_CASE("in a process that is no worker such memory is not used, and the backend says why") {
    std::unique_ptr<CudaBackend> here;
    try {
      here = std::make_unique<CudaBackend>();
    } catch (const Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return;
    }
    CHECK(here->guarded_allocation().granularity == 0);
    CHECK(here->guarded_allocation().missing.find("worker") != std::string::npos);
    CHECK(here->identity().find("without guarded allocations") != std::string::npos);
  }

  TEST_CASE("what is uploaded to it, filled and downloaded is there, to the last byte, and it can be moved") {
    std::unique_ptr<CudaBackend> here;
    try {
      here = std::make_unique<CudaBackend>(CudaBackendOptions{.expendable_process = true});
    } catch (const Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return;
    }
    const auto granularity = here->guarded_allocation().granularity;
    if (granularity == 0) {
      MESSAGE("SKIPPED: ", here->guarded_allocation().missing);
      return;
    }
    std::vector<CudaBackend::Buffer> buffers;
    for (std::size_t i = 0; i < 40; ++i) buffers.push_back(here->allocate_guarded((1 + i % 3) * granularity));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::vector<std::byte> last(100, static_cast<std::byte>(i));
      here->fill(buffers[i], 0, buffers[i].bytes(), std::byte{0x5a});
      here->upload(buffers[i], buffers[i].bytes() - last.size(), last);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      std::vector<std::byte> got(101);
      here->download(buffers[i], buffers[i].bytes() - got.size(), got);
      CHECK(got.front() == std::byte{0x5a});
      CHECK(got.back() == static_cast<std::byte>(i));
      CHECK_THROWS_AS(here->download(buffers[i], buffers[i].bytes(), std::span(got).first(1)),
                      std::out_of_range);
    }
  }
}
