#pragma once
/// How actions are chosen from a policy's distribution, and in which order equals come.

#include <mtmc/core/action.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How the next actions come from a distribution: the likeliest, or drawn by it.
enum class Selection { argmax, sample };

namespace detail {
inline constexpr EnumName<Selection> selection_names[] = {
    {Selection::argmax, "argmax"},
    {Selection::sample, "sample"},
};
} // namespace detail
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Selection>> enum_names(Selection) noexcept {
  return detail::selection_names;
}

/// Numbers that differ by less than this, relative to the larger one, are a tie.
inline constexpr double near_tie = 1e-9;

/// Indices of `values` from the largest to the smallest; near-ties in the order of their keys, so that the
/// last bits of a computation never decide.
[[nodiscard]] inline std::vector<std::size_t> ranked(std::span<const double> values,
                                                     std::span<const std::string> keys) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : keys[a] < keys[b];
  });
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    const double top = values[order[first]];
    while (last < order.size() && top - values[order[last]] <= near_tie * std::abs(top)) ++last;
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(first),
              order.begin() + static_cast<std::ptrdiff_t>(last),
              [&](std::size_t a, std::size_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
    first = last;
  }
  return order;
}

/// Throws `Error` (`mtmc.loop.002`) unless there is one probability per legal action, none is negative, and
/// they sum to 1 within 1e-6.
inline void check_distribution(const ActionDistribution& distribution, std::size_t legal_actions) {
  constexpr std::string_view remedy = "Return one probability per legal action, in their order, with sum 1";
  if (distribution.probabilities.size() != legal_actions)
    throw Error(error_id::loop_part,
                "the policy gave " + std::to_string(distribution.probabilities.size()) +
                    " probabilities for " + std::to_string(legal_actions) + " legal actions",
                remedy);
  double sum = 0;
  for (std::size_t i = 0; i < legal_actions; ++i) {
    const double probability = distribution.probabilities[i];
    if (!(probability >= 0) || std::isinf(probability))
      throw Error(error_id::loop_part,
                  "the policy gave the probability " + std::to_string(probability) + " for action " +
                      std::to_string(i),
                  remedy);
    sum += probability;
  }
  if (std::abs(sum - 1) > 1e-6)
    throw Error(error_id::loop_part, "the policy's probabilities sum to " + std::to_string(sum), remedy);
}

/// What was chosen: indices into the legal actions, first choice first, `stop` never among them.
struct Choice {
  /// Indices into the legal actions.
  std::vector<std::size_t> actions{};
  /// Whether `stop` was the first choice; there are no actions then.
  bool stop = false;
};

/// Chooses up to `count` different actions by a checked distribution: the likeliest ones, or as many draws
/// without replacement from p^(1/temperature). An action of probability 0 is never chosen. `stop` as first
/// choice ends the search from this kernel; further down it ends the list, since nothing after it is worth a
/// step. `random` is used by `Selection::sample` only.
[[nodiscard]] inline Choice choose_actions(std::span<const Action> legal,
                                           const ActionDistribution& distribution, int count,
                                           Selection selection, double temperature, PhiloxEngine& random) {
  std::vector<std::size_t> order;
  if (selection == Selection::argmax) {
    std::vector<std::string> keys;
    keys.reserve(legal.size());
    for (const auto& action : legal) keys.push_back(action.key());
    order = ranked(distribution.probabilities, keys);
  } else {
    // Largest weight first becomes 1, so that no power underflows for all of them.
    const double largest =
        *std::max_element(distribution.probabilities.begin(), distribution.probabilities.end());
    std::vector<double> weights;
    for (const double probability : distribution.probabilities)
      weights.push_back(probability > 0 ? std::pow(probability / largest, 1 / temperature) : 0);
    for (int drawn = 0; drawn < count; ++drawn) {
      const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
      if (!(total > 0)) break;
      double rest = random.uniform() * total;
      std::size_t chosen = weights.size();
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] <= 0) continue;
        chosen = i; // the last one takes what rounding leaves
        if (rest < weights[i]) break;
        rest -= weights[i];
      }
      order.push_back(chosen);
      weights[chosen] = 0;
    }
  }
  Choice choice;
  for (const auto index : order) {
    if (static_cast<int>(choice.actions.size()) >= count || !(distribution.probabilities[index] > 0)) break;
    if (legal[index].kind == Action::Kind::stop) {
      choice.stop = choice.actions.empty();
      break;
    }
    choice.actions.push_back(index);
  }
  return choice;
}

} // namespace mtmc
