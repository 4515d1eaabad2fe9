// How counters are asked for, with a tool of our own in the place of Nsight Compute. Needs no GPU.
#include <mtmc/backend/cuda/profiler.hpp>
#include <mtmc/cuda_profiled.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

/// Two launches that share the buffer at 1000; the second has an argument in it, 8 bytes on.
LaunchPlan shared_plan() {
  LaunchPlan plan;
  plan.launches.resize(2);
  for (auto& launch : plan.launches) {
    launch.entry = "f";
    launch.block = {256, 1, 1};
    launch.arguments.resize(2);
    launch.arguments[0].bound = {1000, 0, 16};
  }
  plan.launches[0].arguments[1].bound = {1000, 8, 4};
  plan.launches[1].arguments[1].kind = LaunchArgument::Kind::scalar;
  plan.launches[1].arguments[1].integer = 7;
  plan.launches[1].grid = {66, 1, 1};
  return plan;
}

CudaCompilation compilation() {
  CudaCompilation result;
  result.cubin = "binary";
  result.entries = {{"_Z1f", {CudaParameter::pointer, CudaParameter::pointer}},
                    {"_Z1g", {CudaParameter::pointer, CudaParameter::i32}}};
  result.resources = {{"registers", 32}, {"occupancy", 1}, {"blocks_per_unit", 8}};
  return result;
}

/// Memory whose bytes are their addresses.
void addresses(std::uint64_t address, std::span<std::byte> target) {
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = static_cast<std::byte>(address + i);
}

/// A device, and a tool that does what the script says.
struct Bench {
  TemporaryFolder folder{};
  Device device{};
  CudaProfilerOptions options{};

  explicit Bench(const std::string& script) {
    device.compute_units = 132;
    options.profiler = folder.path() + "/ncu";
    options.program = {"/usr/bin/watched", "with argument"};
    options.temporary_folder = folder.path();
    write_file_atomic(options.profiler, "#!/bin/sh\n" + script);
    ::chmod(options.profiler.c_str(), 0755);
  }
  [[nodiscard]] Profile profile() const {
    return profile_cuda(options, {}, {}, compilation(), shared_plan(), device, addresses);
  }
};

} // namespace

TEST_SUITE("counters of a CUDA kernel") {
  TEST_CASE("a job holds each buffer once, and all that the launches need") {
    const TemporaryFolder folder;
    CudaBackendOptions options;
    options.device = 3;
    options.device_lock_folder = "/tmp";
    CHECK(write_job(folder.path(), options, compilation(), shared_plan(), 1 << 20, addresses).empty());
    CHECK(read_file(binary_file(folder.path())) == "binary");
    const auto whole = read_file(buffer_file(folder.path(), 1));
    const auto part = read_file(buffer_file(folder.path(), 2));
    CHECK(whole.size() == 16);
    CHECK(static_cast<unsigned char>(whole[0]) == 1000 % 256);
    CHECK(part.size() == 4);
    CHECK(static_cast<unsigned char>(part[0]) == 1008 % 256);
    ProfiledJob job;
    read_value(parse_json(read_file(job_file(folder.path())), {}), job, "job");
    CHECK(job.options.device == 3);
    CHECK(job.options.device_lock_folder.empty()); // whoever waits for it holds the lock
    CHECK(job.entries == std::vector<std::string>{"_Z1f", "_Z1g"});
    CHECK(job.parameters == std::vector<std::vector<std::uint64_t>>{{1, 1}, {1, 9}});
    REQUIRE(job.plan.launches.size() == 2);
    CHECK(job.plan.launches[0].arguments[0].bound == BoundBuffer{1, 0, 16, {}});
    CHECK(job.plan.launches[0].arguments[1].bound == BoundBuffer{2, 0, 4, {}});
    CHECK(job.plan.launches[1].arguments[0].bound == BoundBuffer{1, 0, 16, {}});
    CHECK(job.plan.launches[1].arguments[1].integer == 7);
    CHECK(job.plan.launches[1].grid[0] == 66);
  }

  TEST_CASE("the tool is told what to count and what to watch, and its table becomes the profile") {
    const Bench bench(
        "echo \"$@\" > \"$(dirname $0)/arguments\"\n"
        "echo '==PROF== Connected'\n"
        "echo '\"ID\",\"Kernel Name\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\"'\n"
        "echo '\"\",\"\",\"%\"'\n"
        "echo '\"0\",\"f\",\"88.5\"'\n");
    const auto profile = bench.profile();
    CHECK(profile.evidence == Evidence::counters);
    CHECK(profile.bound == BoundBy::memory);
    CHECK(profile.missing.empty());
    const auto arguments = read_file(bench.folder.path() + "/arguments");
    CHECK(arguments.starts_with("--csv --page raw --print-units base --clock-control none "));
    CHECK(arguments.find(" /usr/bin/watched with argument --mtmc-profiled " + bench.folder.path() +
                         "/mtmc-") != std::string::npos);
  }

  TEST_CASE("where counters are forbidden the compiler's report has to do, and why is said") {
    const Bench bench("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1\n");
    const auto profile = bench.profile();
    CHECK(profile.evidence == Evidence::compiler);
    CHECK(profile.missing.find("ERR_NVGPUCTRPERM") != std::string::npos);
    CHECK(profile.find("registers")->value == 32);
    CHECK(profile.find("possible_occupancy")->value == 100);
    CHECK(profile.find("waves")->value == doctest::Approx(66.0 / 132 / 8));
    CHECK(profile.bound == BoundBy::parallelism);
  }

  TEST_CASE("so it is where the tool is missing, does not end, or has nothing to watch") {
    const auto missing = [](const Bench& bench) {
      const auto profile = bench.profile();
      CHECK(profile.evidence == Evidence::compiler);
      return profile.missing;
    };
    Bench none("");
    none.options.profiler = "/nowhere/ncu";
    CHECK(missing(none).starts_with("Nsight Compute cannot be started: "));
    Bench endless("exec sleep 100\n");
    endless.options.timeout = std::chrono::milliseconds(100);
    CHECK(missing(endless) == "Nsight Compute was stopped before it was ready");
    Bench large("");
    large.options.max_bytes = 19;
    CHECK(missing(large).find("max_bytes") != std::string::npos);
    Bench nowhere("");
    nowhere.options.temporary_folder = "/nowhere";
    CHECK(missing(nowhere).starts_with("copies of the buffers cannot be written: "));
    Bench failing("for last; do :; done\necho 'no such kernel' > \"$last/failure\"\n");
    CHECK(missing(failing).starts_with("the kernel does not run under Nsight Compute: no such kernel"));
    CHECK(missing(Bench("")) == "Nsight Compute counted nothing");
  }

  TEST_CASE("the watched program says why it cannot run a job") {
    const TemporaryFolder folder;
    const std::string& path = folder.path();
    const std::vector<const char*> arguments{"program", "--mtmc-profiled", path.c_str()};
    const std::vector<ProgramRole> roles{cuda_profiled_role()};
    CHECK(play_role(3, arguments.data(), roles) == 1);
    CHECK(read_file(failure_file(path)).find("job.json") != std::string::npos);
    // With a job it gets as far as the driver.
    CudaBackendOptions options;
    options.driver_library = "libno-such-driver.so.1";
    CHECK(write_job(path, options, compilation(), shared_plan(), 1 << 20, addresses).empty());
    CHECK(play_role(3, arguments.data(), roles) == 1);
    CHECK(read_file(failure_file(path)).find("libno-such-driver.so.1") != std::string::npos);
  }

  TEST_CASE("a program that was started otherwise goes on, and can be watched from then on") {
    Bench bench("for last; do :; done\necho \"$@\" > \"$last/failure\"\n");
    bench.options.program.clear();
    CHECK(bench.profile().missing.find("play_role") != std::string::npos);
    const std::vector<const char*> arguments{"program", "--other", "x"};
    CHECK_FALSE(play_role(3, arguments.data(), {cuda_profiled_role()}));
    const auto said = bench.profile().missing;
    CHECK(said.find("/proc/self/exe") == std::string::npos);
    CHECK(said.find(" --mtmc-profiled ") != std::string::npos);
  }
}
