#pragma once
/// Definitions of evaluator/protocol/secret_sizes.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/protocol/secret_sizes.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Of fewer, two have too much in common by chance.
inline constexpr std::size_t fewest_sizes = 3;

/// Symbols that may take other values, always the same one as each other.
struct FreeSymbols {
  std::vector<std::string> names;
  /// All listed values are multiples of this.
  std::int64_t step = 1;
  std::int64_t largest = 1;
};

/// What a symbol is at each listed size.
[[nodiscard]] inline std::vector<std::int64_t> values_of(const Task& task, const std::string& name) {
  std::vector<std::int64_t> values;
  for (const auto& size : task.sizes) {
    const auto found = size.symbols.find(name);
    if (found == size.symbols.end()) return {};
    values.push_back(found->second);
  }
  return values;
}

/// Whether `relation(a, b)` is the same at all sizes.
template <class Relation>
[[nodiscard]] bool is_constant(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                               const Relation& relation) {
  for (std::size_t i = 1; i < a.size(); ++i)
    if (relation(a[i], b[i]) != relation(a[0], b[0])) return false;
  return true;
}

/// Whether what is known of two symbols would be broken by changing one of them alone.
[[nodiscard]] inline bool are_related(const std::vector<std::int64_t>& a,
                                      const std::vector<std::int64_t>& b) {
  bool divides = true;
  bool divided = true;
  bool trivial = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    divides = divides && b[i] % a[i] == 0;
    divided = divided && a[i] % b[i] == 0;
    trivial = trivial && (a[i] == 1 || b[i] == 1);
  }
  return ((divides || divided) && !trivial) ||
         is_constant(a, b, [](std::int64_t x, std::int64_t y) { return x - y; }) ||
         is_constant(a, b, [](std::int64_t x, std::int64_t y) { return x * y; });
}

[[nodiscard]] inline std::vector<FreeSymbols> free_symbols(const Task& task) {
  std::vector<std::pair<FreeSymbols, std::vector<std::int64_t>>> groups;
  for (const auto& [name, first] : task.sizes.front().symbols) {
    auto values = values_of(task, name);
    if (values.empty() || *std::min_element(values.begin(), values.end()) < 1) continue;
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values[0]; }))
      continue;
    const auto alike =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.second == values; });
    if (alike != groups.end()) {
      alike->first.names.push_back(name);
      continue;
    }
    FreeSymbols group;
    group.names = {name};
    group.step = std::accumulate(values.begin(), values.end(), std::int64_t{0},
                                 [](std::int64_t a, std::int64_t b) { return std::gcd(a, b); });
    group.largest = *std::max_element(values.begin(), values.end());
    groups.emplace_back(std::move(group), std::move(values));
  }
  std::vector<FreeSymbols> result;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    bool related = false;
    for (std::size_t j = 0; j < groups.size(); ++j)
      related = related || (i != j && are_related(groups[i].second, groups[j].second));
    if (!related) result.push_back(groups[i].first);
  }
  return result;
}

/// How a secret size lies to a listed one. Kinds take turns, because what is wrong with a kernel is often
/// wrong for one kind only.
enum class SecretKind { next, somewhat_less, tiny, multiple, below_multiple, larger, beyond_largest, near };
inline constexpr std::size_t secret_kinds = 8;

/// Another value of a symbol that is `listed` at some size.
[[nodiscard]] inline std::int64_t another_value(SecretKind kind, std::int64_t listed,
                                                const FreeSymbols& symbol, PhiloxEngine& random) {
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  const auto multiple = [&] {
    const auto of = std::int64_t{8} << below(5);
    return std::max<std::int64_t>(1, listed / of + below(2)) * of;
  };
  std::int64_t value = listed;
  switch (kind) {
  case SecretKind::next:
    value = listed + (below(2) == 0 ? symbol.step : -symbol.step);
    break;
  case SecretKind::somewhat_less:
    value = 1 + below(listed);
    break;
  case SecretKind::tiny:
    value = 1 + below(8);
    break;
  case SecretKind::multiple:
    value = multiple();
    break;
  case SecretKind::below_multiple:
    value = multiple() - 1;
    break;
  case SecretKind::larger:
    value = listed + 1 + below(std::min(listed, symbol.largest));
    break;
  case SecretKind::beyond_largest:
    value = symbol.largest + symbol.step * (1 + below(16));
    break;
  case SecretKind::near:
    value = listed + symbol.step * (below(2) == 0 ? 2 + below(2) : -2 - below(2));
    break;
  }
  value -= value % symbol.step;
  return std::max(value, symbol.step);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<ProblemSize> draw_secret_sizes(const Task& task, std::uint64_t key,
                                                       std::size_t count) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  if (symbols.empty()) return drawn;
  std::set<Symbols> known;
  for (const auto& size : task.sizes) known.insert(size.symbols);
  PhiloxEngine random(key, 0x51ce);
  const auto& main = *task.main_size();
  for (std::size_t attempt = 0; attempt < 8 * count && drawn.size() < count; ++attempt) {
    // Half of them near the size that is timed, where special cases are most tempting.
    ProblemSize size = random.below(2) == 0 ? main : task.sizes[random.below(task.sizes.size())];
    size.weight = 0;
    const auto kind = static_cast<detail::SecretKind>(drawn.size() % detail::secret_kinds);
    const bool alike = symbols.size() > 1 && random.below(4) == 0;
    std::int64_t common = 0;
    for (const auto& symbol : symbols) {
      // One alone, or several at once.
      if (!alike && symbols.size() > 1 && random.below(3) == 0) continue;
      auto& first = size.symbols[symbol.names.front()];
      auto value = detail::another_value(kind, first, symbol, random);
      if (alike && common > 0) value = std::max(common - common % symbol.step, symbol.step);
      common = value;
      for (const auto& name : symbol.names) size.symbols[name] = value;
    }
    if (known.insert(size.symbols).second) drawn.push_back(std::move(size));
  }
  return drawn;
}

MTMC_INLINE std::vector<ProblemSize>
draw_large_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                 std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  if (symbols.empty()) return drawn;
  std::set<Symbols> seen;
  for (const auto& size : known) seen.insert(size.symbols);
  PhiloxEngine random(key, 0x1a46e);
  constexpr std::size_t attempts = 100;
  constexpr double farthest = 8;
  for (std::size_t attempt = 0; attempt < attempts * count && drawn.size() < count; ++attempt) {
    auto size = *task.main_size();
    size.weight = 0;
    for (const auto& symbol : symbols) {
      const double most = farthest * static_cast<double>(symbol.largest);
      auto value = static_cast<std::int64_t>(std::exp2(random.uniform() * std::log2(most)));
      value = std::max(value - value % symbol.step, symbol.step);
      for (const auto& name : symbol.names) size.symbols[name] = value;
    }
    if (!seen.contains(size.symbols) && is_wanted(size)) {
      seen.insert(size.symbols);
      drawn.push_back(std::move(size));
    }
  }
  return drawn;
}

namespace detail {

/// All sizes that a change makes of the listed ones, of one symbol or of all, in an order by chance; those
/// that are wanted, at most `count`. `change`: another value, from a symbol's value and step.
template <class Change>
[[nodiscard]] std::vector<ProblemSize>
changed_sizes(const Task& task, const std::vector<ProblemSize>& known, PhiloxEngine random, std::size_t count,
              const std::function<bool(const ProblemSize&)>& is_wanted, std::span<const Change> changes) {
  std::vector<ProblemSize> all;
  if (task.sizes.size() < fewest_sizes) return all;
  const auto symbols = free_symbols(task);
  std::set<Symbols> seen;
  for (const auto& size : known) seen.insert(size.symbols);
  const auto add = [&](ProblemSize size, std::span<const FreeSymbols> changed, const Change& change) {
    size.weight = 0;
    for (const auto& symbol : changed)
      for (const auto& name : symbol.names) {
        auto& value = size.symbols[name];
        const auto other = change(value, symbol.step);
        value = std::max(other - other % symbol.step, symbol.step);
      }
    if (seen.insert(size.symbols).second && is_wanted(size)) all.push_back(std::move(size));
  };
  for (const auto& size : task.sizes)
    for (std::size_t first = 0; first <= symbols.size(); ++first) {
      // One alone; behind the last one, all at once.
      const auto changed = first < symbols.size() ? std::span(symbols).subspan(first, 1) : std::span(symbols);
      for (const auto& change : changes) add(size, changed, change);
    }
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  all.resize(std::min(all.size(), count));
  return all;
}

using SizeChange = std::function<std::int64_t(std::int64_t value, std::int64_t step)>;

} // namespace detail

MTMC_INLINE std::vector<ProblemSize>
draw_nearest_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                   std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<detail::SizeChange> changes;
  for (const int more : {-2, -1, 1, 2})
    changes.push_back([more](std::int64_t value, std::int64_t step) { return value + more * step; });
  changes.push_back([](std::int64_t value, std::int64_t) { return 2 * value; });
  return detail::changed_sizes<detail::SizeChange>(task, known, PhiloxEngine(key, 0x5ee9), count, is_wanted,
                                                   changes);
}

MTMC_INLINE std::vector<ProblemSize>
draw_round_sizes(const Task& task, const std::vector<ProblemSize>& known, std::uint64_t key,
                 std::size_t count, const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<detail::SizeChange> changes;
  for (const std::int64_t of : {8, 16, 32, 64, 128})
    for (const std::int64_t beyond : {0, 1})
      changes.push_back([=](std::int64_t value, std::int64_t) { return (value / of + beyond) * of; });
  return detail::changed_sizes<detail::SizeChange>(task, known, PhiloxEngine(key, 0x20d5), count, is_wanted,
                                                   changes);
}

} // namespace mtmc
