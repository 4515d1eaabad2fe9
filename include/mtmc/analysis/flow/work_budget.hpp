#pragma once

#include <mtmc/requirements.hpp>

#include <cstdint>

/// \file
/// How much an analysis may compute.

namespace mtmc::inline MTMC_ABI {

/// Steps that may still be spent on one text, each some tens of nanoseconds: rows of constraint systems that
/// are looked at, pairs of accesses that are compared, facts of launches. A count and not a time, so that the
/// same text gets the same answers on every machine. What needs more steps than are left is not proved, and
/// legality then answers no.
class WorkBudget {
public:
  /// Some seconds at most; 1,000 lines of loop nests take about 2,000,000.
  static constexpr std::int64_t max_steps = 100'000'000;

  /// A budget of so many steps.
  explicit WorkBudget(std::int64_t steps = max_steps) noexcept : left_(steps) {}

  /// Takes steps off; false if there are not that many left, now and ever after.
  bool spend(std::int64_t steps) noexcept {
    left_ = left_ < steps ? 0 : left_ - steps;
    return left_ > 0;
  }
  /// Nothing is left: some answers are "not proved" for want of steps.
  [[nodiscard]] bool exhausted() const noexcept { return left_ <= 0; }
  /// Steps that are left.
  [[nodiscard]] std::int64_t left() const noexcept { return left_; }

private:
  std::int64_t left_;
};

} // namespace mtmc
