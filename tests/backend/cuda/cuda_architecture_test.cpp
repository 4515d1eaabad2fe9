// What is known of multiprocessors: how many blocks they hold, what a device is from what its driver says.
// Needs no GPU.
#include <mtmc/backend/cuda/cuda_device.hpp>
#include <mtmc/backend/cuda/occupancy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

std::int64_t blocks(const char* architecture, const BlockNeeds& block) {
  const auto unit = multiprocessor_of(architecture);
  REQUIRE(unit);
  return resident_blocks(*unit, block).all();
}

std::map<std::string, double> resources(const char* architecture, const BlockNeeds& block) {
  std::map<std::string, double> result;
  note_occupancy(*multiprocessor_of(architecture), block, result);
  return result;
}

/// As the driver of an H100 answers.
CudaDeviceReading h100() {
  return {.name = "NVIDIA H100 80GB HBM3",
          .major = 9,
          .minor = 0,
          .compute_units = 132,
          .warp_size = 32,
          .memory_bytes = 85'029'158'912,
          .shared_bytes = 233'472,
          .l2_bytes = 52'428'800,
          .clock_kilohertz = 1'980'000,
          .memory_clock_kilohertz = 2'619'000,
          .memory_bus_bits = 5120,
          .driver_version = 13'000};
}

} // namespace

// The formula was compared with cuda_occupancy.h of CUDA 13.0 for all twelve architectures, on ten million
// combinations of threads, registers and shared memory: no difference.
TEST_SUITE("occupancy") {
  TEST_CASE("known values of the occupancy tables") {
    CHECK(blocks("sm_80", {256, 32, 0}) == 8);
    CHECK(blocks("sm_80", {256, 33, 0}) == 6); // registers come in units of 256 for a warp: 40 to a thread
    CHECK(blocks("sm_80", {256, 64, 0}) == 4);
    CHECK(blocks("sm_80", {256, 255, 0}) == 1);
    CHECK(blocks("sm_80", {32, 16, 0}) == 32); // so many blocks at most
    CHECK(blocks("sm_86", {32, 16, 0}) == 16);
    CHECK(blocks("sm_89", {32, 16, 0}) == 24);
    CHECK(blocks("sm_86", {1024, 32, 0}) == 1);
    CHECK(blocks("sm_90a", {1024, 32, 0}) == 2);
    CHECK(blocks("sm_70", {1024, 64, 0}) == 1);
    CHECK(blocks("sm_75", {1024, 32, 0}) == 1);
    CHECK(blocks("sm_80", {128, 32, 48 << 10}) == 3); // 1 KiB of each goes to the system
    CHECK(blocks("sm_70", {128, 32, 48 << 10}) == 2);
    CHECK(blocks("sm_90a", {128, 32, 227 << 10}) == 1);
    CHECK(blocks("sm_100a", {384, 168, 200 << 10}) == 1);
  }

  TEST_CASE("blocks that cannot be launched do not reside") {
    CHECK(blocks("sm_90a", {1025, 32, 0}) == 0);
    CHECK(blocks("sm_90a", {0, 32, 0}) == 0);
    CHECK(blocks("sm_90a", {1024, 65, 0}) == 0);
    CHECK(blocks("sm_90a", {128, 32, 228 << 10}) == 0);
    CHECK(resources("sm_90a", {1025, 32, 0}).empty());
  }

  TEST_CASE("the least of the four is the occupancy, and names what limits it") {
    struct Example {
      const char* architecture;
      BlockNeeds block;
      double occupancy;
      const char* limiter;
    };
    for (const auto& [architecture, block, occupancy, limiter] : {
             Example{"sm_90a", {256, 32, 0}, 1, "none"},
             {"sm_90a", {256, 64, 0}, 0.5, "registers"},
             {"sm_90a", {256, 32, 100 << 10}, 0.25, "shared memory"},
             {"sm_90a", {32, 32, 0}, 0.5, "blocks"},
             {"sm_86", {1024, 32, 0}, 32.0 / 48, "threads"},
             {"sm_90a", {672, 16, 0}, 63.0 / 64, "threads"},
         }) {
      const auto found = resources(architecture, block);
      CHECK(found.at("occupancy") == doctest::Approx(occupancy));
      CHECK(occupancy_limiter(found) == limiter);
      CHECK(found.at("occupancy") ==
            std::min({found.at("occupancy_by_registers"), found.at("occupancy_by_shared_memory"),
                      found.at("occupancy_by_threads"), found.at("occupancy_by_blocks")}));
    }
    CHECK(resources("sm_90a", {256, 64, 0}).at("blocks_per_unit") == 4);
    CHECK(occupancy_limiter({{"registers", 32}}).empty());
  }

  TEST_CASE("of several launches the one with most threads counts, whatever its extents") {
    LaunchPlan plan;
    CHECK(main_launch(plan) == 0);
    plan.launches.resize(3);
    plan.launches[0].block = {1024, 1, 1};
    plan.launches[1].grid = {100, 100, 1};
    plan.launches[1].block = {128, 1, 1};
    plan.launches[2] = plan.launches[1];
    CHECK(main_launch(plan) == 1);
    constexpr auto huge = std::numeric_limits<std::int64_t>::max();
    plan.launches[2].block = {huge, huge, huge};
    plan.launches[2].shared_bytes = huge;
    CHECK(main_launch(plan) == 2);
    CHECK(blocks("sm_90a", block_needs(plan.launches[2], 32, 1024)) == 0);
    const auto needs = block_needs(plan.launches[1], 40, 1024);
    CHECK(needs.threads == 128);
    CHECK(needs.registers == 40);
    CHECK(needs.shared_bytes == 1024);
  }

  TEST_CASE("architectures are known by their names, future ones are not") {
    CHECK(multiprocessor_of("sm_90")->warps == 64);
    CHECK(multiprocessor_of("sm_100f")->capability == 100);
    for (const char* unknown : {"sm_60", "sm_140a", "x86-64", "", "sm_"})
      CHECK_FALSE(multiprocessor_of(unknown));
  }
}

TEST_SUITE("a device as its driver tells it") {
  TEST_CASE("one that is known gets the dense rates and the bandwidth of its data sheet") {
    const auto device = describe_cuda_device(h100());
    CHECK(device.name == "NVIDIA H100 80GB HBM3");
    CHECK(device.arch == "sm_90a");
    CHECK(device.compute_units == 132);
    CHECK(device.vector_bits == 1024);
    CHECK(device.memory_bytes == 85'029'158'912);
    CHECK(device.shared_memory_bytes == 228 << 10);
    CHECK(device.clock_hz == 1.98e9);
    CHECK(device.memory_bandwidth == 3.35e12);
    CHECK(device.peak_rates.at("f16") == doctest::Approx(989.4e12));
    CHECK(device.peak_rates.at("f32") == doctest::Approx(66.9e12));
    REQUIRE(device.caches.size() == 2);
    CHECK(device.caches[0] == CacheLevel{.level = 1, .bytes = 256 << 10, .line_bytes = 128});
    CHECK(device.caches[1] ==
          CacheLevel{.level = 2, .bytes = 52'428'800, .line_bytes = 128, .shared_by = 132});
    CHECK(device.software.at("driver") == "CUDA 13.0");
  }

  TEST_CASE("a part of one gets what its own multiprocessors do") {
    auto reading = h100();
    reading.name += " MIG 1g.10gb";
    reading.compute_units = 16;
    const auto device = describe_cuda_device(reading);
    CHECK(device.peak_rates.at("f32") == doctest::Approx(66.9e12 * 16 / 132).epsilon(0.01));
    CHECK(device.memory_bandwidth == doctest::Approx(3.352e12).epsilon(0.001));
  }

  TEST_CASE("so does a known name with another number of multiprocessors") {
    auto reading = h100();
    reading.compute_units = 66;
    CHECK(describe_cuda_device(reading).peak_rates.at("f32") == doctest::Approx(33.45e12).epsilon(0.01));
  }

  TEST_CASE("of boards that differ in their matrix units only the ordinary rates are claimed") {
    CudaDeviceReading reading = h100();
    reading.name = "NVIDIA GeForce RTX 4090";
    reading.major = 8;
    reading.minor = 9;
    reading.compute_units = 128;
    reading.clock_kilohertz = 2'520'000;
    const auto rates = describe_cuda_device(reading).peak_rates;
    CHECK(rates.size() == 2);
    CHECK(rates.at("f32") == doctest::Approx(82.6e12).epsilon(0.01));
    CHECK(rates.at("f64") == doctest::Approx(1.29e12).epsilon(0.01));
  }

  TEST_CASE("what neither driver nor data sheet tells stays unknown") {
    auto reading = h100();
    reading.name = "NVIDIA Something New";
    reading.major = 14;
    reading.memory_clock_kilohertz = 0;
    const auto device = describe_cuda_device(reading);
    CHECK(device.memory_bandwidth == 0);
    CHECK(device.peak_rates.empty());
    REQUIRE(device.caches.size() == 1);
    CHECK(device.caches[0].level == 2);
  }
}
