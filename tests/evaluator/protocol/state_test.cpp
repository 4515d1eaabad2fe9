// A program that changes memory of its own is refused where the backend sees it, in checks and in timed
// groups.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// Sees a counter change once so many groups of calls have been timed.
class Watching : public fake::Backend {
public:
  Watching(const std::shared_ptr<fake::World>& world, int groups)
      : fake::Backend(world), world_(world), groups_(groups) {}
  [[nodiscard]] std::string changed_state(Program& program) const {
    return program.calls.contains("candidate") && world_->timed_groups >= groups_ ? "counter" : "";
  }

private:
  std::shared_ptr<fake::World> world_;
  int groups_;
};

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {[](const Call& call) {
      const auto x = call.buffer<const float>("x");
      const auto y = call.buffer<float>("y");
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
    }};
    world->kernels["candidate"] = world->kernels["start"];
  }
  template <class B> [[nodiscard]] Evaluation judge(B backend, EvaluatorDefences defences = {}) {
    defences.calls_in_a_row = false; // only timing is to make groups here
    KernelEvaluator<B> evaluator(std::move(backend), {.seed = 7, .defences = defences});
    const Kernel candidate{languages::cpp, "//@ launch candidate(x, y)\n", {}};
    return evaluator.evaluate({task, candidate, task.kernel, Purpose::explore, {}}, {});
  }
};

} // namespace

TEST_CASE("a variable that a checked run changes is the candidate's verdict, with its name") {
  Bench bench;
  const auto answer = bench.judge(Watching(bench.world, 0));
  CHECK(answer.verdict == Verdict::refused);
  CHECK(answer.rule == refusal_rule::state);
  REQUIRE(!answer.diagnostics.empty());
  CHECK(answer.diagnostics[0].message.find("changed its own variable `counter` in a run at N=") !=
        std::string::npos);
  CHECK(answer.environment.at("state") == "observed");
}

TEST_CASE("so is one that changes only once times are taken") {
  Bench bench;
  const auto right = bench.judge(Watching(bench.world, 1 << 30));
  REQUIRE(right.verdict == Verdict::correct);
  const auto groups = bench.world->timed_groups;
  REQUIRE(groups > 0);
  const auto answer = bench.judge(Watching(bench.world, groups + 3));
  CHECK(answer.verdict == Verdict::refused);
  CHECK(answer.rule == refusal_rule::state);
  CHECK(bench.world->timed_groups >= groups + 3);
}

TEST_CASE("a candidate is loaded afresh between checks and times") {
  Bench bench;
  std::optional<int> earlier_when_timed;
  bench.world->kernels["candidate"].body = [&, body = bench.world->kernels["start"].body](const Call& call) {
    if (bench.world->timed_groups > 0 && !earlier_when_timed) earlier_when_timed = call.earlier;
    body(call);
  };
  REQUIRE(bench.judge(fake::Backend(bench.world)).verdict == Verdict::correct);
  CHECK(earlier_when_timed == 0);
}

TEST_CASE("without that defence it passes, and a backend that does not see it says so") {
  Bench bench;
  CHECK(bench.judge(Watching(bench.world, 0), {.state = false}).verdict == Verdict::correct);
  const auto answer = bench.judge(fake::Backend(bench.world));
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.environment.at("state") == "not observed");
}
