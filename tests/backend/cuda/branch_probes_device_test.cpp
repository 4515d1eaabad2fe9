// Programs with probes on a real GPU; skipped where there is none.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/core/backend_abilities.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

TEST_CASE("calls on a GPU show which ways the conditions of a kernel went") {
  if (gpu() == nullptr) return;
  static_assert(declared_abilities<CudaBackend>().has(BackendAbility::branches));
  auto buffer = gpu()->allocate(32 * sizeof(std::int32_t));
  LaunchPlan plan;
  auto& launch = plan.launches.emplace_back();
  launch.entry = "halve";
  launch.line = 1;
  launch.grid = {1, 1, 1};
  launch.block = {32, 1, 1};
  launch.arguments = {{.name = "C", .type = DataType::i32, .bound = {buffer.handle(), 0, 128}},
                      {.kind = LaunchArgument::Kind::scalar, .name = "n", .type = DataType::i32}};
  auto compiled = gpu()->compile_probed({languages::cuda,
                                         "//@ launch halve<<<1, 32>>>(C, n)\n"
                                         "__global__ void halve(int* C, int n) {\n"
                                         "  if (threadIdx.x >= n) return;\n"
                                         "  C[threadIdx.x] = n > 30\n"
                                         "    ? n / 2\n"
                                         "    : n;\n"
                                         "}\n",
                                         {}},
                                        {.plan = plan}, {});
  for (const auto& diagnostic : compiled.diagnostics) MESSAGE(diagnostic.message);
  REQUIRE(compiled.program);
  const auto call = [&](std::int64_t n) {
    plan.launches[0].arguments[1].integer = n;
    const auto status =
        gpu()->run(*compiled.program, plan, std::chrono::steady_clock::now() + std::chrono::seconds{10});
    REQUIRE_MESSAGE(status.finished(), status.message);
    std::array<std::int32_t, 1> first{};
    gpu()->download(buffer, 0, std::as_writable_bytes(std::span(first)));
    return first[0];
  };
  const auto covered = [&] {
    std::array<bool, 2> answer{};
    const auto branches = CudaBackend::branches(*compiled.program);
    REQUIRE(branches.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) answer[i] = branches[i].is_covered();
    return answer;
  };
  CHECK(covered() == std::array{false, false});
  CHECK(call(8) == 8);
  CHECK(covered() == std::array{true, false});
  CHECK(call(32) == 16);
  CHECK(covered() == std::array{true, true});
}
