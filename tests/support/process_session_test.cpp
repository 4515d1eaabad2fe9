#include <mtmc/support/child_process.hpp>
#include <mtmc/support/process_session.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "processes.hpp"

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
  kill_session(leader.pid());
  CHECK(processes::ends(job));
}

TEST_CASE("without a new session a child stays in its parent's") {
  const ChildProcess child{{.arguments = {"sleep", "1000"}}};
  CHECK(::getsid(child.pid()) == ::getsid(0));
  kill_session(0); // nobody's
}
