#pragma once

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/flow/work_budget.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

/// \file
/// Systems of linear constraints over integers, and a proof that they have no solution.

namespace mtmc::inline MTMC_ABI {

/// Linear equalities and inequalities over integer unknowns. `infeasible()` proves that there is no integer
/// solution, by substitution of equalities, the test of greatest common divisors, and Fourier-Motzkin
/// elimination with integer tightening. It never claims so wrongly; it may fail to find a proof, also because
/// the system is too large (24 unknowns, 120 constraints on the way), a number leaves 64 bits, or the budget
/// is used up: a step for each row that is made and each that it is compared with.
class ConstraintSystem {
public:
  static constexpr std::size_t max_unknowns = 24;     ///< more unknowns than this are not taken
  static constexpr std::size_t max_constraints = 120; ///< more constraints than this are not kept

  /// sum of coefficients[i] * unknown i, plus constant.
  struct Row {
    std::array<std::int64_t, max_unknowns> coefficients{}; ///< factor of each unknown
    std::int64_t constant = 0;                             ///< what is added to the sum
  };

  /// Demands that the row is 0.
  void add_equality(const Row& row) { add(equalities_, row); }
  /// Demands that the row is not negative.
  void add_inequality(const Row& row) { add(inequalities_, row); }

  /// True if there is certainly no integer solution.
  [[nodiscard]] bool infeasible(WorkBudget& budget) {
    if (overflow_) return false;
    while (!equalities_.empty()) {
      if (!budget.spend(static_cast<std::int64_t>(equalities_.size() + inequalities_.size()))) return false;
      const Outcome outcome = use_equality();
      if (outcome == Outcome::contradiction) return true;
      if (outcome == Outcome::gave_up) return false;
    }
    if (tighten_all() == Outcome::contradiction) return true;
    while (true) {
      const std::size_t unknown = cheapest_unknown();
      if (unknown == max_unknowns) return false;
      const Outcome outcome = eliminate(unknown, budget);
      if (outcome == Outcome::contradiction) return true;
      if (outcome == Outcome::gave_up) return false;
    }
  }

private:
  enum class Outcome { open, contradiction, gave_up };

  /// Numbers stay below this, so that negating and adding two of them cannot overflow.
  static constexpr std::int64_t largest_number = std::int64_t{1} << 61;

  void add(std::vector<Row>& rows, const Row& row) {
    bool fits = row.constant < largest_number && row.constant > -largest_number;
    for (const std::int64_t coefficient : row.coefficients)
      fits = fits && coefficient < largest_number && coefficient > -largest_number;
    if (rows.size() >= max_constraints || !fits)
      overflow_ = true;
    else
      rows.push_back(row);
  }

  [[nodiscard]] static std::int64_t divisor_of(const Row& row) noexcept {
    std::int64_t divisor = 0;
    for (const std::int64_t coefficient : row.coefficients)
      if (coefficient != 0) divisor = std::gcd(divisor, coefficient);
    return divisor;
  }

  [[nodiscard]] static std::int64_t floor_divide(std::int64_t a, std::int64_t positive) noexcept {
    const std::int64_t quotient = a / positive;
    return a % positive < 0 ? quotient - 1 : quotient;
  }

  /// Divides an inequality by the divisor of its coefficients, rounding the constant towards the solutions.
  [[nodiscard]] static Outcome tighten(Row& row) noexcept {
    const std::int64_t divisor = divisor_of(row);
    if (divisor == 0) return row.constant < 0 ? Outcome::contradiction : Outcome::open;
    if (divisor > 1) {
      for (std::int64_t& coefficient : row.coefficients) coefficient /= divisor;
      row.constant = floor_divide(row.constant, divisor);
    }
    return Outcome::open;
  }

  [[nodiscard]] Outcome tighten_all() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < inequalities_.size(); ++i) {
      Row row = inequalities_[i];
      if (tighten(row) == Outcome::contradiction) return Outcome::contradiction;
      if (divisor_of(row) != 0) keep(row, kept);
    }
    inequalities_.resize(kept);
    return Outcome::open;
  }

  /// Puts a row at the end of the first `kept`; of parallel ones only the strictest stays.
  void keep(const Row& row, std::size_t& kept) {
    for (std::size_t i = 0; i < kept; ++i)
      if (inequalities_[i].coefficients == row.coefficients) {
        inequalities_[i].constant = std::min(inequalities_[i].constant, row.constant);
        return;
      }
    if (kept < inequalities_.size())
      inequalities_[kept] = row;
    else
      inequalities_.push_back(row);
    ++kept;
  }

  /// row * factor + other * other_factor; false if it overflows.
  [[nodiscard]] static bool combine(Row& row, std::int64_t factor, const Row& other,
                                    std::int64_t other_factor) noexcept {
    const auto mix = [&](std::int64_t a, std::int64_t b, std::int64_t& result) {
      std::int64_t x = 0;
      std::int64_t y = 0;
      return !__builtin_mul_overflow(a, factor, &x) && !__builtin_mul_overflow(b, other_factor, &y) &&
             !__builtin_add_overflow(x, y, &result) && result < largest_number && result > -largest_number;
    };
    for (std::size_t i = 0; i < max_unknowns; ++i)
      if ((row.coefficients[i] != 0 || other.coefficients[i] != 0) &&
          !mix(row.coefficients[i], other.coefficients[i], row.coefficients[i]))
        return false;
    return mix(row.constant, other.constant, row.constant);
  }

  /// Takes one equality and removes an unknown with it.
  [[nodiscard]] Outcome use_equality() {
    std::size_t chosen = 0;
    std::size_t unknown = max_unknowns;
    std::int64_t smallest = 0;
    for (std::size_t e = 0; e < equalities_.size(); ++e) {
      Row& row = equalities_[e];
      const std::int64_t divisor = divisor_of(row);
      if (divisor == 0) {
        if (row.constant != 0) return Outcome::contradiction;
        row = equalities_.back();
        equalities_.pop_back();
        return Outcome::open;
      }
      if (row.constant % divisor != 0) return Outcome::contradiction;
      for (std::size_t i = 0; i < max_unknowns; ++i) {
        const std::int64_t size = row.coefficients[i] < 0 ? -row.coefficients[i] : row.coefficients[i];
        if (size != 0 && (unknown == max_unknowns || size < smallest)) {
          chosen = e;
          unknown = i;
          smallest = size;
        }
      }
    }
    Row pivot = equalities_[chosen];
    equalities_[chosen] = equalities_.back();
    equalities_.pop_back();
    const std::int64_t divisor = divisor_of(pivot);
    for (std::int64_t& coefficient : pivot.coefficients) coefficient /= divisor;
    pivot.constant /= divisor;
    const std::int64_t own = pivot.coefficients[unknown];
    const std::int64_t size = own < 0 ? -own : own;
    // Scaled by a positive number, so that inequalities keep their direction.
    const auto remove_from = [&](Row& row) {
      const std::int64_t there = row.coefficients[unknown];
      return there == 0 || combine(row, size, pivot, own < 0 ? there : -there);
    };
    for (Row& row : equalities_)
      if (!remove_from(row)) return Outcome::gave_up;
    for (Row& row : inequalities_)
      if (!remove_from(row)) return Outcome::gave_up;
    return Outcome::open;
  }

  /// The unknown whose elimination makes the fewest new rows, or `max_unknowns` if none is left.
  [[nodiscard]] std::size_t cheapest_unknown() const noexcept {
    std::array<std::size_t, max_unknowns> above{};
    std::array<std::size_t, max_unknowns> below{};
    for (const Row& row : inequalities_)
      for (std::size_t i = 0; i < max_unknowns; ++i) {
        above[i] += row.coefficients[i] > 0 ? 1U : 0U;
        below[i] += row.coefficients[i] < 0 ? 1U : 0U;
      }
    std::size_t best = max_unknowns;
    std::size_t best_cost = 0;
    for (std::size_t i = 0; i < max_unknowns; ++i) {
      if (above[i] + below[i] == 0) continue;
      const std::size_t cost = above[i] * below[i];
      if (best == max_unknowns || cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    return best;
  }

  [[nodiscard]] Outcome eliminate(std::size_t unknown, WorkBudget& budget) {
    std::vector<Row> above;
    std::vector<Row> below;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < inequalities_.size(); ++i) {
      const Row row = inequalities_[i];
      const std::int64_t coefficient = row.coefficients[unknown];
      if (coefficient > 0)
        above.push_back(row);
      else if (coefficient < 0)
        below.push_back(row);
      else
        inequalities_[kept++] = row;
    }
    budget.spend(static_cast<std::int64_t>(inequalities_.size()));
    inequalities_.resize(kept);
    for (const Row& low : above)
      for (const Row& high : below) {
        if (!budget.spend(static_cast<std::int64_t>(kept + 1))) return Outcome::gave_up;
        Row row = low;
        if (!combine(row, -high.coefficients[unknown], high, low.coefficients[unknown]))
          return Outcome::gave_up;
        if (tighten(row) == Outcome::contradiction) return Outcome::contradiction;
        if (divisor_of(row) != 0) keep(row, kept);
        if (kept > max_constraints) return Outcome::gave_up;
      }
    inequalities_.resize(kept);
    return Outcome::open;
  }

  std::vector<Row> equalities_;
  std::vector<Row> inequalities_;
  bool overflow_ = false;
};

} // namespace mtmc
