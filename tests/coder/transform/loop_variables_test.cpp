#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/coder/transform/loop_variables.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

namespace {
std::string declared(const std::string& source) {
  SyntaxNode tree = parse(source);
  declare_loop_variables(tree);
  return print(tree);
}
} // namespace

TEST_CASE("loop variables declared before the loops move into the heads") {
  CHECK(declared(
            "void f(float* a, int n) {\n  int i, j;\n  for (i = 0; i < n; i++)\n    for (j = 0; j < n; j++)\n"
            "      a[i * n + j] = 0;\n}\n") ==
        "void f(float* a, int n) {\n  for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++)\n"
        "      a[i * n + j] = 0;\n}\n");
}

TEST_CASE("a variable whose value is used elsewhere stays where it is") {
  for (const std::string source :
       {"void f(float* a, int n) {\n  int i;\n  for (i = 0; i < n; ++i) a[i] = 0;\n  a[0] = i;\n}\n",
        "void f(float* a, int n) {\n  int i = 3;\n  for (i = 0; i < n; ++i) a[i] = 0;\n}\n",
        "void f(float* a, int n) {\n  int i;\n  for (i = 0; i < n; ++i)\n    for (i = 0; i < n; ++i) a[i] = "
        "0;\n}\n",
        "void f(float* a, int n) {\n  int i;\n#pragma omp parallel for private(i)\n  for (i = 0; i < n; ++i) "
        "a[i] = 0;\n}\n",
        "void f(float* a, int n) {\n  int i, j;\n  for (i = 0, j = 0; i < n; ++i, ++j) a[i] = j;\n}\n"})
    CHECK(declared(source) == source);
}
