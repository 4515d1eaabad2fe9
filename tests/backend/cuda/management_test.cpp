// What a GPU's management library tells, read from one of our own making. Needs no GPU.
#include <mtmc/backend/cuda/management.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

constexpr const char* uuid = "GPU-0123456789abcdef0123456789abcdef";

/// A library that answers by numbers set through `fake_set(what, value)`.
constexpr const char* library_text = R"code(
#include <string.h>
#include <unistd.h>
typedef unsigned long long Wide;
static Wide state[8];
void fake_set(int what, Wide value) { state[what] = value; }
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (strcmp(uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef") != 0) return 6;
  *device = state;
  return 0;
}
int nvmlDeviceGetClockInfo(void* device, int of, unsigned* value) { *value = of == 1 ? 1755 : 2619; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, Wide* bits) { *bits = state[0]; return 0; }
int nvmlDeviceGetViolationStatus(void* device, int policy, Wide* times) {
  times[0] = 7;
  times[1] = state[1 + policy];
  return policy <= 1 ? 0 : 3;
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* value) { *value = 61; return 0; }
int nvmlDeviceGetPowerUsage(void* device, unsigned* value) { *value = 433400; return (int)state[5]; }
struct Process { unsigned id; Wide memory; unsigned a, b; };
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct Process* processes) {
  *count = 1;
  processes[0].id = state[4] ? getpid() : 1;
  return 0;
}
struct Use { unsigned id; Wide time; unsigned sm, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(void* device, struct Use* use, unsigned* count, Wide since) {
  if (state[3] == 0) return 6;
  *count = 4;
  struct Use all[4] = {{getpid(), 5, 90}, {11, 6, 40}, {11, 7, 30}, {12, 7, 1}};
  memcpy(use, all, sizeof all);
  return 0;
}
)code";

enum What { reasons, short_of_power, too_hot, others, shown, no_power };

struct Fake {
  TemporaryFolder folder{};
  std::string path = folder.path() + "/libfake.so";
  SharedLibrary library = opened();

  void set(What what, unsigned long long value) const {
    library.symbol<void(int, unsigned long long)>("fake_set")(what, value);
  }

private:
  [[nodiscard]] SharedLibrary opened() const {
    write_file_atomic(folder.path() + "/fake.c", library_text);
    const auto built =
        run_process({.arguments = {"cc", "-shared", "-fPIC", "-w", "-o", path, folder.path() + "/fake.c"}});
    INFO(built.error);
    REQUIRE(built.succeeded());
    const std::vector<std::string> names{path};
    return SharedLibrary::open(names);
  }
};

} // namespace

TEST_SUITE("the management library of a GPU") {
  TEST_CASE("where it is missing, or is another library, nothing is known") {
    for (const char* library : {"libno-such-management.so.1", "libm.so.6"}) {
      CAPTURE(library);
      CudaManagement management(uuid, library);
      CHECK_FALSE(management.available());
      CudaConditionsWatch watch(uuid, library);
      const auto read = watch.conditions();
      CHECK(read.throttle_events.empty());
      CHECK(read.readings.empty());
      CHECK_FALSE(read.clock_hz);
    }
  }

  TEST_CASE("a device it does not know tells nothing") {
    const Fake fake;
    CHECK_FALSE(CudaManagement("GPU-ffffffffffffffffffffffffffffffff", fake.path).available());
    CHECK_FALSE(CudaManagement("MIG", fake.path).available());
  }

  TEST_CASE("clocks, heat and power at the moment; what fails is left out") {
    const Fake fake;
    CudaConditionsWatch watch(uuid, fake.path);
    auto read = watch.conditions();
    CHECK(read.clock_hz == 1.755e9);
    CHECK(read.readings.size() == 3);
    CHECK(read.readings.at("memory_clock_mhz") == 2619);
    CHECK(read.readings.at("temperature_celsius") == 61);
    CHECK(read.readings.at("power_watts") == doctest::Approx(433.4));
    CHECK(read.watched_seconds == 0);
    fake.set(no_power, 4);
    CHECK_FALSE(watch.conditions().readings.contains("power_watts"));
  }

  TEST_CASE("a reason counts with each reading at which it holds") {
    const Fake fake;
    CudaConditionsWatch watch(uuid, fake.path);
    const auto none = watch.conditions().throttle_events;
    CHECK(none.size() == 5);
    for (const auto& [reason, count] : none) CHECK(count == 0);
    fake.set(reasons, 0x4 | 0x1);
    CHECK(watch.conditions().throttle_events.at("sw_power_cap") == 1);
    fake.set(reasons, 0x8 | 0x40);
    const auto hot = watch.conditions().throttle_events;
    CHECK(hot.at("hw_thermal_slowdown") == 1);
    CHECK(hot.at("hw_slowdown") == 0); // says less than the one before
    CHECK(hot.at("sw_power_cap") == 1);
    fake.set(reasons, 0x1 | 0x2 | 0x10); // idle, clocks that were set, boost in step with others
    CHECK(watch.conditions().throttle_events == hot);
    fake.set(reasons, 0x8);
    CHECK(watch.conditions().throttle_events.at("hw_slowdown") == 1);
  }

  TEST_CASE("so does a clock that was lowered between two readings") {
    const Fake fake;
    CudaConditionsWatch watch(uuid, fake.path);
    fake.set(short_of_power, 5'000'000'000);
    CHECK(watch.conditions().throttle_events.at("sw_power_cap") == 0); // before anybody watched
    fake.set(short_of_power, 5'000'500'000);
    CHECK(watch.conditions().throttle_events.at("sw_power_cap") == 0);
    fake.set(short_of_power, 5'003'000'000);
    fake.set(too_hot, 2'000'000);
    const auto events = watch.conditions().throttle_events;
    CHECK(events.at("sw_power_cap") == 1);
    CHECK(events.at("sw_thermal_slowdown") == 1);
    fake.set(short_of_power, 5'006'000'000);
    fake.set(reasons, 0x4);
    CHECK(watch.conditions().throttle_events.at("sw_power_cap") == 2); // one event, told twice
  }

  TEST_CASE("other processes count where the library shows this one") {
    const Fake fake;
    fake.set(others, 1);
    CHECK_FALSE(CudaManagement(uuid, fake.path).other_processes());
    fake.set(shown, 1);
    CudaManagement management(uuid, fake.path);
    CHECK(management.other_processes() == 1);
    fake.set(others, 0);
    CHECK(management.other_processes() == 0);
    CudaConditionsWatch watch(uuid, fake.path);
    CHECK(watch.conditions().readings.at("other_processes") == 0);
  }
}
