// Many calls in a row, in one process and with nothing between them: what needs many calls, or one of many
// inputs, to go wrong.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

struct Shared {
  /// Calls since memory was last overwritten.
  int calls = 0;
  /// Sizes of the groups that ran.
  std::vector<std::size_t> groups;
};

/// Programs are given memory that holds what calls left, until it is overwritten.
class Overwriting : public fake::Backend {
public:
  Overwriting(std::shared_ptr<fake::World> world, std::shared_ptr<Shared> shared)
      : fake::Backend(std::move(world)), shared_(std::move(shared)) {}

  void overwrite_residue(Program&) { shared_->calls = 0; }
  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    shared_->groups.push_back(group.size());
    return fake::Backend::time(program, group, cold, deadline);
  }

private:
  std::shared_ptr<Shared> shared_;
};

void twice(const Call& call) {
  const auto x = call.buffer<const float>("x");
  const auto y = call.buffer<float>("y");
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
}

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};
  KernelEvaluatorOptions options{.seed = 7};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {twice};
  }
  template <class B> [[nodiscard]] Evaluation judge(B backend, std::function<void(const Call&)> candidate) {
    world->kernels["candidate"] = {std::move(candidate)};
    KernelEvaluator<B> evaluator(std::move(backend), options);
    return evaluator.evaluate(
        {task, {languages::cpp, "//@ launch candidate(x, y)\n", {}}, std::nullopt, Purpose::explore, {}}, {});
  }
};

} // namespace

TEST_CASE("a kernel that goes wrong after hundreds of calls is found where calls leave something behind") {
  Bench bench;
  const auto late = [&](const Call& call) {
    twice(call);
    if (++bench.shared->calls > 400) call.buffer<float>("y")[0] += 1;
  };
  const auto answer = bench.judge(Overwriting(bench.world, bench.shared), late);
  CHECK(answer.verdict == Verdict::wrong_result);
  REQUIRE_FALSE(answer.diagnostics.empty());
  CHECK(answer.diagnostics.front().message.find("in one of 480 calls in a row") != std::string::npos);

  bench.options.defences.calls_in_a_row = false;
  CHECK(bench.judge(Overwriting(bench.world, bench.shared), late).verdict == Verdict::correct);
}

TEST_CASE("a kernel that is wrong about few inputs meets more of them") {
  const auto rare = [](const Call& call) {
    twice(call);
    const auto x = call.buffer<const float>("x");
    std::uint32_t sum = 0;
    for (const float value : x) sum = sum * 31 + std::bit_cast<std::uint32_t>(value);
    if ((sum * 0x9E3779B1u) >> 26 == 7) call.buffer<float>("y")[3] += 1;
  };
  int with = 0;
  int without = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench;
    bench.options.seed = seed;
    bench.options.explore_pairs = 1;
    bench.options.max_group_size = 1;
    with += bench.judge(fake::Backend(bench.world), rare).verdict == Verdict::wrong_result ? 1 : 0;
    bench.options.defences.calls_in_a_row = false;
    without += bench.judge(fake::Backend(bench.world), rare).verdict == Verdict::wrong_result ? 1 : 0;
  }
  CHECK(with > without);
}

TEST_CASE("all inputs of a row differ, and a right kernel passes") {
  Bench bench;
  std::vector<std::vector<float>> seen;
  const auto answer = bench.judge(Overwriting(bench.world, bench.shared), [&](const Call& call) {
    twice(call);
    const auto x = call.buffer<const float>("x");
    seen.emplace_back(x.begin(), x.end());
  });
  CHECK(answer.verdict == Verdict::correct);
  const auto row = std::max_element(bench.shared->groups.begin(), bench.shared->groups.end());
  REQUIRE(row != bench.shared->groups.end());
  CHECK(*row == 480);
}
