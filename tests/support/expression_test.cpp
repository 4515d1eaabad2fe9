#include <mtmc/support/expression.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace {

using mtmc::evaluate_expression;
using mtmc::expression_symbols;
using mtmc::ExpressionError;

const mtmc::Symbols sizes{{"M", 1024}, {"N", 511},        {"K", 333}, {"compute_units", 132},
                          {"zero", 0}, {"big", INT64_MAX}};

std::int64_t value(std::string_view text) { return evaluate_expression(text, sizes); }

struct Failure {
  std::size_t position;
  std::string message;
};

Failure failure(std::string_view text) {
  try {
    const std::int64_t result = evaluate_expression(text, sizes);
    FAIL("\"" << std::string{text} << "\" was accepted as " << result);
  } catch (const ExpressionError& error) {
    return {error.position(), error.what()};
  }
  return {};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("an expression is integers, symbols and the five operators with C++ precedence") {
  CHECK(value("42") == 42);
  CHECK(value("M") == 1024);
  CHECK(value("2*M*N*K") == std::int64_t{2} * 1024 * 511 * 333);
  CHECK(value("1 + 2 * 3") == 7);
  CHECK(value("(1 + 2) * 3") == 9);
  CHECK(value("10 - 3 - 2") == 5);
  CHECK(value("100 / 10 / 2") == 5);
  CHECK(value("17 % 5 * 2") == 4);
  CHECK(value("  \t M\r\n+ 1 ") == 1025);
  CHECK(value("compute_units * 2") == 264);
}

TEST_CASE("division truncates towards zero and the remainder has the sign of its left side") {
  CHECK(value("7 / 2") == 3);
  CHECK(value("-7 / 2") == -3);
  CHECK(value("7 / -2") == -3);
  CHECK(value("-7 % 2") == -1);
  CHECK(value("7 % -2") == 1);
}

TEST_CASE("a minus sign may stand before any value") {
  CHECK(value("-M") == -1024);
  CHECK(value("--5") == 5);
  CHECK(value("3 - -5") == 8);
  CHECK(value("-(2 + 3) * 2") == -10);
  CHECK(value("2 * -3") == -6);
  CHECK(value("- 5") == -5);
}

TEST_CASE("the whole range of 64-bit integers can be written") {
  CHECK(value("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(value("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(value("-9223372036854775807 - 1") == std::numeric_limits<std::int64_t>::min());
  CHECK(value("000012") == 12);
}

TEST_CASE("ceil_div rounds up") {
  CHECK(value("ceil_div(N, 16)") == 32);
  CHECK(value("ceil_div(512, 16)") == 32);
  CHECK(value("ceil_div(0, 16)") == 0);
  CHECK(value("ceil_div(-7, 2)") == -3);
  CHECK(value("ceil_div(big, 1)") == std::numeric_limits<std::int64_t>::max());
  CHECK(value("ceil_div(big, 2)") == std::int64_t{1} << 62);
}

TEST_CASE("min and max take two or more values") {
  CHECK(value("min(M, N)") == 511);
  CHECK(value("max(M, N)") == 1024);
  CHECK(value("min(5, 3, 9, 4)") == 3);
  CHECK(value("max(5, -3, 9, 4)") == 9);
}

TEST_CASE("round_up gives the next multiple and next_pow2 the next power of two") {
  CHECK(value("round_up(N, 16)") == 512);
  CHECK(value("round_up(512, 16)") == 512);
  CHECK(value("round_up(0, 16)") == 0);
  CHECK(value("round_up(-7, 4)") == -4);
  CHECK(value("next_pow2(511)") == 512);
  CHECK(value("next_pow2(512)") == 512);
  CHECK(value("next_pow2(513)") == 1024);
  CHECK(value("next_pow2(1)") == 1);
  CHECK(value("next_pow2(0)") == 1);
  CHECK(value("next_pow2(-9)") == 1);
  CHECK(value("next_pow2(4611686018427387904)") == std::int64_t{1} << 62);
}

TEST_CASE("functions nest and take formulas") {
  CHECK(value("ceil_div(round_up(M + 1, 32), min(N, 2 * 64)) * 4") == 36);
  CHECK(value("max((1), ((2)))") == 2);
}

TEST_CASE("a symbol may be called like a function") {
  CHECK(evaluate_expression("min * 2 + min(min, 3)", {{"min", 5}}) == 13);
}

TEST_CASE("an overflow is an error at the operation, for intermediate results too") {
  CHECK(failure("big + 1").position == 4);
  CHECK(failure("1 + big * 2 / 2").position == 8);
  CHECK(failure("-big - 2").position == 5);
  CHECK(failure("--9223372036854775808").position == 0);
  CHECK(failure("-9223372036854775808 / -1").position == 21);
  CHECK(failure("-9223372036854775808 % -1").position == 21);
  CHECK(failure("round_up(big, 2)").position == 0);
  CHECK(failure("next_pow2(4611686018427387905)").position == 0);
  CHECK(failure("1 + 9223372036854775808").position == 4);
  CHECK(failure("99999999999999999999999999").position == 0);
  CHECK(failure("-9223372036854775809").position == 0);
  CHECK(contains(failure("big + 1").message, "does not fit into 64 bits"));
}

TEST_CASE("division by zero is an error at the operator") {
  CHECK(failure("M / zero").position == 2);
  CHECK(failure("M % (N - 511)").position == 2);
  CHECK(contains(failure("M / zero").message, "division by zero"));
  const Failure divisor = failure("1 + ceil_div(M, zero)");
  CHECK(divisor.position == 4);
  CHECK(contains(divisor.message, "ceil_div is given the divisor 0"));
  CHECK(failure("ceil_div(M, -4)").position == 0);
  CHECK(failure("round_up(M, zero)").position == 0);
}

TEST_CASE("an unknown symbol names the known ones and the most similar") {
  const Failure unknown = failure("M * compute_unit");
  CHECK(unknown.position == 4);
  CHECK(unknown.message ==
        "expression \"M * compute_unit\", column 5: unknown symbol 'compute_unit'; did you mean "
        "'compute_units'? known symbols: K, M, N, big, compute_units, zero");
  CHECK(contains(failure("m + 1").message, "did you mean 'M'?"));
  CHECK_FALSE(contains(failure("quite_different").message, "did you mean"));
  CHECK(contains(failure("ceil_div").message, "it is a function: write ceil_div(a, b)"));
  CHECK_THROWS_WITH_AS(
      (void)evaluate_expression("B", {}),
      "expression \"B\", column 1: unknown symbol 'B'; no symbols are defined here, only integers "
      "may be used",
      ExpressionError);
}

TEST_CASE("an unknown function names the known ones and the most similar") {
  const Failure unknown = failure("2 + ceildiv(M, 2)");
  CHECK(unknown.position == 4);
  CHECK(contains(unknown.message, "did you mean 'ceil_div'?"));
  CHECK(contains(unknown.message, "known functions: ceil_div, min, max, round_up, next_pow2"));
  CHECK(contains(failure("M(2)").message, "unknown function 'M'"));
}

TEST_CASE("a wrong number of arguments is an error that shows the usage") {
  const Failure few = failure("1 + ceil_div(M)");
  CHECK(few.position == 4);
  CHECK(contains(few.message, "ceil_div is given 1 argument; write it as ceil_div(a, b)"));
  CHECK(contains(failure("ceil_div(1, 2, 3)").message, "given 3 arguments"));
  CHECK(contains(failure("min(1)").message, "min(a, b, ...)"));
  CHECK(contains(failure("max()").message, "given 0 arguments"));
  CHECK(contains(failure("next_pow2(1, 2)").message, "next_pow2(a)"));
  CHECK(contains(failure("round_up(1)").message, "round_up(value, multiple)"));
}

TEST_CASE("a syntax error points at its place") {
  struct Example {
    std::string_view text;
    std::size_t position;
    std::string_view part;
  };
  for (const Example& example : {Example{"", 0, "it is empty"},
                                 Example{"   ", 3, "it is empty"},
                                 Example{"M +", 3, "ends where a value is expected"},
                                 Example{"M + * 2", 4, "found '*'"},
                                 Example{"+1", 0, "found '+'"},
                                 Example{"M N", 2, "unexpected 'N'"},
                                 Example{"M)", 1, "closes nothing"},
                                 Example{"2 * (M + 1", 4, "never closed"},
                                 Example{"(1, 2)", 2, "unexpected ','"},
                                 Example{"1, 2", 1, "unexpected ','"},
                                 Example{"min(1, 2", 3, "never closed"},
                                 Example{"min(1,)", 6, "found ')'"},
                                 Example{"min(1 2)", 6, "unexpected '2'"},
                                 Example{"()", 1, "found ')'"},
                                 Example{"1.5", 0, "decimal integers"},
                                 Example{"4 + 0x10", 4, "decimal integers"},
                                 Example{"2M", 0, "write a multiplication with *"},
                                 Example{"M ** 2", 3, "found '*'"},
                                 Example{"M << 2", 2, "unexpected '<'"},
                                 Example{"M // 2", 3, "found '/'"},
                                 Example{"M; N", 1, "unexpected ';'"},
                                 Example{"M \xc2\xb7 N", 2, "byte 194"},
                                 Example{std::string_view{"M\0", 2}, 1, "byte 0"}}) {
    CAPTURE(std::string{example.text});
    const Failure found = failure(example.text);
    CHECK(found.position == example.position);
    CHECK_MESSAGE(contains(found.message, example.part), found.message);
  }
}

TEST_CASE("a message shows printable text only, and of a long text only the surroundings of the place") {
  CHECK(contains(failure("M\n\xc3\x97 N").message, "\"M ?? N\""));
  std::string formula = "1";
  for (int i = 0; i < 1000; ++i) formula += " + 1";
  const Failure found = failure(formula + " + Q + " + formula);
  CHECK(found.position == formula.size() + 3);
  CHECK(found.message.size() < 400);
  CHECK(contains(found.message, "+ 1 + Q + 1 +"));
  CHECK(failure(std::string(100'000, 'x')).message.size() < 400);
}

TEST_CASE("a hostile text is refused, and cannot exhaust the stack") {
  for (const char* piece : {"(", "-", "-(", "min(1,", "ceil_div(1,("}) {
    CAPTURE(std::string{piece});
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += piece;
    CHECK_THROWS_AS((void)evaluate_expression(text, sizes), ExpressionError);
    CHECK_THROWS_AS((void)expression_symbols(text), ExpressionError);
  }
  const Failure deep = failure(std::string(500, '(') + "1" + std::string(500, ')'));
  CHECK(contains(deep.message, "nested more than 200 levels deep"));
  CHECK(value(std::string(190, '(') + "1" + std::string(190, ')')) == 1);
  std::string flat = "1";
  for (int i = 0; i < 10'000; ++i) flat += "+(1)";
  CHECK(value(flat) == 10'001);
}

TEST_CASE("the symbols of an expression come in the order of their first use, each once") {
  CHECK(expression_symbols("2*M*N*K + M") == std::vector<std::string>{"M", "N", "K"});
  CHECK(expression_symbols("ceil_div(max(b, a), b) - c % a") == std::vector<std::string>{"b", "a", "c"});
  CHECK(expression_symbols("min(min, 3)") == std::vector<std::string>{"min"});
  CHECK(expression_symbols("1 + 2").empty());
}

TEST_CASE("looking for symbols checks the syntax but calculates nothing") {
  CHECK(expression_symbols("a / 0 + 9223372036854775807 * b") == std::vector<std::string>{"a", "b"});
  CHECK(expression_symbols("ceil_div(a, 0)") == std::vector<std::string>{"a"});
  CHECK_THROWS_AS((void)expression_symbols("a + "), ExpressionError);
  CHECK_THROWS_AS((void)expression_symbols("f(a)"), ExpressionError);
  CHECK_THROWS_AS((void)expression_symbols("min(a)"), ExpressionError);
}
