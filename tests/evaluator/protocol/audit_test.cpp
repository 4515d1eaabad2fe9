// Promotions are looked at for longer: what one evaluation has no time for is found before it comes into use.
#include <mtmc/core/any.hpp>
#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

void twice(const Call& call) {
  const auto x = call.buffer<const float>("x");
  const auto y = call.buffer<float>("y");
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
}

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};
  KernelEvaluatorOptions options{.seed = 7};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 700}}},
                  {.symbols = {{"N", 19}}, .weight = 0},
                  {.symbols = {{"N", 133}}, .weight = 0}};
    world->kernels["start"] = {twice};
  }
  [[nodiscard]] Evaluation judge(std::function<void(const Call&)> candidate, Purpose purpose,
                                 const std::string& text = {}) {
    world->kernels["candidate"] = {std::move(candidate)};
    KernelEvaluator<fake::Backend> evaluator(fake::Backend(world), options);
    return evaluator.evaluate(
        {task, {languages::cpp, text + "//@ launch candidate(x, y)\n", {}}, std::nullopt, purpose, {}}, {});
  }
};

} // namespace

TEST_CASE("a right kernel is audited when it is promoted, and the record says how much was done") {
  Bench bench;
  const auto explored = bench.judge(twice, Purpose::explore);
  CHECK(explored.verdict == Verdict::correct);
  CHECK_FALSE(explored.environment.contains("audit"));
  const auto promoted = bench.judge(twice, Purpose::promote);
  CHECK(promoted.verdict == Verdict::correct);
  REQUIRE(promoted.environment.contains("audit"));
  CHECK(promoted.environment.at("audit").find("calls at") != std::string::npos);
}

TEST_CASE("a kernel that goes wrong after thousands of calls does not come into use") {
  Bench bench;
  int calls = 0;
  const auto late = [&](const Call& call) {
    twice(call);
    if (++calls > 4000) call.buffer<float>("y")[0] += 1000;
  };
  CHECK(bench.judge(late, Purpose::explore).verdict == Verdict::correct);
  calls = 0;
  const auto promoted = bench.judge(late, Purpose::promote);
  CHECK(promoted.verdict == Verdict::wrong_result);
  REQUIRE_FALSE(promoted.diagnostics.empty());
  CHECK(promoted.diagnostics.front().message.find("calls in a row") != std::string::npos);

  calls = 0;
  bench.options.audit_seconds = 0;
  CHECK(bench.judge(late, Purpose::promote).verdict == Verdict::correct);
}

TEST_CASE("a kernel that is wrong about one input in two thousand does not come into use") {
  Bench bench;
  bench.options.explore_pairs = bench.options.promote_pairs = 1;
  bench.options.max_group_size = 1;
  const auto rare = [](const Call& call) {
    twice(call);
    const auto x = call.buffer<const float>("x");
    std::uint32_t sum = 0;
    for (const float value : x) sum = sum * 31 + std::bit_cast<std::uint32_t>(value);
    if ((sum * 0x9E3779B1u) >> 21 == 7) call.buffer<float>("y")[3 % x.size()] += 1;
  };
  int explored = 0;
  int promoted = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    bench.options.seed = seed;
    bench.options.audit_seconds = 20; // it ends with the first wrong call
    explored += bench.judge(rare, Purpose::explore).correct() ? 1 : 0;
    promoted += bench.judge(rare, Purpose::promote).correct() ? 1 : 0;
  }
  CHECK(explored > 0);
  CHECK(promoted == 0);
}

TEST_CASE("a kernel that is wrong at sizes with round numbers alone does not come into use") {
  Bench bench;
  const auto round = [](const Call& call) {
    twice(call);
    const auto y = call.buffer<float>("y");
    if (y.size() % 64 == 0) y[0] += 1;
  };
  CHECK(bench.judge(round, Purpose::promote).verdict == Verdict::wrong_result);
}

TEST_CASE("a kernel that is wrong at a size that its text names does not come into use") {
  Bench bench;
  const auto named = [](const Call& call) {
    twice(call);
    const auto y = call.buffer<float>("y");
    if (y.size() != 5431) return;
    for (auto& value : y) value += 100;
  };
  CHECK(bench.judge(named, Purpose::promote).correct());
  CHECK(bench.judge(named, Purpose::promote, "// n == 5431\n").verdict == Verdict::wrong_result);
  CHECK(bench.judge(twice, Purpose::promote, "// n == 5431\n").correct());
}

TEST_CASE("a kernel whose table ends far beyond the listed sizes does not come into use") {
  Bench bench;
  const auto short_table = [](const Call& call) {
    twice(call);
    const auto y = call.buffer<float>("y");
    if (y.size() > 8192) y[8192] += 1;
  };
  CHECK(bench.judge(short_table, Purpose::explore).correct());
  CHECK(bench.judge(short_table, Purpose::promote).verdict == Verdict::wrong_result);
}

TEST_CASE("a kernel whose counters end at 16 bits, or whose indices are numbers of f32, does not come into "
          "use") {
  Bench bench;
  bench.options.audit_seconds = 20; // it ends with the first wrong call
  for (const std::size_t end : {std::size_t{1} << 16, std::size_t{1} << 24}) {
    const auto silent = [&](const Call& call) {
      twice(call);
      const auto y = call.buffer<float>("y");
      if (y.size() > end + 1) y[end + 1] += 1;
    };
    const auto promoted = bench.judge(silent, Purpose::promote);
    CHECK(promoted.verdict == Verdict::wrong_result);
    CHECK_FALSE(promoted.environment.contains("audit"));
  }
  bench.options.audit_seconds = 6;
  const auto honest = bench.judge(twice, Purpose::promote);
  CHECK(honest.correct());
  CHECK(honest.environment.at("audit").find("2 vast sizes") != std::string::npos);
}

TEST_CASE("a kernel that takes what it left in its output for the answer to almost the same does not come "
          "into use") {
  Bench bench;
  const auto remembering = [](const Call& call) {
    const auto x = call.buffer<const float>("x");
    const auto y = call.buffer<float>("y");
    for (std::size_t i = 0; i < 8 && i < y.size(); ++i)
      if (y.size() < 9 || x[i] == 0 || y[i] != 2 * x[i]) return twice(call);
  };
  CHECK(bench.judge(remembering, Purpose::explore).correct());
  const auto promoted = bench.judge(remembering, Purpose::promote);
  CHECK(promoted.verdict == Verdict::wrong_result);
  REQUIRE_FALSE(promoted.diagnostics.empty());
  CHECK(promoted.diagnostics.front().message.find("almost the same inputs") != std::string::npos);
}

TEST_CASE("a kernel that is wrong where zeros lie behind its input does not come into use") {
  Bench bench;
  const auto reads_on = [](const Call& call) {
    twice(call);
    const auto x = call.buffer<const float>("x");
    if (x.data()[x.size()] == 0 && x.data()[x.size() + 1] == 0) call.buffer<float>("y")[0] += 1;
  };
  CHECK(bench.judge(reads_on, Purpose::explore).correct());
  CHECK(bench.judge(reads_on, Purpose::promote).verdict == Verdict::wrong_result);
}

TEST_CASE(
    "inputs of an audit are no larger than the task was found to bear, where that is not the end of f32") {
  const Bench bench;
  AnyBackend backend{fake::Backend(bench.world)};
  PreparedTask audit(bench.task, 7, bench.options, backend);
  audit.far = true;
  audit.layouts.push_back(layout_of(bench.task, bench.task.sizes[0]));
  // The largest exponent of any case, where the reference bears this one.
  const auto largest_exponent = [&](int borne) {
    audit.exponents[static_cast<std::size_t>(Distribution::huge)] = borne;
    double largest = 0;
    for (std::uint64_t serial = 1; serial <= 500; ++serial) {
      const auto bytes = audit.inputs({0, Distribution::huge, false, serial}).host(0);
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
    }
    return std::ilogb(largest);
  };
  // Normal numbers reach 2^3.
  CHECK(largest_exponent(56) >= 54);
  CHECK(largest_exponent(56) <= 59);
  CHECK(largest_exponent(14) <= 17);
  CHECK(largest_exponent(88) >= 108);
}
