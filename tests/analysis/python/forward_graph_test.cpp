#include <mtmc/analysis/python/forward_graph.hpp>
#include <mtmc/analysis/python/python_parser.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;

namespace {

/// A module whose `__init__` and `forward` have these lines.
std::string module(std::string_view built, std::string_view computed) {
  const auto indented = [](std::string_view lines) {
    std::string text = "        ";
    for (const char c : lines) text += c == '\n' ? std::string("\n        ") : std::string(1, c);
    return text + '\n';
  };
  return "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nclass Model(nn.Module):\n"
         "    def __init__(self, size):\n        super().__init__()\n" +
         indented(built) + "    def forward(self, x, y=None):\n" + indented(computed);
}

ForwardGraph graph_of(std::string_view built, std::string_view computed) {
  const auto graphs = forward_graphs(parse_python(module(built, computed)));
  REQUIRE(graphs.size() == 1);
  return graphs.front();
}

/// "Linear contraction, relu pointwise"
std::string told(const ForwardGraph& graph) {
  std::string text;
  for (const ForwardOperator& one : graph.operators)
    text += (text.empty() ? "" : ", ") + one.name + ' ' + std::string(to_string(one.kind));
  return text;
}

} // namespace

TEST_CASE("modules are what __init__ builds, functions what their name says, and each knows its operands") {
  const auto graph =
      graph_of("self.linear = nn.Linear(size, size)\nself.scale = nn.Parameter(torch.ones(size))",
               "x = self.linear(x)\nx = torch.relu(x) * self.scale\nreturn x.max(dim=1)[0]");
  CHECK(told(graph) == "Linear contraction, relu pointwise, * pointwise, max reduction, [] view");
  CHECK(operator_chain(graph) == "HPR");
  CHECK(graph.module == "Model");
  CHECK(graph.inputs == std::vector<std::string>{"x", "y"});
  CHECK(graph.notes.empty());
  REQUIRE(graph.operators.size() == 5);
  CHECK(graph.operators[0].operands.empty());
  CHECK(graph.operators[1].operands == std::vector<std::size_t>{0});
  CHECK(graph.operators[2].operands == std::vector<std::size_t>{1});
  CHECK(graph.operators[2].range.first_line == 12);
  CHECK(graph.operators[1].statement == graph.operators[2].statement);
}

TEST_CASE("a value that is used twice is an operand of both") {
  const auto graph = graph_of("self.conv = nn.Conv2d(3, size, 3)",
                              "y = self.conv(x)\nz = torch.tanh(F.softplus(y)) * y\nreturn z + x");
  CHECK(told(graph) == "Conv2d convolution, softplus pointwise, tanh pointwise, * pointwise, + pointwise");
  REQUIRE(graph.operators.size() == 5);
  CHECK(graph.operators[3].operands == std::vector<std::size_t>{0, 2});
  CHECK(graph.operators[4].operands == std::vector<std::size_t>{3});
}

TEST_CASE("arithmetic of sizes is no operator, and updates in place are") {
  const auto graph = graph_of("self.factor = 2",
                              "n = x.size(0) * x.shape[1]\nx += n\nx /= self.factor\nreturn x.view(n, -1).T");
  CHECK(told(graph) == "+ pointwise, / pointwise, view view, T view");
}

TEST_CASE("the largest of an axis is a reduction, the larger of two tensors is pointwise") {
  const auto graph = graph_of("self.limit = nn.Parameter(torch.tensor(size))",
                              "a = torch.max(x, 1)\nb = torch.max(x, dim=1)\nc = torch.min(x, self.limit)\n"
                              "d = torch.min(x, torch.tensor(0.0))\nreturn x.max(), x.max(y)");
  CHECK(told(graph) ==
        "max reduction, max reduction, min pointwise, tensor creation, min pointwise, max reduction, "
        "max pointwise");
}

TEST_CASE("a sequence applies all that it lists") {
  const auto graph =
      graph_of("self.net = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Sequential(nn.Softmax(1)))",
               "return self.net(x)");
  CHECK(told(graph) == "Linear contraction, ReLU pointwise, Softmax normalization");
  REQUIRE(graph.operators.size() == 3);
  CHECK(graph.operators[2].operands == std::vector<std::size_t>{1});
}

TEST_CASE("notes say what is not a straight line, or not known") {
  const auto graph =
      graph_of("self.layers = nn.ModuleList([nn.Linear(size, size)])\nself.odd = Unheard(size)",
               "for layer in self.layers:\n    x = layer(x)\nif y is not None:\n    x = x + y\n"
               "x = self.odd(x)\nx = self.helper(x)\nreturn torch.unheard_of(x)");
  CHECK(graph.notes == std::vector<std::string>{"a loop in line 11", "a call of layer", "a branch in line 13",
                                                "the module Unheard is not in the table",
                                                "a call of self.helper",
                                                "the function unheard_of is not in the table"});
}

TEST_CASE("what is stored, and what changes in place, is there for those that come after") {
  const auto graph = graph_of("self.size = size", "z = x @ y\nz.add_(x)\nout = torch.zeros_like(z)\n"
                                                  "out[:, :self.size] = torch.exp(z)\nreturn out.sum()");
  CHECK(told(graph) ==
        "@ contraction, add_ pointwise, zeros_like creation, exp pointwise, []= gather, sum reduction");
  REQUIRE(graph.operators.size() == 6);
  CHECK(graph.operators[3].operands == std::vector<std::size_t>{1});
  CHECK(graph.operators[4].operands == std::vector<std::size_t>{2, 3});
  CHECK(graph.operators[5].operands == std::vector<std::size_t>{4});
}

TEST_CASE("calls that are not looked into are operators that nobody knows, and noted") {
  const auto graph =
      graph_of("self.a = nn.Linear(size, size)",
               "a = self.a\nx = fused.gemm(x, y)\nx = a(x) if self.training else MyFn.apply(x)\n"
               "return operator.mul(abs(x), x)");
  CHECK(told(graph) == "gemm unknown, a unknown, apply unknown, abs pointwise, mul unknown");
  CHECK(operator_chain(graph) == "XPX");
  CHECK(graph.notes.size() == 5);
}

TEST_CASE("numbers are no tensors, and arithmetic with them is no operator") {
  const auto graph = graph_of(
      "self.heads = size\nself.scale = nn.Parameter(torch.ones(1))\nself.register_buffer('mask', size)",
      "n = self.heads // 2\nx = x.view(n, self.heads * 2)\nreturn torch.max(x, self.heads)[0] * self.scale + "
      "self.mask");
  CHECK(told(graph) == "view view, max reduction, [] view, * pointwise, + pointwise");
}

TEST_CASE("a text that grows inwards takes no more than its length") {
  std::string text = "x";
  for (int i = 0; i < 40; ++i) text = "torch.max(x, " + text + ")";
  CHECK(graph_of("pass", "return " + text).operators.size() == 40);
  for (int i = 0; i < 48; ++i) {
    std::string sum = "(" + text + ")";
    for (int k = 0; k < 400; ++k) sum += "+x";
    text = sum;
  }
  CHECK_FALSE(graph_of("pass", "return " + text).notes.empty());
}

TEST_CASE(
    "each class with a forward has a graph; what it applies of the same file is no operator of PyTorch") {
  const auto graphs =
      forward_graphs(parse_python("class Dropout(nn.Module):\n    def forward(self, x):\n        return x\n"
                                  "class Model(nn.Module):\n    def __init__(self):\n"
                                  "        self.block = Dropout()\n    def forward(self, x):\n"
                                  "        return self.block(x)\nclass Other: pass\n"));
  REQUIRE(graphs.size() == 2);
  CHECK(graphs[0].operators.empty());
  CHECK(told(graphs[1]) == "Dropout unknown");
  CHECK(graphs[1].notes == std::vector<std::string>{"the class Dropout is applied"});
}

TEST_CASE("texts that are no modules give no graphs, and broken ones what is left") {
  CHECK(forward_graphs(parse_python("")).empty());
  CHECK(forward_graphs(parse_python("class A:\n    forward = 3\n")).empty());
  const std::string whole = module("self.a = nn.ReLU()", "return self.a(x) + torch.exp(");
  for (std::size_t length = 0; length <= whole.size(); ++length)
    CHECK(forward_graphs(parse_python(whole.substr(0, length))).size() <= 1);
}
