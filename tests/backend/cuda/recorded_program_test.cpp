#include <mtmc/backend/cuda/recorded_program.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace mtmc;
using detail::CudaParameter;

TEST_CASE("each kernel of a recorded call is a binary, each launch an entry with what its parameters take") {
  RecordedPlan plan;
  plan.kernels = {
      {.name = "first",
       .ir = "a",
       .parameters = {{"x", "*fp32"}, {"n", "i32"}, {"scale", "fp32"}, {"B", "constexpr"}, {"flag", "i1"}}},
      {.name = "second",
       .ir = "b",
       .parameters = {{"x", "*fp16"}, {"none", "*fp32"}, {"t", "fp64"}, {"m", "u64"}}}};
  plan.storages = {{.bytes = 64}};
  using enum RecordedArgument::Kind;
  const RecordedArgument memory{.kind = pointer};
  const auto number = [](std::int64_t value) { return RecordedArgument{.kind = integer, .integer = value}; };
  const RecordedArgument half{.kind = real, .real = 0.5};
  plan.phases.forward = {
      {.launch = RecordedLaunch{.kernel = 1, .arguments = {memory, number(0), half, number(7)}}},
      {.launch = RecordedLaunch{.kernel = 0, .arguments = {memory, number(3), half, number(1)}}},
      {.launch = RecordedLaunch{.kernel = 1, .arguments = {memory, number(0), half, number(8)}}}};
  const auto lowered_as = [](std::string cubin, std::string entry) {
    auto kernel = std::make_shared<LoweredKernel>();
    kernel->cubin = std::move(cubin);
    kernel->entry = std::move(entry);
    return std::shared_ptr<const LoweredKernel>(kernel);
  };
  const std::vector lowered{lowered_as("one", "first_0"), lowered_as("two", "second_0")};
  const auto launches = recorded_launches(plan, lowered, {});
  REQUIRE_FALSE(launches.refused);
  const auto compilation = detail::compilation_of(plan, launches, lowered);
  CHECK(compilation.cubin == "two"); // of the first launch
  REQUIRE(compilation.further.size() == 1);
  CHECK(compilation.further[0].cubin == "one");
  REQUIRE(compilation.entries.size() == 3);
  CHECK(compilation.entries[0].name == "second_0");
  CHECK(compilation.entries[0].binary == 0);
  CHECK(compilation.entries[1].binary == 1);
  CHECK(compilation.entries[2].binary == 0);
  CHECK(compilation.entries[0].parameters == std::vector{CudaParameter::pointer, CudaParameter::u64,
                                                         CudaParameter::f64, CudaParameter::u64,
                                                         CudaParameter::u64, CudaParameter::u64});
  CHECK(compilation.entries[1].parameters == std::vector{CudaParameter::pointer, CudaParameter::i32,
                                                         CudaParameter::f32, CudaParameter::u8,
                                                         CudaParameter::u64, CudaParameter::u64});
  for (const auto& launch : launches.plan.launches)
    CHECK(detail::place_of_call(launch, compilation.signatures, 0) < compilation.signatures.size());
}
