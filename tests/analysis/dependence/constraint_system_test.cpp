// Proofs that linear constraints over integers have no solution.

#include <mtmc/analysis/dependence/constraint_system.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

using mtmc::ConstraintSystem;
using mtmc::WorkBudget;

namespace {

ConstraintSystem::Row row(std::initializer_list<std::int64_t> coefficients, std::int64_t constant) {
  ConstraintSystem::Row result;
  std::size_t i = 0;
  for (const std::int64_t coefficient : coefficients) result.coefficients[i++] = coefficient;
  result.constant = constant;
  return result;
}

bool infeasible(ConstraintSystem& system) {
  WorkBudget budget;
  return system.infeasible(budget);
}

} // namespace

TEST_CASE("constraints: an empty system and an open interval have solutions") {
  ConstraintSystem empty;
  CHECK_FALSE(infeasible(empty));
  ConstraintSystem interval;
  interval.add_inequality(row({1}, 0));   // x >= 0
  interval.add_inequality(row({-1}, 10)); // x <= 10
  CHECK_FALSE(infeasible(interval));
}

TEST_CASE("constraints: contradictions of inequalities, directly and through others") {
  ConstraintSystem direct;
  direct.add_inequality(row({1}, -5)); // x >= 5
  direct.add_inequality(row({-1}, 4)); // x <= 4
  CHECK(infeasible(direct));
  ConstraintSystem chain; // x > y > z > x
  chain.add_inequality(row({1, -1, 0}, -1));
  chain.add_inequality(row({0, 1, -1}, -1));
  chain.add_inequality(row({-1, 0, 1}, -1));
  CHECK(infeasible(chain));
}

TEST_CASE("constraints: divisors decide where only fractions would do") {
  ConstraintSystem equality;
  equality.add_equality(row({2, -4}, 1)); // 2x = 4y - 1
  CHECK(infeasible(equality));
  ConstraintSystem between; // 1 <= 2x <= 1, x = 1/2 only
  between.add_inequality(row({2}, -1));
  between.add_inequality(row({-2}, 1));
  CHECK(infeasible(between));
}

TEST_CASE("constraints: symbolic bounds") {
  // 0 <= j < n, 0 <= k < n, j = k + n: no.
  ConstraintSystem system;
  system.add_inequality(row({1, 0, 0}, 0));
  system.add_inequality(row({-1, 0, 1}, -1));
  system.add_inequality(row({0, 1, 0}, 0));
  system.add_inequality(row({0, -1, 1}, -1));
  system.add_equality(row({1, -1, -1}, 0));
  CHECK(infeasible(system));
}

TEST_CASE("constraints: equalities without a unit coefficient") {
  ConstraintSystem system; // 3x = 2y, x >= 1, y <= 0
  system.add_equality(row({3, -2}, 0));
  system.add_inequality(row({1, 0}, -1));
  system.add_inequality(row({0, -1}, 0));
  CHECK(infeasible(system));
  ConstraintSystem solvable; // 3x = 2y, 2 <= x <= 2
  solvable.add_equality(row({3, -2}, 0));
  solvable.add_inequality(row({1, 0}, -2));
  solvable.add_inequality(row({-1, 0}, 2));
  CHECK_FALSE(infeasible(solvable));
}

TEST_CASE("constraints: numbers that are too large give no proof, and no wrong one") {
  ConstraintSystem system;
  system.add_inequality(row({INT64_MAX}, -1));
  system.add_inequality(row({INT64_MIN}, INT64_MIN));
  CHECK_FALSE(infeasible(system));
}

TEST_CASE("constraints: elimination doubles the rows with each unknown, and spends a budget for them") {
  // Each unknown above and below every other one, by different amounts.
  const auto system = [] {
    ConstraintSystem result;
    for (std::size_t a = 0; a < 10; ++a)
      for (std::size_t b = 0; b < 10; ++b) {
        ConstraintSystem::Row row;
        if (a == b) continue;
        row.coefficients[a] = static_cast<std::int64_t>(2 + a);
        row.coefficients[b] = -static_cast<std::int64_t>(3 + b);
        row.constant = static_cast<std::int64_t>(a * b);
        result.add_inequality(row);
      }
    return result;
  };
  WorkBudget enough;
  ConstraintSystem whole = system();
  (void)whole.infeasible(enough);
  CHECK_FALSE(enough.exhausted());
  WorkBudget little(500);
  ConstraintSystem cut = system();
  CHECK_FALSE(cut.infeasible(little));
  CHECK(little.exhausted());
  // Then nothing more is proved, not even what is plain.
  ConstraintSystem plain;
  plain.add_inequality(row({1, -1}, -1));
  plain.add_inequality(row({-1, 1}, -1));
  CHECK_FALSE(plain.infeasible(little));
}
