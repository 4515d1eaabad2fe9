#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "scripted_parts.hpp"
#include "toy_game.hpp"

using toy::count;
using toy::Game;
using toy::read;
using toy::resume_and_compare;
using toy::write;

TEST_CASE("a run that was cut off after any line goes on to the same result and pays for nothing twice") {
  for (std::uint64_t world = 0; world < 2; ++world) {
    const mtmc::TemporaryFolder folder;
    Game whole{world};
    const auto result = whole.play(folder.path());
    const auto expected = toy::text_of(result);
    const auto journal = read(mtmc::journal_path(result.folder));
    for (auto end = journal.find('\n'); end != std::string::npos; end = journal.find('\n', end + 1))
      resume_and_compare(world, folder.path(), journal, end + 1, whole, expected);
  }
}

TEST_CASE("with and without a folder, and with any number of threads, a run is the same") {
  for (std::uint64_t world = 0; world < 12; ++world) {
    CAPTURE(world);
    Game plain{world};
    plain.options.threads = 1;
    const auto expected = toy::text_of(plain.play(""));
    for (const int threads : {1, 3, 16}) {
      const mtmc::TemporaryFolder folder;
      Game game{world};
      game.options.threads = threads;
      game.delay = std::chrono::microseconds(300);
      CHECK(toy::text_of(game.play(folder.path())) == expected);
    }
  }
}

TEST_CASE(
    "a resumed run sees the device as its first session measured it, or its questions would be others") {
  const mtmc::TemporaryFolder folder;
  const auto play = [&](double bandwidth, int steps) {
    scripted::Stage stage;
    stage.wants({"alpha", "beta", "gamma"});
    stage.evaluator.machine.measured.read_bandwidth = bandwidth;
    stage.options.max_steps = steps;
    stage.options.output = folder.path();
    stage.options.resume = true;
    (void)stage.run();
    REQUIRE(stage.coder.requests.size() == 1);
    return stage.coder.requests.front().seen.device;
  };
  const auto first = play(1e9, 1);
  CHECK(first.measured.read_bandwidth == 1e9);
  CHECK(play(2e9, 2) == first);
}

TEST_CASE("different seeds draw differently, the same seed the same") {
  const auto play = [](std::uint64_t seed) {
    Game game{2};
    game.options.selection = mtmc::Selection::sample;
    game.options.seed = seed;
    return toy::text_of(game.play(""));
  };
  CHECK(play(5) == play(5));
  CHECK(play(5) != play(6));
}

TEST_CASE("a finished run can be resumed with more steps, as if it had had them from the start") {
  for (std::uint64_t world = 0; world < 6; ++world) {
    CAPTURE(world);
    Game longer{world};
    const auto expected = longer.play("");
    if (expected.stop_reason != mtmc::StopReason::step_limit) continue;
    const mtmc::TemporaryFolder folder;
    Game shorter{world};
    shorter.options.max_steps = 3;
    (void)shorter.play(folder.path());
    Game rest{world};
    auto result = rest.play(folder.path(), true);
    CHECK(result.best == expected.best);
    CHECK(result.speed_up == expected.speed_up);
    CHECK(result.history == expected.history);
    CHECK(rest.coder_calls + shorter.coder_calls == longer.coder_calls);
  }
}

TEST_CASE("resuming a finished run answers it again and asks nobody") {
  const mtmc::TemporaryFolder folder;
  Game first{3};
  const auto result = first.play(folder.path());
  Game second{3};
  const auto again = second.play(folder.path(), true);
  CHECK(toy::text_of(again) == toy::text_of(result));
  CHECK(second.policy_calls + second.coder_calls + second.evaluator_calls == 0);
  CHECK(again.folder == result.folder);
}

TEST_CASE("resume without a run to resume begins one") {
  const mtmc::TemporaryFolder folder;
  Game game{3}, other{3};
  CHECK(toy::text_of(game.play(folder.path(), true)) == toy::text_of(other.play("")));
}

TEST_CASE("a run is not overwritten, and not resumed with something else") {
  const mtmc::TemporaryFolder folder;
  Game game{3};
  (void)game.play(folder.path());
  const auto message = [&](Game& other, bool resume) -> std::string {
    try {
      (void)other.play(folder.path(), resume);
    } catch (const mtmc::Error& error) {
      return error.what();
    }
    return {};
  };
  SUBCASE("without resume") {
    Game again{3};
    CHECK(message(again, false).find("[mtmc.journal.003] the folder already holds a run") == 0);
  }
  SUBCASE("with other options") {
    Game other{3};
    other.options.samples = 5;
    other.options.seed = 17;
    const auto text = message(other, true);
    CHECK(text.find("[mtmc.journal.003]") == 0);
    CHECK(text.find("samples was 1 and is 5") != std::string::npos);
    CHECK(text.find("seed was 3 and is 17") != std::string::npos);
  }
  SUBCASE("with other parts") {
    Game other{3};
    other.seed = 4;
    CHECK(message(other, true).find("coder was \"toy coder 3\" and is \"toy coder 4\"") != std::string::npos);
  }
  SUBCASE("on another device") {
    toy::Evaluator evaluator;
    evaluator.seed = 3;
    evaluator.machine.arch = "another";
    game.options.resume = true;
    mtmc::Loop loop{toy::Policy{3}, toy::Coder{3}, toy::Finder{}, evaluator, game.options};
    CHECK_THROWS_WITH_AS((void)loop.optimize(toy::task()),
                         doctest::Contains("belongs to the device toy machine"), mtmc::Error);
  }
  SUBCASE("for another version of the task") {
    auto task = toy::task();
    task.sizes[0].symbols["N"] = 17;
    game.options.resume = true;
    mtmc::Loop loop{toy::Policy{3}, toy::Coder{3}, toy::Finder{}, toy::Evaluator{3}, game.options};
    CHECK_THROWS_WITH_AS((void)loop.optimize(task), doctest::Contains("another version of the task toy"),
                         mtmc::Error);
  }
}

TEST_CASE("drafts that were pending are asked for again, the others are not") {
  const mtmc::TemporaryFolder folder;
  std::atomic<int> questions{0};
  bool arrived = false;
  struct Batch {
    std::atomic<int>* questions;
    const bool* arrived;
    mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token stop) const {
      ++*questions;
      if (request.sample > 0 && !*arrived) {
        mtmc::Draft draft;
        draft.pending = request.id() + "-" + std::to_string(request.sample);
        return draft;
      }
      return toy::Coder{2, 0, 0}.implement(request, std::move(stop));
    }
  };
  mtmc::LoopOptions options{
      .max_steps = 1, .samples = 3, .action_space = toy::space(), .output = folder.path()};
  mtmc::Loop loop{toy::Policy{}, Batch{&questions, &arrived}, toy::Finder{}, toy::Evaluator{}, options};
  auto result = loop.optimize(toy::task());
  CHECK(result.stop_reason == mtmc::StopReason::waiting_for_answers);
  CHECK(questions == 3);
  options.resume = true;
  mtmc::Loop second{toy::Policy{}, Batch{&questions, &arrived}, toy::Finder{}, toy::Evaluator{}, options};
  result = second.optimize(toy::task());
  CHECK(result.stop_reason == mtmc::StopReason::waiting_for_answers);
  CHECK(questions == 5); // still waiting: only the two that were pending
  arrived = true;
  result = second.optimize(toy::task());
  CHECK(result.stop_reason == mtmc::StopReason::step_limit);
  CHECK(questions == 7);
  CHECK(result.trajectory.size() == 3);
  mtmc::Loop whole{toy::Policy{},
                   Batch{&questions, &arrived},
                   toy::Finder{},
                   toy::Evaluator{},
                   {.max_steps = 1, .samples = 3, .action_space = toy::space()}};
  CHECK(toy::text_of(result) == toy::text_of(whole.optimize(toy::task())));
}

TEST_CASE("an endpoint that was down has used up no step, no action and no patience once the run is taken up "
          "again") {
  const mtmc::TemporaryFolder folder;
  bool down = true;
  int silent = 0;
  int answered = 0;
  const auto play = [&](const std::string& output) {
    scripted::Stage stage;
    stage.wants({"alpha", "beta", "gamma", "delta"});
    stage.options.max_steps = 4;
    stage.options.budget.patience = 4;
    stage.options.output = output;
    stage.options.resume = !output.empty();
    stage.coder.answer = [&](const mtmc::CodingRequest& request, std::stop_token) {
      if (!down || answered == 0) {
        ++answered;
        silent = 0;
        return scripted::Coder::did(request, scripted::Coder::name_of(request));
      }
      if (++silent == 3) throw mtmc::Error(mtmc::error_id::net_endpoint, "nobody is there", "Wait");
      return mtmc::Draft::failed(mtmc::DraftFailure::endpoint, "no connection");
    };
    return stage.run();
  };
  std::string journal;
  for (int session = 0; session < 3; ++session) {
    const auto result = play(folder.path());
    CHECK(result.stop_reason == mtmc::StopReason::failed);
    CHECK(answered == 1);
    silent = 0;
    const auto before = std::exchange(journal, read(mtmc::journal_path(result.folder)));
    CHECK(journal.starts_with(before)); // only ever appended to
  }
  down = false;
  const auto result = play(folder.path());
  CHECK(result.stop_reason == mtmc::StopReason::step_limit);
  CHECK(answered == 4);
  CHECK(toy::text_of(result) == toy::text_of(play("")));
}

TEST_CASE("answers of a step that an endpoint broke off are not paid for twice") {
  const mtmc::TemporaryFolder folder;
  bool down = true;
  int asked = 0; // in the step that is broken off
  std::map<std::string, int> paid;
  const auto play = [&] {
    scripted::Stage stage;
    stage.wants({"alpha", "beta"});
    stage.options.max_steps = 3;
    stage.options.samples = 2;
    stage.options.threads = 1;
    stage.options.output = folder.path();
    stage.options.resume = true;
    stage.coder.answer = [&](const mtmc::CodingRequest& request, std::stop_token) {
      const auto name = scripted::Coder::name_of(request);
      if (down && request.seen.step == 1)
        return mtmc::Draft::failed(mtmc::DraftFailure::endpoint, "no connection");
      if (down && request.seen.step == 2 && ++asked == 2)
        throw mtmc::Error(mtmc::error_id::net_endpoint, "nobody is there", "Wait");
      ++paid[name];
      return scripted::Coder::did(request, name);
    };
    return stage.run();
  };
  CHECK(play().stop_reason == mtmc::StopReason::failed);
  CHECK(paid.size() == 3); // two of the first step, one of the step that was broken off
  down = false;
  CHECK(play().stop_reason == mtmc::StopReason::step_limit);
  CHECK(paid.size() == 4);
  for (const auto& one : paid) CHECK_MESSAGE(one.second == 1, one.first);
}

TEST_CASE("when the region finder has learnt something, the run goes on differently from there") {
  const mtmc::TemporaryFolder folder;
  Game whole{1};
  whole.options.max_steps = 4;
  const auto old = whole.play(folder.path());
  // A newer version finds more regions in kernels that were changed: not what the journal's structures say.
  const auto path = mtmc::journal_path(old.folder);
  std::string text, line;
  std::ifstream in(path);
  bool first = true;
  while (std::getline(in, line)) {
    if (line.starts_with("{\"record\":\"structure\"") && !std::exchange(first, false)) continue;
    text += line + '\n';
  }
  in.close();
  REQUIRE(text != read(path));
  write(path, text);
  toy::Finder finder{3, {}};
  toy::Evaluator evaluator{1};
  auto options = whole.options;
  options.resume = true;
  mtmc::Loop loop{toy::Policy{1}, toy::Coder{1}, finder, evaluator, options};
  const auto result = loop.optimize(toy::task());
  CHECK(count(read(path), "{\"record\":\"rewind\"") == 1);
  const auto runs = mtmc::read_journal(path);
  CHECK(mtmc::steps_of(runs[0]) == result.trajectory);
  CHECK(runs[0].rounds.size() == static_cast<std::size_t>(result.steps));
}
