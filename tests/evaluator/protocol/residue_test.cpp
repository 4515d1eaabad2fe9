// What a call leaves in memory that no launch clears is gone before the next: before each checked run and
// each timed group, of both sides, and at no other time.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// Shared memory, so to speak.
struct Shared {
  float residue = 0;
  /// What has happened, in order: "overwritten" or the entry of a run or a timed group.
  std::vector<std::string> events;
};

/// Writes noise to what is shared.
class Overwriting : public fake::Backend {
public:
  Overwriting(std::shared_ptr<fake::World> world, std::shared_ptr<Shared> shared)
      : fake::Backend(std::move(world)), shared_(std::move(shared)) {}

  void overwrite_residue(Program&) {
    shared_->residue = -1e9f;
    shared_->events.emplace_back("overwritten");
  }
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    shared_->events.push_back(plan.launches.front().entry);
    return fake::Backend::run(program, plan, deadline);
  }
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    shared_->events.push_back("timed " + group.front().launches.front().entry);
    return fake::Backend::time(program, group, cold, deadline);
  }

private:
  std::shared_ptr<Shared> shared_;
};

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
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
    // Leaves a word behind, and is wrong by it once it finds one.
    world->kernels["candidate"] = {[this, twice = world->kernels["start"].body](const Call& call) {
      twice(call);
      if (shared->residue == 5) call.buffer<float>("y")[0] = 1e6f;
      shared->residue = 5;
    }};
  }
  template <class B> [[nodiscard]] Evaluation judge(B backend, EvaluatorDefences defences = {}) {
    KernelEvaluatorOptions options{.seed = 7, .defences = defences};
    // A group's later calls find what its earlier ones left: that is another test's affair.
    options.max_group_size = 1;
    options.defences.calls_in_a_row = false;
    KernelEvaluator<B> evaluator(std::move(backend), options);
    const Kernel candidate{languages::cpp, "//@ launch candidate(x, y)\n", {}};
    return evaluator.evaluate({task, candidate, task.kernel, Purpose::explore, {}}, {});
  }
};

} // namespace

TEST_CASE("no call finds what an earlier one left") {
  Bench bench;
  const auto answer = bench.judge(Overwriting(bench.world, bench.shared));
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.environment.at("residue") == "overwritten");
  const auto& events = bench.shared->events;
  REQUIRE(events.size() > 20);
  std::size_t timed = 0;
  for (std::size_t i = 1; i < events.size(); ++i) {
    CAPTURE(i);
    CAPTURE(events[i]);
    if (events[i] != "overwritten") CHECK(events[i - 1] == "overwritten");
    if (events[i] == "overwritten" && i + 1 < events.size()) CHECK(events[i + 1] != "overwritten");
    timed += events[i].starts_with("timed ") ? 1 : 0;
  }
  CHECK(timed > 5);
}

TEST_CASE("without that defence, or on a backend that cannot do it, it does") {
  Bench bench;
  EvaluatorDefences off;
  off.residue = false;
  CHECK(bench.judge(Overwriting(bench.world, bench.shared), off).verdict == Verdict::nondeterministic);
  bench.shared->residue = 0;
  const auto answer = bench.judge(fake::Backend(bench.world));
  CHECK(answer.verdict == Verdict::nondeterministic);
  CHECK(answer.environment.at("residue") == "not overwritten");
}
