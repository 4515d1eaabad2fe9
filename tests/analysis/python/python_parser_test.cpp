#include <mtmc/analysis/python/python_parser.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ast_comparison.hpp"

using namespace mtmc;

namespace {

/// Where a node stands: its text.
std::string_view text_of(std::string_view source, const SyntaxNode& node) {
  return source.substr(node.range.begin, node.range.end - node.range.begin);
}

/// The first node of a kind below another, or null.
const SyntaxNode* find(const SyntaxNode& node, NodeKind kind, std::string_view text = {}) {
  if (node.kind == kind && (text.empty() || node.text == text)) return &node;
  for (const SyntaxNode& child : node.children)
    if (const SyntaxNode* const found = find(child, kind, text)) return found;
  return nullptr;
}

std::vector<std::string> python_files() {
  std::vector<std::string> files;
  for (const char* const folder : {"/examples", "/tests"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(MTMC_REPOSITORY) + folder))
      if (entry.path().extension() == ".py") files.push_back(entry.path().string());
  return files;
}

constexpr std::string_view softmax = R"(import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"])
@triton.jit
def softmax_kernel(out, x, n, BLOCK: tl.constexpr, *, scale=1.0):
    row = tl.program_id(0)
    best = -float("inf")
    for begin in range(0, n, BLOCK):
        columns = begin + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.max(tl.load(x + row * n + columns, mask=columns < n), 0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        #@ launch softmax_kernel
        softmax_kernel[(x.shape[0],)](out, x, x.shape[1])
        return out if x.numel() > 0 else None
)";

} // namespace

TEST_CASE("kernels are functions with their decorators, and loops have a target and what they go through") {
  const SyntaxNode tree = parse_python(softmax);
  CHECK(find(tree, NodeKind::opaque) == nullptr);
  const SyntaxNode* const kernel = find(tree, NodeKind::decorated);
  REQUIRE(kernel != nullptr);
  REQUIRE(kernel->children.size() == 3);
  CHECK(text_of(softmax, kernel->children[1]) == "triton.jit");
  const SyntaxNode& function = kernel->children[2];
  CHECK(function.kind == NodeKind::function);
  CHECK(function.text == "softmax_kernel");
  REQUIRE(parameters(function).size() == 6);
  CHECK(parameters(function)[3].text == "BLOCK");
  CHECK(parameters(function)[3].type == "tl.constexpr");
  CHECK(parameters(function)[4].text == "*");
  CHECK(initial_value(parameters(function)[5])->text == "1.0");
  const SyntaxNode* const loop = find(function, NodeKind::for_each_loop);
  REQUIRE(loop != nullptr);
  CHECK(text_of(softmax, loop->children[0]) == "begin");
  CHECK(text_of(softmax, loop->children[1]) == "range(0, n, BLOCK)");
  CHECK(loop->children[2].children.size() == 2);
  CHECK(loop->range.first_line == 9);
  CHECK(loop->range.last_line == 11);
}

TEST_CASE("a launch is a call of a subscript, and a marker stands before it") {
  const SyntaxNode tree = parse_python(softmax);
  const SyntaxNode* const forward = find(tree, NodeKind::function, "forward");
  REQUIRE(forward != nullptr);
  const auto body = statements(function_body(*forward));
  REQUIRE(body.size() == 4);
  CHECK(body[1].kind == NodeKind::launch_comment);
  CHECK(body[1].text == "#@ launch softmax_kernel");
  const SyntaxNode& launch = operand(body[2]);
  CHECK(launch.kind == NodeKind::call);
  CHECK(text_of(softmax, callee(launch)) == "softmax_kernel[(x.shape[0],)]");
  CHECK(arguments(launch).size() == 3);
}

TEST_CASE("what is not understood is opaque with its block, and parsing goes on behind it") {
  constexpr std::string_view source = "match x:\n    case 1:\n        y = 2\nz = = 3\nw = 4\n";
  const SyntaxNode tree = parse_python(source);
  REQUIRE(tree.children.size() == 3);
  CHECK(tree.children[0].kind == NodeKind::opaque);
  CHECK(tree.children[0].text == "match x:\n    case 1:\n        y = 2");
  CHECK(tree.children[1].kind == NodeKind::opaque);
  CHECK(tree.children[1].text == "z = = 3");
  CHECK(text_of(source, tree.children[2]) == "w = 4");
}

TEST_CASE("a bracket that nobody closes costs its statement, not the functions behind it") {
  const SyntaxNode tree = parse_python("x = f(1,\n\ndef g():\n    return 2\n");
  REQUIRE(tree.children.size() == 2);
  CHECK(tree.children[0].kind == NodeKind::opaque);
  CHECK(tree.children[1].text == "g");
}

TEST_CASE("a marker between the parts of a statement does not tear it apart") {
  const SyntaxNode kernel = parse_python("@triton.jit\n#@ something\ndef k(x):\n    pass\n");
  CHECK(find(kernel, NodeKind::opaque) == nullptr);
  CHECK(find(kernel, NodeKind::decorated) != nullptr);
  const SyntaxNode branch = parse_python("if x:\n    a\n#@ something\nelse:\n    b\n");
  CHECK(find(branch, NodeKind::opaque) == nullptr);
  REQUIRE(find(branch, NodeKind::if_statement) != nullptr);
  CHECK(find(branch, NodeKind::if_statement)->children.size() == 3);
}

TEST_CASE("a number ends where no number can go on") {
  constexpr std::string_view source = "x = 1if a else 2\ny = 1e5.real\nz = [0x1for q in y]\nw = 1_0e-3j\n";
  const SyntaxNode tree = parse_python(source);
  CHECK(find(tree, NodeKind::opaque) == nullptr);
  CHECK(find(tree, NodeKind::literal, "1e5") != nullptr);
  CHECK(find(tree, NodeKind::member, ".real") != nullptr);
  CHECK(find(tree, NodeKind::literal, "1_0e-3j") != nullptr);
}

TEST_CASE("decorators that decorate nothing are one opaque statement") {
  std::string decorators;
  for (int i = 0; i < 100000; ++i) decorators += "@a\n";
  CHECK(parse_python(decorators + "x = 1\n").children.size() == 2);
}

TEST_CASE("texts nested without end are opaque, and take no more time than others") {
  const auto repeated = [](std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  for (const std::string_view part :
       {"(", "[", "{", "-", "not ", "lambda: ", "a if b else ", "a = ", "f(", "x**"})
    CHECK(find(parse_python("x = " + repeated(part, 100000)), NodeKind::opaque) != nullptr);
  CHECK(find(parse_python("x = a" + repeated(" + a", 100000)), NodeKind::opaque) != nullptr);
  std::string inwards = "a";
  for (int i = 0; i < 48; ++i) inwards = "(" + inwards + repeated("+a", 499) + ")";
  CHECK(find(parse_python("x = " + inwards), NodeKind::opaque) != nullptr);
  CHECK(find(parse_python("x = a" + repeated(".a", 100000)), NodeKind::opaque) != nullptr);
  std::string blocks;
  for (int depth = 0; depth < 1000; ++depth)
    blocks += std::string(static_cast<std::size_t>(depth), ' ') + "if a:\n";
  CHECK(find(parse_python(blocks), NodeKind::opaque) != nullptr);
  CHECK(find(parse_python("if a: b\n" + repeated("elif a: b\n", 10000)), NodeKind::opaque) != nullptr);
}

TEST_CASE("any beginning of a text can be read") {
  for (std::size_t length = 0; length <= softmax.size(); ++length) {
    const SyntaxNode tree = parse_python(softmax.substr(0, length));
    CHECK(tree.kind == NodeKind::translation_unit);
  }
}

TEST_CASE("trees are those of Python's own parser") {
  auto options = python_files();
  REQUIRE(options.size() > 10);
  options.insert(options.end(), {"--library", "20"});
  const auto compared = mtmc_test::compare_with_ast(options);
  for (const std::string& difference : compared.differences) CHECK_MESSAGE(false, difference);
  const std::string files = std::to_string(compared.files) + " files compared";
  MESSAGE((compared.have_python ? files : "SKIPPED: there is no python3"));
}
