// What one kernel does to the process of another, or to its own, does not last until that one is timed.
#include <mtmc/backend/cpu/process_settings.hpp>

#include <algorithm>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "kernels.hpp"

namespace {

/// Notes in `y` the number of the process that was forked for it and how it is placed, limited and ranked.
constexpr std::string_view telltale =
    "#include <sched.h>\n#include <sys/resource.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
    "//@ launch f(y)\nvoid f(float* y) {\n"
    "  reinterpret_cast<int*>(y)[0] = getppid();\n"
    "  int processors[2];\n"
    "#pragma omp parallel num_threads(2)\n  {\n    cpu_set_t set;\n"
    "    sched_getaffinity(0, sizeof set, &set);\n"
    "#pragma omp for schedule(static, 1)\n    for (int i = 0; i < 2; ++i) processors[i] = set.__bits[0];\n"
    "  }\n"
    "  y[1] = processors[0];\n  y[2] = processors[1];\n  y[3] = getpriority(PRIO_PROCESS, 0);\n"
    "  y[4] = sched_getscheduler(0);\n  rlimit limit;\n  getrlimit(RLIMIT_NOFILE, &limit);\n"
    "  y[5] = limit.rlim_max;\n  getrlimit(RLIMIT_STACK, &limit);\n  y[6] = limit.rlim_cur;\n"
    "  y[7] = syscall(SYS_ioprio_get, 1, 0);\n}\n";

std::vector<float> told(Bench& bench) {
  const auto seen = bench.of<float>("y");
  return {seen.begin() + 1, seen.begin() + 8};
}
int process_of(Bench& bench) { return bench.of<int>("y")[0]; }

/// Does something to all threads of a process; nothing stands between the two.
void attack(int victim, const std::string& way) {
  Bench attacker(bare_backend(),
                 "#include <cstdlib>\n#include <dirent.h>\n#include <sched.h>\n#include <string>\n"
                 "#include <sys/resource.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
                 "//@ launch f(y)\nvoid f(float* y) {\n  const auto folder = \"/proc/\" + std::to_string(" +
                     std::to_string(victim) +
                     ") + \"/task\";\n  DIR* threads = opendir(folder.c_str());\n  y[0] = 0;\n"
                     "  while (dirent* entry = readdir(threads)) {\n"
                     "    const int thread = atoi(entry->d_name);\n    if (thread == 0) continue;\n" +
                     way + "\n  }\n}\n");
  REQUIRE(attacker.run().finished());
  // What it does must take effect, or this test says nothing.
  REQUIRE(attacker.of<float>("y")[0] == 1);
}

const std::vector<std::string> ways{
    "cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one);\n"
    "y[0] += sched_setaffinity(thread, sizeof one, &one) == 0;",
    "y[0] += setpriority(PRIO_PROCESS, thread, 7) == 0;",
    "sched_param none{}; y[0] += sched_setscheduler(thread, SCHED_IDLE, &none) == 0;",
    "sched_param none{}; y[0] += sched_setscheduler(thread, SCHED_BATCH, &none) == 0;",
    "rlimit low{16, 16}; y[0] += prlimit(thread, RLIMIT_NOFILE, &low, nullptr) == 0;",
    "rlimit low{65536, 1 << 20}; y[0] += prlimit(thread, RLIMIT_STACK, &low, nullptr) == 0;",
    "y[0] += syscall(SYS_ioprio_set, 1, thread, 3 << 13) == 0;"};

} // namespace

TEST_SUITE("process settings") {
  TEST_CASE("what a kernel did to its neighbour is undone before that one is timed") {
    for (const auto& way : ways) {
      CAPTURE(way);
      Bench neighbour(bare_backend(), telltale);
      // The threads are there from the first call on; the first is bound after it.
      REQUIRE(neighbour.run().finished());
      REQUIRE(neighbour.time().status.finished());
      const auto before = told(neighbour);
      const int process = process_of(neighbour);
      attack(process, way);
      REQUIRE(neighbour.time().status.finished());
      // Where this process may not put it right, another one is timed; it is placed after its first call.
      if (process_of(neighbour) != process) REQUIRE(neighbour.time().status.finished());
      CHECK(told(neighbour) == before);
    }
  }

  TEST_CASE("priorities and limits that a kernel gives itself do not last, either") {
    for (const std::string change :
         {"setpriority(PRIO_PROCESS, 0, 5);",
          "sched_param none{}; sched_setscheduler(0, SCHED_BATCH, &none);",
          "rlimit low{16, 16}; setrlimit(RLIMIT_NOFILE, &low);", "syscall(SYS_ioprio_set, 1, 0, 3 << 13);"}) {
      CAPTURE(change);
      std::string text(telltale);
      text.insert(text.rfind('}'), "  " + change + "\n");
      Bench bench(bare_backend(), text);
      REQUIRE(bench.time().status.finished());
      const auto before = told(bench);
      for (int i = 0; i < 2; ++i) {
        REQUIRE(bench.time().status.finished());
        const auto now = told(bench);
        // The place of the first thread is chosen once there are others.
        CHECK(std::equal(before.begin() + 1, before.end(), now.begin() + 1));
      }
    }
  }

  TEST_CASE("what cannot be put right is said") {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) ::pause();
    const detail::ProcessSettings settings(child);
    CHECK(settings.restore());
    rlimit first{};
    REQUIRE(::prlimit(child, RLIMIT_NOFILE, nullptr, &first) == 0);
    const rlimit low{16, 16};
    REQUIRE(::prlimit(child, RLIMIT_NOFILE, &low, nullptr) == 0);
    // Raising a limit again takes a right that not even every root has.
    const bool restored = settings.restore();
    rlimit now{};
    REQUIRE(::prlimit(child, RLIMIT_NOFILE, nullptr, &now) == 0);
    CHECK(restored == (now.rlim_max == first.rlim_max));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // Of a process that has ended nothing is left to be wrong.
    CHECK(settings.restore());
  }
}
