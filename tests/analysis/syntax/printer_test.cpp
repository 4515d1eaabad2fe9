#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sample_kernels.hpp"

using namespace mtmc;

namespace {

/// The tree without its memory of the source: prints canonically.
SyntaxNode without_origin(SyntaxNode node) {
  walk(node, [](SyntaxNode& part) { part.origin = {}; });
  return node;
}

SyntaxNode statement(std::string_view text) {
  std::vector<SyntaxNode> list = parse_statements(text);
  REQUIRE_MESSAGE(list.size() == 1, text);
  return std::move(list.front());
}

std::string canonical(std::string_view text) { return print(parse_expression(text)); }

/// `text` with its one occurrence of `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}

} // namespace

TEST_SUITE("printer: unchanged") {
  TEST_CASE("an unchanged tree prints as it was read, byte for byte") {
    for (const auto& sample : samples::all) {
      CAPTURE(sample.name);
      const SyntaxNode tree = parse(sample.source, {.cuda_launches = true});
      CHECK(print(tree) == sample.source);
      const SyntaxNode copy = tree;
      CHECK(print(copy) == sample.source);
    }
    CHECK(print(parse(samples::partly_opaque)) == samples::partly_opaque);
    CHECK(print(parse("")).empty());
    CHECK(print(parse(" \n// only this")) == " \n// only this");
  }

  TEST_CASE("a change that is taken back is no change") {
    SyntaxNode tree = parse(samples::odd);
    (void)rename(tree, "x", "y");
    CHECK(print(tree) != samples::odd);
    (void)rename(tree, "y", "x");
    CHECK(print(tree) == samples::odd);
  }
}

TEST_SUITE("printer: canonical") {
  TEST_CASE("what it prints reads back as the same tree, and prints the same again") {
    for (const auto& sample : samples::all) {
      CAPTURE(sample.name);
      const SyntaxNode tree = parse(sample.source, {.cuda_launches = true});
      const std::string text = print(without_origin(tree));
      const SyntaxNode again = parse(text, {.cuda_launches = true});
      CHECK(structurally_equal(tree, again));
      CHECK(print(without_origin(again)) == text);
    }
    const SyntaxNode tree = parse(samples::partly_opaque);
    CHECK(structurally_equal(tree, parse(print(without_origin(tree)))));
  }

  TEST_CASE("it reads as an engineer would write it") {
    CHECK(print(without_origin(parse(samples::dense))) == R"(void saxpy(int n, float a, float* x, float* y) {
  for (int i = 0; i < n; i++) {
    y[i] = a * x[i] + y[i];
  }
}

void swap_halves(int n, float* x) {
  int h = n / 2;
  for (int i = 0, j = h; i < h && j < n; i++, j++) {
    float t = x[i];
    x[i] = x[j];
    x[j] = t;
  }
}
)");
    CHECK(print(without_origin(parse(samples::stencil))) ==
          R"(void stencil(double const* __restrict a, double* __restrict b, int n, int m) {
  int i, j;
  for (i = 1; i < n - 1; i++) {
    for (j = 1; j < m - 1; j++) {
      if (i % 2 == 0 && (j & 1) != 0)
        b[i * m + j] = 0.25 * (a[(i - 1) * m + j] + a[(i + 1) * m + j] + a[i * m + j - 1] + a[i * m + j + 1]);
      else if (a[i * m + j] < 0 || !b[i * m + j]) {
        b[i * m + j] = -a[i * m + j];
      } else
        continue;
    }
  }
}
)");
  }

  TEST_CASE("parentheses stand where the meaning needs them, or the reader") {
    for (const std::string_view text :
         {"(a + b) * c",   "a - (b - c)",    "a - b - c",       "a / (b * c)",       "-(a + b)",
          "!(a && b)",     "(a, b)",         "(a ? b : c) + 1", "a ? b : c ? d : e", "(a ? b : c) ? d : e",
          "*(p + 1)",      "(*p)[1]",        "*p[1]",           "(a + b).x",         "&a[i]",
          "f((a, b))",     "(float)(a + b)", "(float)a + b",    "a = b = c",         "(a = b) + c",
          "(a && b) || c", "(a & b) == c",   "(a & b) | c",     "a << (b + c)",      "x < y == z",
          "- -a",          "a - -b",         "~(a | b)",        "(a + b)(c)",        "sizeof(a) * b",
          "a % (b % c)"}) {
      CAPTURE(text);
      const SyntaxNode node = parse_expression(text);
      REQUIRE(node.kind != NodeKind::opaque);
      CHECK(structurally_equal(parse_expression(print(node)), node));
    }
    CHECK(canonical("((a*b))+((c))") == "a * b + c");
    CHECK(canonical("a-(b-c)-d") == "a - (b - c) - d");
    CHECK(canonical("a&&b||c") == "(a && b) || c");
    CHECK(canonical("a<<b+c") == "a << (b + c)");
    CHECK(canonical("a&b|c") == "(a & b) | c");
    CHECK(canonical("-(-a)") == "-(-a)");
    CHECK(canonical("i++,j--") == "i++, j--");
    CHECK(canonical("( float4 ) ( a , b )") == "(float4)(a, b)");
  }

  TEST_CASE("an inner if without braces keeps its else") {
    const SyntaxNode inner = statement("if (b) x();");
    const SyntaxNode outer = make_if(make_name("a"), inner, statement("y();"));
    CHECK(print(outer) == "if (a) {\n  if (b)\n    x();\n} else\n  y();");
    const SyntaxNode again = statement(print(outer));
    CHECK(structurally_equal(as_block(inner), then_branch(again)));
  }

  TEST_CASE("long parameter lists are broken and aligned") {
    SyntaxNode tree = without_origin(parse(samples::layer_norm));
    const SyntaxNode* const function = find_function(tree, "layer_norm");
    const std::string text = print(*function);
    CHECK(text.substr(0, text.find('{')) ==
          "void layer_norm(const float* __restrict__ x, const float* __restrict__ gamma,\n"
          "                const float* __restrict__ beta, float* __restrict__ y, std::size_t rows,\n"
          "                std::size_t cols, float epsilon) ");
  }

  TEST_CASE("any node can be printed alone") {
    const SyntaxNode tree = parse(samples::gemm);
    const SyntaxNode& outer = function_body(*find_function(tree, "gemm")).children[0];
    const SyntaxNode& inner = loop_body(loop_body(outer).children[0]).children[1];
    CHECK(print(inner) == "for (int k = 0; k < K; ++k) {\n  sum += A[i * K + k] * B[k * N + j];\n}");
    CHECK(print(loop_condition(inner)) == "k < K");
    CHECK(print(loop_init(inner)) == "int k = 0;");
    CHECK(print(parameters(*find_function(tree, "gemm"))[0]) == "const float* A");
  }
}

TEST_SUITE("printer: changed") {
  TEST_CASE("a small change leaves all else as it stood") {
    // In every sample: put a statement at the end of the first function, and nothing else moves.
    for (const auto& sample : {samples::softmax, samples::stencil, samples::opencl_sum, samples::blocked}) {
      SyntaxNode tree = parse(sample);
      SyntaxNode* const function = functions(tree).back();
      function_body(*function).children.push_back(statement("done();"));
      std::string text = print(tree);
      const std::size_t added = text.find("done();");
      REQUIRE(added != std::string::npos);
      const std::size_t line = text.rfind('\n', added) + 1;
      text.erase(line, added + std::string_view("done();\n").size() - line);
      CHECK(text == sample);
    }
  }

  TEST_CASE("a changed expression keeps the layout round it") {
    SyntaxNode tree = parse(samples::softmax);
    walk(tree, [](SyntaxNode& node) {
      if (node.kind == NodeKind::binary && print(node) == "x[r * cols + c] - max_value")
        left_operand(node) = make_literal("0.5f");
    });
    CHECK(print(tree) ==
          replaced(std::string(samples::softmax), "x[r * cols + c] - max_value", "0.5f - max_value"));
  }

  TEST_CASE("a changed body leaves the header as it stood, and a changed header the body") {
    SyntaxNode tree = parse(samples::odd);
    SyntaxNode& loop = function_body(*find_function(tree, "odd")).children[2];
    REQUIRE(loop.kind == NodeKind::for_loop);
    loop_body(loop).children.pop_back();
    CHECK(print(tree) ==
          replaced(std::string(samples::odd), "        i ++ ;\n", "")
              .replace(std::string(samples::odd).find("int i = 0 ;  ;"), 14, "int i = 0 ;\n    ;"));
    tree = parse(samples::stencil);
    SyntaxNode& rows = function_body(*find_function(tree, "stencil")).children[1];
    right_operand(loop_condition(rows)) = make_name("last");
    CHECK(print(tree) == replaced(std::string(samples::stencil), "i < n - 1", "i < last"));
  }

  TEST_CASE("loops are wrapped, moved and unwrapped with their text") {
    SyntaxNode tree = parse(samples::gemm);
    SyntaxNode& body = function_body(*find_function(tree, "gemm"));
    SyntaxNode inner = std::move(body.children[0]);
    SyntaxNode tiles = make_counting_loop("int", "t", make_integer(0), make_name("M"), make_integer(64),
                                          make_block({std::move(inner)}));
    body.children[0] = with_comment(std::move(tiles), "tiles of rows");
    body.children.insert(body.children.begin(), make_pragma("omp parallel for"));
    CHECK(print(tree) == R"(// C = A * B, row-major.
//@ launch gemm(A, B, C, M, N, K)

extern "C" void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  #pragma omp parallel for
  // tiles of rows
  for (int t = 0; t < M; t += 64) {
    for (int i = 0; i < M; ++i) {
      for (int j = 0; j < N; ++j) {
        float sum = 0.0f;  // accumulate in a register
        for (int k = 0; k < K; ++k) {
          sum += A[i * K + k] * B[k * N + j];
        }
        C[i * N + j] = sum;
      }
    }
  }
}
)");
    SyntaxNode flat = parse(samples::gemm);
    SyntaxNode& rows = function_body(*find_function(flat, "gemm")).children[0];
    SyntaxNode columns = std::move(loop_body(rows).children[0]);
    rows = std::move(columns);
    const std::string text = print(flat);
    CHECK(text.find("\n  for (int j = 0; j < N; ++j) {\n    float sum = 0.0f;  // accumulate in a register\n"
                    "    for (int k = 0; k < K; ++k) {\n      sum +=") != std::string::npos);
  }

  TEST_CASE("swapped headers make an interchange") {
    SyntaxNode tree =
        parse("void f(int n, float* a) {\n  for (int i = 0; i < n; ++i)\n    for (int j = 1; j < 8; j += 2)"
              "\n      a[i*8+j] = 0; // zero\n}\n");
    SyntaxNode& outer = function_body(tree.children[0]).children[0];
    SyntaxNode& inner = loop_body(outer);
    for (std::size_t i = 0; i < 3; ++i) std::swap(outer.children[i], inner.children[i]);
    CHECK(print(tree) ==
          "void f(int n, float* a) {\n  for (int j = 1; j < 8; j += 2)\n    for (int i = 0; i < n; ++i)\n"
          "      a[i*8+j] = 0; // zero\n}\n");
  }

  TEST_CASE("new text follows the indentation, braces and line ends it meets") {
    SyntaxNode tabs = parse(samples::stencil);
    SyntaxNode& body = function_body(*find_function(tabs, "stencil"));
    body.children.push_back(statement("for (int k = 0; k < n; ++k) { b[k] = 0; }"));
    CHECK(print(tabs).find("\n\tfor (int k = 0; k < n; ++k)\n\t{\n\t\tb[k] = 0;\n\t}\n}\n") !=
          std::string::npos);

    SyntaxNode wide = parse(samples::softmax);
    function_body(*find_function(wide, "softmax"))
        .children.push_back(statement("if (x) { f(); } else { g(); }"));
    CHECK(print(wide).find("\n    if (x) {\n        f();\n    } else {\n        g();\n    }\n}\n") !=
          std::string::npos);

    SyntaxNode crlf = parse("void f() {\r\n  a(); // x\r\n\r\n  // y\r\n  b();\r\n}\r\n");
    function_body(crlf.children[0]).children.push_back(statement("c();"));
    CHECK(print(crlf) == "void f() {\r\n  a(); // x\r\n\r\n  // y\r\n  b();\r\n  c();\r\n}\r\n");
  }

  TEST_CASE("pieces of two files can be put together") {
    SyntaxNode first = parse("// one\nvoid f(float* a) {\n    a[0] = 1; // first\n}\n");
    SyntaxNode second = parse("/* two */\nvoid g(float* b) { b[1]=2; }\n");
    first.children.push_back(second.children[0]);
    CHECK(print(first) ==
          "// one\nvoid f(float* a) {\n    a[0] = 1; // first\n}\n/* two */\nvoid g(float* b) { b[1]=2; }\n");
    function_body(first.children[0]).children.push_back(function_body(second.children[0]).children[0]);
    CHECK(print(first).find("    a[0] = 1; // first\n    b[1]=2;\n}\n") != std::string::npos);
  }

  TEST_CASE("a declaration moves between a loop's init and a statement") {
    SyntaxNode tree = parse("void f() {\n  for (int i = 0; i < n; ++i) x(i);\n}\n");
    SyntaxNode& body = function_body(tree.children[0]);
    SyntaxNode init = std::exchange(loop_init(body.children[0]), make_empty());
    body.children.insert(body.children.begin(), init);
    CHECK(print(tree) == "void f() {\n  int i = 0;\n  for (; i < n; ++i)\n    x(i);\n}\n");
    loop_init(body.children[1]) = body.children[0];
    body.children.erase(body.children.begin());
    CHECK(print(tree) == "void f() {\n  for (int i = 0; i < n; ++i) x(i);\n}\n");
  }

  TEST_CASE("a pragma that is the body of a loop gets braces when the loop is moved apart") {
    SyntaxNode tree =
        parse("void f() {\n  for (int i = 0; i < n; ++i)\n#pragma omp simd\n    for (int j = 0; j < m; ++j)"
              "\n      x(i, j);\n}\n");
    SyntaxNode& loop = function_body(tree.children[0]).children[0];
    right_operand(loop_condition(loop)) = make_name("p");
    CHECK(print(tree) ==
          "void f() {\n  for (int i = 0; i < p; ++i) {\n#pragma omp simd\n    for (int j = 0; j < m; ++j)\n"
          "      x(i, j);\n  }\n}\n");
  }

  TEST_CASE("comments survive in every place") {
    const std::string source = "void f() { // opens\n  // before\n  a(); // beside\n\n  /* two\n     lines "
                               "*/\n  b();\n  // last\n}\n"
                               "// end\n";
    SyntaxNode tree = parse(source);
    SyntaxNode& body = function_body(tree.children[0]);
    body.children[0] = make_block({std::move(body.children[0])});
    tree.children[0].text = "g";
    CHECK(print(tree) ==
          "void g() { // opens\n  {\n    // before\n    a(); // beside\n  }\n\n  /* two\n     lines */\n"
          "  b();\n  // last\n}\n// end\n");
  }
}
