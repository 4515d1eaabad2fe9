// Triton kernels, recorded and lowered, on a real device through the driver: right results, several binaries,
// parts of buffers, zeros, and the launch interface of this version of Triton.
#include <mtmc/backend/cuda.hpp>
#include <mtmc/backend/cuda/recorded_program.hpp>
#include <mtmc/backend/python.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../python/python_for_tests.hpp"

using namespace mtmc;

namespace {

/// run(x, n, y): y is the softmax of the two halves of x, whose sums go through memory that begins as zeros.
constexpr std::string_view softmax_text = R"(
import torch, triton, triton.language as tl

@triton.jit
def powers(x, sums, y, n, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + at, mask=at < n, other=float("-inf")) * scale)
    tl.store(y + at, e, mask=at < n)
    tl.store(sums, tl.load(sums) + tl.sum(e, 0))

@triton.jit
def divide(y, sums, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(y + at, mask=at < n) / tl.load(sums), mask=at < n)

def run(x, n, y):
    for half in (0, n // 2):
        sums = torch.zeros(1, device=x.device)
        powers[(1,)](x[half:], sums, y[half:], n // 2, 1.0, BLOCK=512)
        divide[(4,)](y[half:], sums, n // 2, BLOCK=128)
)";

std::optional<CudaBackend> device_for_tests() {
  try {
    return std::optional<CudaBackend>(std::in_place);
  } catch (const Error& error) {
    MESSAGE("SKIPPED: there is no NVIDIA GPU here: ", std::string(error.what()));
    return std::nullopt;
  }
}

} // namespace

TEST_CASE("a recorded call gives what it computes, again and again, and can be timed") {
  const auto python = python_for_tests();
  if (!python) return;
  auto backend = device_for_tests();
  if (!backend) return;
  constexpr std::int64_t n = 1000;
  RecordingRequest request{.role = RecordingRequest::Role::function, .text = std::string(softmax_text)};
  request.target = recorded_target(backend->device());
  request.names = {"x", "n", "y"};
  request.inputs = {
      tensor_input({n}), {.kind = RecordedValue::Kind::integer, .integer = n}, tensor_input({n})};
  const auto recording = shared_recorder(*python).record(request);
  for (const auto& diagnostic : recording.diagnostics) FAIL_CHECK(diagnostic.message);
  REQUIRE(recording.plan);
  std::vector<std::shared_ptr<const LoweredKernel>> lowered;
  for (const auto& kernel : recording.plan->kernels) {
    const auto lowering = shared_compiler(*python).lower(kernel, request.target);
    for (const auto& diagnostic : lowering.diagnostics) FAIL_CHECK(diagnostic.message);
    lowered.push_back(lowering.kernel);
  }
  const std::vector<RecordedBuffer> names{{"x", false}, {"n", false}, {"y", true}};
  auto launches = recorded_launches(*recording.plan, lowered, names);
  REQUIRE_MESSAGE(!launches.refused, launches.refused->message);
  const auto loaded = load_recorded(*backend, *recording.plan, launches, lowered);
  for (const auto& diagnostic : loaded.diagnostics) FAIL_CHECK(diagnostic.message);
  REQUIRE(loaded.program);

  std::vector<float> x(n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3;
  std::map<std::string, CudaBuffer> buffers;
  const auto bytes_of = [](const LaunchArgument& argument) {
    std::size_t bytes = size_of(argument.type);
    for (const auto extent : argument.extents) bytes *= static_cast<std::size_t>(extent);
    return bytes;
  };
  for (auto& launch : launches.plan.launches)
    for (auto& argument : launch.arguments) {
      if (argument.kind != LaunchArgument::Kind::buffer) continue;
      const auto bytes = bytes_of(argument);
      auto found = buffers.find(argument.name);
      if (found == buffers.end()) {
        found = buffers.emplace(argument.name, backend->allocate(bytes)).first;
        backend->fill(found->second, 0, bytes, std::byte{0x7f});
      }
      argument.bound = {found->second.handle(), 0, static_cast<std::int64_t>(bytes)};
    }
  backend->upload(buffers.at("x"), 0, std::as_bytes(std::span(x)));
  for (int round = 0; round < 3; ++round) {
    const auto status = backend->run(*loaded.program, launches.plan,
                                     std::chrono::steady_clock::now() + std::chrono::seconds{10});
    REQUIRE_MESSAGE(status.finished(), status.message);
    std::vector<float> y(n);
    backend->download(buffers.at("y"), 0, std::as_writable_bytes(std::span(y)));
    for (std::size_t half = 0; half < 2; ++half) {
      double sum = 0;
      for (std::size_t i = 0; i < n / 2; ++i) sum += std::exp(static_cast<double>(x[half * n / 2 + i]));
      for (std::size_t i = 0; i < n / 2; ++i) {
        const auto at = half * n / 2 + i;
        CHECK(y[at] == doctest::Approx(std::exp(static_cast<double>(x[at])) / sum).epsilon(1e-5));
      }
    }
  }
  CHECK(backend->changed_state(*loaded.program).empty());
  const std::vector<LaunchPlan> group(3, launches.plan);
  const auto timed = backend->time(*loaded.program, group, true,
                                   std::chrono::steady_clock::now() + std::chrono::seconds{10});
  CHECK(timed.status.finished());
  CHECK(timed.seconds > 0);
  loaded.program->reload();
  CHECK(backend
            ->run(*loaded.program, launches.plan, std::chrono::steady_clock::now() + std::chrono::seconds{10})
            .finished());
}
