#pragma once

#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Ends of the intervals in which statistics of a sample lie for most other samples like it: percentiles of a
/// bootstrap (Efron, 1979). `statistics(drawn)` gives the values, always as many, for the members with these
/// numbers, drawn with repetition from `count` of them; `confidence` in (0, 1) is the part of the `draws`
/// inside of an interval; draws in which a value is no number are left out for it. Nothing without members.
/// It knows of others only what these tell: with fewer than about ten of them intervals are too narrow.
template <class Statistics>
[[nodiscard]] std::vector<std::pair<double, double>>
bootstrap_intervals(std::size_t count, int draws, double confidence, PhiloxEngine random,
                    const Statistics& statistics) {
  if (count == 0 || draws <= 0) return {};
  std::vector<std::vector<double>> values;
  std::vector<std::size_t> drawn(count);
  for (int i = 0; i < draws; ++i) {
    for (std::size_t& one : drawn) one = static_cast<std::size_t>(random.below(count));
    const auto given = statistics(std::span<const std::size_t>(drawn));
    values.resize(std::size(given));
    std::size_t at = 0;
    for (const double value : given) {
      if (std::isfinite(value)) values[at].push_back(value);
      ++at;
    }
  }
  std::vector<std::pair<double, double>> intervals;
  for (auto& one : values) {
    if (one.empty()) {
      intervals.emplace_back(0, 0);
      continue;
    }
    std::sort(one.begin(), one.end());
    const auto outside =
        static_cast<std::size_t>(std::floor((1 - confidence) / 2 * static_cast<double>(one.size() - 1)));
    intervals.emplace_back(one[outside], one[one.size() - 1 - outside]);
  }
  return intervals;
}

} // namespace mtmc::detail
