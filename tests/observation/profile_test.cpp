// What bounds a kernel, by evidence of each grade, and how prompts are told.
#include <mtmc/core/json.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/observation/profile_grading.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

/// A copy of n = 1e6 floats, 8 MB, on a GPU of 1 TB/s and 10 TFLOP/s, that takes `seconds`.
Observation copy_in(double seconds) {
  Observation seen;
  seen.task.name = "copy";
  seen.task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"n"}},
                         {.name = "y", .role = ArgumentRole::output, .shape = {"n"}}};
  seen.task.sizes = {{.symbols = {{"n", 1'000'000}}}};
  seen.device.kind = "gpu";
  seen.device.memory_bandwidth = 1e12;
  seen.device.peak_rates = {{"f32", 10e12}, {"f64", 5e12}, {"f16", 1e15}};
  seen.evaluation.emplace();
  seen.evaluation->seconds = seconds;
  return seen;
}

Profile counted(std::vector<ProfileMetric> metrics) {
  Profile profile;
  profile.metrics = std::move(metrics);
  grade_counters(profile);
  return profile;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_SUITE("profile") {
  TEST_CASE("without a time nothing is known") {
    CHECK(profile_of(Observation{}).evidence == Evidence::none);
    CHECK(profile_of(copy_in(0)).evidence == Evidence::none);
    CHECK(describe(Profile{}).empty());
    auto seen = copy_in(1e-3);
    seen.device = {};
    CHECK(profile_of(seen).evidence == Evidence::none);
  }

  TEST_CASE("by the roofline: what takes most of the time bounds the kernel") {
    auto seen = copy_in(10e-6); // 8 us at full bandwidth
    auto profile = profile_of(seen);
    CHECK(profile.evidence == Evidence::roofline);
    CHECK(profile.bound == BoundBy::memory);
    CHECK(profile.find("memory_throughput")->value == doctest::Approx(80));
    CHECK(profile.find("compute_throughput") == nullptr);
    seen.task.flops = "100 * n"; // 1e8 at 10 TFLOP/s: 10 us
    seen.evaluation->seconds = 12.5e-6;
    profile = profile_of(seen);
    CHECK(profile.bound == BoundBy::compute);
    CHECK(profile.find("compute_throughput")->value == doctest::Approx(80));
    seen.task.arguments[0].type = seen.task.arguments[1].type = DataType::f64;
    CHECK(profile_of(seen).find("compute_throughput")->value == doctest::Approx(160));
    // Measured ceilings count before those of the data sheet.
    seen = copy_in(10e-6);
    seen.device.measured.read_bandwidth = 0.8e12;
    CHECK(profile_of(seen).find("memory_throughput")->value == doctest::Approx(100));
  }

  TEST_CASE("by the roofline: far from it nothing is claimed") {
    const auto profile = profile_of(copy_in(80e-6));
    CHECK(profile.evidence == Evidence::roofline);
    CHECK(profile.bound == BoundBy::unknown);
    CHECK(profile.reason ==
          "the least traffic takes 10 % of the time at the memory's bandwidth, the arithmetic 0.0 % at the "
          "device's rate; what takes the rest is not visible without counters");
  }

  TEST_CASE("by the compiler's report: spills, then too few blocks, then occupancy; short calls before all") {
    auto seen = copy_in(80e-6);
    auto& resources = seen.evaluation->resources;
    resources = {{"registers", 255},
                 {"spill_store_bytes", 48},
                 {"occupancy", 0.125},
                 {"occupancy_by_registers", 0.125},
                 {"occupancy_by_blocks", 1}};
    auto profile = profile_of(seen);
    CHECK(profile.evidence == Evidence::compiler);
    CHECK(profile.bound == BoundBy::registers);
    CHECK(contains(profile.reason, "255 registers and spills 48 bytes"));
    CHECK(profile.find("spilled")->value == 48);
    resources["spill_store_bytes"] = 0;
    profile = profile_of(seen);
    CHECK(profile.bound == BoundBy::occupancy);
    CHECK(profile.reason == "only 12 % of the possible warps fit, for want of registers");
    resources["occupancy"] = 0.5;
    CHECK(profile_of(seen).bound == BoundBy::unknown);
    seen.evaluation->profile = Profile{.evidence = Evidence::compiler, .metrics = {{"waves", 0.25}}};
    CHECK(profile_of(seen).bound == BoundBy::parallelism);
    CHECK(profile_of(seen).reason == "the grid fills only 25 % of the device");
    seen.task.sizes[0].symbols = {{"n", 1000}};
    seen.evaluation->seconds = 3e-6;
    CHECK(profile_of(seen).bound == BoundBy::overhead);
    // What fills its roofline is not slowed down by anything else.
    seen = copy_in(9e-6);
    seen.evaluation->resources = {{"registers", 255}, {"spill_store_bytes", 8}, {"occupancy", 0.1}};
    CHECK(profile_of(seen).bound == BoundBy::memory);
  }

  TEST_CASE("by counters: the unit that is busiest") {
    auto profile = counted({{"memory_throughput", 83, "%"}, {"cache_throughput", 90, "%"}});
    CHECK(profile.evidence == Evidence::counters);
    CHECK(profile.bound == BoundBy::memory);
    CHECK(profile.reason == "memory moves 83 % of what it can");
    CHECK(counted({{"memory_throughput", 20, "%"}, {"cache_throughput", 90, "%"}}).bound == BoundBy::cache);
    CHECK(counted({{"memory_throughput", 70, "%"}, {"compute_throughput", 90, "%"}}).bound ==
          BoundBy::compute);
    CHECK(counted({{"compute_throughput", 30, "%"}, {"matrix_throughput", 75, "%"}}).bound ==
          BoundBy::compute);
  }

  TEST_CASE("by counters: where no unit is busy, too few blocks, too few warps, or waiting") {
    const ProfileMetric memory{"memory_throughput", 20, "%"};
    auto profile = counted({memory, {"waves", 0.4, ""}, {"achieved_occupancy", 10, "%"}});
    CHECK(profile.bound == BoundBy::parallelism);
    CHECK(contains(profile.reason, "fills only 40 % of the device"));
    profile = counted({memory, {"waves", 4, ""}, {"achieved_occupancy", 10, "%"}});
    CHECK(profile.bound == BoundBy::occupancy);
    profile = counted({memory,
                       {"achieved_occupancy", 60, "%"},
                       {"stall_barrier", 20, "%"},
                       {"stall_long_scoreboard", 70, "%"}});
    CHECK(profile.bound == BoundBy::latency);
    CHECK(profile.reason ==
          "no unit does more than 20 % of what it can; 70 % of their waiting time warps wait "
          "for global or local memory");
    CHECK(contains(counted({{"stall_something_new", 70, "%"}}).reason, "warps wait (something_new)"));
  }

  TEST_CASE("counters of the kernel's own evaluation come first; why there are none is passed on") {
    auto seen = copy_in(10e-6);
    seen.evaluation->profile = counted({{"compute_throughput", 95, "%"}});
    CHECK(profile_of(seen) == *seen.evaluation->profile);
    Profile none;
    none.missing = "the driver keeps counters from this user";
    seen.evaluation->profile = none;
    const auto profile = profile_of(seen);
    CHECK(profile.evidence == Evidence::roofline);
    CHECK(profile.bound == BoundBy::memory);
    CHECK(profile.missing == none.missing);
    CHECK(contains(describe(profile), "(no counters: the driver keeps counters from this user)"));
  }

  TEST_CASE("as text it says what, by what evidence, why, and the figures") {
    CHECK(describe(counted({{"memory_throughput", 83.14, "%"}, {"waves", 12, ""}})) ==
          "bound by memory (by counters of the device): memory moves 83 % of what it can\n"
          "  memory_throughput: 83.1 %\n"
          "  waves: 12\n");
    auto seen = copy_in(10e-6);
    CHECK_FALSE(contains(describe(seen), "bound by"));
    seen.evaluation->resources = {{"registers", 32}};
    CHECK(contains(describe(seen), "bound by memory (by the compiler's report and the measured time): "));
    CHECK(
        contains(describe(profile_of(copy_in(80e-6))), "what bounds it is not known (by the measured time)"));
  }

  TEST_CASE("as JSON it keeps everything") {
    auto profile = counted({{"memory_throughput", 83, "%"}});
    profile.missing = "nothing";
    profile.unknown.json = {{"later", "1"}};
    const nlohmann::json json = profile;
    CHECK(json["evidence"] == "counters");
    CHECK(json["bound"] == "memory");
    CHECK(json.get<Profile>() == profile);
    CHECK_THROWS_AS((void)nlohmann::json::parse(R"({"evidence": "guess"})").get<Profile>(), Error);
  }
}
