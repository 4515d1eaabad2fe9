#pragma once
/// Definitions of evaluator/protocol/secret_sizes.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/protocol/secret_sizes.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/shuffle.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
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
  /// Symbols that it always divides: theirs change by the same factor.
  std::vector<std::string> multiples;
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

/// The largest value of a symbol that is no more than another one; at least one step.
[[nodiscard]] inline std::int64_t in_steps(std::int64_t value, const FreeSymbols& symbol) noexcept {
  return std::max(value - value % symbol.step, symbol.step);
}

/// Gives a symbol another value, in steps, at a size.
inline void set_symbol(ProblemSize& size, const FreeSymbols& symbol, std::int64_t wanted) {
  const auto value = in_steps(wanted, symbol);
  const auto old = size.symbols[symbol.names.front()];
  for (const auto& name : symbol.names) size.symbols[name] = value;
  for (const auto& name : symbol.multiples) size.symbols[name] = size.symbols[name] / old * value;
}

/// Whether one symbol divides the other at all sizes and is mostly equal to it, as the height and the width
/// of a convolution's kernel are: likelier by chance than on purpose, so that both may change together.
[[nodiscard]] inline bool is_mostly_equal_divisor(const std::vector<std::int64_t>& divisor,
                                                  const std::vector<std::int64_t>& of) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i < divisor.size(); ++i) {
    if (of[i] % divisor[i] != 0) return false;
    equal += of[i] == divisor[i] ? 1 : 0;
  }
  return 2 * equal > divisor.size();
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
    std::vector<std::size_t> related;
    for (std::size_t j = 0; j < groups.size(); ++j)
      if (i != j && are_related(groups[i].second, groups[j].second)) related.push_back(j);
    if (related.size() > 1) continue;
    auto symbol = groups[i].first;
    if (!related.empty()) {
      const auto& [other, values] = groups[related.front()];
      if (!is_mostly_equal_divisor(groups[i].second, values)) continue;
      symbol.multiples = other.names;
    }
    result.push_back(std::move(symbol));
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
  return in_steps(value, symbol);
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
    const auto kind = static_cast<detail::SecretKind>(attempt % detail::secret_kinds);
    const bool alike = symbols.size() > 1 && random.below(4) == 0;
    std::int64_t common = 0;
    for (const auto& symbol : symbols) {
      // One alone, or several at once.
      if (!alike && symbols.size() > 1 && random.below(3) == 0) continue;
      auto value = detail::another_value(kind, size.symbols[symbol.names.front()], symbol, random);
      if (alike && common > 0) value = detail::in_steps(common, symbol);
      common = value;
      detail::set_symbol(size, symbol, value);
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
      detail::set_symbol(size, symbol, value);
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
    for (const auto& symbol : changed) {
      const auto other = change(size.symbols[symbol.names.front()], symbol.step);
      set_symbol(size, symbol, other);
    }
    if (seen.insert(size.symbols).second && is_wanted(size)) all.push_back(std::move(size));
  };
  for (const auto& size : task.sizes)
    for (std::size_t first = 0; first <= symbols.size(); ++first) {
      // One alone; behind the last one, all at once.
      const auto changed = first < symbols.size() ? std::span(symbols).subspan(first, 1) : std::span(symbols);
      for (const auto& change : changes) add(size, changed, change);
    }
  shuffle(all, random);
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

namespace detail {

/// So many times its largest listed value a symbol may be.
inline constexpr double farthest_symbol = 32;

/// A small value of a symbol: by turns the least that is listed, the next, a few steps, and any up to a
/// quarter of the largest, evenly in its logarithm.
[[nodiscard]] inline std::int64_t small_value(const Task& task, const FreeSymbols& symbol,
                                              PhiloxEngine& random) {
  std::vector<std::int64_t> values = values_of(task, symbol.names.front());
  std::sort(values.begin(), values.end());
  const auto turn = random.below(4);
  if (turn == 2) return symbol.step * static_cast<std::int64_t>(1 + random.below(4));
  if (turn == 3)
    return static_cast<std::int64_t>(
        std::exp2(random.uniform() * std::log2(std::max<std::int64_t>(1, symbol.largest / 4))));
  return values[std::min<std::size_t>(turn, values.size() - 1)];
}

/// Values of one symbol at which what a number says of it may begin, end or repeat: itself first. `largest`:
/// what is listed of any symbol.
[[nodiscard]] inline std::vector<std::int64_t> values_at(std::int64_t number, std::int64_t largest) {
  std::vector<std::int64_t> values{number, number + 1, number - 1, 2 * number, 2 * number + 1};
  if (number < largest)
    for (const std::int64_t beyond : {0, 1, -1}) values.push_back(largest / number * number + beyond);
  return values;
}

} // namespace detail

MTMC_INLINE std::vector<ProblemSize>
draw_long_sizes(const Task& task, std::uint64_t key, std::size_t count,
                const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  if (symbols.empty()) return drawn;
  PhiloxEngine random(key, 0x1046);
  std::set<Symbols> seen;
  constexpr std::size_t attempts = 20;
  for (std::size_t attempt = 0; attempt < attempts * count && drawn.size() < count; ++attempt) {
    auto size = *task.main_size();
    size.weight = 0;
    const auto long_one = attempt % symbols.size();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const auto& symbol = symbols[i];
      const auto far =
          static_cast<std::int64_t>(static_cast<double>(symbol.largest) *
                                    std::exp2(random.uniform() * std::log2(detail::farthest_symbol)));
      auto value = i == long_one ? far : detail::small_value(task, symbol, random);
      // Every other long one is a power of two, which a kernel may have a path of its own for.
      if (i == long_one && random.below(2) == 0)
        value = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
      detail::set_symbol(size, symbol, value);
    }
    if (seen.insert(size.symbols).second && is_wanted(size)) drawn.push_back(std::move(size));
  }
  return drawn;
}

namespace detail {

/// One with a symbol a little beyond 2^16, which is listed nowhere as large as that, and all others small.
[[nodiscard]] inline std::optional<ProblemSize>
size_beyond_short(const Task& task, std::span<const FreeSymbols> symbols, PhiloxEngine& random) {
  constexpr std::int64_t beyond = std::int64_t{1} << 16;
  const auto& long_one = symbols[random.below(symbols.size())];
  if (long_one.largest > beyond) return std::nullopt;
  auto size = *task.main_size();
  for (const auto& symbol : symbols) set_symbol(size, symbol, small_value(task, symbol, random));
  const auto more = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(beyond) / 4));
  set_symbol(size, long_one, beyond + more + long_one.step);
  return size;
}

/// One with a little more than 2^24 elements in the largest buffer: the main size with one symbol larger, or
/// with all of them.
[[nodiscard]] inline std::optional<ProblemSize>
size_beyond_float(const Task& task, std::span<const FreeSymbols> symbols, PhiloxEngine& random,
                  const std::function<double(const ProblemSize&)>& elements_at) {
  constexpr double beyond = 0x1p24;
  auto size = *task.main_size();
  const auto first = random.below(symbols.size() + 1);
  const auto grown = first < symbols.size() ? symbols.subspan(first, 1) : symbols;
  const double wanted = beyond * (1 + random.uniform() / 8);
  constexpr int attempts = 8;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double elements = elements_at(size);
    if (elements > beyond) return size;
    if (!(elements > 0)) return std::nullopt;
    const double factor = std::pow(wanted / elements, 1 / static_cast<double>(grown.size()));
    for (const auto& symbol : grown) {
      const auto value = static_cast<double>(size.symbols[symbol.names.front()]);
      set_symbol(size, symbol, static_cast<std::int64_t>(std::ceil(value * factor)) + symbol.step);
    }
  }
  return std::nullopt;
}

} // namespace detail

MTMC_INLINE std::vector<ProblemSize>
draw_vast_sizes(const Task& task, std::uint64_t key,
                const std::function<double(const ProblemSize&)>& elements_at,
                const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  if (symbols.empty()) return drawn;
  PhiloxEngine random(key, 0x7a57);
  const auto draw = [&](auto&& kind) {
    constexpr int attempts = 20;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      auto size = kind();
      if (!size || !is_wanted(*size)) continue;
      size->weight = 0;
      drawn.push_back(std::move(*size));
      return;
    }
  };
  draw([&] { return detail::size_beyond_short(task, symbols, random); });
  const bool listed = std::any_of(task.sizes.begin(), task.sizes.end(),
                                  [&](const ProblemSize& size) { return elements_at(size) > 0x1p24; });
  if (!listed) draw([&] { return detail::size_beyond_float(task, symbols, random, elements_at); });
  return drawn;
}

namespace detail {

/// Sizes at which one number may matter.
class SizesAt {
public:
  /// All must outlive it.
  SizesAt(const Task& task, std::span<const FreeSymbols> symbols, PhiloxEngine& random,
          const std::function<bool(const ProblemSize&)>& is_wanted)
      : task_(task), symbols_(symbols), random_(random), is_wanted_(is_wanted) {}

  /// By turns such at which one symbol has to do with the number, the product of two has, or all symbols
  /// have: the number itself first.
  [[nodiscard]] std::vector<ProblemSize> of(std::int64_t number) {
    std::array<std::vector<ProblemSize>, 3> kinds;
    std::int64_t largest = 1;
    for (const auto& symbol : symbols_) largest = std::max(largest, symbol.largest);
    for (const auto value : values_at(number, largest))
      for (std::size_t i = 0; i < symbols_.size(); ++i)
        if (static_cast<double>(value) <= farthest_symbol * static_cast<double>(symbols_[i].largest))
          add(kinds[0], any_listed(), {{i, value}});
    for (const std::int64_t beyond : {0, 1, -1}) {
      for (const auto& [i, j] : pairs()) add_products(kinds[1], i, j, number, beyond);
      Values all;
      for (std::size_t i = 0; i < symbols_.size(); ++i) all.emplace_back(i, number + beyond);
      add(kinds[2], *task_.main_size(), all);
    }
    return by_turns(kinds);
  }

private:
  using Values = std::vector<std::pair<std::size_t, std::int64_t>>;

  [[nodiscard]] const ProblemSize& any_listed() { return task_.sizes[random_.below(task_.sizes.size())]; }

  /// All pairs of symbols, in an order by chance.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> pairs() {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      for (std::size_t j = i + 1; j < symbols_.size(); ++j) all.emplace_back(i, j);
    shuffle(all, random_);
    return all;
  }

  /// Whose product is the number, or a little more or less.
  void add_products(std::vector<ProblemSize>& sizes, std::size_t i, std::size_t j, std::int64_t number,
                    std::int64_t beyond) {
    const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(number)));
    for (const auto first : {root, small_value(task_, symbols_[i], random_)})
      add(sizes, any_listed(), {{i, first}, {j, (number + first - 1) / first + beyond}});
  }

  /// The size with other values of some symbols; those of the rest are its own or small ones, whichever is
  /// wanted.
  void add(std::vector<ProblemSize>& sizes, const ProblemSize& listed, const Values& values) {
    constexpr int attempts = 4;
    for (int attempt = 0; attempt < attempts; ++attempt) {
      auto size = listed;
      size.weight = 0;
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        const auto given =
            std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.first == i; });
        const auto& symbol = symbols_[i];
        if (given != values.end())
          set_symbol(size, symbol, given->second);
        else if (attempt > 0 || random_.below(2) == 0)
          set_symbol(size, symbol, small_value(task_, symbol, random_));
      }
      if (!is_wanted_(size)) continue;
      sizes.push_back(std::move(size));
      return;
    }
  }

  const Task& task_;
  std::span<const FreeSymbols> symbols_;
  PhiloxEngine& random_;
  const std::function<bool(const ProblemSize&)>& is_wanted_;
};

} // namespace detail

MTMC_INLINE std::vector<ProblemSize>
draw_alike_sizes(const Task& task, std::uint64_t key, std::size_t count,
                 const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  if (symbols.size() < 2) return drawn;
  PhiloxEngine random(key, 0xa11e);
  std::set<Symbols> seen;
  constexpr std::size_t attempts = 8;
  constexpr std::int64_t small = 24;
  for (std::size_t attempt = 0; attempt < attempts * count && drawn.size() < count; ++attempt) {
    auto size = *task.main_size();
    size.weight = 0;
    const auto& one = symbols[random.below(symbols.size())];
    const auto listed = detail::values_of(task, one.names.front());
    const auto any = [&](std::int64_t most) {
      return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
    };
    const auto value = attempt % 3 == 0   ? listed[random.below(listed.size())]
                       : attempt % 3 == 1 ? any(small)
                                          : any(one.largest);
    for (const auto& symbol : symbols) detail::set_symbol(size, symbol, value);
    if (seen.insert(size.symbols).second && is_wanted(size)) drawn.push_back(std::move(size));
  }
  return drawn;
}

MTMC_INLINE std::vector<ProblemSize>
exchanged_sizes(const Task& task, const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> sizes;
  if (task.sizes.size() < detail::fewest_sizes) return sizes;
  std::set<Symbols> seen;
  for (const auto& size : task.sizes) seen.insert(size.symbols);
  for (const auto& symbol : detail::free_symbols(task)) {
    if (symbol.multiples.empty()) continue;
    for (auto size : task.sizes) {
      const auto one = size.symbols[symbol.names.front()];
      const auto other = size.symbols[symbol.multiples.front()];
      for (const auto& name : symbol.names) size.symbols[name] = other;
      for (const auto& name : symbol.multiples) size.symbols[name] = one;
      size.weight = 0;
      if (seen.insert(size.symbols).second && is_wanted(size)) sizes.push_back(std::move(size));
    }
  }
  return sizes;
}

MTMC_INLINE std::vector<ProblemSize> draw_sizes_at(const Task& task, std::span<const std::int64_t> numbers,
                                                   std::uint64_t key, std::size_t count,
                                                   const std::function<bool(const ProblemSize&)>& is_wanted) {
  std::vector<ProblemSize> drawn;
  if (task.sizes.size() < detail::fewest_sizes) return drawn;
  const auto symbols = detail::free_symbols(task);
  PhiloxEngine random(key, 0xd1c7);
  detail::SizesAt sizes_at(task, symbols, random, is_wanted);
  // Powers of two are tiles and shifts mostly.
  std::vector<std::int64_t> ranked(numbers.begin(), numbers.end());
  std::erase_if(ranked, [](std::int64_t number) { return number < 2; });
  std::stable_partition(ranked.begin(), ranked.end(), [](std::int64_t number) {
    return !std::has_single_bit(static_cast<std::uint64_t>(number));
  });
  std::vector<std::vector<ProblemSize>> of_numbers;
  for (const auto number : ranked) of_numbers.push_back(sizes_at.of(number));
  std::set<Symbols> seen;
  for (auto& size : detail::by_turns(of_numbers))
    if (drawn.size() < count && seen.insert(size.symbols).second) drawn.push_back(std::move(size));
  return drawn;
}

} // namespace mtmc
