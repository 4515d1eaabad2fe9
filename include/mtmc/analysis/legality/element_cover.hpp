#pragma once

#include <mtmc/analysis/flow/function_analysis.hpp>
#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/analysis/threads/index_digits.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

/// \file
/// Which elements of a buffer the threads of a launch reach at one size, where each of them is reached just
/// once: by whatever thread, in whatever iteration.

namespace mtmc::inline MTMC_ABI::detail {

/// Elements that are reached once each: those whose numbers are sums of digits, of which each has `count`
/// values and is multiplied with `factor`.
struct ReachedElements {
  /// One of them.
  struct Digit {
    std::int64_t factor = 0; ///< more than all digits before it add up to
    std::int64_t count = 0;  ///< at least 2

    friend bool operator==(const Digit&, const Digit&) = default; ///< part by part
  };
  std::vector<Digit> digits{}; ///< smallest factor first; one where elements follow each other
  bool none = false;           ///< no element is reached

  friend bool operator==(const ReachedElements&, const ReachedElements&) = default; ///< the same elements

  /// Number of the last element.
  [[nodiscard]] std::int64_t last() const noexcept {
    std::int64_t sum = 0;
    for (const Digit& digit : digits) sum += digit.factor * (digit.count - 1);
    return sum;
  }
  /// Whether all from the first one to the last one are reached.
  [[nodiscard]] bool without_holes() const noexcept {
    return digits.empty() || (digits.size() == 1 && digits.front().factor == 1);
  }
  /// Whether all of them are among others, as far as that is easily seen.
  [[nodiscard]] bool among(const ReachedElements& others) const noexcept {
    return none || *this == others || (!others.none && others.without_holes() && last() <= others.last());
  }
};

/// What must hold where a statement happens: numbers that are 0, and others that are below 0.
struct WorkConditions {
  std::vector<Polynomial> zero{};     ///< these are 0
  std::vector<Polynomial> negative{}; ///< these are below 0
};

/// The path to a node below another one: of statements and expressions, the node itself last. Empty if it is
/// not there.
[[nodiscard]] inline std::vector<const SyntaxNode*> path_to(const SyntaxNode& from, const SyntaxNode& node) {
  if (&from == &node) return {&node};
  for (const SyntaxNode& child : from.children) {
    auto path = path_to(child, node);
    if (path.empty()) continue;
    path.insert(path.begin(), &from);
    return path;
  }
  return {};
}

/// Adds what a branch compares; false where something else decides about it, too.
[[nodiscard]] inline bool add_comparisons(const FunctionAnalysis& function, const SyntaxNode& branch,
                                          bool behind, WorkConditions& conditions) {
  bool some = false;
  for (const BranchComparison& one : function.branch_comparisons) {
    if (one.branch != &branch || one.behind != behind) continue;
    if (!one.number.defined()) return false;
    (one.equal ? conditions.zero : conditions.negative).push_back(one.number);
    some = true;
  }
  return some;
}

/// All conditions on which a statement happens, those of the loops around it left out; nothing where there
/// are others than comparisons of numbers.
[[nodiscard]] inline std::optional<WorkConditions> work_conditions(const FunctionAnalysis& function,
                                                                   const SyntaxNode& statement) {
  const SyntaxNode& body = function_body(*function.node);
  const auto path = path_to(body, statement);
  if (path.empty()) return std::nullopt;
  WorkConditions conditions;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const SyntaxNode &node = *path[i], &next = *path[i + 1];
    if (node.kind == NodeKind::if_statement &&
        (&next != &then_branch(node) || !add_comparisons(function, node, false, conditions)))
      return std::nullopt;
    bool leaves = false;
    if (is_loop(node.kind))
      walk(node, [&](const SyntaxNode& inner) {
        leaves = leaves || inner.kind == NodeKind::break_statement ||
                 inner.kind == NodeKind::continue_statement || inner.kind == NodeKind::return_statement;
      });
    if (leaves) return std::nullopt;
    if (node.kind != NodeKind::block) continue;
    for (const SyntaxNode& before : node.children) { // early returns in front of it
      if (&before == &next) break;
      bool returns = false;
      walk(before,
           [&](const SyntaxNode& inner) { returns = returns || inner.kind == NodeKind::return_statement; });
      if (returns && (before.kind != NodeKind::if_statement || else_branch(before) != nullptr ||
                      !add_comparisons(function, before, true, conditions)))
        return std::nullopt;
    }
  }
  return conditions;
}

/// Finds out which elements are reached.
class ElementCover {
public:
  /// `values`: of the function's parameters.
  ElementCover(const LaunchGeometry& geometry, const Symbols& values) : digits_(geometry, values) {}

  /// The elements of an access that happens on these conditions, in the iterations of the loop and of those
  /// around it. Nothing where some may be reached twice, or it is not known which they are.
  [[nodiscard]] std::optional<ReachedElements> of(const Polynomial& subscript,
                                                  const WorkConditions& conditions, const LoopInfo* loop) {
    constexpr std::size_t most_splits = 100;
    for (std::size_t splits = 0; splits < most_splits; splits = digits_.splits()) {
      const std::size_t before = digits_.splits();
      read(subscript, conditions, loop);
      if (digits_.splits() == before) return solve();
    }
    return std::nullopt;
  }

private:
  void read(const Polynomial& subscript, const WorkConditions& conditions, const LoopInfo* innermost) {
    known_ = true;
    zero_.clear();
    negative_.clear();
    counts_.clear();
    digits_.assume_negative({});
    for (const Polynomial& number : conditions.zero) zero_.push_back(checked(digits_.sum_of(number)));
    for (const Polynomial& number : conditions.negative) negative_.push_back(checked(digits_.sum_of(number)));
    for (const LoopInfo* loop = innermost; loop != nullptr; loop = loop->parent)
      for (const Polynomial& limit : loop->limits) {
        negative_.push_back(digits_.variable_of(*loop));
        negative_.back().add(checked(digits_.sum_of(limit)), -1);
        (void)checked(negative_.back());
      }
    digits_.assume_negative(negative_);
    subscript_ = checked(digits_.sum_of(subscript));
    const auto numbers = digits_.numbers_around(innermost);
    known_ = known_ && numbers;
    if (!numbers) return;
    for (const DigitSum& number : *numbers)
      for (const auto& [digit, factor] : number.factors)
        if (const auto count = digits_.count(digit)) counts_[digit] = *count;
  }

  [[nodiscard]] const DigitSum& checked(const DigitSum& sum) {
    known_ = known_ && sum.known;
    return sum;
  }
  [[nodiscard]] DigitSum checked(DigitSum&& sum) {
    known_ = known_ && sum.known;
    return std::move(sum);
  }

  [[nodiscard]] std::optional<ReachedElements> solve() {
    if (!known_) return std::nullopt;
    for (const DigitSum& sum : zero_)
      if (!fix(sum)) return std::nullopt;
    while (true) {
      std::erase_if(negative_, [this](const DigitSum& below) { return always_negative(below); });
      if (negative_.empty()) break;
      const auto smallest =
          std::min_element(negative_.begin(), negative_.end(), [](const DigitSum& a, const DigitSum& b) {
            return a.factors.size() < b.factors.size();
          });
      // `limit` changes all sums, this one as well.
      const DigitSum below = *smallest; // NOLINT(performance-unnecessary-copy-initialization)
      if (is_never_negative(below)) return ReachedElements{.none = true};
      if (!limit(below)) return std::nullopt;
    }
    return elements();
  }

  [[nodiscard]] bool always_negative(const DigitSum& below) const {
    std::int64_t largest = below.constant;
    for (const auto& [digit, factor] : below.factors) {
      const auto count = counts_.find(digit);
      std::int64_t most = 0;
      if (count == counts_.end()) return false;
      if (factor > 0 && (__builtin_mul_overflow(factor, count->second - 1, &most) ||
                         __builtin_add_overflow(largest, most, &largest)))
        return false;
    }
    return largest < 0;
  }

  [[nodiscard]] static bool is_never_negative(const DigitSum& below) {
    return below.constant >= 0 && std::all_of(below.factors.begin(), below.factors.end(),
                                              [](const auto& factor) { return factor.second > 0; });
  }

  /// Gives digits their only values for which a sum of them is 0.
  [[nodiscard]] bool fix(const DigitSum& sum) {
    const bool positive = std::all_of(sum.factors.begin(), sum.factors.end(),
                                      [](const auto& factor) { return factor.second > 0; });
    const bool all_are_zero = sum.constant == 0 && positive;
    const bool one = sum.factors.size() == 1 && sum.constant % sum.factors.begin()->second == 0;
    if (!all_are_zero && !one) return false;
    for (const auto& [digit, factor] : std::map(sum.factors)) {
      const auto count = counts_.find(digit);
      const std::int64_t value = all_are_zero ? 0 : -sum.constant / factor;
      if (count == counts_.end() || value < 0 || value >= count->second) return false;
      give(digit, value);
    }
    return true;
  }

  /// A digit has but one value.
  void give(std::size_t digit, std::int64_t value) {
    const auto in = [&](DigitSum& sum) {
      const auto factor = sum.factors.find(digit);
      if (factor == sum.factors.end()) return;
      sum.constant += factor->second * value;
      sum.factors.erase(factor);
    };
    in(subscript_);
    for (DigitSum& sum : negative_) in(sum);
    for (DigitSum& sum : zero_) in(sum);
    counts_.erase(digit);
  }

  /// Makes one digit of all those of a sum that must be below 0: the number that they are together, if they
  /// are always together.
  [[nodiscard]] bool limit(const DigitSum& below) {
    if (below.constant >= 0) return false;
    std::vector<std::pair<std::int64_t, std::size_t>> order;
    for (const auto& [digit, factor] : below.factors) order.emplace_back(factor, digit);
    std::sort(order.begin(), order.end());
    if (order.front().first <= 0) return false;
    const std::int64_t most = -below.constant;
    if (most <= order.front().first) { // only the first value of each
      for (const auto& [factor, digit] : order) give(digit, 0);
      return true;
    }
    const std::int64_t unit = order.front().first;
    std::int64_t next = unit;
    for (const auto& [factor, digit] : order) {
      const auto count = counts_.find(digit);
      if (factor != next || count == counts_.end() || __builtin_mul_overflow(factor, count->second, &next))
        return false;
    }
    const std::int64_t count = std::min(next / unit, (most - 1) / unit + 1);
    const std::size_t whole = order.front().second; // stands for all of them from now on
    for (DigitSum* sum : all_sums()) {
      const auto own = sum->factors.find(whole);
      const std::int64_t each = own == sum->factors.end() ? 0 : own->second;
      for (const auto& [factor, digit] : order) {
        const auto other = sum->factors.find(digit);
        std::int64_t wanted = 0;
        if (__builtin_mul_overflow(each, factor / unit, &wanted) ||
            (other == sum->factors.end() ? 0 : other->second) != wanted)
          return false;
        if (digit != whole && other != sum->factors.end()) sum->factors.erase(other);
      }
    }
    for (const auto& [factor, digit] : order) counts_.erase(digit);
    counts_[whole] = count;
    return true;
  }

  [[nodiscard]] std::vector<DigitSum*> all_sums() {
    std::vector<DigitSum*> all{&subscript_};
    for (DigitSum& sum : negative_) all.push_back(&sum);
    return all;
  }

  [[nodiscard]] std::optional<ReachedElements> elements() const {
    ReachedElements result;
    if (subscript_.constant != 0) return std::nullopt;
    for (const auto& [digit, count] : counts_)
      if (count > 1) {
        const auto factor = subscript_.factors.find(digit);
        if (factor == subscript_.factors.end() || factor->second < 1) return std::nullopt;
        result.digits.push_back({factor->second, count});
      }
    for (const auto& [digit, factor] : subscript_.factors)
      if (!counts_.contains(digit)) return std::nullopt; // a quotient
    auto& digits = result.digits;
    std::sort(digits.begin(), digits.end(), [](const auto& a, const auto& b) { return a.factor < b.factor; });
    std::vector<ReachedElements::Digit> joined;
    std::int64_t reach = 0; // of the digits so far
    for (const ReachedElements::Digit& digit : digits) {
      std::int64_t most = 0;
      if (digit.factor <= reach || __builtin_mul_overflow(digit.factor, digit.count - 1, &most) ||
          __builtin_add_overflow(reach, most, &reach))
        return std::nullopt;
      if (!joined.empty() && joined.back().factor * joined.back().count == digit.factor)
        joined.back().count *= digit.count;
      else
        joined.push_back(digit);
    }
    digits = std::move(joined);
    return result;
  }

  IndexDigits digits_;
  bool known_ = true;
  DigitSum subscript_{};
  std::vector<DigitSum> zero_{};
  std::vector<DigitSum> negative_{};
  std::map<std::size_t, std::int64_t> counts_{}; ///< of the digits that tell executions apart
};

} // namespace mtmc::detail
