// Kernels are judged once, against the start kernel; the rest is arithmetic and a file.

#include <mtmc/train/remembering_evaluator.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "../loop/toy_game.hpp"

using namespace mtmc;
using doctest::Approx;

namespace {

/// The start kernel after those deeds.
Kernel kernel(const std::string& deeds) {
  Kernel result = toy::task().kernel;
  for (const char deed : deeds) result.source += std::string("#pragma did ") + deed + "\n";
  return result;
}

/// A toy evaluator whose calls are counted, with a memory around it.
struct World {
  toy::Evaluator judge{};
  std::atomic<int> calls{0};
  RememberingEvaluator memory;

  explicit World(const std::string& path = {}) : memory(std::ref(judge), {.path = path}) {
    judge.calls = &calls;
  }

  [[nodiscard]] Evaluation ask(const Kernel& candidate, std::optional<Kernel> incumbent = {},
                               Purpose purpose = Purpose::explore) {
    return memory.evaluate({toy::task(), candidate, std::move(incumbent), purpose}, {});
  }
};

/// An evaluator that says what it is told to.
struct Stated {
  std::function<Evaluation(const EvaluationRequest&)> answer{};
  Device machine = toy::Evaluator{}.machine;
  [[nodiscard]] const Device& device() const { return machine; }
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token) const {
    return answer(request);
  }
};

Evaluation measured(double value, double low, double high) {
  Evaluation evaluation{Verdict::correct};
  evaluation.seconds = 1 / value;
  evaluation.speed_up = SpeedUp{value, low, high, 0.95, {}};
  evaluation.comparison = low > 1    ? Comparison::faster
                          : high < 1 ? Comparison::slower
                                     : Comparison::undecided;
  return evaluation;
}

/// By the number of deeds: one is 1.10 times, two are 1.21 times as fast as the start kernel, to 3 and 4 %.
Evaluation by_deeds(const EvaluationRequest& request) {
  const auto deeds = toy::deeds(request.candidate).size();
  if (deeds == 1) return measured(1.10, 1.10 / 1.03, 1.10 * 1.03);
  if (deeds == 2) return measured(1.21, 1.21 / 1.04, 1.21 * 1.04);
  return Evaluation{Verdict::correct};
}

} // namespace

TEST_CASE("each kernel is judged once, whoever it is to be compared with and why") {
  World world;
  const Kernel start = toy::task().kernel;
  (void)world.ask(start);
  const Evaluation first = world.ask(kernel("a"), start);
  CHECK(world.calls == 2);
  CHECK(first.speed_up->value == Approx(1 / world.judge.seconds(kernel("a"))).epsilon(0.03));
  CHECK(world.ask(kernel("a"), start, Purpose::promote).speed_up == first.speed_up);
  (void)world.ask(kernel("a"), kernel("a"));
  (void)world.ask(kernel("a"));
  (void)world.ask(start, kernel("a"));
  CHECK(world.calls == 2);
  (void)world.ask(kernel("ab"), kernel("a")); // the new one against the start kernel
  CHECK(world.calls == 3);
  CHECK(world.memory.judgements() == 3);
  CHECK(world.memory.remembered() == 4);
  CHECK(world.memory.size() == 3);
}

TEST_CASE("an incumbent that nobody has judged is judged, too") {
  World world;
  const Evaluation answer = world.ask(kernel("ab"), kernel("a"));
  CHECK(world.calls == 2);
  CHECK(answer.speed_up->value ==
        Approx(world.judge.seconds(kernel("a")) / world.judge.seconds(kernel("ab"))).epsilon(0.05));
}

TEST_CASE("against another incumbent: the ratio, and half-widths added in quadrature in the logarithm") {
  RememberingEvaluator memory{Stated{by_deeds}};
  const auto ask = [&](const char* candidate, const char* incumbent) {
    return memory.evaluate({toy::task(), kernel(candidate), kernel(incumbent)}, {});
  };
  const SpeedUp ratio = ask("ab", "a").speed_up.value();
  CHECK(ratio.value == Approx(1.1));
  const double width = std::hypot(std::log(1.03), std::log(1.04));
  CHECK(std::log(ratio.high / ratio.value) == Approx(width));
  CHECK(std::log(ratio.value / ratio.low) == Approx(width));
  CHECK(ratio.confidence == 0.95);
  CHECK(ask("ab", "a").comparison == Comparison::faster);
  CHECK(ask("a", "ab").comparison == Comparison::slower);
  CHECK(ask("a", "b").comparison == Comparison::undecided);
  CHECK(ask("ab", "a").seconds == Approx(1 / 1.21)); // its own, whoever it is compared with
}

TEST_CASE("a kernel against itself is exactly as fast, and the start kernel is exactly known") {
  RememberingEvaluator memory{Stated{by_deeds}};
  const Evaluation itself = memory.evaluate({toy::task(), kernel("a"), kernel("a")}, {});
  CHECK(itself.speed_up == SpeedUp{});
  CHECK(itself.comparison == Comparison::undecided);
  const Evaluation start = memory.evaluate({toy::task(), toy::task().kernel, kernel("a")}, {});
  CHECK(start.speed_up->value == Approx(1 / 1.1));
  CHECK(std::log(start.speed_up->high / start.speed_up->value) == Approx(std::log(1.03)));
  CHECK(start.comparison == Comparison::slower);
}

TEST_CASE("what the evaluator did not dare to decide is not decided by arithmetic") {
  RememberingEvaluator memory{Stated{[](const EvaluationRequest& request) {
    Evaluation evaluation = by_deeds(request);
    evaluation.comparison = Comparison::undecided; // too few pairs
    return evaluation;
  }}};
  CHECK(memory.evaluate({toy::task(), kernel("ab"), kernel("a")}, {}).comparison == Comparison::undecided);
}

TEST_CASE("each size has its own ratio, and seconds of the incumbent that fit it") {
  World world;
  const Evaluation answer = world.ask(kernel("ab"), kernel("a"));
  const SizeEvaluation& size = answer.sizes.front();
  CHECK(size.speed_up->value == Approx(answer.speed_up->value));
  CHECK(size.incumbent_seconds == Approx(size.seconds * size.speed_up->value));
  CHECK_FALSE(world.ask(kernel("ab")).sizes.front().speed_up);
}

TEST_CASE("a failure is remembered, and an incumbent that fails is nobody's") {
  World world;
  const Kernel wrong{languages::cpp, kernel("a").source + "wrongly\n"};
  const Evaluation first = world.ask(wrong, toy::task().kernel);
  CHECK_FALSE(first.correct());
  CHECK(world.ask(wrong, kernel("a")) == first);
  CHECK(world.calls == 1);
  CHECK_THROWS_WITH_AS((void)world.ask(kernel("a"), wrong), doctest::Contains("mtmc.evaluator.004"), Error);
}

TEST_CASE("a later process judges nothing again") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/task/memory.jsonl";
  Evaluation first;
  {
    World world{path};
    (void)world.ask(toy::task().kernel);
    first = world.ask(kernel("ab"), kernel("a"));
    CHECK_THROWS_WITH_AS(RememberingEvaluator(std::ref(world.judge), {.path = path}),
                         doctest::Contains("another process is writing"), Error);
  }
  World world{path};
  CHECK(world.memory.size() == 3);
  const Evaluation again = world.ask(kernel("ab"), kernel("a"));
  CHECK(again.speed_up == first.speed_up);
  CHECK(again.sizes == first.sizes);
  CHECK(world.ask(toy::task().kernel).correct());
  CHECK(world.calls == 0);
}

TEST_CASE("a timeout, which may be a busy machine's, is asked again by a later process") {
  const TemporaryFolder folder;
  int calls = 0;
  const Stated judge{[&calls](const EvaluationRequest&) {
    ++calls;
    return Evaluation{Verdict::compile_timeout};
  }};
  for (int process = 1; process <= 2; ++process) {
    RememberingEvaluator memory{judge, {.path = folder.path() + "/memory.jsonl"}};
    for (int times = 0; times < 2; ++times)
      CHECK(memory.evaluate({toy::task(), kernel("a")}, {}).verdict == Verdict::compile_timeout);
    CHECK(calls == process);
  }
}

TEST_CASE("kernels are judged with the purpose that the host chose") {
  for (const Purpose purpose : {Purpose::explore, Purpose::promote}) {
    std::vector<Purpose> seen;
    RememberingEvaluator memory{Stated{[&seen](const EvaluationRequest& request) {
                                  seen.push_back(request.purpose);
                                  return by_deeds(request);
                                }},
                                {.purpose = purpose}};
    (void)memory.evaluate({toy::task(), kernel("a"), toy::task().kernel, Purpose::explore}, {});
    CHECK(seen == std::vector{purpose});
  }
}

TEST_CASE("another task, device or evaluator is not answered for") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/memory.jsonl";
  {
    (void)World{path}.ask(kernel("a"), toy::task().kernel);
  }
  {
    World other{path};
    other.judge.seed = 2; // and another identity
    (void)other.ask(kernel("a"), toy::task().kernel);
    CHECK(other.calls == 1);
  }
  {
    World other{path};
    other.judge.machine.software["compiler"] = "toy 2.0";
    (void)other.ask(kernel("a"), toy::task().kernel);
    CHECK(other.calls == 1);
  }
  World other{path};
  (void)other.memory.evaluate({toy::task("other"), kernel("a"), toy::task().kernel}, {});
  CHECK(other.calls == 1);
  CHECK(other.memory.size() == 4);
}

TEST_CASE("a cut last line is dropped, a damaged one is skipped and named, the rest is known") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/memory.jsonl";
  {
    World world{path};
    for (const char* deeds : {"a", "b", "c"}) (void)world.ask(kernel(deeds), toy::task().kernel);
  }
  const std::string whole = toy::read(path);
  const std::size_t second = whole.find('\n') + 1;
  toy::write(path,
             whole.substr(0, second) + "{\"key\": 7}\n" + whole.substr(second, whole.size() - second - 5));
  {
    World world{path};
    REQUIRE(world.memory.damaged().size() == 1);
    CHECK(world.memory.damaged().front().find("line 2") != std::string::npos);
    CHECK(world.memory.size() == 2);
    (void)world.ask(kernel("c"), toy::task().kernel);
    CHECK(world.calls == 1);
  }
  World world{path};
  CHECK(world.memory.size() == 3);
}

TEST_CASE("what is no verdict, what throws and what was stopped is asked again") {
  int calls = 0;
  std::stop_source stop;
  RememberingEvaluator memory{Stated{[&](const EvaluationRequest& request) {
    ++calls;
    if (calls == 1) return Evaluation{};
    if (calls == 2) throw Error(error_id::backend_device, "the device is lost", "Find it");
    if (calls == 3) stop.request_stop();
    return by_deeds(request);
  }}};
  const EvaluationRequest request{toy::task(), kernel("a"), toy::task().kernel};
  CHECK(memory.evaluate(request, {}).verdict == Verdict::not_given);
  CHECK_THROWS_AS((void)memory.evaluate(request, {}), Error);
  (void)memory.evaluate(request, stop.get_token());
  CHECK(memory.size() == 0);
  CHECK(memory.evaluate(request, {}).correct());
  CHECK(memory.size() == 1);
  CHECK(calls == 4);
}

TEST_CASE("threads that ask for one kernel at once have it judged once") {
  World world;
  world.judge.delay = std::chrono::milliseconds(20);
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const char* deeds = i % 2 == 0 ? "a" : "b";
      if (world.ask(kernel(deeds), toy::task().kernel).correct()) ++right;
    });
  threads.clear();
  CHECK(right == 8);
  CHECK(world.calls == 2);
  CHECK(world.memory.judgements() == 2);
  CHECK(world.memory.remembered() == 6);
}

TEST_CASE("it says that it remembers, and against what it judges") {
  CHECK(World{}.memory.identity() == "remembers, against the start kernel: toy evaluator 1");
  const RememberingEvaluator exploring{toy::Evaluator{}, {.purpose = Purpose::explore}};
  CHECK(exploring.identity().starts_with(remembering_identity));
  CHECK(exploring.identity() != World{}.memory.identity());
}

TEST_CASE("a second search with the same seed asks for nothing and comes to the same") {
  World world;
  const auto play = [&world] {
    toy::Policy policy;
    toy::Coder coder;
    Loop loop{policy,
              coder,
              toy::Finder{},
              world.memory,
              {.selection = Selection::sample, .seed = 3, .minimum_gain = 0.5, .action_space = toy::space()}};
    return loop.optimize(toy::task());
  };
  const Result first = play();
  const int asked = world.calls;
  CHECK(asked > 3);
  const Result second = play();
  CHECK(world.calls == asked);
  CHECK(second.best.id() == first.best.id());
  CHECK(second.speed_up == first.speed_up);
  CHECK(second.steps == first.steps);
}
