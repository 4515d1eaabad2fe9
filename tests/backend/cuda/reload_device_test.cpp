// Programs on a real GPU that are loaded anew; skipped where there is none.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

TEST_CASE("a program that is loaded anew computes the same, with its tables as they were") {
  if (gpu() == nullptr) return;
  static_assert(declared_abilities<CudaBackend>().has(BackendAbility::reload));
  auto buffer = gpu()->allocate(sizeof(std::int32_t));
  LaunchPlan plan;
  auto& launch = plan.launches.emplace_back();
  launch.entry = "look_up";
  launch.line = 1;
  launch.grid = launch.block = {1, 1, 1};
  launch.arguments = {{.name = "C", .type = DataType::i32, .bound = {buffer.handle(), 0, 4}},
                      {.kind = LaunchArgument::Kind::scalar, .name = "i", .type = DataType::i32}};
  auto compiled = gpu()->compile({languages::cuda,
                                  "//@ launch look_up<<<1, 1>>>(C, i)\n"
                                  "__constant__ int table[4] = {2, 3, 5, 7};\n"
                                  "__global__ void look_up(int* C, int i) { *C = table[i]; }\n",
                                  {}},
                                 {.plan = plan}, {});
  for (const auto& diagnostic : compiled.diagnostics) MESSAGE(diagnostic.message);
  REQUIRE(compiled.program);
  const std::array wanted{2, 3, 5, 7};
  double seconds = 0;
  constexpr std::size_t times = 20;
  for (std::size_t i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    compiled.program->reload();
    seconds += seconds_since(begin);
    plan.launches[0].arguments[1].integer = static_cast<std::int64_t>(i % 4);
    const auto status = gpu()->run(*compiled.program, plan, begin + std::chrono::seconds{10});
    REQUIRE_MESSAGE(status.finished(), status.message);
    std::array<std::int32_t, 1> got{};
    gpu()->download(buffer, 0, std::as_writable_bytes(std::span(got)));
    CHECK(got[0] == wanted[i % 4]);
    CHECK(gpu()->changed_state(*compiled.program).empty());
  }
  MESSAGE("loading anew takes ", 1e6 * seconds / times, " us");
}
