#include <mtmc/evaluator/python/pytorch_evaluator.hpp>

#include <string>
#include <string_view>

#include "../../backend/python/python_for_tests.hpp"

using namespace mtmc;

namespace {

constexpr std::string_view problem_text = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x))) * 2.0

def get_inputs():
    return [torch.rand(64, 48)]

def get_init_inputs():
    return [48]
)";

/// A candidate for it whose forward ends so.
std::string candidate(std::string_view forward, std::string_view constructor = "") {
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
         "class ModelNew(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
         "        self.linear = nn.Linear(width, width)\n        self.norm = nn.BatchNorm1d(width)\n" +
         std::string(constructor) + "\n    def forward(self, x):\n" + std::string(forward) + '\n';
}

Task task() {
  Task task;
  task.name = "linear";
  task.kernel = {languages::pytorch, std::string(problem_text), {}};
  task.sizes = {ProblemSize{}};
  return task;
}

PyTorchEvaluator& shared_evaluator(const PythonOptions& python) {
  static PyTorchEvaluator evaluator(
      {.python = python, .device = "cpu", .explore_seconds = 0.1, .explore_pairs = 7, .seed = 5});
  return evaluator;
}

/// Of a candidate that ends so, against the problem.
std::optional<Evaluation> evaluate(std::string_view forward, std::string_view constructor = "") {
  const auto python = python_for_tests();
  if (!python) return std::nullopt;
  EvaluationRequest request;
  request.task = task();
  request.candidate = {languages::triton, candidate(forward, constructor), {}};
  request.incumbent = request.task.kernel;
  return shared_evaluator(*python).evaluate(request);
}

std::string said(const Evaluation& evaluation) {
  std::string text{to_string(evaluation.verdict)};
  for (const auto& diagnostic : evaluation.diagnostics) text += ": " + diagnostic.message;
  return text;
}

} // namespace

TEST_SUITE("PyTorch tasks") {
  TEST_CASE("a problem is right by itself, and is timed") {
    const auto python = python_for_tests();
    if (!python) return;
    EvaluationRequest request;
    request.task = task();
    request.candidate = request.task.kernel;
    const auto evaluation = shared_evaluator(*python).evaluate(request);
    CHECK(said(evaluation) == "correct");
    CHECK(evaluation.seconds > 0);
    CHECK(evaluation.resources.at("library_share") == 1);
  }

  TEST_CASE("a candidate that computes the same in another way is right, and timed against the problem") {
    const auto evaluation = evaluate("        return torch.clamp(self.norm(F.linear(x, self.linear.weight, "
                                     "self.linear.bias)).mul_(2.0), min=0)");
    if (!evaluation) return;
    CHECK(said(*evaluation) == "correct");
    REQUIRE(evaluation->speed_up);
    CHECK(evaluation->sizes.at(0).samples >= 3);
    CHECK(evaluation->sizes.at(0).incumbent_seconds > 0);
    CHECK(evaluation->sizes.at(0).largest_error <= 1);
  }

  TEST_CASE("what was found to pass, and must not") {
    // Few large numbers do not hide that the others are missing.
    const auto evaluation = evaluate("        y = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                                     "        return torch.where(y < 0.05, torch.zeros_like(y), y)");
    if (!evaluation) return;
    CHECK_FALSE(evaluation->correct());
    // Operators that give nothing, and write what they are given, are part of what is done.
    CHECK(said(*evaluate("        y = torch.relu(self.norm(self.linear(x)))\n"
                         "        torch._foreach_mul_([y], 2.0)\n        return y")) == "correct");
    CHECK_FALSE(evaluate("        y = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                         "        torch._foreach_mul_([y], 0.5)\n        return y")
                    ->correct());
    // A tensor that is turned in place is no operator.
    CHECK(said(*evaluate(
              "        y = self.linear(x).t_().t_()\n        return torch.relu(self.norm(y)) * 2.0")) ==
          "correct");
    CHECK_FALSE(
        evaluate("        return torch._neg_view(torch.relu(self.norm(self.linear(x))) * 2.0)")->correct());
  }

  TEST_CASE("what the constructor makes of weights is made of those of each case") {
    const auto evaluation = evaluate(
        "        return torch.relu(self.norm(x @ self.w + self.linear.bias)) + torch.relu(self.norm(x @ "
        "self.w + self.linear.bias))",
        "        self.w = self.linear.weight.detach().t().contiguous()");
    if (!evaluation) return;
    CHECK(said(*evaluation) == "correct");
  }

  TEST_CASE("parameters that begin as ones and zeros are not taken for such") {
    const auto evaluation =
        evaluate("        y = self.linear(x)\n"
                 "        y = (y - y.mean(0)) * torch.rsqrt(y.var(0, unbiased=False) + 1e-5)\n"
                 "        return torch.relu(y) * 2.0");
    if (!evaluation) return;
    CHECK(said(*evaluation).find("wrong_result") == 0);
    CHECK(said(*evaluate("        y = self.linear(x)\n"
                         "        y = (y - y.mean(0)) * torch.rsqrt(y.var(0, unbiased=False) + 1e-5)\n"
                         "        return torch.relu(y * self.twice + 2.0 * self.norm.bias)",
                         "        self.twice = 2.0 * self.norm.weight.detach()")) == "correct");
  }

  TEST_CASE("wrong results are refused, with the first element that is wrong") {
    const auto evaluation = evaluate("        return torch.relu(self.norm(self.linear(x))) * 2.001");
    if (!evaluation) return;
    CHECK(evaluation->verdict == Verdict::low_precision);
    CHECK(said(*evaluation).find("output 0[") != std::string::npos);
    CHECK(said(*evaluate("        return torch.zeros_like(x)")).find("wrong_result") == 0);
    CHECK(said(*evaluate("        return torch.relu(self.linear(x)) * 2.0")).find("wrong_result") == 0);
    CHECK(said(*evaluate("        return torch.relu(self.norm(self.linear(x.half().float()))) * 2.0"))
              .find("low_precision") == 0);
  }

  TEST_CASE("results of another shape, other weights, and what cannot be recorded are told before any call") {
    const auto evaluation = evaluate("        return self.linear(x)[:, :4]");
    if (!evaluation) return;
    CHECK(said(*evaluation).find("wrong_result") == 0);
    CHECK(evaluate("        return self.linear(x)", "        self.more = nn.Linear(3, 3)")->rule ==
          "weights");
    CHECK(evaluate("        return x if x.sum() > 0 else -x")->verdict == Verdict::compile_error);
  }

  TEST_CASE("a second call gives what the first one gives, whatever that has left in memory") {
    const auto evaluation =
        evaluate("        self.calls += 1\n        return torch.relu(self.norm(self.linear(x))) * 2.0 * "
                 "self.calls",
                 "        self.register_buffer('calls', torch.zeros(1))");
    if (!evaluation) return;
    CHECK(said(*evaluation).find("wrong_result: in a later call output 0") == 0);
    CHECK(said(*evaluate("        y = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                         "        self.linear.weight.mul_(0.5)\n        return y"))
              .find("in a later call output 0") != std::string::npos);
    // What is kept of the first call, and given in the second.
    CHECK(said(*evaluate("        y = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                         "        self.kept.copy_(torch.where(self.full > 0, self.kept, y))\n"
                         "        self.full.fill_(1.0)\n        return self.kept.clone()",
                         "        self.register_buffer('kept', torch.zeros(64, 48))\n"
                         "        self.register_buffer('full', torch.zeros(1))"))
              .find("in a later call output 0") != std::string::npos);
    // Memory that the constructor makes may be used again and again, the edges that it leaves at zero, too.
    CHECK(said(*evaluate("        self.wide[1:-1].copy_(self.linear(x))\n"
                         "        y = self.wide[1:-1] + self.wide[:1] + self.wide[-1:]\n"
                         "        return torch.relu(self.norm(y)) * 2.0",
                         "        self.register_buffer('wide', torch.zeros(66, 48))")) == "correct");
    CHECK(said(*evaluate("        torch.mul(torch.relu(self.norm(self.linear(x))), 2.0, out=self.kept)\n"
                         "        return self.kept.clone()",
                         "        self.register_buffer('kept', torch.zeros(64, 48))")) == "correct");
  }

  TEST_CASE("a module that does something else when it is called again is not recorded") {
    const auto evaluation =
        evaluate("        self.calls += 1\n"
                 "        return torch.relu(self.norm(self.linear(x))) * (2.0 * self.calls)",
                 "        self.calls = 0");
    if (!evaluation) return;
    CHECK(said(*evaluation).find("a later call does something else") != std::string::npos);
    CHECK(said(*evaluate(
                   "        if self.kept is None: self.kept = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                   "        return self.kept",
                   "        self.kept = None"))
              .find("a later call does something else") != std::string::npos);
    CHECK(
        said(*evaluate("        if self.kept is None: self.kept = torch.empty_like(x)\n"
                       "        return torch.mul(torch.relu(self.norm(self.linear(x))), 2.0, out=self.kept)",
                       "        self.kept = None")) == "correct");
  }

  TEST_CASE("inputs are not written to") {
    const auto evaluation = evaluate("        y = torch.relu(self.norm(self.linear(x))) * 2.0\n"
                                     "        x.mul_(0)\n        return y");
    if (!evaluation) return;
    CHECK(evaluation->verdict == Verdict::input_modified);
  }

  TEST_CASE("random numbers of a call are no excuse") {
    const auto evaluation =
        evaluate("        return torch.relu(self.norm(self.linear(x))) * (2.0 + torch.rand_like(x)[:, :48])");
    if (!evaluation) return;
    CHECK(said(*evaluation).find("wrong_result") == 0);
  }

  TEST_CASE("by the benchmark's own rules a result is right that is near the problem's") {
    const auto python = python_for_tests();
    if (!python) return;
    EvaluationRequest request;
    request.task = task();
    request.candidate = {
        languages::triton, candidate("        return torch.relu(self.norm(self.linear(x))) * 2.00008"), {}};
    request.incumbent = request.task.kernel;
    const auto theirs = shared_evaluator(*python).evaluate_by(JudgingRules::compatible, request);
    CHECK(said(theirs) == "correct");
    CHECK(theirs.sizes.at(0).samples == 100);
    REQUIRE(theirs.speed_up);
    CHECK_FALSE(theirs.speed_up->has_interval());
    CHECK(shared_evaluator(*python).evaluate(request).verdict == Verdict::low_precision);
    request.candidate.source = candidate("        return torch.relu(self.norm(self.linear(x))) * 2.01");
    CHECK(shared_evaluator(*python).evaluate_by(JudgingRules::compatible, request).verdict ==
          Verdict::wrong_result);
  }

  TEST_CASE("a script is right that gives the same in another process, or what a golden one gives") {
    const auto python = python_for_tests();
    if (!python) return;
    auto& evaluator = shared_evaluator(*python);
    const std::string golden = "import torch\nx = torch.randn(32, 8, device='cuda')\n"
                               "result_gold = {'a': torch.softmax(x, dim=1), 'b': x.argmax(dim=1)}\n";
    const std::string other = "import torch\nx = torch.randn(32, 8, device='cuda')\ne = x.exp()\n"
                              "result_gold = {'a': e / e.sum(dim=1, keepdim=True), 'b': x.argmax(dim=1)}\n";
    const auto alone = evaluator.evaluate_script(golden, "result_gold");
    CHECK(said(alone) == "correct");
    CHECK(alone.seconds > 0);
    CHECK(said(evaluator.evaluate_script(other, "result_gold", &golden)) == "correct");
    const std::string wrong = "import torch\nx = torch.randn(32, 8, device='cuda')\n"
                              "result_gold = {'a': torch.softmax(x, dim=0), 'b': x.argmax(dim=1)}\n";
    CHECK(evaluator.evaluate_script(wrong, "result_gold", &golden).verdict == Verdict::wrong_result);
    const std::string unwritten = "import torch\nresult_gold = {'a': torch.empty(16, device='cuda') + 1}\n";
    const auto depends = evaluator.evaluate_script(unwritten, "result_gold");
    CHECK(depends.verdict == Verdict::nondeterministic);
    CHECK(depends.diagnostics.at(0).message.find("memory that nothing has written") != std::string::npos);
    const std::string half =
        "import torch\ny = torch.empty(16, device='cuda')\ny[8:] = 2.0\nresult_gold = [y]\n";
    CHECK(said(evaluator.evaluate_script(half, "result_gold")) == "correct");
    CHECK(evaluator.evaluate_script(half, "result_gold").sizes.at(0).checked_elements < 32);
    CHECK(evaluator.evaluate_script(golden, "results").verdict == Verdict::compile_error);
    CHECK_THROWS_AS((void)evaluator.evaluate_script("result_gold = {'a': [3, 4]}\n", "result_gold"), Error);
  }

  TEST_CASE("a task that is no problem in PyTorch is an error") {
    const auto python = python_for_tests();
    if (!python) return;
    EvaluationRequest request;
    request.task = task();
    request.candidate = request.task.kernel;
    request.task.kernel.source = "class Model: pass\n";
    CHECK_THROWS_AS((void)shared_evaluator(*python).evaluate(request), Error);
    request.task.kernel.language = languages::cpp;
    CHECK_THROWS_AS((void)shared_evaluator(*python).evaluate(request), Error);
  }
}
