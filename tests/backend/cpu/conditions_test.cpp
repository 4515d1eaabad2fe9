// What others do meanwhile: the system's text, a machine without counters, a real busy process.
#include <mtmc/backend/cpu/conditions.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <sys/stat.h>
#include <thread>

#include "kernels.hpp"

static_assert(mtmc::ReportsConditions<mtmc::CpuBackend>);

namespace {

constexpr std::string_view statistics = "cpu  10 20 30 400 50 6 7 8 9 9\n"
                                        "cpu0 1 2 3 100 10 4 5 6 0 0\n"
                                        "cpu1 9 18 27 300 40 2 2 2 9 9\n"
                                        "cpu10 1000 0 0 0 0 0 0 0 0 0\n"
                                        "intr 1 2 3\n";

void put(const std::string& path, std::string_view text) {
  for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0700);
  write_file_atomic(path, text);
}

/// A process that computes until it has used some processor time.
ChildProcess busy_process() {
  ChildProcess child{{.arguments = {"/bin/sh", "-c", "while :; do :; done"}}};
  while (child.cpu_seconds().value_or(1) <= 0) std::this_thread::sleep_for(1ms);
  return child;
}
void wait_for(const ChildProcess& child, double more_seconds) {
  const double end = child.cpu_seconds().value_or(0) + more_seconds;
  while (child.cpu_seconds().value_or(end) < end) std::this_thread::sleep_for(5ms);
}

} // namespace

TEST_SUITE("conditions") {
  TEST_CASE("busy are user, nice, system and interrupts; idle and waiting for a disk are not") {
    struct Example {
      std::vector<int> processors;
      double busy, stolen;
    };
    for (const auto& [processors, busy, stolen] :
         {Example{{}, 0.73, 0.08}, Example{{0}, 0.15, 0.06}, Example{{0, 1}, 0.73, 0.08},
          Example{{1, 10}, 10.58, 0.02}}) {
      const auto use = detail::read_processor_use(statistics, processors, 0.01);
      REQUIRE(use);
      CHECK(use->busy == doctest::Approx(busy));
      CHECK(use->stolen == doctest::Approx(stolen));
    }
  }

  TEST_CASE("what is not told is absent") {
    CHECK_FALSE(detail::read_processor_use("", {}, 0.01));
    CHECK_FALSE(detail::read_processor_use("intr 5\n", {}, 0.01));
    CHECK_FALSE(detail::read_processor_use(statistics, {0, 2}, 0.01));
    CHECK_FALSE(detail::read_processor_use("cpu  0 0 0 0 0 0 0 0 0 0\n", {}, 0.01)); // some sandboxes

    detail::ConditionsWatch watch("/nowhere/stat", "/nowhere/cpu");
    watch.add(watch.read(0), watch.read(0.5));
    const auto seen = watch.conditions();
    CHECK(seen.watched_seconds == 0);
    CHECK_FALSE(seen.others_seconds);
    CHECK_FALSE(seen.stolen_seconds);
    CHECK(seen.throttle_events.empty());
    CHECK_FALSE(seen.clock_hz);
  }

  TEST_CASE("throttling is counted once for each core and package, the clock is that of this moment") {
    const TemporaryFolder folder;
    // Two threads of one core, another core, and another package whose core has the same number.
    const std::vector<std::pair<int, int>> places{{0, 0}, {0, 0}, {0, 1}, {1, 0}};
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto of = folder.path() + "/cpu" + std::to_string(i);
      put(of + "/topology/physical_package_id", std::to_string(places[i].first) + "\n");
      put(of + "/topology/core_id", std::to_string(places[i].second) + "\n");
      put(of + "/thermal_throttle/core_throttle_count", "1\n");
      put(of + "/thermal_throttle/package_throttle_count", "100\n");
    }
    std::map<std::string, int> files;
    for (const auto& [what, file] : detail::find_throttle_files(folder.path(), {0, 1, 2, 3})) ++files[what];
    CHECK(files == std::map<std::string, int>{{"core", 3}, {"package", 2}});

    for (const int processor : detail::usable_processors())
      put(folder.path() + "/cpu" + std::to_string(processor) + "/cpufreq/scaling_cur_freq", "2450000\n");
    const auto seen = detail::ConditionsWatch("/proc/stat", folder.path()).conditions();
    CHECK(seen.clock_hz == 2.45e9);
    if (detail::usable_processors().front() == 0) CHECK(seen.throttle_events.at("package") >= 100);
  }

  TEST_CASE("a busy process of somebody else is seen, the timed process is not") {
    detail::ConditionsWatch as_other;
    detail::ConditionsWatch as_timed;
    if (!as_other.read(0).use) return; // a sandbox without counters
    const auto child = busy_process();
    const auto other = as_other.read(0);
    const auto timed = as_timed.read(child.cpu_seconds());
    wait_for(child, 0.3);
    as_timed.add(timed, as_timed.read(child.cpu_seconds()));
    as_other.add(other, as_other.read(0));
    const auto seen = as_other.conditions();
    CHECK(seen.processors >= 1);
    CHECK(seen.watched_seconds > 0.15);
    CHECK(*seen.others_seconds > 0.2);
    CHECK(*seen.others_seconds <= seen.watched_seconds * seen.processors + 0.1);
    CHECK(*seen.others_seconds - *as_timed.conditions().others_seconds > 0.2);
    CHECK(seen.counter_variance > 0);
  }

  TEST_CASE("what the calling thread computes is its own, what another thread does is not") {
    detail::ConditionsWatch watch;
    if (!watch.read(0).use) return;
    const auto begin = watch.read(0);
    const auto used = [] {
      timespec now{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
      return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    };
    for (const double from = used(); used() - from < 0.3;) {
    }
    const auto end = watch.read(0);
    const double busy = end.use->busy - begin.use->busy;
    watch.add(begin, end);
    CHECK(*watch.conditions().others_seconds == doctest::Approx(busy - (*end.own - *begin.own)));
    CHECK(*end.own - *begin.own > 0.1);
  }

  TEST_CASE("the backend watches while it times, and only then") {
    CpuBackend backend;
    Bench bench(backend,
                "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 1; }\n");
    REQUIRE(bench.run().finished());
    CHECK(backend.conditions().watched_seconds == 0);
    REQUIRE(bench.time().status.finished());
    const auto once = backend.conditions();
    if (!detail::ConditionsWatch().read(0).use) return;
    CHECK(once.watched_seconds > 0);
    CHECK(once.others_seconds);
    REQUIRE(bench.time().status.finished());
    CHECK(backend.conditions().watched_seconds > once.watched_seconds);
    CHECK(backend.conditions().counter_variance > once.counter_variance);
  }
}
