// Promotions tell which branches of a kernel no check has met. With the real compiler and real processes.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/protocol/branch_coverage.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>

#include "../fake_backend.hpp"

using namespace mtmc;
using detail::words_about;

namespace {

const std::string honest = "//@ launch f(x, y, N)\n"
                           "void f(const float* x, float* y, int N) {\n"
                           "  for (int i = 0; i < N; ++i) y[i] = x[i] > 0 ? 2 * x[i] : x[i];\n"
                           "}\n";
const std::string with_a_secret = "//@ launch f(x, y, N)\n"
                                  "void f(const float* x, float* y, int N) {\n"
                                  "  for (int i = 0; i < N; ++i) y[i] = x[i] > 0 ? 2 * x[i] : x[i];\n"
                                  "  if (x[0] * 31 + x[N / 2] * 17 == 5000)\n"
                                  "    y[0] = 0;\n"
                                  "}\n";

Evaluation judge(const std::string& text, Purpose purpose, bool refuses = false) {
  Task task{.name = "positive", .kernel = {languages::cpp, honest, {}}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"N"}},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32, .value = "N"}};
  task.sizes = {{.symbols = {{"N", 3000}}}, {.symbols = {{"N", 19}}, .weight = 0}};
  KernelEvaluatorOptions options{.explore_seconds = 0.02, .promote_seconds = 0.02, .audit_seconds = 1};
  options.refuse_uncovered_branches = refuses;
  KernelEvaluator<CpuBackend> evaluator{CpuBackend{}, options};
  return evaluator.evaluate({task, {languages::cpp, text, {}}, std::nullopt, purpose, {}}, {});
}

} // namespace

TEST_SUITE("branch coverage") {
  TEST_CASE("the words say how many branches went one way only, and on which lines they stand") {
    CHECK(words_about({}) == "none");
    const Branch covered{3, 1, true, true};
    CHECK(words_about(std::array{covered}) == "1 branch, each gone both ways");
    CHECK(words_about(std::array{covered, Branch{7, 2, true, false}}) ==
          "1 of 2 branches went one way only: line 7");
    CHECK(words_about(std::array{covered, Branch{9, 2, false, false}, Branch{7, 2, true, false},
                                 Branch{7, 8, false, true}}) ==
          "3 of 4 branches went one way only: lines 7, 9");
  }

#ifdef __x86_64__
  TEST_CASE("a promotion says of a kernel that all of its branches were met, and exploring says nothing") {
    const auto promoted = judge(honest, Purpose::promote);
    REQUIRE(promoted.correct());
    CHECK(promoted.environment.at("branches") == "2 branches, each gone both ways");
    CHECK_FALSE(judge(honest, Purpose::explore).environment.contains("branches"));
  }

  TEST_CASE("a special case that no check meets is named, and refused where that is asked for") {
    const auto told = judge(with_a_secret, Purpose::promote);
    REQUIRE(told.correct());
    CHECK(told.environment.at("branches").ends_with("went one way only: line 4"));
    const auto refused = judge(with_a_secret, Purpose::promote, true);
    CHECK(refused.verdict == Verdict::refused);
    CHECK(refused.rule == refusal_rule::branches);
    REQUIRE(refused.diagnostics.size() == 1);
    CHECK(refused.diagnostics[0].line == 4);
    CHECK(judge(honest, Purpose::promote, true).correct());
  }
#endif

  TEST_CASE("of a backend that does not show branches the record says so") {
    auto world = std::make_shared<fake::World>();
    const auto twice = [](const fake::Call& call) {
      const auto x = call.buffer<const float>("x");
      const auto y = call.buffer<float>("y");
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
    };
    world->kernels["f"] = {twice};
    Task task{.name = "twice", .kernel = {languages::cpp, "//@ launch f(x, y)\n", {}}};
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 700}}}};
    KernelEvaluator<fake::Backend> evaluator(fake::Backend(world), {.audit_seconds = 0.2, .seed = 7});
    const auto promoted = evaluator.evaluate(
        {task, {languages::cpp, "//@ launch f(x, y)\n\n", {}}, std::nullopt, Purpose::promote, {}}, {});
    REQUIRE(promoted.correct());
    CHECK(promoted.environment.at("branches") == "not observed");
  }
}
