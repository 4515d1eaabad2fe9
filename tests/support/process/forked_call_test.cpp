// A function in a process of its own: its answer comes back, its death does not.
#include <mtmc/support/process/forked_call.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

using mtmc::call_in_fork;
using mtmc::ProcessExit;

namespace {
constexpr std::chrono::seconds plenty{120};
}

TEST_CASE("the answer of a forked call comes back whole, and what it changed stays with it") {
  int changed = 0;
  const auto call = call_in_fork(
      [&] {
        changed = 1;
        return std::string(300'000, 'x') + std::string(1, '\0') + "end";
      },
      plenty);
  CHECK(call.finished());
  CHECK(call.answer.size() == 300'004);
  CHECK(call.answer.ends_with("end"));
  CHECK(changed == 0);
}

TEST_CASE("a forked call that dies says how") {
  const auto crashed = call_in_fork(
      []() -> std::string {
        std::raise(SIGSEGV);
        return "never";
      },
      plenty);
  CHECK_FALSE(crashed.finished());
  CHECK_FALSE(crashed.late);
  CHECK(crashed.answer.empty());
  CHECK(crashed.exit.text() == "was killed by signal 11 (Segmentation fault)");
  const auto left = call_in_fork([]() -> std::string { ::_exit(7); }, plenty);
  CHECK(left.exit.kind == ProcessExit::Kind::exited);
  CHECK(left.exit.code == 7);
  const auto threw = call_in_fork([]() -> std::string { throw std::runtime_error("no"); }, plenty);
  CHECK_FALSE(threw.finished());
}

TEST_CASE("a forked call that does not end is killed at the end of its time, with what it started") {
  const auto late = call_in_fork(
      []() -> std::string {
        if (::fork() == 0)
          for (;;) ::pause();
        for (;;) ::pause();
      },
      std::chrono::milliseconds{200});
  CHECK(late.late);
  CHECK(late.exit.kind == ProcessExit::Kind::signalled);
  CHECK(late.exit.code == SIGKILL);
}

TEST_CASE("a process that a forked call leaves behind does not keep its answer back") {
  const auto call = call_in_fork(
      []() -> std::string {
        if (::fork() == 0)
          for (;;) ::pause();
        return "done";
      },
      plenty);
  CHECK(call.finished());
  CHECK(call.answer == "done");
}
