#include <mtmc/support/process/subprocess.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "../processes.hpp"

using mtmc::ProcessOptions;
using mtmc::ProcessResult;
using mtmc::ProcessStatus;
using mtmc::run_process;
using namespace std::chrono_literals;

namespace {

/// `script` run by the shell; a test that hangs is a failure, not a wait for ever.
ProcessOptions shell(const std::string& script) { return {.arguments = {"sh", "-c", script}}; }

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Makes pidfd_open fail with ENOSYS in this thread, as on an old kernel. False where seccomp is not allowed.
bool forbid_pidfd_open() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

} // namespace

TEST_CASE("a process gives back its exit code and both of its streams") {
  const ProcessResult good = run_process(shell("echo out; echo err >&2"));
  CHECK(good.status == ProcessStatus::exited);
  CHECK(good.code == 0);
  CHECK(good.succeeded());
  CHECK(good.output == "out\n");
  CHECK(good.error == "err\n");
  CHECK(good.message.empty());
  CHECK(good.seconds > 0);

  const ProcessResult bad = run_process(shell("exit 42"));
  CHECK(bad.status == ProcessStatus::exited);
  CHECK(bad.code == 42);
  CHECK_FALSE(bad.succeeded());
  CHECK(bad.message == "sh exited with code 42");
}

TEST_CASE("arguments reach the program as they are, without a shell") {
  const ProcessResult result = run_process({.arguments = {"printf", "%s|", "a b", "$HOME", "'", "*", ""}});
  CHECK(result.output == "a b|$HOME|'|*||");
}

TEST_CASE("a crash is reported with its signal") {
  const ProcessResult result = run_process(shell("echo before; kill -SEGV $$"));
  CHECK(result.status == ProcessStatus::signalled);
  CHECK(result.code == SIGSEGV);
  CHECK(result.output == "before\n");
  CHECK(result.message == "sh was killed by signal 11 (Segmentation fault)");
  CHECK(contains(run_process(shell("kill -KILL $$")).message, "lack of memory"));
}

TEST_CASE("the input arrives in full, and need not be read") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  ProcessOptions options{.arguments = {"cat"}, .input = text};
  CHECK(run_process(options).output == text);
  options.arguments = {"cat", "/dev/stdin"};
  CHECK(run_process(options).output == text);
  options.arguments = {"true"};
  CHECK(run_process(options).succeeded());
  options.arguments = {"cat"};
  options.input.clear();
  CHECK(run_process(options).output.empty());
}

TEST_CASE("output beyond the limit is dropped and flagged, and blocks nobody") {
  ProcessOptions options = shell("head -c 3000000 /dev/zero | tr '\\0' x; echo done >&2");
  options.output_limit = 1000;
  const ProcessResult result = run_process(options);
  CHECK(result.succeeded());
  CHECK(result.output == std::string(1000, 'x'));
  CHECK(result.output_truncated);
  CHECK(result.error == "done\n");
  CHECK_FALSE(result.error_truncated);

  options = shell("head -c 1000 /dev/zero | tr '\\0' x >&2");
  options.output_limit = 1000;
  CHECK_FALSE(run_process(options).error_truncated);
  options.output_limit = 999;
  CHECK(run_process(options).error_truncated);
  options.output_limit = 0;
  CHECK(run_process(options).error.empty());

  const ProcessResult both = run_process(shell("head -c 500000 /dev/zero >&2; head -c 500000 /dev/zero"));
  CHECK(both.output.size() == 500'000);
  CHECK(both.error.size() == 500'000);
}

TEST_CASE("what a process writes just before its end is not lost") {
  for (int i = 0; i < 20; ++i) {
    const ProcessResult result = run_process(shell("head -c 60000 /dev/zero; printf end"));
    REQUIRE(result.output.size() == 60'003);
    REQUIRE(result.output.ends_with("end"));
  }
}

TEST_CASE("working folder and environment are as given") {
  ProcessOptions options = shell("pwd; echo \"$GREETING, $NAME\"");
  options.working_folder = "/proc/self/..";
  options.environment = {{"GREETING=hello", "NAME=you"}};
  options.extra_environment = {"NAME=world"};
  CHECK(run_process(options).output == "/proc\nhello, world\n");

  const ProcessResult inherited =
      run_process({.arguments = {"env"}, .extra_environment = {"MTMC_TEST_ENTRY=1"}});
  CHECK(contains(inherited.output, "MTMC_TEST_ENTRY=1\n"));
  CHECK(contains(inherited.output, "PATH="));
  CHECK(run_process({.arguments = {"env"}, .environment = {{"A=1"}}}).output == "A=1\n");
}

TEST_CASE("at the deadline the whole group is killed, and what came before is kept") {
  ProcessOptions options = shell("sleep 1000 & echo $!; trap '' TERM; sleep 1000");
  options.deadline = 1s;
  const ProcessResult result = run_process(options);
  CHECK(result.status == ProcessStatus::timed_out);
  CHECK(contains(result.message, "sh did not end within 1 s and was killed"));
  REQUIRE(!result.output.empty());
  CHECK(processes::ends(static_cast<pid_t>(std::stoi(result.output))));
}

TEST_CASE("endless output does not outlive the deadline") {
  const ProcessResult result = run_process({.arguments = {"yes"}, .deadline = 500ms, .output_limit = 4});
  CHECK(result.status == ProcessStatus::timed_out);
  CHECK(result.output == "y\ny\n");
  CHECK(result.output_truncated);
}

TEST_CASE("a process that closes its streams is still waited for") {
  ProcessOptions options = shell("exec >&- 2>&-; sleep 0.1; exit 7");
  CHECK(run_process(options).code == 7);
}

TEST_CASE("a grandchild that holds the streams open blocks nobody and is not left behind") {
  const ProcessResult result = run_process(shell("sleep 1000 & echo $!"));
  CHECK(result.succeeded());
  CHECK(result.seconds < 500);
  CHECK(processes::ends(static_cast<pid_t>(std::stoi(result.output))));
}

TEST_CASE("a grandchild in a session of its own that writes for ever blocks nobody either") {
  ProcessOptions options =
      shell("trap 'exit 0' USR1; setsid sh -c \"echo \\$\\$; kill -USR1 $$; exec yes\" & wait");
  options.output_limit = 20;
  const ProcessResult result = run_process(options);
  CHECK(result.succeeded());
  // It escaped from the group, but the closed pipe ends it.
  CHECK(processes::ends(static_cast<pid_t>(std::stoi(result.output))));
}

TEST_CASE("a stop request ends the process, or keeps it from starting") {
  std::stop_source source;
  ProcessOptions options = shell("sleep 1000");
  options.deadline = std::chrono::milliseconds::max();
  options.stop = source.get_token();
  std::thread stopper{[&] {
    std::this_thread::sleep_for(50ms);
    source.request_stop();
  }};
  const ProcessResult result = run_process(options);
  stopper.join();
  CHECK(result.status == ProcessStatus::cancelled);
  CHECK(contains(result.message, "stop was requested"));

  const ProcessResult never_started = run_process(options);
  CHECK(never_started.status == ProcessStatus::cancelled);
  CHECK(contains(never_started.message, "was not started"));

  std::stop_source unused;
  options = shell("exit 5");
  options.stop = unused.get_token();
  CHECK(run_process(options).code == 5);
}

TEST_CASE("a deadline that is over at once still gives a timeout, and no deadline waits") {
  CHECK(run_process({.arguments = {"sleep", "1000"}, .deadline = 0ms}).status == ProcessStatus::timed_out);
  CHECK(run_process({.arguments = {"sleep", "1000"}, .deadline = std::chrono::milliseconds::min()}).status ==
        ProcessStatus::timed_out);
  CHECK(run_process({.arguments = {"true"}, .deadline = std::chrono::milliseconds::max()}).succeeded());
}

TEST_CASE("a memory limit holds for the process and its children") {
  // The limit is set just after the start, so the script waits until it sees it.
  ProcessOptions options = shell("while [ \"$(ulimit -v)\" != 204800 ]; do :; done; ulimit -v; "
                                 "dd if=/dev/zero of=/dev/null bs=512M count=1");
  options.memory_limit = std::uint64_t{200} << 20;
  options.extra_environment = {"LC_ALL=C"};
  const ProcessResult limited = run_process(options);
  CHECK(limited.output == "204800\n");
  CHECK(limited.code == 1);
  CHECK_MESSAGE(contains(limited.error, "memory exhausted"), limited.error);
  CHECK(run_process(shell("ulimit -c")).output == "0\n");
}

TEST_CASE("peak memory is that of the process, or unknown below the host's own") {
  const ProcessResult big =
      run_process({.arguments = {"dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=1"}});
  REQUIRE(big.succeeded());
  CHECK((big.peak_memory == 0 || big.peak_memory > 400u << 20));
  CHECK(big.cpu_seconds > 0);
}

TEST_CASE("a program that cannot start is a result with the reason, not an exception") {
  const ProcessResult missing = run_process({.arguments = {"no-such-compiler", "-O3"}});
  CHECK(missing.status == ProcessStatus::failed_to_start);
  CHECK(missing.message.starts_with("command not found"));
  CHECK(missing.message.ends_with(": no-such-compiler; install it or give its path"));
  CHECK_FALSE(missing.succeeded());
  CHECK(run_process({}).status == ProcessStatus::failed_to_start);
  CHECK(contains(run_process({}).message, "no command given"));
  const ProcessResult folder = run_process({.arguments = {"true"}, .working_folder = "/no/such/folder"});
  CHECK(folder.status == ProcessStatus::failed_to_start);
  CHECK(contains(folder.message, "/no/such/folder"));
}

TEST_CASE("runs leave no descriptors and no zombies") {
  const std::size_t before = processes::open_descriptors();
  for (int i = 0; i < 20; ++i) {
    (void)run_process({.arguments = {"cat"}, .input = "text"});
    (void)run_process({.arguments = {"no-such-command"}, .input = "text"});
    (void)run_process({.arguments = {"sleep", "1000"}, .deadline = 1ms});
  }
  CHECK(processes::open_descriptors() == before);
  CHECK_FALSE(processes::has_children());
}

TEST_CASE("the process sees none of the host's open files") {
  const mtmc::FileDescriptor careless{::open("/dev/null", O_RDONLY)};
  REQUIRE(careless);
  // The fourth is the folder that ls reads.
  CHECK(run_process({.arguments = {"ls", "/proc/self/fd"}}).output == "0\n1\n2\n3\n");
}

TEST_CASE("several threads run processes at once, each with its own output") {
  constexpr int threads = 8;
  constexpr int runs = 10;
  std::array<int, threads> right{};
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&right, t] {
        for (int i = 0; i < runs; ++i) {
          const std::string text = std::to_string(t) + ":" + std::to_string(i);
          const ProcessResult result = run_process({.arguments = {"cat"}, .input = text});
          if (result.succeeded() && result.output == text) ++right[static_cast<std::size_t>(t)];
        }
      });
  }
  CHECK(std::count(right.begin(), right.end(), runs) == threads);
  CHECK_FALSE(processes::has_children());
}

TEST_CASE("all works the same on a kernel without pidfd_open") {
  bool forbidden = false;
  ProcessResult echoed;
  ProcessResult killed;
  std::jthread{[&] {
    forbidden = forbid_pidfd_open();
    if (!forbidden) return;
    echoed = run_process(shell("echo text; sleep 0.05; exit 9"));
    killed = run_process({.arguments = {"sleep", "1000"}, .deadline = 50ms});
  }}.join();
  if (!forbidden) return; // a sandbox that allows no filter
  CHECK(echoed.output == "text\n");
  CHECK(echoed.code == 9);
  CHECK(killed.status == ProcessStatus::timed_out);
}
