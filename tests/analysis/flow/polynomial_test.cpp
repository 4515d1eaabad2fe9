// Integer polynomials over symbols.

#include <mtmc/analysis/flow/polynomial.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <string>

using mtmc::Polynomial;
using mtmc::Symbol;

namespace {

Symbol symbol(const char* name, std::uint32_t index) {
  Symbol result;
  result.name = name;
  result.index = index;
  return result;
}

struct Names {
  Symbol i = symbol("i", 1), j = symbol("j", 2), n = symbol("N", 3), m = symbol("M", 4);
  Polynomial I{&i}, J{&j}, N{&n}, M{&m};
};

} // namespace

TEST_CASE("polynomial: sums and products have one canonical form") {
  const Names s;
  CHECK((s.I * s.N + s.J).text() == "i*N + j");
  CHECK((s.J + s.N * s.I).text() == "i*N + j");
  CHECK(s.I * s.N + s.J == s.J + s.N * s.I);
  CHECK((s.I - s.I).is_zero());
  CHECK(((s.I + 1) * (s.I - 1)).text() == "i*i - 1");
  CHECK((Polynomial(3) * s.I - s.J * Polynomial(2) - 5).text() == "3*i - 2*j - 5");
  CHECK((-s.I).text() == "-i");
  CHECK(Polynomial{}.text() == "0");
  CHECK_FALSE(s.I == s.J);
}

TEST_CASE("polynomial: coefficients, degrees and substitution") {
  const Names s;
  const Polynomial flat = (s.I * s.N + s.J) * s.M + 7;
  CHECK(flat.coefficient_of(&s.i) == s.N * s.M);
  CHECK(flat.coefficient_of(&s.j) == s.M);
  CHECK(flat.without(&s.j) == s.I * s.N * s.M + 7);
  CHECK(flat.degree_in(&s.i) == 1);
  CHECK((s.I * s.I * s.N).degree_in(&s.i) == 2);
  CHECK(flat.substitute(&s.j, s.N - 1) == s.I * s.N * s.M + s.N * s.M - s.M + 7);
  CHECK(flat.substitute(&s.j, 0).without(&s.i) == Polynomial(7));
  CHECK(flat.constant_term() == 7);
  CHECK_FALSE(flat.constant().has_value());
  CHECK(*Polynomial(4).constant() == 4);
}

TEST_CASE("polynomial: division by a term") {
  const Names s;
  const auto term = (s.N * Polynomial(2)).terms().front();
  CHECK(*(s.I * s.N * Polynomial(4) + s.N * Polynomial(6)).divided_by(term) == s.I * Polynomial(2) + 3);
  CHECK_FALSE((s.I * s.N + s.N).divided_by(term).has_value());
  CHECK_FALSE((s.I * Polynomial(2)).divided_by(term).has_value());
}

TEST_CASE("polynomial: values at a size") {
  const Names s;
  CHECK(*(s.M * s.N + 1).evaluate_at({{"M", 3}, {"N", 5}}) == 16);
  CHECK_FALSE((s.M + s.I).evaluate_at({{"M", 3}}).has_value());
  Symbol third = symbol("third", 9);
  third.kind = Symbol::Kind::derived;
  third.operation = "/";
  third.operands = {s.N, Polynomial(3)};
  CHECK(*Polynomial(&third).evaluate_at({{"N", 10}}) == 3);
  third.operands[1] = s.M;
  CHECK_FALSE(Polynomial(&third).evaluate_at({{"N", 10}, {"M", 0}}).has_value());
  Symbol width = symbol("W", 10);
  width.kind = Symbol::Kind::derived;
  width.operation = "=";
  width.operands = {s.N - s.M + 1};
  CHECK(*Polynomial(&width).evaluate_at({{"N", 10}, {"M", 3}}) == 8);
  CHECK(mtmc::expanded(s.I * Polynomial(&width)) == s.I * s.N - s.I * s.M + s.I);
}

TEST_CASE("polynomial: what does not fit is undefined, and so is all that comes of it") {
  const Names s;
  const Polynomial huge(std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE((huge + 1).defined());
  CHECK_FALSE((huge * Polynomial(2)).defined());
  CHECK_FALSE((huge + 1 - huge).defined());
  CHECK_FALSE(huge + 1 == huge + 1); // of nothing anything can be said
  Polynomial power = s.I;
  for (int i = 0; i < 6; ++i) power = power * s.I;
  CHECK_FALSE(power.defined());
  CHECK(power.text() == "?");
  CHECK_FALSE((huge * s.N).evaluate_at({{"N", 2}}).has_value());
}

TEST_CASE("polynomial: more terms than any subscript has are not followed") {
  std::deque<Symbol> symbols;
  Polynomial sum;
  for (std::uint32_t i = 0; i < Polynomial::max_terms; ++i) {
    symbols.push_back(symbol("x", i + 1));
    sum += Polynomial(&symbols.back());
  }
  CHECK(sum.defined());
  CHECK_FALSE((sum + 1).defined());
  CHECK_FALSE((sum * sum).defined());
  // Nor are they spelt out.
  CHECK(sum.text().size() <= 303);
  symbols.push_back(symbol("", 1000));
  symbols.back().name = std::string(100'000, 'n');
  CHECK(Polynomial(&symbols.back()).text().size() <= 303);
}

TEST_CASE("polynomial: a weight counts the definitions, however often they are used") {
  const Names s;
  Symbol half = symbol("half", 5);
  half.kind = Symbol::Kind::derived;
  half.operation = "/";
  half.operands = {s.I * s.N, Polynomial(2)};
  half.weight = 3;
  CHECK((s.I * s.N + 1).weight() == 2);
  CHECK((Polynomial(&half) * Polynomial(&half) + s.J).weight() == 7);
}
