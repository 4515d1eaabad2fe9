// What is read, measured and computed of a real GPU; skipped where there is none. Says what it measured.
#include <mtmc/backend/cuda/cuda_backend.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gpu.hpp"

using namespace mtmc;
using mtmc_test::gpu;

namespace {

/// A kernel that keeps `values` numbers in registers.
Kernel hungry_kernel(int values) {
  const auto count = std::to_string(values);
  return {languages::cuda,
          "//@ launch f<<<1000, 256>>>(a, n)\n"
          "__global__ void f(float* a, int n) {\n"
          "  float v[" +
              count +
              "];\n"
              "#pragma unroll\n"
              "  for (int i = 0; i < " +
              count +
              "; ++i) v[i] = a[i * n + threadIdx.x];\n"
              "  for (int k = 0; k < n; ++k)\n"
              "#pragma unroll\n"
              "    for (int i = 0; i < " +
              count + "; ++i) v[i] = v[i] * v[(i + 1) % " + count +
              "] + a[k];\n"
              "  float sum = 0;\n"
              "#pragma unroll\n"
              "  for (int i = 0; i < " +
              count +
              "; ++i) sum += v[i];\n"
              "  a[threadIdx.x] = sum;\n"
              "}\n",
          {}};
}

LaunchPlan plan_of(const Kernel& kernel) {
  Task task{.name = "task", .kernel = kernel};
  task.arguments = {{.name = "a", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  return plan_launches(parse_launch_lines(kernel), task, ProblemSize{.symbols = {{"n", 1000}}}, 132);
}

} // namespace

TEST_SUITE("measures of a GPU") {
  TEST_CASE("the device is described by its driver and its data sheet") {
    if (gpu() == nullptr) return;
    const auto& device = gpu()->device();
    MESSAGE(describe(device));
    MESSAGE("in the table of presets: ", find_device_preset(device.name).has_value());
    CHECK(device.compute_units > 0);
    CHECK(device.clock_hz > 1e8);
    CHECK(device.memory_bandwidth > 1e10);
    CHECK(device.caches.back().level == 2);
    CHECK(device.caches.back().bytes > 100'000);
    if (const auto unit = detail::multiprocessor_of(device.arch)) {
      CHECK(device.peak_rates.at("f32") > 1e11);
      CHECK(device.shared_memory_bytes == unit->shared_bytes());
    }
  }

  TEST_CASE("the number of resident blocks is the driver's, for any block") {
    if (gpu() == nullptr) return;
    const auto unit = detail::multiprocessor_of(gpu()->device().arch);
    if (!unit) {
      MESSAGE("SKIPPED: ", gpu()->device().arch, " is not in the table");
      return;
    }
    const detail::CudaContext context({}, 0);
    const detail::CudaContext::Use use(context);
    const auto& driver = context.driver();
    const detail::CudaCompiler compiler({}, gpu()->device().arch, driver.version());
    int compared = 0;
    for (const int values : {1, 8, 24, 40, 64, 100, 160}) {
      const auto kernel = hungry_kernel(values);
      const auto built = compiler.compile(kernel, plan_of(kernel), Deadline::max(), {});
      REQUIRE_FALSE(built.cubin.empty());
      detail::CudaHandle module = nullptr;
      detail::CudaHandle function = nullptr;
      REQUIRE(driver.module_load(&module, built.cubin.data(), 0, nullptr, nullptr) == 0);
      REQUIRE(driver.module_function(&function, module, built.entries[0].name.c_str()) == 0);
      int registers = 0;
      REQUIRE(driver.function_attribute(&registers, detail::FunctionAttribute::registers, function) == 0);
      for (const int shared : {0, 1, 1000, 5000, 16 << 10, 33'333, 48 << 10, 99 << 10, 200 << 10}) {
        if (shared > unit->shared_bytes_of_a_block()) continue;
        if (shared > 48 << 10)
          REQUIRE(driver.function_set_attribute(function, detail::FunctionAttribute::dynamic_shared_bytes,
                                                shared) == 0);
        for (int threads = 1; threads <= 1024; threads += threads < 64 ? 21 : 61) {
          // A block that can never be launched is an error to some drivers.
          int wanted = -1;
          if (driver.resident_blocks(&wanted, function, threads, static_cast<std::size_t>(shared)) != 0)
            wanted = 0;
          const auto found = detail::resident_blocks(*unit, {threads, registers, shared});
          INFO(threads, " threads of ", registers, " registers, ", shared, " bytes");
          CHECK(found.all() == wanted);
          ++compared;
        }
      }
      CHECK(driver.module_unload(module) == 0);
    }
    MESSAGE(compared, " launches compared with cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }

  TEST_CASE("resources tell occupancy and its limiter") {
    if (gpu() == nullptr) return;
    const auto kernel = hungry_kernel(100);
    auto compiled = gpu()->compile(kernel, {.plan = plan_of(kernel)}, {});
    REQUIRE(compiled.program);
    for (const auto& [key, value] : compiled.resources) MESSAGE(key, " = ", value);
    CHECK(compiled.resources.at("registers") > 100);
    CHECK(compiled.resources.at("occupancy") > 0);
    CHECK(compiled.resources.at("occupancy") < 0.5);
    CHECK(occupancy_limiter(compiled.resources) == "registers");
  }

  TEST_CASE("conditions are read, and how long that takes") {
    if (gpu() == nullptr) return;
    for (int i = 0; i < 6; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto read = gpu()->conditions();
      const auto seconds = seconds_since(begin);
      std::string text = seconds_text(seconds) + (i == 0 ? " (with opening the library)" : "");
      if (read.clock_hz) text += ", clock " + std::to_string(*read.clock_hz / 1e6) + " MHz";
      for (const auto& [key, value] : read.readings) text += ", " + key + ' ' + std::to_string(value);
      for (const auto& [key, value] : read.throttle_events) text += ", " + key + ' ' + std::to_string(value);
      MESSAGE(text);
    }
    detail::CudaManagement management(detail::CudaContext({}, 0).uuid());
    if (!management.available()) {
      MESSAGE("the management library is missing, or does not know the device");
      return;
    }
    const auto say = [](const std::string& what, auto read) {
      constexpr int times = 10;
      const auto begin = std::chrono::steady_clock::now();
      bool known = false;
      for (int i = 0; i < times; ++i) known = read().has_value();
      MESSAGE(what, std::string(known ? "" : " (not told)"), ": ",
              seconds_text(seconds_since(begin) / times));
    };
    say("clock", [&] { return management.clock_hz(); });
    say("memory clock", [&] { return management.memory_clock_hz(); });
    say("reasons", [&] { return management.clock_event_reasons(); });
    say("seconds short of power", [&] { return management.seconds_short_of_power(); });
    say("seconds too hot", [&] { return management.seconds_too_hot(); });
    say("temperature", [&] { return management.celsius(); });
    say("power", [&] { return management.watts(); });
    say("other processes", [&] { return management.other_processes(); });
  }

  TEST_CASE("ceilings are measured once, and lie below the data sheet's") {
    if (gpu() == nullptr) return;
    const auto sheet = gpu()->device();
    const auto begin = std::chrono::steady_clock::now();
    const auto measured = gpu()->measure_ceilings();
    MESSAGE("measured in ", seconds_text(seconds_since(begin)));
    const auto say = [](const std::string& what, double value, double of) {
      MESSAGE(what, ": ", value,
              of > 0 ? ", of the data sheet's " + std::to_string(100 * value / of) + " %" : "");
      CHECK(value > 1e9);
    };
    say("read bandwidth", measured.read_bandwidth, sheet.memory_bandwidth);
    say("cache bandwidth", measured.cache_bandwidth, 0);
    const auto peak = [&](const char* type) {
      const auto found = sheet.peak_rates.find(type);
      return found == sheet.peak_rates.end() ? 0.0 : found->second;
    };
    say("f32 rate", measured.f32_rate, peak("f32"));
    say("f64 rate", measured.f64_rate, peak("f64"));
    CHECK(gpu()->device().measured == measured);
    const auto again = std::chrono::steady_clock::now();
    CHECK(gpu()->measure_ceilings() == measured);
    MESSAGE("asked again: ", seconds_text(seconds_since(again)));
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto bandwidth = gpu()->measure_read_bandwidth();
      MESSAGE("read bandwidth anew: ", bandwidth, " in ", seconds_text(seconds_since(start)));
      CHECK(bandwidth > 1e9);
    }
  }

  TEST_CASE("no cold read beats the floor that the read bandwidth sets") {
    if (gpu() == nullptr) return;
    const Kernel kernel{languages::cuda,
                        "//@ launch sum<<<compute_units * 2, 1024>>>(a, b, n)\n"
                        "__global__ void sum(const float* a, float* b, int n) {\n"
                        "  const float4* v = (const float4*)a;\n"
                        "  float sum = 0;\n"
                        "#pragma unroll 8\n"
                        "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4;\n"
                        "       i += gridDim.x * blockDim.x) {\n"
                        "    float4 x = v[i];\n"
                        "    sum += x.x + x.y + x.z + x.w;\n"
                        "  }\n"
                        "  b[blockIdx.x * blockDim.x + threadIdx.x] = sum;\n"
                        "}\n",
                        {}};
    const double bandwidth = gpu()->measure_ceilings().read_bandwidth;
    constexpr std::int64_t most = std::int64_t{1} << 29;
    auto a = gpu()->allocate(most);
    auto b = gpu()->allocate(std::size_t{1} << 22);
    const auto units = gpu()->device().compute_units;
    Task task{.name = "sum", .kernel = kernel};
    task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                      {.name = "b", .role = ArgumentRole::output, .shape = {"m"}},
                      {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
    for (std::int64_t bytes = 1 << 20; bytes <= most; bytes *= 2) {
      task.sizes = {{.symbols = {{"n", bytes / 4}, {"m", 1 << 20}}}};
      auto plan = plan_launches(parse_launch_lines(kernel), task, task.sizes[0], units);
      auto compiled = gpu()->compile(kernel, {.plan = plan}, {});
      REQUIRE(compiled.program);
      plan.launches[0].arguments[0].bound = {a.handle(), 0, bytes};
      plan.launches[0].arguments[1].bound = {b.handle(), 0, 1 << 22};
      double least = 1;
      for (int i = 0; i < 20; ++i) {
        // As an upload leaves it: in the cache as far as it fits.
        gpu()->fill(a, 0, static_cast<std::size_t>(bytes), std::byte{1});
        const auto timed = gpu()->time(*compiled.program, {&plan, 1}, true, Deadline::max());
        REQUIRE(timed.status.finished());
        least = std::min(least, timed.seconds);
      }
      const double ideal = static_cast<double>(bytes) / bandwidth;
      MESSAGE((bytes >> 20), " MiB: ", seconds_text(least), ", ", least / ideal,
              " of the time at full bandwidth");
      // The share with which the plausibility rule refuses.
      CHECK(least > 0.9 * ideal);
    }
  }

  TEST_CASE("the profile of a copy, by the best evidence there is") {
    if (gpu() == nullptr) return;
    const Kernel kernel{languages::cuda,
                        "//@ launch copy<<<ceil_div(n, 256), 256>>>(a, b, n)\n"
                        "__global__ void copy(const float* a, float* b, int n) {\n"
                        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                        "  if (i < n) b[i] = a[i];\n"
                        "}\n",
                        {}};
    Task task{.name = "copy", .kernel = kernel};
    task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                      {.name = "b", .role = ArgumentRole::output, .shape = {"n"}},
                      {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
    constexpr std::int64_t elements = 1 << 25;
    auto plan =
        plan_launches(parse_launch_lines(kernel), task, ProblemSize{.symbols = {{"n", elements}}}, 132);
    auto compiled = gpu()->compile(kernel, {.plan = plan}, {});
    REQUIRE(compiled.program);
    constexpr auto bytes = 4 * elements;
    auto a = gpu()->allocate(bytes);
    auto b = gpu()->allocate(bytes);
    gpu()->fill(a, 0, bytes, std::byte{1});
    gpu()->fill(b, 0, bytes, std::byte{2});
    auto& arguments = plan.launches[0].arguments;
    arguments[0].bound = {a.handle(), 0, bytes};
    arguments[1].bound = {b.handle(), 0, bytes};
    const auto without =
        gpu()->profile(*compiled.program, plan, {.profiler = "/nowhere/ncu", .program = {"x"}});
    MESSAGE("without Nsight Compute:\n", describe(without));
    CHECK(without.evidence == Evidence::compiler);
    CHECK(without.find("waves")->value > 1);
    const auto begin = std::chrono::steady_clock::now();
    const auto profile =
        gpu()->profile(*compiled.program, plan, {.program = {std::string(MTMC_EXAMPLES) + "/mtmc-worker"}});
    MESSAGE("in ", seconds_text(seconds_since(begin)), ":\n", describe(profile));
    if (profile.evidence == Evidence::counters) {
      CHECK(profile.bound == BoundBy::memory);
      CHECK(profile.find("memory_bytes")->value > 1.5 * static_cast<double>(bytes));
    } else {
      CHECK_FALSE(profile.missing.empty());
    }
    // The buffers are as they were.
    std::array<std::byte, 4> last{};
    gpu()->download(b, static_cast<std::size_t>(bytes) - 4, last);
    CHECK(last[3] == std::byte{2});
  }
}
