// Hooks of a task: what the judge asks them, what it does with their answers, and what happens if they fail.
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_backend.hpp"
#include "fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

Kernel kernel(const std::string& entry) {
  return {languages::cpp, "//@ launch " + entry + "(x, y, sum)\n", {}};
}

/// sum = x + y; y = 2 x.
void step(const Call& call) {
  const auto x = call.buffer<const float>("x");
  const auto y = call.buffer<float>("y");
  const auto sum = call.buffer<float>("sum");
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i] = x[i] + y[i];
    y[i] = 2 * x[i];
  }
}

/// The first element is marked, the others are like a random number each.
void fill_marked(const Argument& argument, std::uint64_t key, std::span<std::byte> content) {
  fill_values(content, argument.type, Distribution::normal, key, 0);
  const float mark = argument.name == "x" ? 1000.0f : 2000.0f;
  std::memcpy(content.data(), &mark, sizeof mark);
}

template <class B> struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task;

  Bench() {
    task.name = "step";
    task.kernel = kernel("start");
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::inout, .shape = {"N"}},
                      {.name = "sum", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 512}}}, {.symbols = {{"N", 7}}, .weight = 0}};
    world->kernels["start"] = {step};
  }
  Evaluation judge(const fake::Kernel& body) {
    world->kernels["candidate"] = body;
    KernelEvaluator<B> evaluator(B(world), {.seed = 42});
    return evaluator.evaluate({task, kernel("candidate"), task.kernel, Purpose::explore, {}}, {});
  }
  /// The error of a task, if any.
  [[nodiscard]] std::optional<Error> refusal() const {
    KernelEvaluator<B> evaluator(B(world), {.seed = 42});
    try {
      evaluator.prepare(task, {});
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }
};

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE_TEMPLATE("a generate hook makes all inputs of all cases, each by a key of its own", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  std::map<std::string, std::set<std::uint64_t>> keys;
  std::set<std::int64_t> sizes;
  bench.task.generate = [&](const Argument& argument, const ProblemSize& size, std::uint64_t key,
                            std::span<std::byte> content) {
    const auto n = size.symbols.at("N");
    CHECK(content.size() == 4 * static_cast<std::size_t>(n));
    sizes.insert(n);
    keys[argument.name].insert(key);
    fill_marked(argument, key, content);
  };
  int calls = 0;
  std::set<std::vector<float>> timed;
  const auto answer = bench.judge({[&](const Call& call) {
                                     const auto x = call.buffer<const float>("x");
                                     CHECK(x[0] == 1000.0f);
                                     CHECK(call.buffer<float>("y")[0] == 2000.0f);
                                     if (x.size() == 512) timed.insert(std::vector(x.begin(), x.end()));
                                     ++calls;
                                     step(call);
                                   },
                                   0.5e-3});
  REQUIRE(answer.diagnostics.empty());
  CHECK(answer.verdict == Verdict::correct);
  CHECK(calls > 20);
  CHECK(timed.size() > 7);
  CHECK(sizes == std::set<std::int64_t>{7, 512});
  REQUIRE(keys.size() == 2);
  CHECK(keys["x"].size() > 12);
  for (const auto key : keys["x"]) CHECK_FALSE(keys["y"].contains(key));
}

TEST_CASE_TEMPLATE("integers from a generate hook are never replaced by others", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.task.arguments[0].type = DataType::i32;
  bool other = false;
  bench.task.generate = [](const Argument& argument, const ProblemSize&, std::uint64_t key,
                           std::span<std::byte> content) {
    fill_values(content, argument.type, Distribution::normal, key, 0);
    if (argument.type != DataType::i32) return;
    for (auto& element : content) element = {};
    const std::int32_t one = 1;
    for (std::size_t i = key % 2; i < content.size() / 4; i += 2) std::memcpy(&content[4 * i], &one, 4);
  };
  const auto masked = [&](const Call& call) {
    const auto mask = call.buffer<const std::int32_t>("x");
    const auto y = call.buffer<float>("y");
    const auto sum = call.buffer<float>("sum");
    for (std::size_t i = 0; i < mask.size(); ++i) {
      other = other || (mask[i] != 0 && mask[i] != 1);
      sum[i] = mask[i] != 0 ? y[i] : 1.0f;
      y[i] = 3 * y[i];
    }
  };
  bench.world->kernels["start"] = {masked};
  bench.world->device.measured.read_bandwidth = 1e9;
  CHECK(bench.judge({masked, 1e-6}).verdict == Verdict::correct);
  CHECK_FALSE(other);
}

TEST_CASE_TEMPLATE("what a hook throws is an error that names the hook, the argument and the size", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.task.generate = [](const Argument& argument, const ProblemSize& size, std::uint64_t key,
                           std::span<std::byte> content) {
    if (argument.name == "y" && size.symbols.at("N") == 7) throw std::runtime_error("no more numbers");
    fill_marked(argument, key, content);
  };
  auto error = bench.refusal();
  REQUIRE(error);
  CHECK(error->id() == error_id::evaluator_hook);
  contains(error->message(), "generate hook threw: no more numbers");
  CHECK(error->place() == "argument y at N=7");
  CHECK_FALSE(error->remedy().empty());

  bench.task.generate = {};
  bench.task.compare = [](const Argument& argument, const ProblemSize&, std::span<const std::byte>,
                          std::span<const std::byte>) -> std::string {
    if (argument.name == "sum") throw std::runtime_error("no opinion");
    return "wrong";
  };
  error = bench.refusal();
  REQUIRE(error);
  CHECK(error->id() == error_id::evaluator_hook);
  contains(error->message(), "compare hook threw: no opinion");
  contains(error->place(), "argument sum at N=");
}

TEST_CASE_TEMPLATE("a compare hook judges every output, and its sentence is what the coder reads", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  std::set<std::string> asked;
  bench.task.compare = [&](const Argument& argument, const ProblemSize& size, std::span<const std::byte> got,
                           std::span<const std::byte> wanted) -> std::string {
    asked.insert(argument.name);
    CHECK(got.size() == 4 * static_cast<std::size_t>(size.symbols.at("N")));
    CHECK(got.size() == wanted.size());
    return std::equal(got.begin(), got.end(), wanted.begin()) ? "" : "the bits of N values differ";
  };
  const auto right = bench.judge({step, 0.5e-3});
  CHECK(right.verdict == Verdict::correct);
  CHECK(right.sizes[0].checked_elements == right.sizes[0].total_elements);
  CHECK(asked == std::set<std::string>{"y", "sum"});

  // An error of one unit in the last place, which the built-in comparison lets pass.
  const auto off = [](const Call& call) {
    step(call);
    auto& last = call.buffer<float>("sum").back();
    last = std::nextafter(last, 1e9f);
  };
  const auto answer = bench.judge({off});
  CHECK(answer.verdict == Verdict::wrong_result);
  CHECK(answer.rule == refusal_rule::reference);
  REQUIRE(answer.diagnostics.size() == 1);
  CHECK(answer.diagnostics[0].message == "sum: the bits of N values differ (at N=7, normal inputs)");
  CHECK_FALSE(answer.diagnostics[0].remedy.empty());
  bench.task.compare = {};
  CHECK(bench.judge({off}).verdict == Verdict::correct);
}

TEST_CASE_TEMPLATE("a compare hook that lets wrong results pass makes the task useless, which is said", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.task.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte>,
                          std::span<const std::byte>) { return std::string(); };
  auto error = bench.refusal();
  REQUIRE(error);
  CHECK(error->id() == error_id::task_cannot_tell);
  for (const char* mutant : {"sum: all zero", "sum: a copy of x", "sum: the last tile left at zero",
                             "y: y left as it was", "y: computed in the next lower precision"})
    contains(error->message(), mutant);
  contains(error->remedy(), "compare hook");

  // To a thousandth: only the lower precision passes, which the task may allow.
  bench.task.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte> got,
                          std::span<const std::byte> wanted) {
    for (std::size_t i = 0; i < got.size(); i += 4) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, &got[i], 4);
      std::memcpy(&b, &wanted[i], 4);
      if (!(std::abs(a - b) <= 1e-3f * std::max(std::abs(b), 1e-3f))) return std::string("too far away");
    }
    return std::string();
  };
  error = bench.refusal();
  REQUIRE(error);
  contains(error->message(), "computed in the next lower precision");
  CHECK(error->message().find("all zero") == std::string::npos);
  bench.task.tolerance = 1e-3;
  CHECK_FALSE(bench.refusal());
}

TEST_CASE_TEMPLATE("where results may vary, the compare hook judges both runs of a check", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.task.atomics = true;
  // Sums up to rounding; everything else bit by bit.
  bench.task.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte> got,
                          std::span<const std::byte> wanted) {
    for (std::size_t i = 0; i < got.size(); i += 4) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, &got[i], 4);
      std::memcpy(&b, &wanted[i], 4);
      if (a != b && std::nextafter(a, b) != b) return "element " + std::to_string(i / 4) + " is off";
    }
    return std::string();
  };
  const auto varying = [](int steps) {
    return fake::Kernel{[steps](const Call& call) {
      step(call);
      auto& first = call.buffer<float>("sum")[0];
      if (fake::is_odd_one(call))
        for (int i = 0; i < steps; ++i) first = std::nextafter(first, 1e9f);
    }};
  };
  CHECK(bench.judge(varying(1)).verdict == Verdict::correct);
  const auto answer = bench.judge(varying(2));
  CHECK(answer.verdict == Verdict::wrong_result);
  contains(answer.diagnostics.front().message, "sum: element 0 is off");
  bench.task.atomics = false;
  CHECK(bench.judge(varying(1)).verdict == Verdict::nondeterministic);
}
