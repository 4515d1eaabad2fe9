#pragma once
/// Which sizes and inputs the calls of an audit have, in turn.

#include <mtmc/evaluator/protocol/calls_in_a_row.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>
#include <mtmc/evaluator/protocol/evaluation_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Sizes of an audit that take turns.
class SizesInTurn {
public:
  /// Those from `first` on and before `last`, at most so many at once.
  SizesInTurn(std::size_t first, std::size_t last, std::size_t at_once) : at_once_(at_once) {
    for (auto size = first; size < last; ++size) sizes_.push_back(size);
  }

  /// Whether none is left.
  [[nodiscard]] bool empty() const noexcept { return sizes_.empty(); }

  /// Those whose turn it is.
  [[nodiscard]] std::vector<std::size_t> next() {
    std::vector<std::size_t> chosen(std::min(at_once_, sizes_.size()));
    for (auto& size : chosen) size = sizes_[turn_++ % sizes_.size()];
    return chosen;
  }

  /// Has no more turns from now on.
  void leave_out(std::size_t size) { std::erase(sizes_, size); }

private:
  std::vector<std::size_t> sizes_;
  std::size_t at_once_;
  std::size_t turn_ = 0;
};

/// The sizes that rows of an audit take turns at: those that are small, and those that are too large for many
/// at once. No more at once than there may be buffers.
[[nodiscard]] inline SizesInTurn small_sizes_of(const EvaluationContext& audit) {
  constexpr std::size_t at_once = 32;
  return {0, audit.task.large, std::min(at_once, max_calls_of_a_row(audit))};
}
[[nodiscard]] inline SizesInTurn large_sizes_of(const EvaluationContext& audit) {
  constexpr std::size_t at_once = 6;
  return {audit.task.large, audit.task.layouts.size(), std::min(at_once, max_calls_of_a_row(audit))};
}

/// The calls of one row of an audit, one at each of some sizes; two of five have a structure, and the others
/// go through all distributions.
[[nodiscard]] inline std::vector<CaseId>
cases_of_an_audit(const EvaluationContext& audit, std::span<const std::size_t> sizes, std::uint64_t serial) {
  constexpr std::size_t others = all_distributions.size() - 1;
  const auto& defences = audit.judge.defences();
  std::vector<CaseId> cases;
  for (std::size_t call = 0; call < sizes.size(); ++call) {
    const auto turn = serial * 7 + call;
    auto distribution =
        turn % 5 < 2 ? Distribution::structured : all_distributions[(turn / 5 * 3 + turn % 5 - 2) % others];
    if (is_far(distribution) ? !defences.far_distributions : !defences.distributions)
      distribution = Distribution::normal;
    cases.push_back(
        {sizes[call], distribution, false, (serial + 1) << 16 | (call + serial * 5) % (1U << 16)});
  }
  return cases;
}

} // namespace mtmc::detail
