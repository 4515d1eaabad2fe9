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
