#pragma once

#include <mtmc/analysis/flow/loop_nest.hpp>
#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/threads/thread_grid.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Numbers of threads, blocks and iterations at one size, taken apart into digits: where a block has 256
/// threads, `threadIdx.x / 16` and `threadIdx.x % 16` are two digits of 16 values each, and any two values of
/// them are those of one thread.

namespace mtmc::inline MTMC_ABI::detail {

/// A sum of digits, each with what it is multiplied with.
struct DigitSum {
  bool known = true;                             ///< false: it is no such sum
  std::int64_t constant = 0;                     ///< what is added to the digits
  std::map<std::size_t, std::int64_t> factors{}; ///< of digits, by their numbers; none is 0

  /// A sum of which nothing is known.
  [[nodiscard]] static DigitSum unknown() { return {.known = false}; }

  friend bool operator==(const DigitSum&, const DigitSum&) = default; ///< part by part

  /// Adds `factor` times another sum.
  void add(const DigitSum& other, std::int64_t factor) {
    known = known && other.known && add_product(constant, other.constant, factor);
    for (const auto& [digit, own] : other.factors) {
      std::int64_t& sum = factors[digit];
      known = known && add_product(sum, own, factor);
      if (sum == 0) factors.erase(digit);
    }
  }

private:
  [[nodiscard]] static bool add_product(std::int64_t& sum, std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
  }
};

/// The digits of a launch's numbers. A digit may be split while sums are made: those made before are then no
/// longer valid (`splits()` tells).
class IndexDigits {
public:
  /// Of a launch with that grid; `values` are those of the function's parameters.
  IndexDigits(const LaunchGeometry& geometry, const Symbols& values) : geometry_(geometry), values_(values) {}

  /// How often a digit was split.
  [[nodiscard]] std::size_t splits() const noexcept { return splits_; }
  /// The number of values of a digit, from 0 upwards; nothing for a quotient that is no digit.
  [[nodiscard]] std::optional<std::int64_t> count(std::size_t digit) const {
    return counts_[digit] > 0 ? std::optional(counts_[digit]) : std::nullopt;
  }
  /// The largest value of a sum whose digits are all added; nothing for others.
  [[nodiscard]] std::optional<std::int64_t> largest(const DigitSum& sum) const {
    std::int64_t result = sum.constant;
    for (const auto& [digit, factor] : sum.factors) {
      std::int64_t most = 0;
      if (!sum.known || factor < 0 || !count(digit) ||
          __builtin_mul_overflow(factor, *count(digit) - 1, &most) ||
          __builtin_add_overflow(result, most, &result))
        return std::nullopt;
    }
    return sum.known ? std::optional(result) : std::nullopt;
  }

  /// All numbers that tell one execution of a statement from another: of its threads, and of the iterations
  /// of the loops around it. Nothing where the number of iterations is not known.
  [[nodiscard]] std::optional<std::vector<DigitSum>> numbers_around(const LoopInfo* innermost) {
    std::vector<DigitSum> all;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      all.push_back(index("thread" + std::to_string(axis), geometry_.block[axis]));
      all.push_back(index("block" + std::to_string(axis), geometry_.grid[axis]));
    }
    for (const LoopInfo* loop = innermost; loop != nullptr; loop = loop->parent) {
      all.push_back(iteration_of(*loop));
      if (!all.back().known) return std::nullopt;
    }
    return all;
  }

  /// The value of a loop's variable in an iteration.
  [[nodiscard]] DigitSum variable_of(const LoopInfo& loop) {
    DigitSum value = sum_of(loop.start);
    value.add(iteration_of(loop), step_of(loop).value_or(0));
    return value;
  }

  /// A polynomial over the function's symbols.
  [[nodiscard]] DigitSum sum_of(const Polynomial& polynomial) {
    if (!polynomial.defined()) return DigitSum::unknown();
    DigitSum result;
    for (const Polynomial::Term& term : polynomial.terms()) {
      DigitSum product{.constant = term.coefficient};
      for (std::size_t i = 0; i < term.degree; ++i) {
        const DigitSum factor = sum_of(*term.factors[i]);
        if (!factor.factors.empty() && !product.factors.empty()) return DigitSum::unknown();
        DigitSum next;
        const bool fixed = product.factors.empty();
        next.add(fixed ? factor : product, fixed ? product.constant : factor.constant);
        next.known = next.known && product.known && factor.known;
        product = std::move(next);
      }
      result.add(product, 1);
    }
    return result;
  }

  /// From now on these sums are taken to be below 0, and no others: of two numbers the smaller one is known
  /// where that follows.
  void assume_negative(std::vector<DigitSum> sums) { negative_ = std::move(sums); }

private:
  [[nodiscard]] static DigitSum constant(std::int64_t value) { return {.constant = value}; }

  [[nodiscard]] DigitSum sum_of(const Symbol& symbol) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (symbol.name == thread_index_names[axis])
        return index("thread" + std::to_string(axis), geometry_.block[axis]);
      if (symbol.name == block_index_names[axis])
        return index("block" + std::to_string(axis), geometry_.grid[axis]);
      if (symbol.name == block_extent_names[axis]) return constant(geometry_.block[axis]);
      if (symbol.name == grid_extent_names[axis]) return constant(geometry_.grid[axis]);
    }
    if (symbol.kind == Symbol::Kind::loop_variable) return variable_of(*symbol.loop);
    if (symbol.kind == Symbol::Kind::unknown)
      return symbol.operation == "iteration" && symbol.loop != nullptr ? iteration_of(*symbol.loop)
                                                                       : DigitSum::unknown();
    if (symbol.kind == Symbol::Kind::variable) {
      const auto found = values_.find(symbol.name);
      return found == values_.end() ? DigitSum::unknown() : constant(found->second);
    }
    if (symbol.operation == "=" && symbol.operands.size() == 1) return sum_of(symbol.operands[0]);
    if (symbol.operands.size() != 2) return DigitSum::unknown();
    const DigitSum a = sum_of(symbol.operands[0]), b = sum_of(symbol.operands[1]);
    if (symbol.operation == "min" || symbol.operation == "max")
      return extreme(symbol.operation == "min", a, b);
    if (!a.known || !b.known || !b.factors.empty()) return DigitSum::unknown();
    const std::int64_t by = b.constant;
    if (symbol.operation == "/") return quotient(a, by);
    if (symbol.operation == "%") return remainder(a, by);
    if (symbol.operation == ">>" && by >= 0 && by < 62) return quotient(a, std::int64_t{1} << by);
    const bool is_mask =
        symbol.operation == "&" && by >= 0 && by < (std::int64_t{1} << 61) && (by & (by + 1)) == 0;
    return is_mask ? remainder(a, by + 1) : DigitSum::unknown();
  }

  [[nodiscard]] DigitSum extreme(bool smaller, const DigitSum& a, const DigitSum& b) const {
    DigitSum difference = a;
    difference.add(b, -1);
    if (!difference.known) return difference;
    if (difference.factors.empty()) return (difference.constant <= 0) == smaller ? a : b;
    const bool first = std::any_of(negative_.begin(), negative_.end(), [&](const DigitSum& below) {
      DigitSum rest = difference;
      rest.add(below, -1);
      return rest.known && rest.factors.empty() && rest.constant <= 1;
    });
    return first && smaller ? a : DigitSum::unknown();
  }

  /// The index of that name, which has `count` values.
  [[nodiscard]] DigitSum index(const std::string& name, std::int64_t count) {
    const auto found = indices_.find(name);
    if (found != indices_.end()) return found->second;
    DigitSum sum;
    if (count > 1) {
      sum.factors[counts_.size()] = 1;
      counts_.push_back(count);
    }
    return indices_[name] = sum;
  }

  [[nodiscard]] std::optional<std::int64_t> step_of(const LoopInfo& loop) {
    if (loop.canonical) return loop.step > 0 ? std::optional(loop.step) : std::nullopt;
    const DigitSum stride = sum_of(loop.stride);
    return stride.known && stride.factors.empty() && stride.constant > 0 ? std::optional(stride.constant)
                                                                         : std::nullopt;
  }

  /// The number of the iteration: some thread has as many as the digit has values, and none has more.
  [[nodiscard]] DigitSum iteration_of(const LoopInfo& loop) {
    const std::string name = "loop" + std::to_string(loop.index);
    if (const auto found = indices_.find(name); found != indices_.end()) return found->second;
    const auto step = step_of(loop);
    if (!step) return DigitSum::unknown();
    std::optional<std::int64_t> most;
    for (const Polynomial& limit : loop.limits) {
      DigitSum length = sum_of(limit);
      length.add(sum_of(loop.start), -1);
      if (!length.known || std::any_of(length.factors.begin(), length.factors.end(),
                                       [](const auto& factor) { return factor.second > 0; }))
        continue;
      const std::int64_t count = length.constant <= 0 ? 0 : (length.constant - 1) / *step + 1;
      most = std::min(most.value_or(count), count);
    }
    return most && *most > 0 ? index(name, *most) : DigitSum::unknown();
  }

  /// A sum divided by a number: digits above it, where the others cannot reach it.
  [[nodiscard]] DigitSum quotient(const DigitSum& sum, std::int64_t by) {
    if (by <= 0 || sum.constant < 0) return DigitSum::unknown();
    for (const auto& [digit, factor] : sum.factors) {
      const auto values = count(digit);
      if (!values || factor < 0) return DigitSum::unknown();
      if (factor % by == 0 || by % factor != 0) continue;
      const std::int64_t lower = by / factor;
      if (lower >= *values) continue;
      if (*values % lower != 0) return undivided(sum, by);
      split(digit, lower);
      return DigitSum::unknown(); // until all sums are made anew
    }
    DigitSum above = constant(sum.constant / by), below = constant(sum.constant % by);
    for (const auto& [digit, factor] : sum.factors)
      (factor % by == 0 ? above : below).factors[digit] = factor % by == 0 ? factor / by : factor;
    const auto reach = largest(below);
    return reach && *reach < by ? above : undivided(sum, by);
  }

  [[nodiscard]] DigitSum remainder(const DigitSum& sum, std::int64_t by) {
    DigitSum result = sum;
    result.add(quotient(sum, by), -by);
    return result;
  }

  /// A quotient of which no more is known than what it is the quotient of: with its remainder it cancels out.
  [[nodiscard]] DigitSum undivided(const DigitSum& sum, std::int64_t by) {
    std::string name = std::to_string(sum.constant);
    for (const auto& [digit, factor] : sum.factors)
      name += '+' + std::to_string(factor) + '*' + std::to_string(digit);
    name += '/' + std::to_string(by);
    const auto found = indices_.find(name);
    if (found != indices_.end()) return found->second;
    DigitSum result;
    result.factors[counts_.size()] = 1;
    counts_.push_back(0);
    return indices_[name] = result;
  }

  /// Splits a digit: its values below `lower` stay, another one counts how many times `lower` it is.
  void split(std::size_t digit, std::int64_t lower) {
    const std::size_t upper = counts_.size();
    counts_.push_back(counts_[digit] / lower);
    counts_[digit] = lower;
    for (auto& [name, sum] : indices_)
      if (const auto own = sum.factors.find(digit); own != sum.factors.end())
        sum.factors[upper] = own->second * lower;
    std::erase_if(indices_, [](const auto& entry) { return entry.first.find('/') != std::string::npos; });
    ++splits_;
  }

  LaunchGeometry geometry_;
  const Symbols& values_;
  std::vector<std::int64_t> counts_;
  std::map<std::string, DigitSum, std::less<>> indices_;
  std::vector<DigitSum> negative_;
  std::size_t splits_ = 0;
};

} // namespace mtmc::detail
