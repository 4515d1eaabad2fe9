#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>

#include "toy_game.hpp"

using toy::count;
using toy::Game;
using toy::read;
using toy::resume_and_compare;

TEST_CASE("a run that was cut off after any line, in many worlds, goes on to the same result and pays for "
          "nothing twice") {
  for (std::uint64_t world = 0; world < 8; ++world) {
    const mtmc::TemporaryFolder folder;
    Game whole{world};
    const auto result = whole.play(folder.path());
    const auto expected = toy::text_of(result);
    const auto journal = read(mtmc::journal_path(result.folder));
    for (auto end = journal.find('\n'); end != std::string::npos; end = journal.find('\n', end + 1))
      resume_and_compare(world, folder.path(), journal, end + 1, whole, expected);
  }
}

TEST_CASE("a run that was cut off in the middle of a line goes on too") {
  constexpr std::uint64_t world = 7;
  const mtmc::TemporaryFolder folder;
  Game whole{world};
  const auto result = whole.play(folder.path());
  const auto expected = toy::text_of(result);
  const auto journal = read(mtmc::journal_path(result.folder));
  for (std::size_t bytes = 0; bytes < journal.size(); bytes += 331)
    resume_and_compare(world, folder.path(), journal, bytes, whole, expected);
}

TEST_CASE("kill -9 at any moment, then resume") {
  for (std::uint64_t round = 0; round < 4; ++round) {
    CAPTURE(round);
    constexpr std::uint64_t world = 5; // three samples, a beam of two
    const mtmc::TemporaryFolder folder;
    Game whole{world};
    const auto expected = toy::text_of(whole.play(""));
    int kills = 0;
    for (;; ++kills) {
      const auto child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        Game game{world};
        game.delay = std::chrono::microseconds(4000);
        bool ended = false;
        try {
          ended = toy::text_of(game.play(folder.path(), true)) == expected;
        } catch (...) {
        }
        ::_exit(ended ? 0 : 1);
      }
      // Sooner or later: whatever the child is doing then. Later each time, or a slow machine never ends.
      const auto wait = 1000 + (5000 + 400.0 * kills) * toy::chance(round, std::to_string(kills));
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(wait)));
      ::kill(child, SIGKILL);
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      if (WIFEXITED(status)) {
        CHECK(WEXITSTATUS(status) == 0);
        break;
      }
      REQUIRE(kills < 1000);
    }
    Game last{world};
    CHECK(toy::text_of(last.play(folder.path(), true)) == expected);
    CHECK(last.coder_calls + last.evaluator_calls + last.policy_calls == 0);
    const auto journal = read(mtmc::journal_path(mtmc::run_folder(folder.path(), "toy")));
    CHECK(count(journal, "{\"record\":\"draft\"") == whole.coder_calls);
    CHECK(count(journal, "{\"record\":\"evaluation\"") == whole.evaluator_calls);
  }
}
