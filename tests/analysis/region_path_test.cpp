// From paths to nodes and back.

#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/parser.hpp>

#include <doctest/doctest.h>

#include <string>

#include "analysed.hpp"

namespace {

const char* const source = R"(#include <cmath>
namespace kernels {
void helper(float* a) { a[0] = 1; }
}
void f(float* a, float* b, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a[j] = 0;
    if (n > 3)
      for (int j = 0; j < n; ++j) b[j] = 0;
  }
  int i;
  for (i = 0; i < n; ++i) a[i] = b[i];
  while (n > 0) --n;
}
void f(float* a) { for (int k = 0; k < 4; ++k) a[k] = 0; }
//@ scratch T: f32[N]
//@ launch f(A, B, N)
//@ launch g(T)
//@ launch f(B, A, N)
)";

int line_of(const mtmc::SyntaxNode& tree, const std::string& path) {
  const auto found = mtmc::locate(tree, path);
  return found.size() == 1 ? found.front().node->range.first_line : 0;
}

} // namespace

TEST_CASE("region path: functions, loops and launches are found") {
  const mtmc::SyntaxNode tree = mtmc::parse(source);
  CHECK(line_of(tree, "helper") == 3);
  CHECK(line_of(tree, "f") == 5);
  CHECK(line_of(tree, "f#2") == 15);
  CHECK(line_of(tree, "f/i") == 6);
  CHECK(line_of(tree, "f/i/j") == 7);
  CHECK(line_of(tree, "f/i/j#2") == 9);
  CHECK(line_of(tree, "f/i#2") == 12);
  CHECK(line_of(tree, "f/while") == 13);
  CHECK(line_of(tree, "f#2/k") == 15);
  CHECK(line_of(tree, "launch:f") == 17);
  CHECK(line_of(tree, "launch:f#2") == 19);
}

TEST_CASE("region path: sequences give their members in order") {
  const mtmc::SyntaxNode tree = mtmc::parse(source);
  const auto loops = mtmc::locate(tree, "f/i+i#2");
  REQUIRE(loops.size() == 2);
  CHECK(loops[0].node->range.first_line == 6);
  CHECK(loops[1].node->range.first_line == 12);
  const auto inner = mtmc::locate(tree, "f/i/j+j#2");
  REQUIRE(inner.size() == 2);
  CHECK(inner[1].node->range.first_line == 9);
  const auto launches = mtmc::locate(tree, "launch:f+launch:g+launch:f#2");
  REQUIRE(launches.size() == 3);
  CHECK(mtmc::launch_entry(*launches[1].node) == "g");
}

TEST_CASE("region path: what is not there is not found") {
  const mtmc::SyntaxNode tree = mtmc::parse(source);
  for (const char* path :
       {"", "g", "f#3", "f/x", "f/i#3", "f/j", "f/i/j#3", "f/i+x", "launch:h", "launch:f#3", "f/", "/i",
        "f//i", "f/i#", "f/i#x", "f/i#99999999999", "+", "f+", "launch:"})
    CHECK_MESSAGE(mtmc::locate(tree, path).empty(), std::string(path));
}

TEST_CASE("region path: child indices lead to the same node in a mutable copy") {
  const mtmc::SyntaxNode tree = mtmc::parse(source);
  mtmc::SyntaxNode copy = tree;
  const auto found = mtmc::locate(tree, "f/i/j#2");
  REQUIRE(found.size() == 1);
  mtmc::SyntaxNode* node = mtmc::node_at(copy, found.front().indices);
  REQUIRE(node != nullptr);
  CHECK(node->range == found.front().node->range);
  auto mutable_found = mtmc::locate(copy, "f/i/j#2");
  REQUIRE(mutable_found.size() == 1);
  CHECK(mutable_found.front().node == node);
  CHECK(mtmc::node_at(copy, {0, 99}) == nullptr);
}

TEST_CASE("region path: paths of the analysis lead back to its loops, and do not care for lines") {
  const analysed::Text text(source);
  const analysed::Text moved("\n\n// a remark\n" + std::string(source));
  for (const auto& function : text.analysis.functions())
    for (const auto& loop : function->loops) {
      const auto found = mtmc::locate(text.tree, loop.path);
      REQUIRE(found.size() == 1);
      CHECK(found.front().node == loop.node);
      const auto* same = moved.analysis.find_loop(loop.path);
      REQUIRE(same != nullptr);
      CHECK(same->first_line == loop.first_line + 3);
    }
}

TEST_CASE(
    "region path: the threads of a function are the function, stores are statements outside its loops") {
  const mtmc::SyntaxNode tree = mtmc::parse(R"(
__global__ void f(float* a, float* b, int n) {
  int i = threadIdx.x;
  for (int k = 0; k < n; ++k) a[i] += 1.0f;
  if (i < n) {
    a[i] = 2.0f;
    b[2 * i] = a[i];
  }
  a[i + n] = 3.0f;
}
)");
  const auto line_of = [&tree](std::string_view path) {
    const auto found = mtmc::locate(tree, path);
    return found.size() == 1 ? found.front().node->range.first_line : 0;
  };
  CHECK(mtmc::locate(tree, "f/threads:x").front().node == mtmc::locate(tree, "f").front().node);
  CHECK(line_of("f/store:a") == 6);
  CHECK(line_of("f/store:a#2") == 9);
  CHECK(line_of("f/store:b") == 7);
  CHECK(line_of("f/store:a#3") == 0);
  CHECK(line_of("f/k/threads:x") == 0);
  CHECK(line_of("g/threads:x") == 0);
}
