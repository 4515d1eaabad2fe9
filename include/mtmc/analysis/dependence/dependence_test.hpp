#pragma once

#include <mtmc/analysis/dependence/delinearize.hpp>
#include <mtmc/analysis/dependence/iteration_system.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// \file
/// The dependence test: in which pairs of iterations two accesses touch the same element.
///
/// Dimension by dimension, cheapest first: equal or different constants (ZIV); one loop with equal
/// coefficients, which gives a constant distance (strong SIV), checked against the number of iterations. What
/// these do not decide (weak SIV, several loops in one dimension, symbolic distances, bounds that depend on
/// other loops, flattened subscripts that could not be taken apart) goes to a system of linear constraints
/// with symbolic bounds, direction by direction (constraint_system.hpp), which covers the tests of greatest
/// common divisors and of Banerjee. "Dependent" may mean "not proved independent", never the other way round.

namespace mtmc::inline MTMC_ABI::detail {

/// The pairs of iterations that touch the same element, first access first.
struct PairVectors {
  /// One vector of directions per common loop each; empty: independent.
  std::vector<std::vector<Directions>> vectors{};
  /// Second minus first value in iterations, where it is one constant.
  std::vector<std::optional<std::int64_t>> distances{};
};

/// Compares one pair of accesses.
class PairTest {
public:
  /// `budget`: what the comparison may cost; when it is used up, everything is dependent.
  PairTest(const Access& first, const Access& second, std::span<const CommonLoop> common,
           std::span<const Polynomial> assumptions, WorkBudget& budget)
      : first_(first), second_(second), common_(common), assumptions_(assumptions), budget_(budget),
        directions_(common.size(), Directions::any) {}

  /// Asks only about pairs within the same iteration of the `count` outermost common loops.
  void restrict_outer(std::size_t count) {
    for (std::size_t p = 0; p < count; ++p) directions_[p] = Directions::equal;
  }

  [[nodiscard]] PairVectors run() {
    result_.distances.assign(common_.size(), std::nullopt);
    own_memory();
    if (first_.array != second_.array || !budget_.spend(comparing) || !read_equations()) {
      result_.vectors.push_back(directions_);
      return std::move(result_);
    }
    for (const Equation& equation : equations_)
      if (!use(equation)) return {};
    if (!distances_fit()) return {};
    if (hard_.empty()) {
      result_.vectors.push_back(directions_);
      return std::move(result_);
    }
    find_involved();
    result_.vectors = search(0);
    return std::move(result_);
  }

private:
  /// Steps of the budget for a pair without constraint systems.
  static constexpr std::int64_t comparing = 40;

  struct Equation {
    const Polynomial* first = nullptr;
    const Polynomial* second = nullptr;
  };

  /// An array declared in a loop is another one in each iteration.
  void own_memory() {
    if (!first_.array->local || first_.array != second_.array || first_.array->variable == nullptr) return;
    const LoopInfo* home = first_.array->variable->loop;
    for (std::size_t p = 0; p < common_.size(); ++p)
      if (home != nullptr && home->inside(common_[p].first) && common_[p].first == common_[p].second) {
        directions_[p] = Directions::equal;
        result_.distances[p] = 0;
      }
  }

  /// One equation per dimension; false if nothing can be compared.
  [[nodiscard]] bool read_equations() {
    const bool split = !first_.dimensions.empty() && first_.dimensions.size() == second_.dimensions.size();
    const auto& a = split ? first_.dimensions : first_.subscripts;
    const auto& b = split ? second_.dimensions : second_.subscripts;
    if (a.size() != b.size()) return false;
    for (std::size_t d = 0; d < a.size(); ++d)
      if (a[d].defined() && b[d].defined()) equations_.push_back({&a[d], &b[d]});
    return true;
  }

  /// One side of an equation as coefficients of the common loops and a rest that does not vary.
  struct LinearSide {
    std::vector<std::int64_t> coefficients;
    Polynomial rest;
    bool linear = true;
  };

  [[nodiscard]] LinearSide read_side(const Polynomial& polynomial, int side) const {
    LinearSide result;
    result.coefficients.assign(common_.size(), 0);
    for (const auto& term : polynomial.terms()) {
      bool varies = false;
      for (std::size_t i = 0; i < term.degree; ++i) varies = varies || term.factors[i]->loop != nullptr;
      if (!varies) {
        result.rest += polynomial_of_term(term);
        continue;
      }
      std::size_t position = common_.size();
      if (term.degree == 1)
        for (std::size_t p = 0; p < common_.size(); ++p)
          if ((side == 0 ? common_[p].first : common_[p].second)->symbol == term.factors[0]) position = p;
      if (position == common_.size()) {
        result.linear = false;
        return result;
      }
      result.coefficients[position] += term.coefficient;
    }
    return result;
  }

  [[nodiscard]] static Polynomial polynomial_of_term(const Polynomial::Term& term) {
    Polynomial result{term.coefficient};
    for (std::size_t i = 0; i < term.degree; ++i) result = result * Polynomial(term.factors[i]);
    return result;
  }

  /// Draws the conclusions of one equation; false: independent.
  [[nodiscard]] bool use(const Equation& equation) {
    LinearSide a = read_side(*equation.first, 0);
    LinearSide b = read_side(*equation.second, 1);
    if (!a.linear || !b.linear) read_without_stride(equation, a, b);
    if (!a.linear || !b.linear) {
      hard_.push_back(equation);
      return true;
    }
    const Polynomial difference = expanded(a.rest - b.rest);
    std::size_t loops = 0;
    std::size_t position = 0;
    for (std::size_t p = 0; p < common_.size(); ++p)
      if (a.coefficients[p] != 0 || b.coefficients[p] != 0) {
        ++loops;
        position = p;
      }
    if (loops == 0) { // ZIV
      if (difference.is_zero()) return true;
      if (difference.constant()) return false;
      hard_.push_back(equation);
      return true;
    }
    const auto constant = difference.constant();
    const std::int64_t coefficient = a.coefficients[position];
    if (loops > 1 || coefficient != b.coefficients[position] || !constant) {
      hard_.push_back(equation);
      return true;
    }
    // Strong SIV.
    if (*constant % coefficient != 0) return false;
    if (bounds_vary(common_[position])) hard_.push_back(equation); // other loops follow from the value
    return fix(position, *constant / coefficient, equation);
  }

  /// `N*i + c = N*k + c` is `i = k` where N is at least 1: both sides without that factor, if there is one.
  void read_without_stride(const Equation& equation, LinearSide& a, LinearSide& b) const {
    std::optional<Polynomial::Term> stride;
    Polynomial rest, parts[2];
    for (const int side : {0, 1})
      for (const auto& term : (side == 0 ? equation.first : equation.second)->terms()) {
        const bool varies = std::any_of(term.factors.begin(), term.factors.begin() + term.degree,
                                        [](const Symbol* symbol) { return symbol->loop != nullptr; });
        if (!varies) {
          rest += side == 0 ? polynomial_of_term(term) : -polynomial_of_term(term);
          continue;
        }
        auto own = stride_of(term);
        if (!own) return;
        own->coefficient = 1;
        if (stride && !stride->alike(*own)) return;
        stride = own;
        parts[side] += polynomial_of_term(*divide(term, *own));
      }
    if (!stride || !expanded(rest).is_zero()) return;
    for (std::size_t i = 0; i < stride->degree; ++i)
      if (!provably_nonnegative(Polynomial(stride->factors[i]) - Polynomial(1), nullptr, assumptions_,
                                budget_))
        return;
    a = read_side(parts[0], 0);
    b = read_side(parts[1], 1);
  }

  /// The bounds of a loop depend on loops around it, as those of a tile do.
  [[nodiscard]] static bool bounds_vary(const CommonLoop& loop) noexcept {
    const auto varies = [](const std::vector<Polynomial>& bounds) {
      for (const Polynomial& bound : bounds)
        for (const auto& term : bound.terms())
          for (std::size_t i = 0; i < term.degree; ++i)
            if (term.factors[i]->loop != nullptr) return true;
      return false;
    };
    return varies(loop.first->limits) || varies(loop.first->origins);
  }

  /// The variable of a common loop grows by `distance` from the first iteration to the second; false:
  /// impossible.
  [[nodiscard]] bool fix(std::size_t position, std::int64_t distance, const Equation& equation) {
    const LoopInfo& loop = *common_[position].first;
    if (!loop.canonical || !common_[position].second->canonical) {
      hard_.push_back(equation);
      return true;
    }
    if (distance % loop.step != 0) {
      // Both values are start + a multiple of the step, so this needs different starts.
      if (same_start(common_[position])) return false;
      hard_.push_back(equation);
      return true;
    }
    const std::int64_t iterations = distance / loop.step;
    if (result_.distances[position] && *result_.distances[position] != iterations) return false;
    result_.distances[position] = iterations;
    const Directions direction = iterations > 0   ? Directions::less
                                 : iterations < 0 ? Directions::greater
                                                  : Directions::equal;
    directions_[position] = directions_[position] & direction;
    return directions_[position] != Directions::none;
  }

  [[nodiscard]] static bool same_start(const CommonLoop& loop) {
    for (const auto& term : loop.first->start.terms())
      for (std::size_t i = 0; i < term.degree; ++i)
        if (term.factors[i]->loop != nullptr) return false;
    return expanded(loop.first->start) == expanded(loop.second->start);
  }

  /// No constant distance is as large as the whole loop; false: one is.
  [[nodiscard]] bool distances_fit() const {
    for (std::size_t p = 0; p < common_.size(); ++p) {
      if (!result_.distances[p] || *result_.distances[p] == 0) continue;
      const LoopInfo& loop = *common_[p].first;
      const std::int64_t size = *result_.distances[p] < 0 ? -*result_.distances[p] : *result_.distances[p];
      for (const Polynomial& limit : loop.limits) {
        const Polynomial span = expanded(loop.step > 0 ? limit - loop.start : loop.start - limit);
        const std::int64_t step = loop.step > 0 ? loop.step : -loop.step;
        if (const auto length = span.constant(); length && (*length + step - 1) / step <= size) return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::size_t position_of(const LoopInfo* loop) const noexcept {
    for (std::size_t p = 0; p < common_.size(); ++p)
      if (common_[p].first == loop || common_[p].second == loop) return p;
    return common_.size();
  }

  /// The common loops that the hard equations are about, directly or through bounds.
  void find_involved() {
    std::vector<bool> involved(common_.size(), false);
    std::vector<const LoopInfo*> pending;
    const auto mark = [&](const Polynomial& polynomial) {
      for (const auto& term : polynomial.terms())
        for (std::size_t i = 0; i < term.degree; ++i) {
          const Symbol& symbol = *term.factors[i];
          if (symbol.loop == nullptr) continue;
          const std::size_t position = position_of(symbol.loop);
          if (symbol.kind != Symbol::Kind::loop_variable)
            for (std::size_t p = 0; p < common_.size() && p <= position; ++p) involved[p] = true;
          if (position < common_.size()) involved[position] = true;
          if (std::find(pending.begin(), pending.end(), symbol.loop) == pending.end())
            pending.push_back(symbol.loop);
        }
    };
    for (const Equation& equation : hard_) {
      mark(*equation.first);
      mark(*equation.second);
    }
    for (std::size_t i = 0; i < pending.size() && i < 32; ++i) {
      for (const Polynomial& limit : pending[i]->limits) mark(limit);
      for (const Polynomial& origin : pending[i]->origins) mark(origin);
    }
    // Loops whose bounds contain a variable that is involved say something about it as well.
    for (std::size_t p = 0; p < common_.size(); ++p)
      if (involved[p] && directions_[p] == Directions::any) involved_.push_back(p);
  }

  [[nodiscard]] bool feasible() {
    if (budget_.exhausted()) return true;
    IterationSystem system(common_, directions_, first_.loop, second_.loop, assumptions_);
    for (const Equation& equation : equations_) system.demand_equal(*equation.first, *equation.second);
    for (std::size_t p = 0; p < common_.size(); ++p)
      if (result_.distances[p] && *result_.distances[p] != 0)
        system.demand_distance(p, *result_.distances[p] * common_[p].first->step);
    return !system.infeasible(budget_);
  }

  /// Tries every direction of the involved loops from `level` on, outermost first, leaving out what is
  /// impossible. Where all three directions of a loop leave the same to the others, they become one vector.
  [[nodiscard]] std::vector<std::vector<Directions>> search(std::size_t level) {
    constexpr std::size_t max_involved = 5;
    std::vector<std::vector<Directions>> found;
    if (budget_.exhausted() || involved_.size() > max_involved || level == involved_.size()) {
      if (level > 0 || feasible()) found.push_back(directions_);
      return found;
    }
    const std::size_t position = involved_[level];
    std::vector<std::vector<Directions>> first;
    std::size_t alike = 0;
    for (const Directions direction : {Directions::less, Directions::equal, Directions::greater}) {
      directions_[position] = direction;
      if (!feasible()) continue;
      auto inner = search(level + 1);
      found.insert(found.end(), inner.begin(), inner.end());
      for (auto& vector : inner) vector[position] = Directions::any;
      if (direction == Directions::less) first = inner;
      alike += inner == first ? 1 : 0;
    }
    directions_[position] = Directions::any;
    return alike == 3 ? first : found;
  }

  const Access& first_;
  const Access& second_;
  std::span<const CommonLoop> common_;
  std::span<const Polynomial> assumptions_;
  WorkBudget& budget_;
  std::vector<Equation> equations_;
  std::vector<Equation> hard_;
  std::vector<Directions> directions_;
  std::vector<std::size_t> involved_;
  PairVectors result_;
};

} // namespace mtmc::detail
