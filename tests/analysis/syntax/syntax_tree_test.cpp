#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace mtmc;

namespace {

SyntaxNode statement(std::string_view text) {
  std::vector<SyntaxNode> list = parse_statements(text);
  REQUIRE_MESSAGE(list.size() == 1, text);
  return std::move(list.front());
}

std::string substituted(std::string_view text, std::string_view name, std::string_view expression) {
  SyntaxNode node = statement(text);
  (void)substitute(node, name, parse_expression(expression));
  return print(node);
}

} // namespace

TEST_SUITE("syntax tree") {
  TEST_CASE("accessors name the parts of every statement") {
    SyntaxNode loop = statement("for (int i = 0; i < n; ++i) { a[i] = f(x, 2) * b; }");
    CHECK(loop_init(loop).kind == NodeKind::declaration);
    CHECK(initial_value(declarators(loop_init(loop))[0])->text == "0");
    CHECK(print(loop_condition(loop)) == "i < n");
    CHECK(print(operand(loop_step(loop))) == "i");
    const SyntaxNode& assignment = operand(statements(loop_body(loop))[0]);
    CHECK(print(left_operand(assignment)) == "a[i]");
    CHECK(is_name(subscript_base(left_operand(assignment)), "a"));
    CHECK(is_name(subscript_index(left_operand(assignment)), "i"));
    const SyntaxNode& call = left_operand(right_operand(assignment));
    CHECK(is_call_of(call, "f"));
    CHECK(is_name(callee(call), "f"));
    CHECK(arguments(call).size() == 2);

    const SyntaxNode choice = statement("if (a) b(); else c();");
    CHECK(print(if_condition(choice)) == "a");
    CHECK(print(then_branch(choice)) == "b();");
    CHECK(print(*else_branch(choice)) == "c();");
    const SyntaxNode single = statement("if (a) b();");
    CHECK(else_branch(single) == nullptr);

    const SyntaxNode table = statement("float t[4][N] = {0};");
    CHECK(extents(declarators(table)[0]).size() == 2);
    CHECK(print(extents(declarators(table)[0])[1].children[0]) == "N");
    CHECK(initializer(declarators(table)[0])->text == "=");

    for (const std::string_view text : {"while (c) x();", "do x(); while (c);"}) {
      const SyntaxNode other = statement(text);
      CHECK(print(loop_condition(other)) == "c");
      CHECK(print(loop_body(other)) == "x();");
      CHECK(statements(loop_body(other)).size() == 1);
    }
  }

  TEST_CASE("accessors of a mutable node edit it") {
    SyntaxNode loop = statement("for (int i = 0; i < n; ++i) x();");
    loop_body(loop) = make_block({statement("y();")});
    initial_value(declarators(loop_init(loop))[0])->text = "1";
    right_operand(loop_condition(loop)) = make_integer(8);
    CHECK(print(loop) == "for (int i = 1; i < 8; ++i) {\n  y();\n}");
  }

  TEST_CASE("an accessor says which node it was wrongly applied to") {
    const SyntaxNode call = parse_expression("f(x)");
    CHECK_THROWS_WITH_AS((void)loop_body(call),
                         "mtmc: loop_body does not apply to a node of kind call (line 0) with 2 children",
                         std::invalid_argument);
    const SyntaxNode endless = statement("while (x) y();");
    CHECK_THROWS_AS((void)loop_init(endless), std::invalid_argument);
    CHECK_THROWS_AS((void)function_body(call), std::invalid_argument);
    CHECK_THROWS_AS((void)declarators(call), std::invalid_argument);
    const SyntaxNode name = make_name("x");
    CHECK_THROWS_AS((void)operand(name), std::invalid_argument);
  }

  TEST_CASE("kinds have names, and expressions and loops are told apart") {
    CHECK(to_string(NodeKind::translation_unit) == "translation_unit");
    CHECK(to_string(NodeKind::opaque) == "opaque");
    CHECK(is_expression(NodeKind::name));
    CHECK(is_expression(NodeKind::initializer_list));
    CHECK_FALSE(is_expression(NodeKind::expression_statement));
    CHECK_FALSE(is_expression(NodeKind::opaque));
    CHECK(is_loop(NodeKind::do_loop));
    CHECK_FALSE(is_loop(NodeKind::if_statement));
  }
}

TEST_SUITE("syntax factory") {
  TEST_CASE("what the factories make is what the parser reads") {
    const auto same = [](const SyntaxNode& made, std::string_view text) {
      CAPTURE(text);
      CHECK(print(made) == text);
      CHECK(structurally_equal(made, statement(text)));
    };
    same(make_assignment(make_subscript(make_name("a"), make_name("i")),
                         "+=", make_binary("*", make_name("x"), make_literal("2.0f"))),
         "a[i] += x * 2.0f;");
    same(make_declaration("float", "sum", make_literal("0.0f")), "float sum = 0.0f;");
    same(make_declaration("const float* __restrict__", "p"), "const float* __restrict__ p;");
    same(make_declaration("std::vector<float*>", "v"), "std::vector<float*> v;");
    same(make_declaration("auto&", "r", make_name("x")), "auto& r = x;");
    same(make_array_declaration("float", "t", {make_integer(4), make_name("N")}, true),
         "float t[4][N] = {};");
    same(make_counting_loop("int", "i", make_integer(0), make_name("n"), make_integer(1), make_empty()),
         "for (int i = 0; i < n; ++i);");
    same(make_counting_loop("int", "i", make_name("a"), make_name("n"), make_name("step"), make_block()),
         "for (int i = a; i < n; i += step) {}");
    same(make_if(make_name("a"), as_block(make_return())), "if (a) {\n  return;\n}");
    same(make_if(make_name("a"), make_return(make_integer(-1)), make_block()),
         "if (a)\n  return -1;\nelse {}");
    same(make_expression_statement(make_call("std::min", {make_name("a"), make_integer(3)})),
         "std::min(a, 3);");
    same(make_pragma("omp simd"), "#pragma omp simd");
    same(make_assignment(make_name("x"), "=",
                         make_conditional(make_unary("!", make_name("a")), make_cast("float", make_name("b")),
                                          make_cast("double", make_name("c"), "static_cast"))),
         "x = !a ? (float)b : static_cast<double>(c);");
  }

  TEST_CASE("a whole file can be made") {
    SyntaxNode file;
    file.kind = NodeKind::translation_unit;
    file.children.push_back(make_preprocessor("#include <cmath>"));
    file.children.push_back(make_launch_comment("//@ launch f(A, n)"));
    file.children.push_back(make_function("void", "f",
                                          {make_parameter("float*", "A"), make_parameter("int", "n")},
                                          with_comment(statement("A[n] = 1;"), "the last one")));
    const std::string text = print(file);
    CHECK(text == "#include <cmath>\n//@ launch f(A, n)\nvoid f(float* A, int n) {\n  // the last one\n  "
                  "A[n] = 1;\n}\n");
    CHECK(structurally_equal(parse(text).children[2], file.children[2]));
  }
}

TEST_SUITE("syntax query") {
  TEST_CASE("walk visits parents first and can leave parts out") {
    const SyntaxNode node = statement("for (int i = 0; i < n; ++i) { x[i] = f(y); }");
    std::string names;
    walk(node, [&](const SyntaxNode& part) {
      if (part.kind == NodeKind::name) names += part.text + ' ';
      return part.kind != NodeKind::call;
    });
    CHECK(names == "i n i x i ");
  }

  TEST_CASE("names used") {
    CHECK(names_used(parse_expression("a[i] + f(b.c, d->e) * g<K>(1)")) ==
          std::vector<std::string>{"K", "a", "b", "d", "f", "g", "i"});
    CHECK(names_used(statement("switch (x) { case one: p.q = r; }")) ==
          std::vector<std::string>{"case", "one", "p", "r", "switch", "x"});
    CHECK(uses_name(statement("for (auto v : list) sum += v;"), "sum"));
    CHECK_FALSE(uses_name(statement("for (auto v : list) sum += v; // n"), "n"));
    CHECK_FALSE(uses_name(parse_expression("a.n"), "n"));
  }

  TEST_CASE("substitute puts parentheses where they are needed") {
    CHECK(substituted("x = a[i * K + i];", "i", "ii + 1") == "x = a[(ii + 1) * K + (ii + 1)];");
    CHECK(substituted("x = n - i;", "i", "a - b") == "x = n - (a - b);");
    CHECK(substituted("x = -i;", "i", "-1") == "x = -(-1);");
    CHECK(substituted("x = (float)i;", "i", "a + b") == "x = (float)(a + b);");
    CHECK(substituted("f(i);", "i", "a + b") == "f(a + b);");
    CHECK(substituted("p[i] = i.x;", "i", "*q") == "p[*q] = (*q).x;");
    CHECK(substituted("x = i ? i : i;", "i", "a = b") == "x = (a = b) ? a = b : (a = b);");
  }

  TEST_CASE("substitute respects inner declarations and reaches into opaque text") {
    CHECK(substituted("{ x = i; int i = 0; y = i; }", "i", "7") == "{\n  x = 7;\n  int i = 0;\n  y = i;\n}");
    CHECK(substituted("{ for (int i = 0; i < n; ++i) y(i); x(i); }", "i", "7") ==
          "{\n  for (int i = 0; i < n; ++i)\n    y(i);\n  x(7);\n}");
    CHECK(substituted("switch (i) { default: s.i = i::k + ii; }", "i", "a + 1") ==
          "switch ((a + 1)) { default: s.i = i::k + ii; }");
    CHECK(substituted("x = f<TILE>(\"TILE\");", "TILE", "16") == "x = f<16>(\"TILE\");");
    SyntaxNode node = statement("x = i + i;");
    CHECK(substitute(node, "i", make_integer(1)) == 2);
    CHECK(substitute(node, "i", make_integer(1)) == 0);
  }

  TEST_CASE("rename reaches declarations, uses, pragmas, types and launch lines") {
    SyntaxNode tree = parse("//@ launch f(a, N)\nvoid f(float* a, int N) {\n#pragma omp simd linear(a)\n"
                            "  for (int i = 0; i < N; ++i) a[i] = s.a; // a\n}\n");
    CHECK(rename(tree, "a", "data") == 4);
    CHECK(rename(tree, "f", "g") == 2);
    CHECK(print(tree) ==
          "//@ launch g(data, N)\nvoid g(float* data, int N) {\n#pragma omp simd linear(data)\n"
          "  for (int i = 0; i < N; ++i)\n    data[i] = s.a; // a\n}\n");
  }

  TEST_CASE("structural equality looks past layout") {
    const SyntaxNode a = parse("void f(int n){for(int i=0;i<n;i++){x[i]=(1);/*c*/}}");
    const SyntaxNode b =
        parse("// f\nvoid f(int n)\n{\n  for (int i = 0; i < n; i++) { x[i] = 1; } // c\n}\n");
    CHECK(structurally_equal(a.children[0], b.children[0]));
    CHECK_FALSE(structurally_equal(a, parse("void f(int n){for(int i=0;i<n;i++){x[i]=2;}}")));
    CHECK_FALSE(structurally_equal(parse_expression("a + b"), parse_expression("a - b")));
    CHECK_FALSE(structurally_equal(parse_expression("a - (b - c)"), parse_expression("a - b - c")));
  }

  TEST_CASE("fresh names occur nowhere") {
    const SyntaxNode tree = parse("// uses k_2\nvoid f() { int k; switch (k_3) {} }");
    CHECK(fresh_name(tree, "i") == "i");
    CHECK(fresh_name(tree, "k") == "k_4");
    CHECK(fresh_name(tree, "k_2") == "k_4");
    CHECK(fresh_name(tree, "k_1") == "k_1");
  }

  TEST_CASE("functions are found in scopes") {
    SyntaxNode tree = parse("namespace a { void f() {} } extern \"C\" { void g() {} } void h() {}");
    CHECK(functions(tree).size() == 3);
    CHECK(find_function(tree, "g") != nullptr);
    CHECK(find_function(tree, "a") == nullptr);
  }
}
