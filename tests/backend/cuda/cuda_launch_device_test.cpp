// What a launch can have, and its limits, on a real GPU; skipped where there is none.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/cuda_evaluator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "launch_kernels.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

/// Whether the GPU has tensor maps and clusters.
bool is_hopper() {
  const auto& arch = gpu()->device().arch;
  if (std::stoi(arch.substr(3)) >= 90) return true;
  MESSAGE("SKIPPED: ", arch, " has neither tensor maps nor clusters");
  return false;
}

/// Runs a kernel whose result shall be C = 2 A. Empty if it is; otherwise why it was refused.
std::string run(const std::string& text, std::int64_t rows = 100, std::int64_t columns = 96) {
  const auto task = launch_kernels::task(text);
  auto plan = plan_launches(task.kernel, task, ProblemSize{.symbols = {{"M", rows}, {"K", columns}}}, 132);
  const auto compiled = gpu()->compile(task.kernel, {.plan = plan}, {});
  for (const auto& diagnostic : compiled.diagnostics) MESSAGE(diagnostic.message);
  REQUIRE(compiled.program);
  const auto count = static_cast<std::size_t>(rows * columns);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  std::vector<float> result(count, -1.0f);
  // Beyond the end, so that it is noticed if more is written.
  constexpr std::size_t guard = 4096;
  std::map<std::string, CudaBuffer> buffers;
  for (const auto* name : {"A", "C", "T"}) {
    auto& buffer = buffers.emplace(name, gpu()->allocate(4 * count + guard)).first->second;
    gpu()->fill(buffer, 0, 4 * count + guard, std::byte{0x5a});
  }
  gpu()->upload(buffers.at("A"), 0, std::as_bytes(std::span(values)));
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar)
        argument.bound = {buffers.at(argument.name).handle(), 0, static_cast<std::int64_t>(4 * count)};
  const auto status =
      gpu()->run(*compiled.program, plan, std::chrono::steady_clock::now() + std::chrono::seconds{20});
  if (!status.finished()) {
    CHECK(status.outcome == RunOutcome::launch_failed);
    return status.message;
  }
  gpu()->download(buffers.at("C"), 0, std::as_writable_bytes(std::span(result)));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += result[i] == 2 * values[i] ? 0 : 1;
  CHECK(wrong == 0);
  std::vector<std::byte> behind(guard);
  gpu()->download(buffers.at("C"), 4 * count, behind);
  CHECK(std::count(behind.begin(), behind.end(), std::byte{0x5a}) == guard);
  return {};
}

void says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
}

} // namespace

TEST_SUITE("the whole protocol on a GPU") {
  TEST_CASE("tensor maps and clusters are judged, hostile texts cost one compilation each") {
    if (gpu() == nullptr || !is_hopper()) return;
    auto task = launch_kernels::task(launch_kernels::two_launches());
    task.sizes = {{.symbols = {{"M", 1000}, {"K", 512}}}, {.symbols = {{"M", 61}, {"K", 36}}, .weight = 0}};
    WorkerOptions worker;
    worker.command = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"};
    KernelEvaluatorOptions options;
    options.compile_seconds = 5;
    options.explore_seconds = 0.3;
    CudaBackendOptions backend;
    backend.compile_memory_bytes = std::int64_t{512} << 20;
    CudaEvaluator judge{backend, options, worker};
    const auto verdict = [&](const std::string& text) {
      const auto answer =
          judge.evaluate({task, {languages::cuda, text, {}}, task.kernel, Purpose::explore, {}}, {});
      for (const auto& diagnostic : answer.diagnostics) MESSAGE(diagnostic.message);
      return answer.verdict;
    };
    CHECK(judge.identity().find("compiled without limits") == std::string::npos);
    CHECK(verdict(launch_kernels::tensor_maps()) == Verdict::correct);
    CHECK(verdict(launch_kernels::cluster("round_up(ceil_div(M * K, 128), 4), 128, cluster(4)")) ==
          Verdict::correct);
    CHECK(verdict(launch_kernels::tensor_maps("16, 32, swizzle=64")) == Verdict::launch_error);
    CHECK(verdict(launch_kernels::cluster("80, 128, cluster(16)")) == Verdict::launch_error);
    std::string text = launch_kernels::two_launches();
    text += "__device__ __forceinline__ float g0(float x) { return x * 1.5f + sinf(x); }\n";
    for (int i = 1; i <= 17; ++i) {
      const auto last = "g" + std::to_string(i - 1);
      text += "__device__ __forceinline__ float g" + std::to_string(i) + "(float x) { return " + last +
              "(x) + " + last + "(x * 2); }\n";
    }
    const auto hostile = verdict(text + "__global__ void unused(float* C) { C[0] = g17(C[1]); }\n");
    CHECK((hostile == Verdict::compile_timeout || hostile == Verdict::compile_error));
    CHECK(
        verdict(
            launch_kernels::two_launches() +
            "template <int d, int x> struct T { static constexpr int v = T<d - 1, 2 * x>::v + T<d - 1, 2 * x "
            "+ 1>::v; };\ntemplate <int x> struct T<0, x> { static constexpr int v = 1; };\n"
            "__global__ void unused(float* C) { C[0] = T<26, 0>::v; }\n") == Verdict::compile_error);
    CHECK(verdict(launch_kernels::two_launches()) == Verdict::correct);
  }
}

TEST_SUITE("launches on a GPU") {
  TEST_CASE("tensor maps read and write buffers, also at their edges and swizzled") {
    if (gpu() == nullptr || !is_hopper()) return;
    CHECK(run(launch_kernels::tensor_maps()).empty());
    // Boxes that stick out: zeros are read, nothing is written.
    CHECK(run(launch_kernels::tensor_maps(), 101, 92).empty());
    CHECK(run(launch_kernels::tensor_maps("16, 32, swizzle=128, l2=128"), 101, 92).empty());
    CHECK(run(launch_kernels::tensor_maps("16, 32, nan_fill=1"), 101, 92).empty());
  }

  TEST_CASE("tensor maps that the hardware does not have are refused with the reason") {
    if (gpu() == nullptr || !is_hopper()) return;
    says(run(launch_kernels::tensor_maps(), 100, 97), "rows of 388 bytes");
    says(run(launch_kernels::tensor_maps("512, 32")), "possible are 1 to 256");
    says(run(launch_kernels::tensor_maps("16, 3")), "multiple of 16");
    says(run(launch_kernels::tensor_maps("16, 32, swizzle=64")), "with swizzle=64");
    CHECK(run(launch_kernels::tensor_maps()).empty());
  }

  TEST_CASE("blocks of a cluster read each other's shared memory") {
    if (gpu() == nullptr || !is_hopper()) return;
    for (const auto* size : {"2", "4", "8"}) {
      CAPTURE(size);
      const std::string blocks(size);
      CHECK(run(launch_kernels::cluster("round_up(ceil_div(M * K, 128), " + blocks + "), 128, cluster(" +
                                        blocks + ")"))
                .empty());
    }
    CHECK(run(launch_kernels::cluster("round_up(ceil_div(M * K, 128), 2), 128, 1024, cluster(2)")).empty());
    // Fixed in the kernel's text.
    CHECK(run(launch_kernels::cluster("round_up(ceil_div(M * K, 128), 4), 128", "__cluster_dims__(4, 1, 1)"))
              .empty());
    CHECK(run(launch_kernels::cluster("round_up(ceil_div(M * K, 128), 4), 128, cluster(4)",
                                      "__cluster_dims__(4, 1, 1)"))
              .empty());
  }

  TEST_CASE("clusters that do not fit are refused with the reason") {
    if (gpu() == nullptr || !is_hopper()) return;
    says(run(launch_kernels::cluster("75, 128, cluster(2)")), "no multiple of the cluster's 2");
    says(run(launch_kernels::cluster("80, 128, cluster(16)")), "more than 8 blocks");
    says(run(launch_kernels::cluster("75, 128", "__cluster_dims__(2, 1, 1)")),
         "no multiple of the cluster's 2");
    says(run(launch_kernels::cluster("76, 128, cluster(4)", "__cluster_dims__(2, 1, 1)")), "other clusters");
    CHECK(run(launch_kernels::cluster("76, 128, cluster(4)")).empty());
  }

  TEST_CASE("dynamic shared memory goes up to the device's limit, and not further") {
    if (gpu() == nullptr) return;
    const auto limit = gpu()->device().shared_memory_bytes;
    for (const auto bytes : {std::int64_t{1024}, std::int64_t{48} << 10, (std::int64_t{48} << 10) + 4,
                             std::int64_t{64} << 10, std::int64_t{96} << 10}) {
      if (bytes > limit - 4096) continue;
      CAPTURE(bytes);
      CHECK(run(launch_kernels::dynamic_memory(std::to_string(bytes))).empty());
    }
    const auto refused = run(launch_kernels::dynamic_memory(std::to_string(limit + 4)));
    says(refused, "bytes of shared memory; at most ");
    // What the message says is possible is possible.
    const auto most = std::stoll(refused.substr(refused.find("at most ") + 8));
    CHECK(run(launch_kernels::dynamic_memory(std::to_string(most))).empty());
    says(run(launch_kernels::dynamic_memory(std::to_string(most + 4))), "at most " + std::to_string(most));
  }

  TEST_CASE("several launches share a scratch buffer") {
    if (gpu() == nullptr) return;
    CHECK(run(launch_kernels::two_launches()).empty());
    CHECK(run(launch_kernels::two_launches(), 1, 1).empty());
    CHECK(run(launch_kernels::two_launches(), 1000, 777).empty());
  }

  TEST_CASE("grids and blocks beyond the limits are refused with the number") {
    if (gpu() == nullptr) return;
    const auto launched = [](const std::string& configuration) {
      return run(
          "//@ launch f<<<" + configuration +
          ">>>(A, C, M * K)\n__global__ void f(const float* A, float* C, int n) {\n"
          "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) C[i] = 2 * A[i];\n}\n");
    };
    CHECK(launched("10, 1024").empty());
    CHECK(launched("ceil_div(M * K, 128), (128, 1, 1)").empty());
    says(launched("10, 1025"), "at most 1024");
    says(launched("10, (32, 32, 2)"), "at most 1024");
    says(launched("(10, 65536), 1024"), "possible are 1 to 65535");
    says(launched("(10, 1, 65536), 1024"), "possible are 1 to 65535");
    says(launched("2147483648, 1024"), "possible are 1 to 2147483647");
    CHECK(launched("10, 1024").empty());
  }
}
