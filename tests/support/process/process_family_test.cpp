#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/process_family.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <set>
#include <signal.h>
#include <string>
#include <unistd.h>

#include "../processes.hpp"

using namespace mtmc;

TEST_CASE("a session is killed as a whole, also what moved to process groups of its own") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor reading{ends[0]};
  FileDescriptor writing{ends[1]};
  // With job control (set -m) bash gives each background job a process group of its own.
  ChildProcess leader{{.arguments = {"bash", "-c", "set -m; sleep 1000 & echo $!; wait"},
                       .descriptors = {{writing.get(), 1}},
                       .new_session = true}};
  writing.reset();
  std::string text(32, '\0');
  REQUIRE(::read(reading.get(), text.data(), text.size()) > 0);
  const auto job = static_cast<pid_t>(std::stol(text));
  CHECK(::getpgid(job) != leader.pid());
  CHECK(::getsid(job) == leader.pid());

  leader.kill_group();
  CHECK(processes::ends(leader.pid()));
  CHECK(processes::runs(job)); // it was not in the group
  kill_family(leader.pid());
  CHECK(processes::ends(job));
}

TEST_CASE("without a new session a child stays in its parent's") {
  const ChildProcess child{{.arguments = {"sleep", "1000"}}};
  CHECK(::getsid(child.pid()) == ::getsid(0));
  kill_family(0); // nobody's
}

TEST_CASE("a family is killed with those who made a session of their own, as long as their parents live") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor reading{ends[0]};
  FileDescriptor writing{ends[1]};
  ChildProcess leader{{.arguments = {"bash", "-c", "setsid sh -c 'echo $$; sleep 1000 & wait' & wait"},
                       .descriptors = {{writing.get(), 1}}}};
  writing.reset();
  std::string text(32, '\0');
  REQUIRE(::read(reading.get(), text.data(), text.size()) > 0);
  const auto apart = static_cast<pid_t>(std::stol(text));
  CHECK(::getsid(apart) == apart);
  std::set<pid_t> family;
  while (family.size() < 2) family = processes::descendants(leader.pid());
  family.insert(leader.pid());
  std::set<pid_t> visited;
  detail::visit_family(leader.pid(), [&](pid_t pid) { visited.insert(pid); });
  CHECK(std::includes(visited.begin(), visited.end(), family.begin(), family.end()));
  leader.kill_family();
  for (const auto pid : visited) CHECK(processes::ends(pid));
}

TEST_CASE("a child with a session of its own leaves nothing of it behind") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor reading{ends[0]};
  FileDescriptor writing{ends[1]};
  pid_t job = -1;
  {
    const ChildProcess leader{{.arguments = {"bash", "-c", "set -m; sleep 1000 & echo $!; wait"},
                               .descriptors = {{writing.get(), 1}},
                               .new_session = true}};
    writing.reset();
    std::string text(32, '\0');
    REQUIRE(::read(reading.get(), text.data(), text.size()) > 0);
    job = static_cast<pid_t>(std::stol(text));
    CHECK(::getpgid(job) != leader.pid());
  }
  CHECK(processes::ends(job));
}

TEST_CASE("a process that kills its own family ends last") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor reading{ends[0]};
  FileDescriptor writing{ends[1]};
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const pid_t grandchild = ::fork();
    if (grandchild == 0)
      for (;;) ::pause();
    (void)!::write(writing.get(), &grandchild, sizeof grandchild);
    kill_family(::getpid());
    ::_exit(1);
  }
  pid_t grandchild = -1;
  REQUIRE(::read(reading.get(), &grandchild, sizeof grandchild) == sizeof grandchild);
  const auto exit = detail::reap_child(child);
  CHECK(exit.kind == ProcessExit::Kind::signalled);
  CHECK(exit.code == SIGKILL);
  CHECK(processes::ends(grandchild));
}
