#pragma once
/// Which sizes are checked on which distributions.

#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What one call at a size costs.
struct SizeCost {
  /// Seconds of the reference.
  double seconds = 0;
  /// Bytes of all buffers.
  double bytes = 0;
  /// Whether it is timed, which is one more check on normal inputs, many times over.
  bool timed = false;
  /// Whether it is checked at all.
  bool checked = true;
  /// Whether it is not listed.
  bool secret = false;
};

/// Whether a size is cheap enough for everything: calls of up to 2 ms on up to 1 MiB.
[[nodiscard]] constexpr bool is_cheap(const SizeCost& cost) noexcept {
  return cost.seconds <= 2e-3 && cost.bytes <= 0x1p20;
}
/// Sizes of rows of calls, those that are met in rows only included, take so many bytes at most: on a device
/// that makes and compares contents itself, as many as a cheap size, and some more.
[[nodiscard]] constexpr double max_row_bytes(bool on_device) noexcept { return on_device ? 0x1p21 : 0x1p16; }

/// Whether a size is cheap enough for more than the necessary: calls of up to 20 ms on up to 16 MiB.
[[nodiscard]] constexpr bool is_medium(const SizeCost& cost) noexcept {
  return cost.seconds <= 20e-3 && cost.bytes <= 0x1p24;
}

/// Whether a size that is not listed is cheap enough to be checked: calls of up to 2 ms on up to 4 MiB.
[[nodiscard]] constexpr bool is_cheap_secret(const SizeCost& cost) noexcept {
  return cost.seconds <= 2e-3 && cost.bytes <= 0x1p22;
}

/// Whether a secret size that is about as large as the one that is timed is cheap enough to be checked once:
/// calls of up to 50 ms.
[[nodiscard]] constexpr bool is_large_secret(const SizeCost& cost) noexcept { return cost.seconds <= 50e-3; }

/// One check: a size on a distribution, and whether it is run twice, on two poisons.
struct PlannedCheck {
  /// Place in `Task::sizes`.
  std::size_t size = 0;
  /// Of the inputs.
  Distribution distribution = Distribution::normal;
  /// Run a second time on another poison.
  bool twice = true;
  /// What lies next to the buffers in the second run.
  BufferGuard guard = BufferGuard::red_zones;
  /// Whether the second run takes place in a fresh process.
  bool fresh_process = false;
  /// Whether the second run follows one on other inputs, in the same process and the same buffers.
  bool after_another = false;

  friend bool operator==(const PlannedCheck&, const PlannedCheck&) = default; ///< member by member
};

/// The checks of one evaluation, cheapest size first, so that most wrong candidates fail in a millisecond.
///
/// Sizes of up to 2 ms and 1 MiB see every distribution, those of up to 20 ms and 16 MiB five, larger ones
/// two; sizes that are not listed, two up to 1 MiB, the second one of slices or structured, else one.
/// `normal` is always among them, the others take turns; a distribution that no size would see goes to the
/// cheapest. Timed sizes of more than 50 ms leave `normal` to the timed runs. Sizes of more than 20 ms need
/// not be run twice. Where a size is, there is no memory behind the buffers in the second run of its first
/// check, and, for sizes that see every distribution, none before them in that of its second check; the
/// second run follows one on other inputs there, and in every check of a size that sees all distributions.
/// The last of all second runs takes place in a fresh process. `defences` may leave out distributions.
/// `turn`: with which of the other distributions those sizes begin that do not see all of them.
[[nodiscard]] inline std::vector<PlannedCheck>
plan_checks(std::span<const SizeCost> sizes, const EvaluatorDefences& defences = {}, std::uint64_t turn = 0) {
  std::vector<std::size_t> order;
  for (std::size_t size = 0; size < sizes.size(); ++size)
    if (sizes[size].checked) order.push_back(size);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sizes[a].bytes != sizes[b].bytes ? sizes[a].bytes < sizes[b].bytes
                                            : sizes[a].seconds < sizes[b].seconds;
  });
  constexpr std::size_t others = all_distributions.size() - 1;
  std::vector<PlannedCheck> plan;
  std::array<bool, all_distributions.size()> used{};
  for (const auto size : order) {
    const auto& cost = sizes[size];
    const bool medium = is_medium(cost);
    const std::size_t listed = is_cheap(cost) ? others : medium ? 4 : 1;
    const std::size_t more = !cost.secret ? listed : is_cheap(cost) ? 1 : 0;
    const bool expensive = cost.seconds > 50e-3;
    if (!(expensive && cost.timed)) plan.push_back({size, Distribution::normal, medium});
    used[0] = true;
    for (std::size_t i = 0; i < more; ++i) {
      const std::size_t which = 1 + (more == others ? i : turn++ % others);
      // What is wrong about rows is likelier to be wrong at sizes of its own than anything else.
      const auto distribution = !cost.secret    ? all_distributions[which]
                                : turn % 3 == 0 ? Distribution::slices
                                : turn % 3 == 1 ? Distribution::structured
                                                : Distribution::far_slices;
      plan.push_back({size, distribution, medium});
      if (!cost.secret) used[which] = true;
    }
  }
  if (order.empty()) return plan;
  std::vector<PlannedCheck> missing;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) missing.push_back({order.front(), all_distributions[i], is_medium(sizes[order.front()])});
  std::size_t at = 0;
  while (at < plan.size() && plan[at].size == order.front()) ++at;
  plan.insert(plan.begin() + static_cast<std::ptrdiff_t>(at), missing.begin(), missing.end());
  std::erase_if(plan, [&](const PlannedCheck& check) {
    if (check.distribution == Distribution::normal) return false;
    return is_far(check.distribution) ? !defences.far_distributions : !defences.distributions;
  });

  std::vector<int> checks_of(sizes.size(), 0);
  PlannedCheck* last_second_run = nullptr;
  for (auto& check : plan) {
    if (!check.twice) continue;
    const int earlier = checks_of[check.size]++;
    check.after_another = earlier == 0 || is_cheap(sizes[check.size]);
    if (earlier == 0) check.guard = BufferGuard::page_behind;
    if (earlier == 1 && is_cheap(sizes[check.size])) check.guard = BufferGuard::page_before;
    last_second_run = &check;
  }
  if (last_second_run != nullptr) last_second_run->fresh_process = true;
  return plan;
}

} // namespace mtmc
