// Proofs that linear constraints over integers have no solution.

#include <mtmc/analysis/dependence/constraint_system.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

using mtmc::ConstraintSystem;

namespace {

ConstraintSystem::Row row(std::initializer_list<std::int64_t> coefficients, std::int64_t constant) {
  ConstraintSystem::Row result;
  std::size_t i = 0;
  for (const std::int64_t coefficient : coefficients) result.coefficients[i++] = coefficient;
  result.constant = constant;
  return result;
}

} // namespace

TEST_CASE("constraints: an empty system and an open interval have solutions") {
  ConstraintSystem empty;
  CHECK_FALSE(empty.infeasible());
  ConstraintSystem interval;
  interval.add_inequality(row({1}, 0));   // x >= 0
  interval.add_inequality(row({-1}, 10)); // x <= 10
  CHECK_FALSE(interval.infeasible());
}

TEST_CASE("constraints: contradictions of inequalities, directly and through others") {
  ConstraintSystem direct;
  direct.add_inequality(row({1}, -5)); // x >= 5
  direct.add_inequality(row({-1}, 4)); // x <= 4
  CHECK(direct.infeasible());
  ConstraintSystem chain; // x > y > z > x
  chain.add_inequality(row({1, -1, 0}, -1));
  chain.add_inequality(row({0, 1, -1}, -1));
  chain.add_inequality(row({-1, 0, 1}, -1));
  CHECK(chain.infeasible());
}

TEST_CASE("constraints: divisors decide where only fractions would do") {
  ConstraintSystem equality;
  equality.add_equality(row({2, -4}, 1)); // 2x = 4y - 1
  CHECK(equality.infeasible());
  ConstraintSystem between; // 1 <= 2x <= 1, x = 1/2 only
  between.add_inequality(row({2}, -1));
  between.add_inequality(row({-2}, 1));
  CHECK(between.infeasible());
}

TEST_CASE("constraints: symbolic bounds") {
  // 0 <= j < n, 0 <= k < n, j = k + n: no.
  ConstraintSystem system;
  system.add_inequality(row({1, 0, 0}, 0));
  system.add_inequality(row({-1, 0, 1}, -1));
  system.add_inequality(row({0, 1, 0}, 0));
  system.add_inequality(row({0, -1, 1}, -1));
  system.add_equality(row({1, -1, -1}, 0));
  CHECK(system.infeasible());
}

TEST_CASE("constraints: equalities without a unit coefficient") {
  ConstraintSystem system; // 3x = 2y, x >= 1, y <= 0
  system.add_equality(row({3, -2}, 0));
  system.add_inequality(row({1, 0}, -1));
  system.add_inequality(row({0, -1}, 0));
  CHECK(system.infeasible());
  ConstraintSystem solvable; // 3x = 2y, 2 <= x <= 2
  solvable.add_equality(row({3, -2}, 0));
  solvable.add_inequality(row({1, 0}, -2));
  solvable.add_inequality(row({-1, 0}, 2));
  CHECK_FALSE(solvable.infeasible());
}

TEST_CASE("constraints: numbers that are too large give no proof, and no wrong one") {
  ConstraintSystem system;
  system.add_inequality(row({INT64_MAX}, -1));
  system.add_inequality(row({INT64_MIN}, INT64_MIN));
  CHECK_FALSE(system.infeasible());
}
