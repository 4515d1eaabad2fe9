// System calls a kernel tries, with no screen before them: each ends its process and nothing else.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace {

/// Without screens; with and without the process namespace, so that the filter alone has to hold, too.
CpuBackend& unscreened(bool process_namespace) {
  static CpuBackend with({.threads = 2, .defences = {.text_screen = false, .object_screen = false}});
  static CpuBackend without(
      {.threads = 2, .defences = {.text_screen = false, .object_screen = false, .process_namespace = false}});
  return process_namespace ? with : without;
}

constexpr std::string_view headers =
    "#include <cstdlib>\n#include <fcntl.h>\n#include <linux/futex.h>\n#include <omp.h>\n#include "
    "<pthread.h>\n"
    "#include <sched.h>\n#include <signal.h>\n#include <sys/mman.h>\n#include <sys/prctl.h>\n"
    "#include <sys/ptrace.h>\n#include <sys/resource.h>\n#include <sys/socket.h>\n"
    "#include <sys/syscall.h>\n#include <sys/uio.h>\n#include <time.h>\n#include <unistd.h>\n"
    "#include <vector>\n";

RunStatus attempt(const std::string& body, bool process_namespace = true) {
  return run_once(unscreened(process_namespace),
                  std::string(headers) + "//@ launch f(y, n)\nvoid f(float* y, int n) {\n" + body + "\n}\n");
}

/// A process that waits to be hurt.
class Neighbour {
public:
  Neighbour() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// What others could have done to it.
  [[nodiscard]] std::vector<std::int64_t> settings() const {
    cpu_set_t processors;
    rlimit files{};
    REQUIRE(::sched_getaffinity(pid_, sizeof processors, &processors) == 0);
    REQUIRE(::prlimit(pid_, RLIMIT_NOFILE, nullptr, &files) == 0);
    return {CPU_COUNT(&processors), static_cast<std::int64_t>(files.rlim_cur),
            ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid_)), ::sched_getscheduler(pid_),
            ::waitpid(pid_, nullptr, WNOHANG)};
  }

private:
  pid_t pid_;
};

/// The body of a kernel that does, of several things, the one that `n` says.
std::string one_of(const std::vector<std::string>& ways, pid_t other) {
  std::string body = "const int other = " + std::to_string(other) + ";\nswitch (n) {\n";
  for (std::size_t i = 0; i < ways.size(); ++i)
    body += "case " + std::to_string(i) + ": { " + ways[i] + " } break;\n";
  return body + "}\n";
}

/// A kernel of several ways, compiled once.
class Ways {
public:
  Ways(CpuBackend& backend, const std::vector<std::string>& ways, pid_t other)
      : bench_(backend, std::string(headers) + "//@ launch f(y, n)\nvoid f(float* y, int n) {\n" +
                            one_of(ways, other) + "}\n") {}

  RunStatus go(std::size_t way) {
    bench_.plan().launches.front().arguments[1].integer = static_cast<std::int64_t>(way);
    return bench_.run();
  }
  [[nodiscard]] float result() { return bench_.of<float>("y")[0]; }

private:
  Bench bench_;
};

} // namespace

TEST_SUITE("sandbox") {
  TEST_CASE("files, processes, sockets, signals, timers and foreign memory are out of reach") {
    for (const std::string body :
         {"y[0] = open(\"/etc/passwd\", O_RDONLY);", "y[0] = open(\"/tmp/x\", O_WRONLY | O_CREAT, 0600);",
          "if (fork() == 0) _exit(0);", "execl(\"/bin/true\", \"true\", nullptr);",
          "y[0] = socket(AF_INET, SOCK_STREAM, 0);", "kill(getppid(), 9);", "kill(-1, 9);",
          "y[0] = ptrace(PTRACE_ATTACH, getppid(), 0, 0);", "alarm(1);", "signal(SIGSEGV, SIG_IGN);",
          "unlink(\"/tmp/x\");", "iovec a{y, 4}; y[0] = process_vm_readv(getppid(), &a, 1, &a, 1, 0);",
          "usleep(10);", "y[0] = syscall(SYS_clock_gettime, 1, y);",
          "y[0] = mprotect((void*)((unsigned long)&f_page & ~4095ul), 4096, PROT_READ | PROT_WRITE | "
          "PROT_EXEC);",
          "mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
          "y[0] = memfd_create(\"x\", 0);", "dup2(2, 5);", "char c; y[0] = read(0, &c, 1);"}) {
      auto text = body;
      if (const auto at = text.find("&f_page"); at != std::string::npos) text.replace(at, 7, "&malloc");
      CAPTURE(text);
      const auto status = attempt(text);
      CHECK(status.outcome == RunOutcome::faulted);
      CHECK_MESSAGE(status.message.find("SIGSYS") != std::string::npos, status.message);
    }
  }

  TEST_CASE("a system call that names a process is for the kernel's own alone") {
    const std::vector<std::string> ways{
        // Where it may run.
        "cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one); sched_setaffinity(other, sizeof one, &one);",
        // Its limits, to be changed and to be read; and those of one's own.
        "rlimit low{16, 16}; prlimit(static_cast<__pid_t>(other), RLIMIT_NOFILE, &low, nullptr);",
        "rlimit now; prlimit(static_cast<__pid_t>(other), RLIMIT_NOFILE, nullptr, &now);",
        "rlimit high{8192, 8192}; setrlimit(RLIMIT_NOFILE, &high);",
        // How soon it runs; and how soon oneself does.
        "sched_param p{}; sched_setscheduler(other, SCHED_IDLE, &p);",
        "sched_param p{}; p.sched_priority = 1; sched_setscheduler(0, SCHED_FIFO, &p);",
        "sched_param p{}; sched_setparam(other, &p);",
        "char attributes[64] = {48}; syscall(SYS_sched_setattr, other, attributes, 0);",
        "setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19);", "setpriority(PRIO_PROCESS, 0, -20);",
        "setpriority(PRIO_PGRP, 0, 19);", "syscall(SYS_ioprio_set, 1, other, 3 << 13);",
        "syscall(SYS_sched_getscheduler, other);",
        // Its life.
        "syscall(SYS_tgkill, other, other, SIGABRT);", "syscall(SYS_tkill, other, SIGABRT);",
        "kill(other, SIGABRT);", "siginfo_t info{}; syscall(SYS_rt_sigqueueinfo, other, SIGABRT, &info);",
        "syscall(SYS_pidfd_open, other, 0);", "syscall(SYS_pidfd_send_signal, 0, SIGABRT, nullptr, 0);",
        // Its memory.
        "iovec a{y, 4}; process_vm_readv(other, &a, 1, &a, 1, 0);",
        "iovec a{y, 4}; process_vm_writev(other, &a, 1, &a, 1, 0);", "ptrace(PTRACE_SEIZE, other, 0, 0);",
        "syscall(SYS_process_madvise, 0, nullptr, 0, 0, 0);",
        "syscall(SYS_move_pages, other, 0, nullptr, nullptr, nullptr, 0);",
        "syscall(SYS_migrate_pages, other, 0, nullptr, nullptr);",
        "syscall(SYS_kcmp, other, other, 0, 0, 0);",
        "void* head; long length; "
        "syscall(SYS_get_robust_list, other, &head, &length);",
        // A lock that says it belongs to somebody else.
        "unsigned word = static_cast<unsigned>(other); syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, nullptr);",
        // What it counts, and whom it shares a core with.
        "char attributes[128] = {}; syscall(SYS_perf_event_open, attributes, other, -1, -1, 0);",
        "prctl(62, 2, other, 0, 0);", "syscall(SYS_membarrier, 1, 0, 0);"};
    for (const bool process_namespace : {true, false}) {
      const Neighbour neighbour;
      const auto before = neighbour.settings();
      Ways kernel(unscreened(process_namespace), ways, neighbour.pid());
      for (std::size_t i = 0; i < ways.size(); ++i) {
        CAPTURE(ways[i]);
        CAPTURE(process_namespace);
        const auto status = kernel.go(i);
        CHECK(status.outcome == RunOutcome::faulted);
        CHECK_MESSAGE(status.message.find("SIGSYS") != std::string::npos, status.message);
        REQUIRE(neighbour.settings() == before);
      }
    }
  }

  TEST_CASE("where another process may run is not told, and a thread's own place is") {
    const std::vector<std::pair<std::string, float>> questions{
        {"cpu_set_t set; y[0] = sched_getaffinity(other, sizeof set, &set);", -1.0f},
        {"cpu_set_t set; y[0] = sched_getaffinity(0, sizeof set, &set);", 0.0f},
        {"cpu_set_t set; y[0] = pthread_getaffinity_np(pthread_self(), sizeof set, &set);", 0.0f},
        // As Clang's OpenMP library asks in each of its threads.
        {"#pragma omp parallel num_threads(2)\n"
         "if (omp_get_thread_num() == 1) {\npthread_attr_t attributes;\n"
         "y[0] = pthread_getattr_np(pthread_self(), &attributes);\n}\n",
         0.0f}};
    std::vector<std::string> ways;
    for (const auto& [question, answer] : questions) ways.push_back("\n" + question);
    for (const bool process_namespace : {true, false}) {
      Ways kernel(unscreened(process_namespace), ways, ::getpid());
      for (std::size_t i = 0; i < ways.size(); ++i) {
        CAPTURE(ways[i]);
        const auto status = kernel.go(i);
        REQUIRE_MESSAGE(status.finished(), status.message);
        CHECK(kernel.result() == questions[i].second);
      }
    }
  }

#if defined(__x86_64__)
  TEST_CASE("the time stamp counter is out of reach, whoever reads it") {
    for (const bool process_namespace : {true, false}) {
      // Hidden in a constant, into which the kernel jumps: rdtsc, ret.
      CHECK(
          attempt("static const unsigned char code[] "
                  "__attribute__((section(\".text.hidden,\\\"ax\\\",@progbits#\")))"
                  " = {0x0f, 0x31, 0xc3};\n"
                  "y[0] = float(reinterpret_cast<unsigned (*)()>(reinterpret_cast<unsigned long>(code))());",
                  process_namespace)
              .message.find("SIGSEGV") != std::string::npos);
      CHECK(attempt("y[0] = float(__builtin_ia32_rdtsc());", process_namespace).message.find("SIGSEGV") !=
            std::string::npos);
    }
  }
#endif

  TEST_CASE("other processes cannot be named while a kernel is loaded, either") {
    // Run by the initialisation of a global variable, before the kernel is called.
    for (const std::string body : {"fcntl(0, F_SETOWN, getpid() - 1);", "timespec t; clock_gettime(-14, &t);",
                                   "rlimit low{16, 16}; setrlimit(RLIMIT_NOFILE, &low);"}) {
      CAPTURE(body);
      const auto status = run_once(
          unscreened(true), std::string(headers) + "static int early = [] { " + body +
                                " return 1; }();\n//@ launch f(y)\nvoid f(float* y) { y[0] = early; }\n");
      CHECK(status.outcome == RunOutcome::faulted);
      CHECK_MESSAGE(status.message.find("SIGSYS") != std::string::npos, status.message);
    }
  }

  TEST_CASE("memory and teams of threads are within reach") {
    for (const std::string body :
         {"std::vector<float> v(n + (8 << 20), 1.0f); y[0] = v[n];",
          "float s[2] = {};\n#pragma omp parallel for num_threads(2)\n"
          "for (int i = 0; i < 2; ++i) s[i] = std::vector<float>(1 << 20, 1.0f)[i];\ny[0] = s[0] + s[1];",
          // More than the eight heaps from which on the C library looks how many processors there are.
          "float s[24] = {};\n#pragma omp parallel for num_threads(24) schedule(static, 1)\n"
          "for (int i = 0; i < 24; ++i) s[i] = std::vector<float>(100, 1.0f)[i];\ny[0] = s[0] + s[23];"})
      for (const bool process_namespace : {true, false}) {
        CAPTURE(body);
        const auto status = attempt(body, process_namespace);
        CHECK_MESSAGE(status.finished(), status.message);
      }
    CHECK(attempt("std::abort();").message.find("SIGABRT") != std::string::npos);
    CHECK(attempt("std::abort();", false).message.find("SIGABRT") != std::string::npos);
  }

  TEST_CASE("teams of Clang's OpenMP library are within reach, too") {
    std::unique_ptr<CpuBackend> backend;
    try {
      backend = std::make_unique<CpuBackend>(
          CpuBackendOptions{.compiler = "clang++", .threads = 2, .defences = {.process_namespace = false}});
    } catch (const Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return;
    }
    const auto task = vector_task("//@ launch f(y, n)\nvoid f(float* y, int n) {\n"
                                  "#pragma omp parallel for num_threads(3)\n"
                                  "  for (int i = 0; i < n; ++i) y[i] = 2;\n}\n");
    if (!compile(*backend, task).program) return;
    Bench bench(*backend, task, 1024);
    for (int i = 0; i < 2; ++i) {
      const auto status = bench.run();
      REQUIRE_MESSAGE(status.finished(), status.message);
      CHECK(bench.of<float>("y")[1023] == 2);
    }
  }

  TEST_CASE("each thread of a team is where OpenMP binds it") {
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    if (CPU_COUNT(&all) < 2) return;
    for (const bool process_namespace : {true, false}) {
      Bench bench(unscreened(process_namespace),
                  "#include <sched.h>\n//@ launch f(y)\nvoid f(float* y) {\n"
                  "#pragma omp parallel for num_threads(2) schedule(static, 1)\n"
                  "  for (int i = 0; i < 2; ++i) {\n    cpu_set_t set;\n"
                  "    sched_getaffinity(0, sizeof set, &set);\n"
                  "    y[2 * i] = CPU_COUNT(&set);\n    y[2 * i + 1] = sched_getcpu();\n  }\n}\n");
      REQUIRE(bench.run().finished());
      REQUIRE(bench.run().finished());
      const auto seen = bench.of<float>("y");
      // A core may have several processors.
      CHECK(seen[0] < static_cast<float>(CPU_COUNT(&all)));
      CHECK(seen[2] < static_cast<float>(CPU_COUNT(&all)));
      CHECK(seen[1] != seen[3]);
    }
  }
}
