// Structures, drafts and feasible actions are asked for once.

#include <mtmc/train/remembering_parts.hpp>

#include <doctest/doctest.h>

#include <functional>

#include "../loop/toy_world.hpp"

using namespace mtmc;

namespace {

/// A coder with all optional abilities, counted.
struct AbleCoder {
  static constexpr int max_concurrency = 3;
  std::function<Draft(const CodingRequest&)> answer{};
  int written = 0;
  int asked = 0;

  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token) {
    ++written;
    if (answer) return answer(request);
    Draft draft;
    draft.kernel = request.seen.kernel;
    draft.kernel->source += request.action.key() + std::to_string(request.sample) + "\n";
    draft.usage.prompt_tokens = 10;
    return draft;
  }
  [[nodiscard]] bool writes(std::string_view optimization, const Language&) const {
    return optimization == "alpha";
  }
  [[nodiscard]] std::vector<Action> feasible_actions(const CodingRequest&, std::vector<Action> actions) {
    ++asked;
    actions.erase(actions.begin());
    return actions;
  }
  [[nodiscard]] std::string identity() const { return "able"; }
};

CodingRequest request_for(const std::string& optimization, int sample = 0) {
  CodingRequest request;
  request.seen.task = toy::task();
  request.seen.kernel = toy::task().kernel;
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = optimization;
  request.sample = sample;
  return request;
}

} // namespace

TEST_CASE("each kernel is looked at once") {
  int looks = 0;
  toy::Finder finder;
  finder.before = [&looks](const Kernel&) { ++looks; };
  const RememberingRegionFinder memory{finder};
  const Task task = toy::task();
  const Structure first = memory.find(task, task.kernel);
  CHECK(memory.find(task, task.kernel) == first);
  CHECK(first == toy::Finder{}.find(task, task.kernel));
  CHECK(looks == 1);
  (void)memory.find(task, {languages::cpp, task.kernel.source + "// another\n"});
  (void)memory.find(toy::task("other"), task.kernel);
  CHECK(looks == 3);
  CHECK(memory.size() == 3);
}

TEST_CASE("each step is written once, and costs once") {
  AbleCoder coder;
  RememberingCoder memory{std::ref(coder)};
  const Draft first = memory.implement(request_for("alpha"), {});
  CHECK(first.usage.prompt_tokens == 10);
  const Draft again = memory.implement(request_for("alpha"), {});
  CHECK(again.kernel == first.kernel);
  CHECK(again.usage == Usage{});
  CHECK(coder.written == 1);
  CHECK(memory.implement(request_for("alpha", 1), {}).kernel != first.kernel);
  CHECK(memory.implement(request_for("beta"), {}).kernel != first.kernel);
  CHECK(coder.written == 3);
  CHECK(memory.size() == 3);
}

TEST_CASE("a repair is another question than the first draft") {
  AbleCoder coder;
  RememberingCoder memory{std::ref(coder)};
  CodingRequest request = request_for("alpha");
  (void)memory.implement(request, {});
  request.repair = RepairContext{toy::task().kernel, Evaluation{Verdict::compile_error}};
  (void)memory.implement(request, {});
  CHECK(coder.written == 2);
}

TEST_CASE("a coder that declines is believed, one that could not be asked is asked again") {
  AbleCoder coder;
  RememberingCoder memory{std::ref(coder)};
  for (const auto& [failure, calls] :
       {std::pair{DraftFailure::declined, 1}, std::pair{DraftFailure::endpoint, 2}}) {
    coder.written = 0;
    coder.answer = [why = failure](const CodingRequest&) { return Draft::failed(why, "no"); };
    const CodingRequest request = request_for(std::string(to_string(failure)));
    CHECK(memory.implement(request, {}).failure == failure);
    CHECK(memory.implement(request, {}).failure == failure);
    CHECK(coder.written == calls);
  }
}

TEST_CASE("what is feasible on a kernel is asked once for the same actions") {
  AbleCoder coder;
  RememberingCoder memory{std::ref(coder)};
  const CodingRequest about = request_for("alpha");
  const std::vector<Action> offered{request_for("alpha").action, request_for("beta").action, Action::stop()};
  const auto first = memory.feasible_actions(about, offered);
  CHECK(first.size() == 2);
  CHECK(memory.feasible_actions(about, offered) == first);
  CHECK(coder.asked == 1);
  CHECK(memory.feasible_actions(about, first).size() == 1);
  CHECK(coder.asked == 2);
}

TEST_CASE("the parts say of themselves what those within say, so that journals know who wrote") {
  RememberingCoder coder{AbleCoder{}};
  CHECK(coder.identity() == "able");
  CHECK(coder.writes("alpha", languages::cpp));
  CHECK_FALSE(coder.writes("beta", languages::cpp));
  CHECK(coder.concurrency_limit() == 3);
  AnyCoder twin{std::ref(coder)};
  CHECK_FALSE(twin.writes("beta", languages::cpp));
  CHECK(RememberingRegionFinder{toy::Finder{}}.concurrency_limit() == unlimited_concurrency);
}
