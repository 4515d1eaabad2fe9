#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../sample_kernels.hpp"

using namespace mtmc;

namespace {

/// A tree as text: kind(text; type; children...), for tests of shapes.
std::string shape(const SyntaxNode& node) {
  switch (node.kind) {
  case NodeKind::name:
  case NodeKind::literal:
    return node.text;
  case NodeKind::empty:
    return "empty";
  default:
    break;
  }
  std::string text(to_string(node.kind));
  text += '(';
  std::string separator;
  const auto add = [&](const std::string& part) {
    if (part.empty()) return;
    text += separator + part;
    separator = ", ";
  };
  add(node.text);
  add(node.type);
  add(node.suffix);
  for (const SyntaxNode& child : node.children) add(shape(child));
  return text + ')';
}

/// An expression with every operator in parentheses.
std::string grouped(const SyntaxNode& node) {
  const auto at = [&node](std::size_t index) { return grouped(node.children[index]); };
  switch (node.kind) {
  case NodeKind::binary:
  case NodeKind::assignment:
    return '(' + at(0) + ' ' + node.text + ' ' + at(1) + ')';
  case NodeKind::unary:
    return '(' + node.text + at(0) + ')';
  case NodeKind::postfix:
    return '(' + at(0) + node.text + ')';
  case NodeKind::conditional:
    return '(' + at(0) + " ? " + at(1) + " : " + at(2) + ')';
  case NodeKind::subscript:
    return at(0) + '[' + at(1) + ']';
  case NodeKind::member:
    return at(0) + node.text;
  case NodeKind::cast:
    return "cast<" + node.type + ">(" + at(0) + ')';
  case NodeKind::call: {
    std::string text = at(0) + '(';
    for (std::size_t i = 1; i < node.children.size(); ++i) text += (i > 1 ? ", " : "") + at(i);
    return text + ')';
  }
  default:
    return shape(node);
  }
}

std::string expression(std::string_view text) { return grouped(parse_expression(text)); }

/// The shape of a text that is one statement.
std::string statement(std::string_view text) {
  const std::vector<SyntaxNode> list = parse_statements(text);
  REQUIRE_MESSAGE(list.size() == 1, text);
  return shape(list.front());
}

std::size_t count_kind(const SyntaxNode& root, NodeKind kind) {
  std::size_t count = 0;
  walk(root, [&](const SyntaxNode& node) { count += node.kind == kind ? 1U : 0U; });
  return count;
}

std::size_t height(const SyntaxNode& node) {
  std::size_t tallest = 0;
  for (const SyntaxNode& child : node.children) tallest = std::max(tallest, height(child));
  return tallest + 1;
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

} // namespace

TEST_SUITE("parser: expressions") {
  TEST_CASE("operators bind as in C") {
    CHECK(expression("a + b * c - d") == "((a + (b * c)) - d)");
    CHECK(expression("(a + b) * c") == "((a + b) * c)");
    CHECK(expression("a - (b - c)") == "(a - (b - c))");
    CHECK(expression("a < b && c >= d || e == f") == "(((a < b) && (c >= d)) || (e == f))");
    CHECK(expression("a & b == c") == "(a & (b == c))");
    CHECK(expression("a << 1 + b") == "(a << (1 + b))");
    CHECK(expression("a = b = c + 1") == "(a = (b = (c + 1)))");
    CHECK(expression("a ? b : c ? d : e") == "(a ? b : (c ? d : e))");
    CHECK(expression("i++, --j") == "((i++) , (--j))");
    CHECK(expression("-a * !b") == "((-a) * (!b))");
    CHECK(expression("*p++ += &q[1] - *r") == "((*(p++)) += ((&q[1]) - (*r)))");
    CHECK(expression("x %= 3 | 4 ^ 5") == "(x %= (3 | (4 ^ 5)))");
  }

  TEST_CASE("subscripts, calls and members chain") {
    CHECK(expression("a[i][j * 2]") == "a[i][(j * 2)]");
    CHECK(expression("s.row->data()[k].x") == "s.row->data()[k].x");
    CHECK(expression("f(g(1), h(), x + 1)") == "f(g(1), h(), (x + 1))");
    CHECK(expression("(*f)(x)") == "(*f)(x)");
  }

  TEST_CASE("template arguments are part of a name, comparisons are not") {
    CHECK(expression("std::min<float>(a, b)") == "std::min<float>(a, b)");
    CHECK(expression("std::numeric_limits<std::array<float, 4>>::max()") ==
          "std::numeric_limits<std::array<float, 4>>::max()");
    CHECK(expression("a < b && c > (d)") == "((a < b) && (c > d))");
    CHECK(expression("i<n-1") == "(i < (n - 1))");
    CHECK(expression("a < b > (c)") == "((a < b) > c)");
  }

  TEST_CASE("casts of all forms") {
    CHECK(expression("(float)x * y") == "(cast<float>(x) * y)");
    CHECK(expression("(const float*)p") == "cast<const float*>(p)");
    CHECK(expression("(unsigned long)(a + b)") == "cast<unsigned long>((a + b))");
    CHECK(expression("(index_t)-1") == "cast<index_t>((-1))");
    CHECK(expression("(T)x") == "cast<T>(x)");
    CHECK(expression("(a)-b") == "(a - b)");
    CHECK(expression("(a)*b") == "(a * b)");
    CHECK(expression("float(i) / static_cast<double>(n)") == "(cast<float>(i) / cast<double>(n))");
    CHECK(expression("*reinterpret_cast<const float4*>(&a[0])") == "(*cast<const float4*>((&a[0])))");
    CHECK(expression("(float4)(0.0f, 1.0f)") == "cast<float4>((0.0f , 1.0f))");
    CHECK(parse_expression("static_cast<int>(x)").text == "static_cast");
    CHECK(parse_expression("float(x)").text == "functional");
    CHECK(parse_expression("(float)x").text == "c_style");
  }

  TEST_CASE("sizeof is a call of sizeof") {
    CHECK(expression("sizeof(float) * n") == "(sizeof(float) * n)");
    CHECK(expression("sizeof(a[0])") == "sizeof(a[0])");
    CHECK(expression("sizeof x") == "(sizeofx)");
  }

  TEST_CASE("literals and lists") {
    CHECK(expression("true && nullptr") == "(true && nullptr)");
    CHECK(expression("\"a\" \"b\"") == "\"a\" \"b\"");
    CHECK(expression("float4{1, 2}") == "initializer_list(float4, 1, 2)");
    CHECK(expression("f({1, {2}}, std::array<int, 2>{})") ==
          "f(initializer_list(1, initializer_list(2)), initializer_list(std::array<int, 2>))");
  }

  TEST_CASE("what is no expression is opaque with its text") {
    for (const std::string_view text :
         {"a +", "", "(a", "a b", "{.x = 1}", "a ? b", "f(", "int", "a[]", "x.", "return 1"}) {
      CAPTURE(text);
      const SyntaxNode node = parse_expression(text);
      CHECK(node.kind == NodeKind::opaque);
      CHECK(node.text == text);
    }
    const SyntaxNode lambda = parse_expression("[&](int i) mutable -> float { return i + k; }");
    CHECK(lambda.kind == NodeKind::opaque);
    CHECK(uses_name(lambda, "k"));
  }
}

TEST_SUITE("parser: statements") {
  TEST_CASE("declarations are told from expressions") {
    CHECK(statement("float x;") == "declaration(float, declarator(x))");
    CHECK(statement("const float* __restrict__ p = a + 1;") ==
          "declaration(const float, declarator(p, * __restrict__, initializer(=, binary(+, a, 1))))");
    CHECK(statement("T* name;") == "declaration(T, declarator(name, *))");
    CHECK(statement("T& r = x;") == "declaration(T, declarator(r, &, initializer(=, x)))");
    CHECK(statement("std::vector<float> x(n, 0.0f);") ==
          "declaration(std::vector<float>, declarator(x, initializer((), n, 0.0f)))");
    CHECK(statement("unsigned long long n{3};") ==
          "declaration(unsigned long long, declarator(n, initializer({}, 3)))");
    CHECK(
        statement("int a, *b, c[2][N + 1] = {{1}, {2}};") ==
        "declaration(int, declarator(a), declarator(b, *), declarator(c, extent(2), extent(binary(+, N, 1)), "
        "initializer(=, initializer_list(initializer_list(1), initializer_list(2)))))");
    CHECK(statement("__shared__ float tile[16][17];") ==
          "declaration(__shared__ float, declarator(tile, extent(16), extent(17)))");
    CHECK(statement("alignas(64) float x[4] __attribute__((unused));") ==
          "declaration(alignas(64) float, declarator(x, __attribute__((unused)), extent(4)))");
    CHECK(statement("[[maybe_unused]] auto&& x = f();") ==
          "declaration([[maybe_unused]] auto, declarator(x, &&, initializer(=, call(f))))");
    CHECK(statement("a * b;") == "declaration(a, declarator(b, *))");
    CHECK(statement("f(x);") == "expression_statement(call(f, x))");
    CHECK(statement("a[i] = b * c;") ==
          "expression_statement(assignment(=, subscript(a, i), binary(*, b, c)))");
    CHECK(statement("x->y(1);") == "expression_statement(call(member(->y, x), 1))");
    CHECK(statement("local = 1;") == "expression_statement(assignment(=, local, 1))");
  }

  TEST_CASE("a for loop always has four parts") {
    CHECK(statement("for (int i = 0, j = n; i < j; ++i, --j) a[i] = 0;") ==
          "for_loop(declaration(int, declarator(i, initializer(=, 0)), declarator(j, initializer(=, n))), "
          "binary(<, i, j), binary(,, unary(++, i), unary(--, j)), "
          "expression_statement(assignment(=, subscript(a, i), 0)))");
    CHECK(statement("for (;;) ;") == "for_loop(empty, empty, empty, empty)");
    CHECK(statement("for (i = 0; i < n; i += 4) {}") ==
          "for_loop(assignment(=, i, 0), binary(<, i, n), assignment(+=, i, 4), block())");
  }

  TEST_CASE("the other statements") {
    CHECK(statement("while (x) { --x; }") == "while_loop(x, block(expression_statement(unary(--, x))))");
    CHECK(statement("do x(); while (y);") == "do_loop(expression_statement(call(x)), y)");
    CHECK(statement("if (a) b(); else if (c) d(); else { }") ==
          "if_statement(a, expression_statement(call(b)), if_statement(c, expression_statement(call(d)), "
          "block()))");
    CHECK(statement("if constexpr (a) return;") == "if_statement(constexpr, a, return_statement())");
    CHECK(statement("return a + 1;") == "return_statement(binary(+, a, 1))");
    CHECK(statement("{ break; continue; ; }") == "block(break_statement(), continue_statement(), empty)");
  }

  TEST_CASE("a pragma is a statement before the one it is about") {
    const std::vector<SyntaxNode> list =
        parse_statements("#pragma omp parallel for \\\n  collapse(2)\nfor (;;) x();\n");
    REQUIRE(list.size() == 2);
    CHECK(list[0].kind == NodeKind::pragma);
    CHECK(list[0].text == "omp parallel for \\\n  collapse(2)");
    CHECK(list[1].kind == NodeKind::for_loop);
    CHECK(statement("_Pragma(\"omp simd\")") == "pragma(omp simd)");
    // As the body of a loop, the pragma and its statement become a block.
    CHECK(statement("for (;;)\n#pragma omp simd\nfor (;;) x();") ==
          "for_loop(empty, empty, empty, block(pragma(omp simd), for_loop(empty, empty, empty, "
          "expression_statement(call(x)))))");
  }

  TEST_CASE("what is not modelled is one opaque statement, and what follows is understood") {
    for (const std::string_view text :
         {"switch (x) { case 1: y(); break; default: z(); }", "for (auto& v : list) if (v) f(v); else g(v);",
          "goto end;", "try { f(); } catch (...) { g(); } catch (int) {}",
          "asm volatile(\"nop\" ::: \"memory\");", "using T = int;", "auto [a, b] = f();",
          "if (int q = f(); q > 0) { g(); } else h();", "struct P { float x; } p;", "delete[] p;",
          "float (*m)[4] = (float (*)[4])p;", "label:", "UNROLL(4)\n", "for (int i = 0; i < n) f();",
          "x = ({ int y = 1; y; });", "do f(); while (int q = 1);", "while (auto* p = next()) { p->go(); }",
          "if (auto q = f())\n    return q;",
          "for (auto v : list)\n  if (v)\n    break;\n  else\n    continue;"}) {
      CAPTURE(text);
      const std::vector<SyntaxNode> list = parse_statements(std::string(text) + "\n  next = 1;");
      REQUIRE(list.size() == 2);
      CHECK(list[0].kind == NodeKind::opaque);
      CHECK(list[0].text == detail::trim(text));
      CHECK(shape(list[1]) == "expression_statement(assignment(=, next, 1))");
    }
  }

  TEST_CASE("comments stay with their statements") {
    const std::vector<SyntaxNode> list =
        parse_statements("// one\n\n// two\na(); // after a\n/* b */ b();\n\nc(); /* c */\n// last\n");
    REQUIRE(list.size() == 4);
    CHECK(list[0].leading_trivia == "// one\n\n// two\n");
    CHECK(list[0].trailing_trivia == "// after a");
    CHECK(list[1].leading_trivia == "/* b */\n");
    CHECK(list[2].leading_trivia == "\n");
    CHECK(list[2].trailing_trivia == "/* c */");
    CHECK(list[3].kind == NodeKind::comment);
    CHECK(list[3].text == "// last");
    const std::vector<SyntaxNode> nested =
        parse_statements("for (;;) { // why\n    /* a\n       b */\n    x();\n}");
    CHECK(loop_body(nested[0]).text == "// why");
    CHECK(loop_body(nested[0]).children[0].leading_trivia == "/* a\n   b */\n");
  }
}

TEST_SUITE("parser: files") {
  TEST_CASE("the sample kernels are understood completely") {
    for (const auto& sample : samples::all) {
      CAPTURE(sample.name);
      CHECK(count_kind(parse(sample.source, {.cuda_launches = true}), NodeKind::opaque) == 0);
    }
  }

  TEST_CASE("functions keep what stands round their name") {
    const SyntaxNode tree = parse(samples::cuda_gemm);
    const SyntaxNode* const gemm = find_function(tree, "gemm_tiled");
    REQUIRE(gemm != nullptr);
    CHECK(gemm->type == "template <int Tile>\n__global__ void __launch_bounds__(256)");
    REQUIRE(parameters(*gemm).size() == 6);
    CHECK(parameters(*gemm)[0].text == "A");
    CHECK(parameters(*gemm)[0].type == "const float* __restrict__");
    CHECK(parameters(*gemm)[5].type == "int");
    CHECK(gemm->range.first_line == 4);
    CHECK(gemm->range.last_line == 25);
    CHECK(tree.children[1].kind == NodeKind::launch_comment);

    const SyntaxNode scoped = parse(samples::layer_norm);
    CHECK(functions(scoped).size() == 2);
    CHECK(find_function(scoped, "square")->type == "static inline float");
    const SyntaxNode linked = parse(samples::gemm);
    CHECK(find_function(linked, "gemm")->type == "extern \"C\" void");
    const SyntaxNode opencl = parse(samples::opencl_sum);
    CHECK(find_function(opencl, "row_sum")->type ==
          "__kernel __attribute__((reqd_work_group_size(64, 1, 1)))\nvoid");
    const SyntaxNode blocked = parse(samples::blocked);
    CHECK(functions(blocked)[0]->suffix == "noexcept");
  }

  TEST_CASE("parameters of all forms") {
    const SyntaxNode tree =
        parse("void f(float a[], const float (&b)[4], int c = g(1, 2), std::array<int, 2> d, "
              "float e[N][4], void (*g)(int, int), int, ...) {}");
    REQUIRE(tree.children.size() == 1);
    const auto list = parameters(tree.children[0]);
    REQUIRE(list.size() == 8);
    CHECK(shape(list[0]) == "parameter(a, float, extent(empty))");
    CHECK(shape(list[1]) == "parameter(const float (&b)[4])");
    CHECK(shape(list[2]) == "parameter(c, int, initializer(=, call(g, 1, 2)))");
    CHECK(shape(list[3]) == "parameter(d, std::array<int, 2>)");
    CHECK(shape(list[4]) == "parameter(e, float, extent(N), extent(4))");
    CHECK(list[5].type == "void (*g)(int, int)");
    CHECK(shape(list[6]) == "parameter(int)");
    CHECK(shape(list[7]) == "parameter(...)");
  }

  TEST_CASE("items between functions") {
    const SyntaxNode tree = parse(samples::partly_opaque);
    CHECK(tree.children[0].kind == NodeKind::preprocessor);
    for (std::size_t i = 1; i <= 7; ++i) CHECK(tree.children[i].kind == NodeKind::opaque);
    CHECK(tree.children[8].kind == NodeKind::function);
    const SyntaxNode scopes =
        parse("extern \"C\" {\nnamespace a::b { int x = 1; }\n}\nMACRO(y)\nstatic int z[2];");
    CHECK(shape(scopes.children[0]) ==
          "scope(extern \"C\", scope(namespace a::b, declaration(int, declarator(x, "
          "initializer(=, 1)))))");
    CHECK(scopes.children[1].kind == NodeKind::opaque);
    CHECK(shape(scopes.children[2]) == "declaration(static int, declarator(z, extent(2)))");
  }

  TEST_CASE("positions are those of the source") {
    const std::string_view source = samples::gemm;
    const SyntaxNode tree = parse(source);
    const SyntaxNode& outer = function_body(*find_function(tree, "gemm")).children[0];
    CHECK(outer.range.first_line == 5);
    CHECK(outer.range.last_line == 13);
    CHECK(outer.range.first_column == 3);
    const SyntaxNode& inner = loop_body(loop_body(outer).children[0]).children[1];
    CHECK(source.substr(inner.range.begin, 35) == "for (int k = 0; k < K; ++k) {\n     ");
    const SyntaxNode& product = right_operand(operand(loop_body(inner).children[0]));
    CHECK(source.substr(product.range.begin, product.range.end - product.range.begin) ==
          "A[i * K + k] * B[k * N + j]");
    CHECK(tree.range.last_line == 15);
  }

  TEST_CASE("children lie inside their parents, in order") {
    for (const auto& sample : samples::all) {
      CAPTURE(sample.name);
      const SyntaxNode tree = parse(sample.source, {.cuda_launches = true});
      walk(tree, [](const SyntaxNode& node) {
        std::size_t before = node.range.begin;
        for (const SyntaxNode& child : node.children) {
          if (!child.range.known()) continue;
          CHECK(child.range.begin >= before);
          CHECK(child.range.end <= node.range.end);
          before = child.range.end;
        }
      });
    }
  }
}

TEST_SUITE("parser: anything at all") {
  TEST_CASE("a file cut off after any byte still prints as it stands") {
    for (const std::string_view source : {samples::blocked, samples::cuda_gemm, samples::partly_opaque}) {
      for (std::size_t length = 0; length <= source.size(); ++length) {
        const std::string_view part = source.substr(0, length);
        const SyntaxNode tree = parse(part, {.cuda_launches = true});
        REQUIRE(print(tree) == part);
      }
    }
  }

  TEST_CASE("a file with any byte missing, and what follows it, is read") {
    const std::string source(samples::blocked);
    for (std::size_t i = 0; i < source.size(); ++i) {
      std::string damaged = source;
      damaged.erase(i, 1);
      SyntaxNode tree = parse(damaged);
      REQUIRE(print(tree) == damaged);
      tree.children.insert(tree.children.begin(), parse_statements("int made;")[0]);
      REQUIRE(print(tree).substr(0, 9) == "int made;");
    }
  }

  TEST_CASE("random bytes and random tokens are read") {
    std::uint64_t state = 7;
    const auto next = [&state] {
      return state = state * 6364136223846793005U + 1442695040888963407U, state >> 33U;
    };
    const std::vector<std::string_view> words = {
        "for",     "(",     ")",      "{",      "}",        ";",         "if", "else",
        "int",     "x",     "<",      ">",      "[",        "]",         ",",  "=",
        "+",       "*",     "::",     "do",     "1",        "\"s\"",     "&",  "->",
        "?",       ":",     "case",   "float",  "template", "namespace", "\n", "#if 1\n",
        "//@ l\n", "const", "struct", "return", "operator", "while",     ">>", "sizeof"};
    for (int round = 0; round < 400; ++round) {
      std::string text;
      for (std::uint64_t length = next() % 120; length > 0; --length) {
        if (round % 4 == 0)
          text += static_cast<char>(next() % 256);
        else
          text += std::string(words[next() % words.size()]) + (next() % 3 == 0 ? "\n" : " ");
      }
      SyntaxNode tree = parse(text, {.cuda_launches = true});
      REQUIRE(print(tree) == text);
      REQUIRE(height(tree) < 2000);
      (void)print(parse_expression(text));
    }
  }

  TEST_CASE("hostile nesting becomes opaque, not a stack overflow") {
    constexpr std::size_t many = 100'000;
    for (const std::string_view open : {"(",
                                        "{",
                                        "[",
                                        "((",
                                        "f(",
                                        "a[",
                                        "if (x) ",
                                        "for (;;) ",
                                        "while (1) ",
                                        "do ",
                                        "-",
                                        "!",
                                        "x = ",
                                        "a ? ",
                                        "a ? b : ",
                                        "{ if (x) { ",
                                        "(float)",
                                        "sizeof ",
                                        "x + ",
                                        "x.y",
                                        "x++ ",
                                        "x[0]",
                                        "x()",
                                        "else ",
                                        "if (x) ; else ",
                                        "namespace a { ",
                                        "a<",
                                        "a::",
                                        "{{",
                                        "+ - ",
                                        "extern \"C\" { ",
                                        "try { ",
                                        "case 1: ",
                                        "#if 1\n",
                                        "int a[",
                                        "[](){ ",
                                        "T x = {",
                                        "f(a)\n",
                                        "a\n",
                                        "const ",
                                        "a b(",
                                        "f(g<",
                                        "template <",
                                        "* ",
                                        "struct a { ",
                                        "<",
                                        "a = {"}) {
      CAPTURE(open);
      for (const std::string_view prefix : {"", "void f() { y = "}) {
        const std::string text = std::string(prefix) + repeat(open, 20'000 / open.size());
        const SyntaxNode tree = parse(text);
        CHECK(print(tree) == text);
        CHECK(height(tree) < 2000);
      }
    }
    const std::string balanced =
        "void f() { x = " + repeat("(", many) + "1" + repeat(")", many) + "; y = 2; }";
    const SyntaxNode tree = parse(balanced);
    const SyntaxNode& body = function_body(tree.children.at(0));
    REQUIRE(body.children.size() == 2);
    CHECK(body.children[0].kind == NodeKind::opaque);
    CHECK(shape(body.children[1]) == "expression_statement(assignment(=, y, 2))");
  }

  TEST_CASE("written nesting and long expressions are modelled") {
    CHECK(count_kind(parse("void f() { x = " + repeat("(1 + ", 30) + "1" + repeat(")", 30) + "; }"),
                     NodeKind::opaque) == 0);
    CHECK(count_kind(parse("void f() { x = 1" + repeat(" + 1", 300) + "; }"), NodeKind::opaque) == 0);
    CHECK(count_kind(parse("void f() {" + repeat("for (;;) {", 40) + repeat("}", 40) + "}"),
                     NodeKind::opaque) == 0);
    CHECK(count_kind(parse("void f() {" + repeat("if (x) y(); else ", 50) + "y(); }"), NodeKind::opaque) ==
          0);
  }

  TEST_CASE("twice the text gives twice the nodes") {
    const auto nodes = [](const SyntaxNode& root) {
      std::size_t count = 0;
      walk(root, [&](const SyntaxNode&) { ++count; });
      return count;
    };
    std::string once;
    while (std::ranges::count(once, '\n') < 5000) once += samples::blocked;
    const std::size_t single = nodes(parse(once));
    CHECK(nodes(parse(once + once)) == 2 * single - 1);
  }

  TEST_CASE("CRLF, NUL and other letters survive") {
    std::string source(samples::odd);
    for (std::size_t i = 0; (i = source.find('\n', i)) != std::string::npos; i += 2)
      source.replace(i, 1, "\r\n");
    const SyntaxNode tree = parse(source);
    CHECK(print(tree) == source);
    CHECK(count_kind(tree, NodeKind::opaque) == 0);
    const std::string nul("int a;\0int b; // \xc3\xa4\n", 20);
    CHECK(print(parse(nul)) == nul);
    CHECK(parse(nul).children.front().kind == NodeKind::declaration);
  }
}
