#include <mtmc/support/process/child_process.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <set>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

#include "../processes.hpp"

using mtmc::ChildOptions;
using mtmc::ChildProcess;
using mtmc::FileDescriptor;
using mtmc::ProcessExit;
using mtmc::ProcessStartError;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<ChildProcess>);

namespace {

struct SocketPair {
  FileDescriptor mine;
  FileDescriptor theirs;
  SocketPair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    mine.reset(ends[0]);
    theirs.reset(ends[1]);
  }
};

std::string read_line(int descriptor) {
  std::string line;
  char c = 0;
  while (::read(descriptor, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 256> buffer;
  for (ssize_t got = 0; (got = ::read(descriptor, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  return text;
}

std::string start_error(const ChildOptions& options) {
  try {
    const ChildProcess child{options};
  } catch (const ProcessStartError& error) {
    return error.what();
  }
  return "it started";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("a limit that comes late reaches what a process has started before") {
  SocketPair sockets;
  ChildProcess child{{.arguments = {"sh", "-c", "(sleep 100 & wait) & sleep 100 & echo ready >&2; wait"},
                      .descriptors = {{sockets.theirs.get(), 2}}}};
  CHECK(read_line(sockets.mine.get()) == "ready");
  std::set<pid_t> family;
  while (family.size() < 3) family = processes::descendants(child.pid());
  family.insert(child.pid());
  CHECK(mtmc::detail::limit_family(child.pid(), RLIMIT_AS, std::uint64_t{1} << 30) == 0);
  for (const auto pid : family) {
    rlimit limit{};
    CHECK(::prlimit(pid, RLIMIT_AS, nullptr, &limit) == 0);
    CHECK(limit.rlim_max == std::uint64_t{1} << 30);
  }
}

TEST_CASE("a child talks over the descriptors it was given") {
  SocketPair pair;
  ChildProcess child{{.arguments = {"cat"}, .descriptors = {{pair.theirs.get(), 0}, {pair.theirs.get(), 1}}}};
  pair.theirs.reset();
  CHECK(child.alive());
  CHECK(child.pid() > 0);
  CHECK(::getpgid(child.pid()) == child.pid());
  REQUIRE(::send(pair.mine.get(), "hello\n", 6, MSG_NOSIGNAL) == 6);
  CHECK(read_line(pair.mine.get()) == "hello");
  ::shutdown(pair.mine.get(), SHUT_WR);
  const std::optional<ProcessExit> exit = child.wait(60s);
  REQUIRE(exit);
  CHECK(exit->kind == ProcessExit::Kind::exited);
  CHECK(exit->code == 0);
  CHECK(exit->text() == "exited with code 0");
  CHECK_FALSE(child.alive());
  CHECK(child.pid() == -1);
  CHECK(child.wait(0ms)->code == 0);
}

TEST_CASE("descriptors arrive under their numbers, even crosswise, and nothing else is open") {
  // Without close-on-exec, as a careless host would have it.
  const FileDescriptor careless{::open("/dev/null", O_RDONLY)};
  SocketPair first;
  SocketPair second;
  REQUIRE(::write(first.mine.get(), "one\n", 4) == 4);
  REQUIRE(::write(second.mine.get(), "two\n", 4) == 4);
  SocketPair output;
  // Each is to go where the other one lies here.
  const int first_number = second.theirs.get();
  const int second_number = first.theirs.get();
  const std::string script = "read a <&" + std::to_string(first_number) + "; read b <&" +
                             std::to_string(second_number) + "; echo $a $b; exec ls -1 /proc/self/fd";
  ChildProcess child{{.arguments = {"bash", "-c", script},
                      .descriptors = {{first.theirs.get(), first_number},
                                      {second.theirs.get(), second_number},
                                      {output.theirs.get(), 1}}}};
  output.theirs.reset();
  const std::string text = read_all(output.mine.get());
  CHECK(contains(text, "one two\n"));
  for (const int number : {0, 1, 2, first_number, second_number})
    CHECK_MESSAGE(contains(text, "\n" + std::to_string(number) + "\n"), text);
  // Five of ours, one that ls reads the folder through.
  CHECK(std::count(text.begin(), text.end(), '\n') == 1 + 5 + 1);
  CHECK(child.wait(60s)->code == 0);
}

TEST_CASE("a wait that ends too early tells nothing, and kill_group ends the child") {
  ChildProcess child{{.arguments = {"sleep", "1000"}}};
  CHECK_FALSE(child.wait(1ms));
  CHECK(child.alive());
  child.kill_group();
  const std::optional<ProcessExit> exit = child.wait(60s);
  REQUIRE(exit);
  CHECK(exit->kind == ProcessExit::Kind::signalled);
  CHECK(exit->code == SIGKILL);
  CHECK(exit->text() == "was killed by signal 9 (Killed)");
  child.kill_group();
  CHECK_FALSE(child.alive());
}

TEST_CASE("the exit descriptor can be polled along with others") {
  SocketPair pair;
  ChildProcess child{{.arguments = {"cat"}, .descriptors = {{pair.theirs.get(), 0}}}};
  if (child.exit_descriptor() < 0) return; // a kernel without pidfd_open
  pollfd watched{child.exit_descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  pair.mine.reset();
  pair.theirs.reset();
  CHECK(::poll(&watched, 1, 60'000) == 1);
  CHECK_FALSE(child.alive());
  CHECK(child.wait(0ms)->code == 0);
  CHECK(child.exit_descriptor() == -1);
}

TEST_CASE("the destructor takes the whole group along and leaves no zombie and no descriptor") {
  const std::size_t before = processes::open_descriptors();
  pid_t leader = -1;
  pid_t grandchild = -1;
  {
    SocketPair pair;
    ChildProcess child{{.arguments = {"sh", "-c", "sleep 1000 & echo $!; sleep 1000"},
                        .descriptors = {{pair.theirs.get(), 1}}}};
    leader = child.pid();
    grandchild = static_cast<pid_t>(std::stoi(read_line(pair.mine.get())));
    CHECK(processes::runs(leader));
    CHECK(processes::runs(grandchild));
  }
  CHECK_FALSE(processes::runs(leader));
  CHECK(processes::ends(grandchild));
  CHECK(processes::open_descriptors() == before);
  CHECK_FALSE(processes::has_children());
}

TEST_CASE("wait() kills what an ended child has left running in its group") {
  SocketPair pair;
  ChildProcess child{
      {.arguments = {"sh", "-c", "sleep 1000 & echo $!"}, .descriptors = {{pair.theirs.get(), 1}}}};
  const auto grandchild = static_cast<pid_t>(std::stoi(read_line(pair.mine.get())));
  const std::optional<ProcessExit> exit = child.wait(60s);
  REQUIRE(exit);
  CHECK(exit->code == 0);
  CHECK(processes::ends(grandchild));
}

TEST_CASE("a child moves with its object") {
  ChildProcess first{{.arguments = {"sleep", "1000"}}};
  const pid_t pid = first.pid();
  ChildProcess second{std::move(first)};
  CHECK(second.pid() == pid);
  CHECK(second.alive());
  CHECK_FALSE(first.alive());
  second = ChildProcess{{.arguments = {"sleep", "1000"}}};
  CHECK_FALSE(processes::runs(pid));
  CHECK(second.alive());
}

TEST_CASE("the child's signals are at their defaults, whatever the host does with its own") {
  struct sigaction ignore{};
  struct sigaction old{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGTERM, &ignore, &old);
  sigset_t blocked;
  sigset_t old_mask;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
  ChildProcess child{{.arguments = {"sh", "-c", "kill -TERM $$; exit 3"}}};
  const std::optional<ProcessExit> exit = child.wait(60s);
  ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  ::sigaction(SIGTERM, &old, nullptr);
  REQUIRE(exit);
  CHECK(exit->kind == ProcessExit::Kind::signalled);
  CHECK(exit->code == SIGTERM);
}

TEST_CASE("an exit status that the host let go is reported as lost") {
  struct sigaction ignore{};
  struct sigaction old{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &old);
  ChildProcess child{{.arguments = {"true"}}};
  const std::optional<ProcessExit> exit = child.wait(60s);
  ::sigaction(SIGCHLD, &old, nullptr);
  REQUIRE(exit);
  CHECK(exit->kind == ProcessExit::Kind::lost);
  CHECK(contains(exit->text(), "SIGCHLD"));
}

TEST_CASE("a program that cannot start is an error with reason and remedy") {
  // "..., or not executable" where the PATH contains a folder that may not be searched.
  const std::string missing = start_error({.arguments = {"no-such-compiler"}});
  CHECK(missing.starts_with("command not found"));
  CHECK(missing.ends_with(": no-such-compiler; install it or give its path"));
  CHECK(contains(start_error({.arguments = {"/no/such/file"}}), "command not found: /no/such/file"));
  CHECK(contains(start_error({.arguments = {"/etc/passwd"}}), "make it executable"));
  CHECK(contains(start_error({.arguments = {"true"}, .working_folder = "/no/such/folder"}),
                 "cannot start true in the folder /no/such/folder: No such file or directory"));
  CHECK(contains(start_error({.arguments = {}}), "no command given"));
  CHECK(contains(start_error({.arguments = {""}}), "no command given"));
  CHECK(contains(start_error({.arguments = {"echo", std::string("a\0b", 3)}}), "null character"));
  CHECK(contains(start_error({.arguments = {"true"}, .extra_environment = {"NAME"}}),
                 "not of the form NAME=value"));
  CHECK(contains(start_error({.arguments = {"true"}, .descriptors = {{0, -1}}}), "number -1"));
  CHECK(contains(start_error({.arguments = {"true"}, .descriptors = {{1, 3}, {2, 3}}}), "two descriptors"));
  CHECK(contains(start_error({.arguments = {"true", std::string(3'000'000, 'x')}}), "too long"));
  CHECK_FALSE(processes::has_children());
}

TEST_CASE("the processor time of a running process can be asked for, until it has been reaped") {
  ChildProcess child{{.arguments = {"/bin/sh", "-c", "while :; do :; done"}}};
  double seconds = 0;
  // Each look may find it no further; in the end it has worked.
  for (int i = 0; i < 10000 && seconds < 0.02; ++i) {
    const auto now = child.cpu_seconds();
    REQUIRE(now);
    CHECK(*now >= seconds);
    seconds = *now;
    ::usleep(1000);
  }
  CHECK(seconds >= 0.02);
  child.kill_group();
  REQUIRE(child.wait(10s));
  CHECK_FALSE(child.cpu_seconds());
}
