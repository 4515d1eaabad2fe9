// What a run does when the disk is full, the folder read-only or another process at work.

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "toy_game.hpp"

using toy::Game;

namespace {

/// A small file system of its own, where the test may mount one.
struct SmallDisk {
  mtmc::TemporaryFolder folder{};
  bool mounted = false;

  explicit SmallDisk(const std::string& size) {
    mounted = ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    if (!mounted) MESSAGE("SKIPPED: a small file system can only be mounted by root");
  }
  ~SmallDisk() {
    if (mounted) ::umount2(folder.path().c_str(), MNT_DETACH);
  }
};

} // namespace

TEST_CASE(
    "a disk that becomes full ends the run with the best so far, and the run goes on when there is room") {
  Game whole{7};
  const auto expected = whole.play("");
  REQUIRE(expected.improved());
  int late = 0;
  // The whole run takes about 100 KiB.
  for (int kilobytes = 16; kilobytes <= 160; kilobytes += 12) {
    CAPTURE(kilobytes);
    SmallDisk disk{std::to_string(kilobytes) + "k"};
    if (!disk.mounted) return;
    Game game{7};
    mtmc::Result result;
    try {
      result = game.play(disk.folder.path());
    } catch (const mtmc::Error& error) {
      CHECK(error.id() == mtmc::error_id::journal_write);
      continue;
    }
    if (!result.error) {
      CHECK(toy::text_of(result) == toy::text_of(expected));
      continue;
    }
    CHECK(result.stop_reason == mtmc::StopReason::failed);
    CHECK(result.error->id() == mtmc::error_id::journal_write);
    CHECK(std::string(result.error->what()).find("No space left on device") != std::string::npos);
    CHECK(result.error->remedy().find("free space") != std::string::npos);
    if (result.improved()) {
      ++late;
      CHECK(result.measured);
      CHECK(result.speed_up.low > 1);
    }
    CHECK(::mount("tmpfs", disk.folder.path().c_str(), "tmpfs", MS_REMOUNT, "size=1m") == 0);
    Game rest{7};
    CHECK(toy::text_of(rest.play(disk.folder.path(), true)) == toy::text_of(expected));
    // Those whose answers had no room are asked again.
    CHECK(rest.coder_calls + game.coder_calls <= whole.coder_calls + whole.options.samples);
  }
  CHECK(late > 0);
}

TEST_CASE("a read-only folder is found before anything is paid for") {
  SmallDisk disk{"64k"};
  if (!disk.mounted) return;
  REQUIRE(::mount("tmpfs", disk.folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0);
  Game game{7};
  CHECK_THROWS_WITH_AS((void)game.play(disk.folder.path() + "/runs"),
                       doctest::Contains("Read-only file system"), mtmc::Error);
  CHECK(game.evaluator_calls + game.coder_calls == 0);
}

TEST_CASE("a file in the place of the folder is an error with its path") {
  const mtmc::TemporaryFolder folder;
  toy::write(folder.path() + "/taken", "x");
  Game game{7};
  CHECK_THROWS_WITH_AS((void)game.play(folder.path() + "/taken"),
                       doctest::Contains((folder.path() + "/taken").c_str()), mtmc::Error);
}

TEST_CASE("two runs cannot write the same journal") {
  const mtmc::TemporaryFolder folder;
  int ready[2] = {-1, -1};
  REQUIRE(::pipe(ready) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Game game{7};
    game.options.observer.run_started = [&](const mtmc::RunStarted&) {
      [[maybe_unused]] const auto written = ::write(ready[1], "!", 1);
      ::pause();
    };
    (void)game.play(folder.path());
    ::_exit(0);
  }
  char sign = 0;
  REQUIRE(::read(ready[0], &sign, 1) == 1);
  Game second{7};
  CHECK_THROWS_WITH_AS((void)second.play(folder.path(), true),
                       doctest::Contains(("(process " + std::to_string(child) + ")").c_str()), mtmc::Error);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(second.play(folder.path(), true).improved()); // its lock died with it
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("two tasks of one name cannot share a folder") {
  const mtmc::TemporaryFolder folder;
  mtmc::Loop loop{toy::Policy{},
                  toy::Coder{},
                  toy::Finder{},
                  toy::Evaluator{},
                  {.action_space = toy::space(), .output = folder.path()}};
  const std::vector<mtmc::Task> tasks{toy::task("a"), toy::task("b"), toy::task("a")};
  CHECK_THROWS_WITH_AS((void)loop.optimize(tasks), doctest::Contains("two tasks have the name \"a\""),
                       mtmc::Error);
}

TEST_CASE("the end of the time is kept over all sessions") {
  const mtmc::TemporaryFolder folder;
  Game game{7};
  game.options.budget.seconds = 0.15;
  game.options.max_steps = 1000;
  game.options.mask_failed_actions = false;
  game.delay = std::chrono::milliseconds(20);
  const auto first = game.play(folder.path());
  CHECK(first.stop_reason == mtmc::StopReason::time);
  CHECK(first.seconds >= 0.15);
  Game again{7};
  again.options = game.options;
  again.delay = game.delay;
  const auto calls = again.coder_calls + again.evaluator_calls;
  const auto second = again.play(folder.path(), true);
  CHECK(second.stop_reason == mtmc::StopReason::time);
  CHECK(second.steps == first.steps);
  CHECK(second.best == first.best);
  CHECK(again.coder_calls + again.evaluator_calls == calls); // nothing was asked any more
  Game longer{7};
  longer.options = game.options;
  longer.options.budget.seconds = 600;
  longer.options.max_steps = first.steps + 2;
  longer.delay = game.delay;
  const auto third = longer.play(folder.path(), true);
  CHECK(third.stop_reason == mtmc::StopReason::step_limit);
  CHECK(third.steps == first.steps + 2);
  CHECK(third.seconds > first.seconds);
}
