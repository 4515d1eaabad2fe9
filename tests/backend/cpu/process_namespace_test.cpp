// What a kernel can do to other processes if nothing but a process namespace is between them.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "../../support/processes.hpp"
#include "kernels.hpp"

namespace {

/// No filter of system calls.
CpuBackend& numbered_alone() {
  static CpuBackend backend(
      {.threads = 2, .defences = {.text_screen = false, .object_screen = false, .sandbox = false}});
  return backend;
}

/// Whether this system gives a runner a process namespace; it need not.
bool gives_namespaces() {
  static const bool gives = [] {
    Bench bench(numbered_alone(), "#include <unistd.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                                  "  y[0] = getppid();\n}\n");
    REQUIRE(bench.run().finished());
    // In a namespace: 1 holds it, 2 loads programs, and each call is made by a child of 2.
    return bench.of<float>("y")[0] == 2;
  }();
  if (!gives) MESSAGE("this system gives no process namespace");
  return gives;
}

} // namespace

TEST_SUITE("process namespace") {
  TEST_CASE("a signal to everybody reaches nobody else") {
    if (!gives_namespaces()) return;
    Bench neighbour(numbered_alone(), "//@ launch f(y)\nvoid f(float* y) { y[0] += 1; }\n");
    neighbour.of<float>("y")[0] = 0;
    REQUIRE(neighbour.run().finished());
    (void)run_once(numbered_alone(), "#include <signal.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                                     "  y[0] = kill(-1, SIGKILL);\n}\n");
    REQUIRE(neighbour.run().finished());
    CHECK(neighbour.of<float>("y")[0] == 2);
  }

  TEST_CASE("numbers of other processes mean nothing") {
    if (!gives_namespaces()) return;
    Bench bench(numbered_alone(),
                "#include <sched.h>\n#include <signal.h>\n#include <sys/resource.h>\n//@ launch f(y)\n"
                "void f(float* y) {\n  const int other = " +
                    std::to_string(::getpid()) +
                    ";\n  cpu_set_t one;\n  CPU_ZERO(&one);\n  CPU_SET(0, &one);\n  rlimit low{16, 16};\n"
                    "  y[0] = sched_setaffinity(other, sizeof one, &one);\n"
                    "  y[1] = prlimit(other, RLIMIT_NOFILE, &low, nullptr);\n"
                    "  y[2] = setpriority(PRIO_PROCESS, other, 19);\n  y[3] = kill(other, 0);\n}\n");
    REQUIRE(bench.run().finished());
    for (int i = 0; i < 4; ++i) CHECK(bench.of<float>("y")[static_cast<std::size_t>(i)] == -1);
  }

  TEST_CASE("whoever a kernel has started ends with it, whatever group or session it went to") {
    if (!gives_namespaces()) return;
    Bench bench(numbered_alone(), "#include <unistd.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                                  "  for (int i = 0; i < 3; ++i)\n    if (fork() == 0) {\n"
                                  "      setsid();\n      for (;;) sleep(n);\n    }\n  y[0] = 1;\n}\n");
    const auto before = processes::descendants(::getpid()).size();
    REQUIRE(bench.run().finished());
    // The runner, its caller, which has ended but is not waited for yet, three children, who holds the
    // namespace and who watches over it.
    CHECK(processes::descendants(::getpid()).size() == before + 7);
    bench.program().retire();
    CHECK(processes::descendants(::getpid()).size() == before);
  }

  TEST_CASE("a program that is given up leaves nothing for others to clear away") {
    if (!gives_namespaces()) return;
    CpuBackend backend;
    Bench bench(backend, "//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "  for (volatile int i = n; y[0] != 1; i = n) {}\n}\n");
    bench.of<float>("y")[0] = 1;
    const auto before = processes::descendants(::getpid());
    // What nobody waits for would become a child of this process.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    REQUIRE(bench.run().finished());
    bench.program().retire();
    CHECK(processes::descendants(::getpid()) == before);
    bench.of<float>("y")[0] = 0;
    CHECK(bench.run(100ms).outcome == RunOutcome::timed_out);
    CHECK(processes::descendants(::getpid()) == before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  TEST_CASE("the signal that ended a program is told through the process that watches over it") {
    CpuBackend backend({.defences = {.text_screen = false, .object_screen = false, .sandbox = false}});
    for (const std::string signal : {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGSYS"}) {
      const auto status = run_once(backend, "#include <signal.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                                            "  y[0] = raise(" +
                                                signal + ");\n}\n");
      CHECK(status.outcome == RunOutcome::faulted);
      CHECK_MESSAGE(status.message.find(signal) != std::string::npos, status.message);
    }
    CHECK(
        run_once(backend, "#include <unistd.h>\n//@ launch f(y)\nvoid f(float* y) { _exit(y != nullptr); }\n")
            .message.find("exit code 1") != std::string::npos);
  }

  TEST_CASE("when this process dies, all of it dies") {
    TemporaryFolder base;
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t host = ::fork();
    if (host == 0) {
      CpuBackend backend({.temporary_folder = base.path()});
      const auto task = vector_task("//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n");
      auto plan = plan_of(task, 8);
      const auto program = backend.compile(task.kernel, {.plan = plan}, {}).program;
      auto buffer = backend.allocate(32);
      plan.launches[0].arguments[0].bound = {buffer.handle(), 0, 32};
      (void)backend.run(*program, plan, in(20s));
      if (::write(ends[1], "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char ready = 0;
    REQUIRE(::read(ends[0], &ready, 1) == 1);
    const auto started = processes::descendants(host);
    CHECK(started.size() >= 1);
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    const auto left = [&] {
      return std::count_if(started.begin(), started.end(), [](pid_t pid) { return processes::runs(pid); });
    };
    for (int i = 0; i < 500 && left() > 0; ++i) std::this_thread::sleep_for(20ms);
    CHECK(left() == 0);
    ::close(ends[0]);
    ::close(ends[1]);
  }

  TEST_CASE("the device says what stands between a kernel and other processes") {
    const auto isolation = [](CpuDefences defences) {
      CpuBackend backend({.defences = defences});
      (void)backend.measure_ceilings();
      return backend.device().software.at("isolation");
    };
    CHECK(isolation({.process_namespace = false}) == "system call filter, no process namespace");
    CHECK(isolation({.sandbox = false, .process_namespace = false}) ==
          "no system call filter, no process namespace");
    const auto usual = isolation({});
    // With the system's reason where it gives none.
    CHECK((usual == "system call filter, process namespace" ||
           usual.starts_with("system call filter, no process namespace (")));
  }
}
