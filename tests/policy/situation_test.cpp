#include <mtmc/policy/situation.hpp>

#include <doctest/doctest.h>

#include "observations.hpp"

using namespace mtmc;

TEST_CASE("situation: nothing is claimed before a time is known") {
  auto seen = observed::with_seconds(0);
  seen.evaluation.reset();
  const auto situation = assess(seen);
  CHECK(situation.bottleneck == Bottleneck::unknown);
  CHECK(situation.reached == 0);
  CHECK(situation.private_cache_bytes == 1 << 20);
  CHECK(situation.last_cache_bytes == 1 << 25);
}

TEST_CASE("situation: the larger of the roofline's two times is the bound") {
  // 8 MB of compulsory traffic at 10 GB/s: 0.8 ms.
  auto seen = observed::with_seconds(1.6e-3);
  seen.task.flops = "N"; // 1e6 / 1e11: nothing
  auto situation = assess(seen);
  CHECK(situation.bottleneck == Bottleneck::memory);
  CHECK(situation.reached == doctest::Approx(0.5));
  CHECK(situation.headroom == Headroom::high);

  seen.task.flops = "1000*N"; // 1e9 at 100 GFlop/s: 10 ms
  seen.evaluation = observed::evaluation(12e-3);
  situation = assess(seen);
  CHECK(situation.bottleneck == Bottleneck::compute);
  CHECK(situation.reached == doctest::Approx(10.0 / 12));
  CHECK(situation.headroom == Headroom::low);

  seen.evaluation = observed::evaluation(1e-6); // faster than the bound: caught elsewhere
  CHECK(assess(seen).reached == 1);
}

TEST_CASE("situation: where the task does not count operations, the analysis does") {
  auto seen = observed::with_seconds(0.1);
  seen.task.flops.clear();
  seen.structure.flops = 1e9;
  CHECK(assess(seen).bottleneck == Bottleneck::compute);
}

TEST_CASE("situation: without ceilings there is no bound") {
  auto seen = observed::with_seconds(0.1);
  seen.device = Device{};
  CHECK(assess(seen).bottleneck == Bottleneck::unknown);
}

namespace {

/// One launch of 1,000 blocks of `threads` threads with `shared` bytes each on an H100.
Observation launched(std::int64_t threads, double registers, std::int64_t shared = 0) {
  auto seen = observed::with_seconds(0.1);
  seen.device.kind = "gpu";
  seen.device.arch = "sm_90a";
  seen.device.shared_memory_bytes = 228 << 10;
  Region launch;
  launch.kind = RegionKind::launch;
  launch.facts.threads = {{"x", "i", "", 1000, threads, true, 1000 * threads}};
  launch.facts.shared_bytes = shared;
  seen.structure.regions = {launch};
  seen.evaluation->resources["registers"] = registers;
  return seen;
}

} // namespace

TEST_CASE("situation: occupancy is estimated from registers, shared memory and the block") {
  CHECK(assess(launched(256, 32)).occupancy == 1.0);
  const auto crowded = assess(launched(256, 128)); // 2 of 8 blocks: 65,536 registers / 32,768
  CHECK(crowded.occupancy == 0.25);
  CHECK(crowded.limiter == OccupancyLimiter::registers);
  const auto tiled = assess(launched(256, 32, 100 << 10)); // 2 blocks of 100 KiB
  CHECK(tiled.occupancy == 0.25);
  CHECK(tiled.limiter == OccupancyLimiter::shared_memory);
  const auto small = assess(launched(32, 32)); // at most 32 blocks
  CHECK(small.occupancy == 0.5);
  CHECK(small.limiter == OccupancyLimiter::block_size);
}

TEST_CASE("situation: what the evaluation reports goes before the estimate") {
  auto seen = launched(256, 128);
  seen.evaluation->resources["occupancy"] = 0.4;
  seen.evaluation->resources["spill_load_bytes"] = 12;
  seen.evaluation->resources[resource_key::occupancy_by_blocks] = 0.3;
  const auto situation = assess(seen);
  CHECK(situation.gpu);
  CHECK(situation.occupancy == 0.4);
  CHECK(situation.limiter == OccupancyLimiter::block_size);
  CHECK(situation.registers == 128);
  CHECK(situation.spilled_bytes == 12);
}

TEST_CASE("situation: a CPU has no occupancy") {
  auto seen = launched(256, 128);
  seen.device.kind = "cpu";
  CHECK_FALSE(assess(seen).occupancy.has_value());
}
