// System calls a kernel tries, with no screen before them: each ends its process and nothing else.
#include <doctest/doctest.h>

#include <string>

#include "kernels.hpp"

namespace {

RunStatus attempt(const std::string& body) {
  static CpuBackend backend({.threads = 2, .locks = {.text_screen = false, .object_screen = false}});
  return run_once(
      backend,
      "#include <cstdlib>\n#include <fcntl.h>\n#include <pthread.h>\n#include <signal.h>\n"
      "#include <sys/mman.h>\n#include <sys/ptrace.h>\n#include <sys/socket.h>\n#include <sys/syscall.h>\n"
      "#include <sys/uio.h>\n#include <time.h>\n#include <unistd.h>\n#include <vector>\n"
      "//@ launch f(y, n)\nvoid f(float* y, int n) {\n" +
          body + "\n}\n");
}

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

  TEST_CASE("memory and teams of threads are within reach") {
    for (const std::string body :
         {"std::vector<float> v(n + (8 << 20), 1.0f); y[0] = v[n];",
          "float s[2] = {};\n#pragma omp parallel for num_threads(2)\n"
          "for (int i = 0; i < 2; ++i) s[i] = std::vector<float>(1 << 20, 1.0f)[i];\ny[0] = s[0] + s[1];"}) {
      CAPTURE(body);
      const auto status = attempt(body);
      CHECK_MESSAGE(status.finished(), status.message);
    }
    CHECK(attempt("std::abort();").message.find("SIGABRT") != std::string::npos);
  }
}
