// Where a backend can load programs anew, both sides are: between checks and times and between two timed
// pairs, with one call that is not timed after each.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// What has happened, in order: "reload", "run" or "timed", and the entry of the program.
using Events = std::shared_ptr<std::vector<std::string>>;

class Reloading : public fake::Backend {
public:
  struct Program : fake::Backend::Program {
    std::string entry;
    Events events;
    void reload() {
      calls.clear();
      events->push_back("reload " + entry);
    }
  };
  Reloading(std::shared_ptr<fake::World> world, Events events)
      : fake::Backend(std::move(world)), events_(std::move(events)) {}

  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    auto inner = fake::Backend::compile(kernel, options, std::move(stop));
    CompileResult<Program> result;
    result.diagnostics = std::move(inner.diagnostics);
    if (!inner.program) return result;
    result.program = std::make_shared<Program>();
    result.program->entry = options.plan.launches.front().entry;
    result.program->events = events_;
    return result;
  }
  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    events_->push_back("run " + program.entry);
    return fake::Backend::run(program, plan, deadline);
  }
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    events_->push_back("timed " + program.entry);
    return fake::Backend::time(program, group, cold, deadline);
  }

private:
  Events events_;
};

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Events events = std::make_shared<std::vector<std::string>>();
  Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {twice};
    world->kernels["candidate"] = {twice};
  }
  static void twice(const Call& call) {
    const auto x = call.buffer<const float>("x");
    const auto y = call.buffer<float>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
  }
  template <class B> [[nodiscard]] Evaluation judge(B backend, EvaluatorDefences defences = {}) {
    defences.calls_in_a_row = false; // only timing is to make groups here
    KernelEvaluator<B> evaluator(std::move(backend), {.seed = 7, .defences = defences});
    const Kernel candidate{languages::cpp, "//@ launch candidate(x, y)\n", {}};
    return evaluator.evaluate({task, candidate, task.kernel, Purpose::explore, {}}, {});
  }
  /// What happened to one side, without its name.
  [[nodiscard]] std::vector<std::string> of(const std::string& entry) const {
    std::vector<std::string> own;
    for (const auto& event : *events)
      if (event.ends_with(' ' + entry)) own.push_back(event.substr(0, event.find(' ')));
    return own;
  }
};

} // namespace

TEST_CASE(
    "both sides are loaded anew before they are timed and between pairs, and called once without a clock") {
  Bench bench;
  const auto answer = bench.judge(Reloading(bench.world, bench.events));
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.environment.at("reload") == "between pairs");
  for (const std::string entry : {"candidate", "start"}) {
    CAPTURE(entry);
    const auto own = bench.of(entry);
    std::vector<std::size_t> timed;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i] == "timed") timed.push_back(i);
    // The warm-up, and at least three pairs behind it.
    REQUIRE(timed.size() >= 4);
    // The start kernel was timed before, when the task was prepared, if at all by calls.
    REQUIRE(timed[0] > 0);
    CHECK(own[timed[0] - 1] == "reload");
    CHECK(timed[1] == timed[0] + 1);
    for (std::size_t i = 2; i < timed.size(); ++i) {
      CHECK(timed[i] == timed[i - 1] + 3);
      CHECK(own[timed[i] - 2] == "reload");
      CHECK(own[timed[i] - 1] == "run");
    }
  }
}

TEST_CASE("in the call that is not timed no input may be changed either") {
  Bench bench;
  bench.world->kernels["candidate"].body = [world = bench.world.get()](const Call& call) {
    Bench::twice(call);
    if (call.earlier == 0 && world->timed_groups > 4) *static_cast<float*>(call.address("x")) += 1;
  };
  CHECK(bench.judge(Reloading(bench.world, bench.events)).verdict == Verdict::input_modified);
}

TEST_CASE("an incumbent that fails in that call is no fault of the candidate") {
  Bench bench;
  bench.world->kernels["start"].body = [world = bench.world.get()](const Call& call) {
    Bench::twice(call);
    if (call.earlier == 0 && world->timed_groups > 4) *static_cast<float*>(call.address("x")) += 1;
  };
  const auto answer = bench.judge(Reloading(bench.world, bench.events));
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.comparison == Comparison::not_timed);
}

TEST_CASE("calls too long to notice are loaded anew without a call more") {
  Bench bench;
  for (const auto* entry : {"start", "candidate"}) bench.world->kernels[entry].seconds = 0.1;
  CHECK(bench.judge(Reloading(bench.world, bench.events)).verdict == Verdict::correct);
  const auto own = bench.of("candidate");
  std::size_t runs_between = 0, reloads_between = 0;
  bool timed = false;
  for (const auto& event : own) {
    timed = timed || event == "timed";
    if (timed && event == "run") ++runs_between;
    if (timed && event == "reload") ++reloads_between;
  }
  CHECK(runs_between == 0);
  CHECK(reloads_between >= 2);
}

TEST_CASE("without that defence, or on a backend that cannot do it, nothing is loaded anew") {
  Bench bench;
  EvaluatorDefences off;
  off.reload = false;
  CHECK(bench.judge(Reloading(bench.world, bench.events), off).verdict == Verdict::correct);
  for (const auto& event : *bench.events) CHECK_FALSE(event.starts_with("reload"));
  CHECK(bench.judge(fake::Backend(bench.world)).environment.at("reload") == "not between pairs");
}
