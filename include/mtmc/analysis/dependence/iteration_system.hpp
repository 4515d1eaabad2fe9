#pragma once

#include <mtmc/analysis/dependence/constraint_system.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/loop_nest.hpp>
#include <mtmc/analysis/flow/polynomial.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// \file
/// What loops say about the values of their variables, as linear constraints: for one iteration, or for two
/// iterations of the same loops that are compared.

namespace mtmc::inline MTMC_ABI::detail {

/// A loop around both of two accesses; two loops where they are about to be fused.
struct CommonLoop {
  const LoopInfo* first = nullptr;
  const LoopInfo* second = nullptr;
};

[[nodiscard]] constexpr bool has(Directions set, Directions one) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0;
}
[[nodiscard]] constexpr Directions operator&(Directions a, Directions b) noexcept {
  return static_cast<Directions>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
[[nodiscard]] constexpr Directions reversed(Directions set) noexcept {
  return static_cast<Directions>((has(set, Directions::less) ? 4U : 0U) |
                                 (has(set, Directions::equal) ? 2U : 0U) |
                                 (has(set, Directions::greater) ? 1U : 0U));
}

/// A system over the symbols of a first and a second iteration. Products of symbols are unknowns of their
/// own. A symbol is one unknown for both iterations where it cannot differ between them.
class IterationSystem {
public:
  /// `directions`: one per common loop; `equal` makes the loop's variable one unknown.
  IterationSystem(std::span<const CommonLoop> common, std::span<const Directions> directions,
                  const LoopInfo* first_loop, const LoopInfo* second_loop,
                  std::span<const Polynomial> assumptions)
      : common_(common), directions_(directions), innermost_{first_loop, second_loop},
        assumptions_(assumptions) {}

  /// Demands that `first` in the first iteration is `second` in the second one.
  void demand_equal(const Polynomial& first, const Polynomial& second) {
    Row row;
    if (add(row, first, 0, 1) && add(row, second, 1, -1)) system_.add_equality(row);
  }
  /// Demands that the polynomial of the first iteration is not negative.
  void demand_nonnegative(const Polynomial& polynomial) {
    Row row;
    if (add(row, polynomial, 0, 1)) system_.add_inequality(row);
  }
  /// Demands that the variable of a common loop is `distance` larger in the second iteration.
  void demand_distance(std::size_t position, std::int64_t distance) {
    Row row;
    const bool there = add(row, Polynomial(common_[position].second->symbol), 1, 1) &&
                       add(row, Polynomial(common_[position].first->symbol), 0, -1);
    row.constant -= distance;
    if (there) system_.add_equality(row);
  }

  /// Adds what the loops, the definitions of symbols and the assumptions say about the unknowns in use, and
  /// tries to prove that there is no solution.
  [[nodiscard]] bool infeasible(WorkBudget& budget) {
    if (!budget.spend(setting_up)) return false;
    close();
    return !too_large_ && infeasible_in_all_cases(system_, 0, budget);
  }

private:
  using Row = ConstraintSystem::Row;

  /// Two possibilities, one of which is true: rows that are not negative then.
  struct Cases {
    std::array<Row, 4> first{};
    std::array<Row, 4> second{};
  };
  /// Each doubles the work.
  static constexpr std::size_t max_cases = 2;
  /// Steps of the budget for making a system, which is most of the work where it is small.
  static constexpr std::int64_t setting_up = 100;

  struct Unknown {
    std::uint8_t degree = 0;
    std::uint8_t instance = 0;
    std::array<const Symbol*, Polynomial::largest_degree> factors{};
  };

  [[nodiscard]] bool infeasible_in_all_cases(const ConstraintSystem& system, std::size_t position,
                                             WorkBudget& budget) const {
    if (position == std::min(cases_.size(), max_cases)) return ConstraintSystem(system).infeasible(budget);
    for (const auto& rows : {cases_[position].first, cases_[position].second}) {
      ConstraintSystem narrowed = system;
      for (const Row& row : rows) narrowed.add_inequality(row);
      if (!infeasible_in_all_cases(narrowed, position + 1, budget)) return false;
    }
    return true;
  }

  /// Position of a loop among the common ones, as loop of the given side, or their number.
  [[nodiscard]] std::size_t position_of(const LoopInfo* loop, int side) const noexcept {
    for (std::size_t p = 0; p < common_.size(); ++p)
      if ((side == 0 ? common_[p].first : common_[p].second) == loop) return p;
    return common_.size();
  }

  /// The symbol that stands for `symbol` of the second iteration, and whether it is the first one's.
  [[nodiscard]] bool shared(const Symbol*& symbol) const noexcept {
    if (symbol->loop == nullptr) return true;
    const std::size_t position = position_of(symbol->loop, 1);
    if (position == common_.size()) return false;
    if (symbol->kind == Symbol::Kind::loop_variable) {
      if (directions_[position] != Directions::equal) return false;
      symbol = common_[position].first->symbol;
      return true;
    }
    if (common_[position].first != common_[position].second) return false;
    for (std::size_t p = 0; p <= position; ++p)
      if (directions_[p] != Directions::equal) return false;
    return true;
  }

  [[nodiscard]] std::size_t unknown_of(const Polynomial::Term& term, int side) {
    Unknown wanted;
    wanted.degree = term.degree;
    wanted.factors = term.factors;
    if (side == 1) {
      for (std::size_t i = 0; i < term.degree; ++i)
        if (!shared(wanted.factors[i])) wanted.instance = 1;
      // Replacing a variable by that of the loop fused with it may upset the order.
      std::sort(wanted.factors.begin(), wanted.factors.begin() + wanted.degree,
                [](const Symbol* a, const Symbol* b) { return a->index < b->index; });
    }
    for (std::size_t i = 0; i < unknowns_.size(); ++i)
      if (unknowns_[i].degree == wanted.degree && unknowns_[i].instance == wanted.instance &&
          unknowns_[i].factors == wanted.factors)
        return i;
    if (unknowns_.size() == ConstraintSystem::max_unknowns) {
      too_large_ = true;
      return ConstraintSystem::max_unknowns;
    }
    unknowns_.push_back(wanted);
    return unknowns_.size() - 1;
  }

  /// row += factor * polynomial; false if it cannot be expressed.
  [[nodiscard]] bool add(Row& row, const Polynomial& polynomial, int side, std::int64_t factor) {
    if (!polynomial.defined()) return false;
    for (const auto& term : polynomial.terms()) {
      std::int64_t* target = &row.constant;
      if (term.degree > 0) {
        const std::size_t unknown = unknown_of(term, side);
        if (unknown == ConstraintSystem::max_unknowns) return false;
        target = &row.coefficients[unknown];
      }
      std::int64_t product = 0;
      if (__builtin_mul_overflow(term.coefficient, factor, &product) ||
          __builtin_add_overflow(*target, product, target)) {
        too_large_ = true;
        return false;
      }
    }
    return true;
  }

  /// a - b + constant >= 0, all of one side.
  void demand_difference(const Polynomial& a, const Polynomial& b, std::int64_t constant, int side) {
    Row row;
    row.constant = constant;
    if (add(row, a, side, 1) && add(row, b, side, -1)) system_.add_inequality(row);
  }

  [[nodiscard]] bool uses(const Symbol* symbol, int side) const noexcept {
    const int instance = side == 1 && shared(symbol) ? 0 : side;
    for (const Unknown& unknown : unknowns_)
      if (unknown.degree == 1 && unknown.factors[0] == symbol && unknown.instance == instance) return true;
    return false;
  }

  void add_bounds(const LoopInfo& loop, int side) {
    const Polynomial variable(loop.symbol);
    for (const Polynomial& origin : loop.origins) {
      if (loop.step > 0)
        demand_difference(variable, origin, 0, side);
      else
        demand_difference(origin, variable, 0, side);
    }
    for (const Polynomial& limit : loop.limits) {
      if (loop.step > 0)
        demand_difference(limit, variable, -1, side);
      else
        demand_difference(variable, limit, -1, side);
    }
    if (loop.step == 1 || loop.step == -1) return;
    if (unknowns_.size() == ConstraintSystem::max_unknowns) {
      too_large_ = true;
      return;
    }
    // variable = start + step * count, count >= 0
    unknowns_.push_back({0, static_cast<std::uint8_t>(side), {loop.symbol}});
    const std::size_t count = unknowns_.size() - 1;
    Row row;
    row.coefficients[count] = -loop.step;
    if (add(row, variable, side, 1) && add(row, loop.start, side, -1)) system_.add_equality(row);
    Row sign;
    sign.coefficients[count] = 1;
    system_.add_inequality(sign);
  }

  void add_direction(std::size_t position) {
    const Directions direction = directions_[position];
    if (direction != Directions::less && direction != Directions::greater) return;
    const CommonLoop& loop = common_[position];
    const bool ascends = (direction == Directions::less) == (loop.first->step > 0);
    Row row;
    row.constant = -1;
    if (add(row, Polynomial(loop.second->symbol), 1, ascends ? 1 : -1) &&
        add(row, Polynomial(loop.first->symbol), 0, ascends ? -1 : 1))
      system_.add_inequality(row);
  }

  void add_definition(const Symbol& symbol, int side) {
    const Polynomial self(&symbol);
    if (symbol.operation == "=") {
      Row row;
      if (add(row, self, side, 1) && add(row, symbol.operands[0], side, -1)) system_.add_equality(row);
    } else if (symbol.operation == "min") {
      for (const Polynomial& operand : symbol.operands) demand_difference(operand, self, 0, side);
    } else if (symbol.operation == "max") {
      for (const Polynomial& operand : symbol.operands) demand_difference(self, operand, 0, side);
    } else if (symbol.operation == "/") {
      add_quotient(symbol, side);
    } else if (symbol.operation == "%") {
      const auto divisor = symbol.operands[1].constant();
      if (!divisor || *divisor <= 0) return;
      demand_difference(self, Polynomial{}, *divisor - 1, side);
      demand_difference(Polynomial{}, self, *divisor - 1, side);
    }
  }

  /// quotient = dividend / divisor, truncated: quotient and remainder have the sign of the dividend. That of
  /// the quotient follows from the other rows, but elimination may lose it.
  void add_quotient(const Symbol& quotient, int side) {
    const auto divisor = quotient.operands[1].constant();
    if (!divisor || *divisor <= 0) return;
    Row dividend, remainder, self;
    if (!add(dividend, quotient.operands[0], side, 1) || !add(remainder, quotient.operands[0], side, 1) ||
        !add(remainder, Polynomial(&quotient), side, -*divisor) || !add(self, Polynomial(&quotient), side, 1))
      return;
    const auto too_small = [](std::int64_t number) { return number == INT64_MIN; }; // has no negative
    for (const Row& row : {dividend, remainder})
      if (too_small(row.constant) || std::any_of(row.coefficients.begin(), row.coefficients.end(), too_small))
        return;
    const auto plus = [](Row row, std::int64_t sign, std::int64_t constant) {
      for (auto& coefficient : row.coefficients) coefficient *= sign;
      row.constant = sign * row.constant + constant;
      return row;
    };
    cases_.push_back({{dividend, remainder, plus(remainder, -1, *divisor - 1), self},
                      {plus(dividend, -1, -1), plus(remainder, -1, 0), plus(remainder, 1, *divisor - 1),
                       plus(self, -1, 0)}});
  }

  /// Adds all that is known of the unknowns in use, and of those that this brings in.
  void close() {
    std::array<bool, ConstraintSystem::max_unknowns> defined{};
    std::vector<bool> assumed(assumptions_.size(), false);
    std::vector<const LoopInfo*> done[2];
    std::vector<bool> directed(common_.size(), false);
    for (bool again = true; again && !too_large_;) {
      again = false;
      for (const int side : {0, 1})
        for (const LoopInfo* loop = innermost_[static_cast<std::size_t>(side)]; loop != nullptr;
             loop = loop->parent) {
          auto& list = done[side];
          if (!loop->canonical || std::find(list.begin(), list.end(), loop) != list.end() ||
              !uses(loop->symbol, side))
            continue;
          list.push_back(loop);
          add_bounds(*loop, side);
          again = true;
        }
      for (std::size_t p = 0; p < common_.size(); ++p) {
        const CommonLoop& loop = common_[p];
        if (directed[p] || !loop.first->canonical || !loop.second->canonical) continue;
        if (!uses(loop.first->symbol, 0) && !uses(loop.second->symbol, 1)) continue;
        directed[p] = true;
        add_direction(p);
        again = true;
      }
      for (std::size_t i = 0; i < unknowns_.size(); ++i) {
        if (defined[i] || unknowns_[i].degree != 1 || unknowns_[i].factors[0]->operands.empty()) continue;
        defined[i] = true;
        add_definition(*unknowns_[i].factors[0], unknowns_[i].instance);
        again = true;
      }
      for (std::size_t a = 0; a < assumptions_.size(); ++a) {
        if (assumed[a] || !concerns(assumptions_[a])) continue;
        assumed[a] = true;
        demand_nonnegative(assumptions_[a]);
        again = true;
      }
    }
  }

  [[nodiscard]] bool concerns(const Polynomial& assumption) const noexcept {
    for (const auto& term : assumption.terms())
      for (const Unknown& unknown : unknowns_)
        if (term.degree > 0 && unknown.degree == term.degree && unknown.factors == term.factors) return true;
    return false;
  }

  std::span<const CommonLoop> common_;
  std::span<const Directions> directions_;
  std::array<const LoopInfo*, 2> innermost_;
  std::span<const Polynomial> assumptions_;
  std::vector<Unknown> unknowns_;
  ConstraintSystem system_;
  std::vector<Cases> cases_;
  bool too_large_ = false;
};

/// Tries to prove by putting the extreme values of loop variables in that the polynomial is never negative in
/// an iteration.
[[nodiscard]] inline bool extremes_nonnegative(Polynomial polynomial) {
  for (int round = 0; round < 12 && polynomial.defined(); ++round) {
    if (const auto constant = polynomial.constant()) return *constant >= 0;
    const Symbol* deepest = nullptr;
    for (const auto& term : polynomial.terms())
      for (std::size_t i = 0; i < term.degree; ++i) {
        const Symbol* symbol = term.factors[i];
        if (symbol->kind == Symbol::Kind::loop_variable &&
            (deepest == nullptr || symbol->loop->depth > deepest->loop->depth))
          deepest = symbol;
      }
    if (deepest == nullptr || polynomial.degree_in(deepest) != 1) return false;
    const auto coefficient = polynomial.coefficient_of(deepest).constant();
    const LoopInfo& loop = *deepest->loop;
    if (!coefficient || loop.origins.empty() || loop.limits.empty()) return false;
    const bool lowest = *coefficient > 0;
    const bool at_origin = lowest == (loop.step > 0);
    const Polynomial value =
        at_origin ? loop.origins.front() : loop.limits.front() + Polynomial(loop.step > 0 ? -1 : 1);
    polynomial = polynomial.substitute(deepest, value);
  }
  return false;
}

/// Whether the polynomial is provably never negative in any iteration of `loop` (null: outside all loops).
[[nodiscard]] inline bool provably_nonnegative(const Polynomial& polynomial, const LoopInfo* loop,
                                               std::span<const Polynomial> assumptions, WorkBudget& budget) {
  if (!polynomial.defined()) return false;
  if (const auto constant = polynomial.constant()) return *constant >= 0;
  if (extremes_nonnegative(polynomial)) return true;
  IterationSystem system({}, {}, loop, nullptr, assumptions);
  system.demand_nonnegative(-polynomial - Polynomial(1)); // the opposite: it is at most -1
  return system.infeasible(budget);
}

} // namespace mtmc::detail
