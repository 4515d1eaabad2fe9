#include <array>
#include <cerrno>
#include <sched.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "kernels.hpp"

namespace {

/// Everything a backend could leave behind: open descriptors and children of this process.
struct Traces {
  std::set<std::string> descriptors;
  bool children;

  static Traces now() {
    Traces traces{{}, ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD};
    for (auto& name : entries_of("/proc/self/fd")) traces.descriptors.insert(name);
    return traces;
  }
  friend bool operator==(const Traces&, const Traces&) = default;
};

/// Processes whose process group is `group`, zombies left out.
int processes_in_group(int group) {
  int count = 0;
  for (const auto& name : entries_of("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string text;
    try {
      text = read_file("/proc/" + name + "/stat");
    } catch (const std::exception&) {
      continue;
    }
    // "pid (name) state parent group ..."
    const auto after = text.rfind(')');
    if (after == std::string::npos || after + 4 >= text.size() || text[after + 2] == 'Z') continue;
    const auto parent_end = text.find(' ', after + 4);
    count += std::atoi(text.c_str() + parent_end) == group;
  }
  return count;
}

/// The same once the killed ones have had time to die: a busy machine lets them wait for a processor first.
int processes_left_in_group(int group) {
  for (int attempt = 0; attempt < 100 && processes_in_group(group) > 0; ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return processes_in_group(group);
}

} // namespace

TEST_SUITE("runner") {
  TEST_CASE("a wild address ends the kernel's process, not this one") {
    auto& backend = bare_backend();
    const auto status =
        run_once(backend, "//@ launch f(y, n)\nvoid f(float* y, int n) { y[1000000000000l * n] = 1; }\n");
    CHECK(status.outcome == RunOutcome::faulted);
    CHECK(status.message.find("SIGSEGV") != std::string::npos);
    CHECK(status.message.find("wild address") != std::string::npos);
  }

  TEST_CASE("writes before and after a buffer hurt nobody else") {
    auto& backend = bare_backend();
    auto neighbour = backend.allocate(4096);
    for (auto& byte : neighbour.content()) byte = std::byte{42};
    (void)run_once(
        backend,
        "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = -2000; i < n + 2000; ++i) y[i] = 1; }\n");
    for (const auto byte : neighbour.content()) REQUIRE(byte == std::byte{42});
  }

  TEST_CASE("abort, an uncaught exception, a division by zero and exit are faults with a reason") {
    auto& backend = bare_backend();
    const auto fault = [&](std::string_view body) {
      const auto status = run_once(backend, "#include <cstdlib>\n#include <vector>\n//@ launch f(y, n)\n"
                                            "void f(float* y, int n) {\n" +
                                                std::string(body) + "\n}\n");
      CHECK(status.outcome == RunOutcome::faulted);
      return status.message;
    };
    CHECK(fault("std::abort();").find("SIGABRT") != std::string::npos);
    CHECK(fault("y[0] = std::vector<int>(3).at(n);").find("threw an exception") != std::string::npos);
    CHECK(fault("volatile int zero = n - n; y[0] = n / zero;").find("SIGFPE") != std::string::npos);
    CHECK(fault("std::exit(0);").find("exit code 0") != std::string::npos);
    CHECK(fault("std::_Exit(9);").find("exit code 9") != std::string::npos);
    CHECK(fault("volatile int depth[1 << 23]; depth[n] = n; y[0] = depth[0];").find("SIGSEGV") !=
          std::string::npos);
  }

  TEST_CASE("a kernel that never ends is killed at its deadline, threads and all") {
    auto& backend = bare_backend();
    Bench bench(backend, "//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "#pragma omp parallel\n"
                         "  for (volatile int i = 0;; i = n) y[0] = i;\n}\n");
    const auto begin = std::chrono::steady_clock::now();
    const auto status = bench.run(150ms);
    CHECK(status.outcome == RunOutcome::timed_out);
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
    const auto timed = bench.time(true, 150ms);
    CHECK(timed.status.outcome == RunOutcome::timed_out);
  }

  TEST_CASE("what a kernel prints goes nowhere") {
    auto& backend = bare_backend();
    const auto status = run_once(backend, "#include <cstdio>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                                          "  for (int i = 0; i < 10 * n; ++i) std::printf(\"%01024d\", i);\n"
                                          "  std::fflush(stdout);\n"
                                          "  std::fprintf(stderr, \"{\\\"verdict\\\": \\\"correct\\\"}\");\n"
                                          "  std::getchar();\n"
                                          "  y[0] = 1;\n}\n");
    CHECK_MESSAGE(status.finished(), status.message);
  }

  TEST_CASE("a kernel cannot take more memory than it may") {
    CpuBackend backend({.kernel_memory_limit = std::int64_t{256} << 20, .defences = bare});
    const auto status = run_once(backend, "#include <cstdlib>\n#include <cstring>\n//@ launch f(y, n)\n"
                                          "void f(float* y, int n) {\n"
                                          "  for (int i = 0; i < 20; ++i) {\n"
                                          "    char* p = static_cast<char*>(std::malloc(1 << 30));\n"
                                          "    std::memset(p, n, 1 << 30);\n    y[i] = p[n];\n"
                                          "  }\n}\n");
    CHECK(status.outcome == RunOutcome::faulted);
    const auto thrown =
        run_once(backend, "#include <vector>\n//@ launch f(y, n)\n"
                          "void f(float* y, int n) { std::vector<char> v(20l << 30); y[0] = v[n]; }\n");
    CHECK(thrown.outcome == RunOutcome::faulted);
    CHECK(thrown.message.find("memory ran out") != std::string::npos);
    const auto modest =
        run_once(backend, "#include <vector>\n//@ launch f(y, n)\n"
                          "void f(float* y, int n) { std::vector<char> v(20l << 20); y[0] = v[n]; }\n");
    CHECK_MESSAGE(modest.finished(), modest.message);
  }

  TEST_CASE("buffers do not count as the kernel's own memory") {
    CpuBackend backend({.kernel_memory_limit = std::int64_t{64} << 20, .defences = bare});
    Bench bench(
        backend,
        "//@ launch f(x, y, n)\nvoid f(const float* x, float* y, int n) { y[n - 1] = x[n - 1] + 1; }\n",
        40 << 20);
    CHECK(bench.run().finished());
  }

  TEST_CASE("files cannot be written") {
    auto& backend = bare_backend();
    TemporaryFolder folder;
    const auto status =
        run_once(backend, "#include <cstdio>\n//@ launch f(y)\nvoid f(float* y) {\n"
                          "  FILE* file = std::fopen(\"" +
                              folder.path() +
                              "/answer\", \"w\");\n"
                              "  std::fputs(\"42\", file);\n  std::fclose(file);\n  y[0] = 1;\n}\n");
    CHECK(status.outcome == RunOutcome::faulted);
    CHECK(status.message.find("SIGXFSZ") != std::string::npos);
  }

  TEST_CASE("processes a kernel forks end with it") {
    auto& backend = bare_backend();
    Bench bench(backend, "#include <unistd.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "  for (int i = 0; i < 3; ++i)\n"
                         "    if (fork() == 0) for (;;) sleep(n);\n"
                         "  reinterpret_cast<int&>(y[0]) = getpgrp();\n}\n");
    SUBCASE("when the call has ended") {
      REQUIRE(bench.run().finished());
      CHECK(processes_left_in_group(bench.of<int>("y")[0]) == 0);
    }
    SUBCASE("when it leaves them and ends, with the connection held open by them") {
      Bench leaves(backend, "#include <unistd.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                            "  reinterpret_cast<int&>(y[0]) = getpgrp();\n"
                            "  if (fork() != 0) _exit(3);\n  for (;;) sleep(n);\n}\n");
      const auto status = leaves.run(20s);
      CHECK(status.outcome == RunOutcome::faulted);
      CHECK(status.message.find("exit code 3") != std::string::npos);
      CHECK(processes_left_in_group(leaves.of<int>("y")[0]) == 0);
    }
  }

  TEST_CASE("closing or abusing the connection is a fault") {
    auto& backend = bare_backend();
    const auto outcome = [&](std::string_view body) {
      return run_once(backend, "#include <sys/socket.h>\n#include <unistd.h>\n//@ launch f(y, n)\n"
                               "void f(float* y, int n) {\n" +
                                   std::string(body) + "\n  y[0] = n;\n}\n")
          .outcome;
    };
    CHECK(outcome("for (int i = 0; i < 64; ++i) close(i);") == RunOutcome::faulted);
    CHECK(outcome("send(3, \"finished\", 8, 0);") == RunOutcome::faulted);
    CHECK(outcome("static char page[4096]; send(3, page, sizeof page, 0);") == RunOutcome::faulted);
    CHECK(
        outcome(
            "unsigned long reply[5] = {0x6d746d6300000003, 1, 0, 0, 0}; send(3, reply, sizeof reply, 0);") ==
        RunOutcome::faulted);
    CHECK(outcome("shutdown(3, SHUT_RDWR);") == RunOutcome::faulted);
  }

  TEST_CASE("descriptors that a call leaves open are missed by no other") {
    auto& backend = bare_backend();
    const Task task = vector_task("#include <unistd.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                                  "  while (dup(0) >= 0) {}\n  y[0] = n;\n}\n");
    Bench bench(backend, task, 1024);
    REQUIRE(bench.run().finished());
    // Another buffer, for which a descriptor has to be sent.
    const auto other = backend.allocate(4096);
    for (auto& argument : bench.plan().launches.front().arguments)
      if (argument.kind == LaunchArgument::Kind::buffer) argument.bound.handle = other.handle();
    for (int i = 0; i < 3; ++i) CHECK(bench.run().finished());
  }

  TEST_CASE("a sequential kernel is timed on the processor of the thread that chose the place") {
    auto& backend = bare_backend();
    Bench bench(backend, "#include <sched.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "  cpu_set_t set;\n  CPU_ZERO(&set);\n  sched_getaffinity(0, sizeof set, &set);\n"
                         "  y[0] = CPU_COUNT(&set);\n  y[1] = sched_getcpu();\n}\n");
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    const auto processors = static_cast<float>(CPU_COUNT(&all));
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == processors);
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (!CPU_ISSET(static_cast<std::size_t>(processor), &all)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<std::size_t>(processor), &one);
      REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
      backend.choose_place();
      REQUIRE(::sched_setaffinity(0, sizeof all, &all) == 0);
      REQUIRE(bench.time().status.finished());
      CHECK(bench.of<float>("y")[0] == 1);
      CHECK(bench.of<float>("y")[1] == static_cast<float>(processor));
    }
    // Untimed runs take place anywhere again.
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] == processors);
  }

  TEST_CASE("a kernel with threads is not kept to one processor") {
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2) return;
    auto& backend = bare_backend();
    Bench bench(backend, "#include <sched.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "#pragma omp parallel for num_threads(2) schedule(static, 1)\n"
                         "  for (int i = 0; i < 2; ++i) y[i] = sched_getcpu();\n}\n");
    REQUIRE(bench.run().finished());
    backend.choose_place();
    REQUIRE(bench.time().status.finished());
    CHECK(bench.of<float>("y")[0] != bench.of<float>("y")[1]);
  }

  TEST_CASE("an answer sent ahead does not serve for the next call") {
    auto& backend = bare_backend();
    // The second reply carries the number of the question after the next: what a `go` would get.
    Bench bench(backend, "#include <sys/socket.h>\n//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                         "  static unsigned long next = 0;\n"
                         "  if (next == 0) next = 5;\n"
                         "  unsigned long reply[5] = {0x6d746d6300000003, next, 0, 0, 0};\n"
                         "  send(3, reply, sizeof reply, 0);\n  y[0] = n;\n}\n");
    RunStatus status;
    for (int i = 0; i < 3 && status.finished(); ++i) status = bench.run();
    CHECK(status.outcome == RunOutcome::faulted);
  }

  TEST_CASE("a thread left behind does not run between calls") {
    auto& backend = bare_backend();
    Bench bench(backend,
                "#include <thread>\n//@ launch f(y)\nvoid f(float* y) {\n"
                "  static bool started = false;\n"
                "  volatile int* counter = reinterpret_cast<volatile int*>(y);\n"
                "  if (!started) std::thread([=] { for (;;) counter[1] = counter[1] + 1; }).detach();\n"
                "  started = true;\n"
                "  counter[0] = 1;\n}\n");
    REQUIRE(bench.run().finished());
    std::this_thread::sleep_for(20ms);
    const volatile int* const counter = &bench.of<int>("y")[1];
    const int then = *counter;
    std::this_thread::sleep_for(50ms);
    CHECK(*counter == then);
    REQUIRE(bench.run().finished());
  }

  TEST_CASE("no run finds what another one left, wherever that is, and faults are survived") {
    auto& backend = bare_backend();
    Bench bench(backend, "#include <clocale>\n#include <cfenv>\n#include <cstdlib>\n#include <omp.h>\n"
                         "#include <memory_resource>\n//@ launch f(x, y)\n"
                         "void f(const float* x, float* y) {\n"
                         "  static int calls = 0;\n  static thread_local int own = 0;\n"
                         "  y[0] = ++calls;\n  y[1] = ++own;\n  y[2] = std::fegetround() == FE_TONEAREST;\n"
                         "  y[3] = std::pmr::get_default_resource() == std::pmr::new_delete_resource();\n"
                         "  y[4] = std::rand();\n  y[5] = omp_get_max_threads();\n"
                         "  std::fesetround(FE_DOWNWARD);\n"
                         "  std::pmr::set_default_resource(std::pmr::null_memory_resource());\n"
                         "  omp_set_num_threads(1);\n  if (x[0] != 0) std::abort();\n}\n");
    REQUIRE(bench.run().finished());
    const auto seen = bench.of<float>("y");
    const std::vector<float> first(seen.begin(), seen.begin() + 6);
    CHECK(std::equal(first.begin(), first.begin() + 4, std::vector<float>{1, 1, 1, 1}.begin()));
    for (const bool faults : {false, true, false, false}) {
      bench.of<float>("x")[0] = faults;
      CHECK(bench.run().finished() == !faults);
      CHECK(std::equal(first.begin(), first.end(), bench.of<float>("y").begin()));
    }
    REQUIRE(bench.time().status.finished());
    CHECK(std::equal(first.begin(), first.end(), bench.of<float>("y").begin()));
  }

  TEST_CASE("calls of one timed group share a process, the next group gets another") {
    auto& backend = bare_backend();
    Bench bench(backend,
                "//@ launch f(y)\nvoid f(float* y) {\n  static int calls = 0;\n  y[0] = ++calls;\n}\n");
    for (const std::size_t calls : {3u, 2u}) {
      const std::vector<LaunchPlan> group(calls, bench.plan());
      REQUIRE(backend.time(bench.program(), group, false, in(20s)).status.finished());
      CHECK(bench.of<float>("y")[0] == static_cast<float>(calls));
    }
  }

  TEST_CASE("code that runs when the program is loaded is in the same cage") {
    auto& backend = bare_backend();
    const auto status = run_once(
        backend, "#include <cstdlib>\n//@ launch f(y)\n"
                 "struct Early { Early() { std::abort(); } } early;\nvoid f(float* y) { y[0] = 1; }\n");
    CHECK(status.outcome == RunOutcome::faulted);
  }

  TEST_CASE("the kernel finds an empty environment and nothing open but its own") {
    auto& backend = bare_backend();
    Bench bench(backend, "#include <dirent.h>\n#include <unistd.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                         "  int variables = 0, descriptors = 0;\n"
                         "  for (char** entry = environ; *entry; ++entry) ++variables;\n"
                         "  DIR* folder = opendir(\"/proc/self/fd\");\n"
                         "  while (readdir(folder)) ++descriptors;\n"
                         "  y[0] = variables;\n  y[1] = descriptors;\n}\n");
    REQUIRE(bench.run().finished());
    CHECK(bench.of<float>("y")[0] <= 8);
    // ".", "..", the folder itself, three standard streams, the caller's socket and the private object.
    CHECK(bench.of<float>("y")[1] == 8);
  }

  TEST_CASE("nothing is left behind: no descriptors, processes or files") {
    TemporaryFolder base;
    const auto before = Traces::now();
    CHECK_FALSE(before.children);
    {
      CpuBackend backend({.temporary_folder = base.path(), .defences = bare});
      for (const auto* const text : {"//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n",
                                     "//@ launch f(y)\nvoid f(float* y) { __builtin_trap(); }\n"}) {
        Bench bench(backend, text);
        (void)bench.run();
        (void)bench.time();
      }
      (void)compile(backend, vector_task("//@ launch f(y)\nvoid f(float* y) { nonsense }\n"));
      Bench held(backend, "//@ launch f(y)\nvoid f(float* y) { y[0] = 2; }\n");
      REQUIRE(held.run().finished());
    }
    CHECK(Traces::now() == before);
    CHECK(entries_of(base.path()).empty());
  }

  TEST_CASE("a buffer's memory is given back when it goes, though a runner has it mapped") {
    auto& backend = bare_backend();
    const auto task = vector_task("//@ launch f(y, n)\nvoid f(float* y, int n) { y[n - 1] = 1; }\n");
    const auto program = compile(backend, task).program;
    REQUIRE(program);
    const auto shared_kilobytes = [] {
      const auto text = read_file("/proc/meminfo");
      return std::atol(text.c_str() + text.find("Shmem:") + 6);
    };
    const auto before = shared_kilobytes();
    for (int i = 0; i < 5; ++i) {
      auto plan = plan_of(task, 16 << 20);
      auto buffer = backend.allocate(64 << 20);
      plan.launches[0].arguments[0].bound = {buffer.handle(), 0, 64 << 20};
      REQUIRE(backend.run(*program, plan, in(20s)).finished());
    }
    // The number is the whole machine's; what others hold at the moment goes.
    for (int i = 0; i < 100 && shared_kilobytes() - before >= 128 << 10; ++i)
      std::this_thread::sleep_for(50ms);
    CHECK(shared_kilobytes() - before < 128 << 10);
  }

  TEST_CASE("the runner is kept in the host's cache folder") {
    TemporaryFolder cache;
    const auto folder = cache.path() + "/a/b";
    for (int i = 0; i < 2; ++i) {
      CpuBackend backend({.cache_folder = folder, .defences = bare});
      Bench bench(backend, "//@ launch f(y)\nvoid f(float* y) { y[0] = 1; }\n");
      REQUIRE(bench.run().finished());
      CHECK(entries_of(folder).size() == 1);
    }
  }

  TEST_CASE("when this process dies, however, the runner dies too") {
    TemporaryFolder base;
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const pid_t host = ::fork();
    if (host == 0) {
      CpuBackend backend({.temporary_folder = base.path(), .defences = bare});
      const auto task = vector_task(
          "#include <unistd.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
          "  reinterpret_cast<int&>(y[0]) = getpgid(getppid());\n  if (y[1] != 0) for (;;) sleep(1);\n}\n");
      auto plan = plan_of(task, 8);
      const auto program = backend.compile(task.kernel, {.plan = plan}, {}).program;
      auto buffer = backend.allocate(32);
      plan.launches[0].arguments[0].bound = {buffer.handle(), 0, 32};
      (void)backend.run(*program, plan, in(20s));
      int group = 0;
      std::memcpy(&group, buffer.content().data(), sizeof group);
      const float sleep = 1;
      std::memcpy(buffer.content().data() + 4, &sleep, sizeof sleep);
      if (::write(ends[1], &group, sizeof group) != sizeof group) ::_exit(1);
      (void)backend.run(*program, plan, in(60s));
      ::_exit(1);
    }
    int group = 0;
    REQUIRE(::read(ends[0], &group, sizeof group) == sizeof group);
    // The process of a call is in its maker's group until it has one of its own.
    for (int i = 0; i < 100 && processes_in_group(group) != 1; ++i) std::this_thread::sleep_for(20ms);
    CHECK(processes_in_group(group) == 1);
    std::this_thread::sleep_for(50ms);
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    for (int i = 0; i < 100 && processes_in_group(group) > 0; ++i) std::this_thread::sleep_for(20ms);
    CHECK(processes_in_group(group) == 0);
    ::close(ends[0]);
    ::close(ends[1]);
  }
}
