#pragma once
// The sizes of a generated task: one that is timed and three that are checked.

#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "elements.hpp"
#include "operator.hpp"

namespace generated {

/// What one call may take.
struct Limits {
  double least_cost, most_cost;   ///< of `Operator::cost`, rough nanoseconds on one core
  double least_bytes, most_bytes; ///< of all arguments and scratch buffers together
};

/// Limits for a language: 1 to 20 ms on a core, and more on a GPU, which does more at a time.
[[nodiscard]] inline Limits limits_of(const mtmc::Language& language) {
  if (language == mtmc::languages::cuda) return {2e6, 6e9, 1.0 * (1 << 20), 190e6};
  return {2.2e6, 1.4e7, 0, 64e6};
}

/// The text with all derived integers written as expressions over the symbols.
[[nodiscard]] inline std::string over_symbols(const Operator& made, std::string text) {
  for (const Derived& one : made.derived)
    if (text == one.name) return one.expression;
  for (const Derived& one : made.derived) text = with_word(text, one.name, as_factor(one.expression));
  return text;
}

/// Extents of a buffer in memory, slowest first, over the symbols.
[[nodiscard]] inline std::vector<std::string> shape_of(const Operator& made, const Buffer& buffer) {
  std::vector<std::string> shape;
  for (const auto d : memory_order(buffer)) shape.push_back(over_symbols(made, buffer.extents[d]));
  if (buffer.padding > 0) shape.back() += " + " + std::to_string(buffer.padding);
  return shape;
}

/// Bytes of all buffers.
[[nodiscard]] inline double bytes_of(const Operator& made, const mtmc::Symbols& symbols) {
  double all = 0;
  for (const Buffer& buffer : made.buffers) {
    double bytes = buffer.type == "double" ? 8 : buffer.type == "float" || buffer.type == "int" ? 4 : 1;
    for (const auto& extent : shape_of(made, buffer))
      bytes *= static_cast<double>(mtmc::evaluate_expression(extent, symbols));
    all += bytes;
  }
  return all;
}

/// Whether the innermost loop of some step jumps through a buffer.
[[nodiscard]] inline bool has_strides(const Operator& made) {
  constexpr std::string_view head = "for (Int ";
  for (const Nest& nest : made.nests) {
    const auto loop = nest.body.rfind(head);
    std::string_view rest =
        std::string_view(nest.body).substr(loop == std::string::npos ? 0 : loop + head.size());
    const std::string index = loop != std::string::npos ? mtmc::take_identifier(rest)
                              : nest.axes.empty()       ? ""
                                                        : nest.axes.back().index;
    for (const Buffer& buffer : made.buffers)
      for (const Element& element : elements_of(nest.body, buffer.name)) {
        const auto fastest = memory_order(buffer).back();
        for (std::size_t d = 0; d < element.subscripts.size(); ++d)
          if (d != fastest && mtmc::has_word(element.subscripts[d], index)) return true;
      }
  }
  return false;
}

/// How many times as long as its cost says an operator may take at most on a core: loops in a bad order miss
/// the caches, the more so where the data does not fit into them.
[[nodiscard]] inline double slowness(const Operator& made, bool strided, double bytes) {
  constexpr double cached = 1.5e6;
  const bool reordered = std::any_of(made.nests.begin(), made.nests.end(),
                                     [](const Nest& nest) { return nest.ordered && nest.axes.size() > 1; });
  return (reordered ? 2.0 : 1.0) * (!strided ? 1.0 : bytes > cached ? 5.0 : 1.5);
}

/// Values for the timed size: drawn until they keep the limits, or else those that come nearest to the least
/// or the largest cost.
[[nodiscard]] inline mtmc::Symbols timed_size(Draw& draw, const Operator& made) {
  Limits limits = limits_of(draw.language());
  if (!draw.cuda() && draw.chance(0.75)) limits.most_bytes /= 3; // strides through more take long
  const auto cost = over_symbols(made, made.cost.empty() ? made.flops : made.cost);
  const bool strided = has_strides(made);
  mtmc::Symbols nearest;
  double least = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 200 && least > 1; ++attempt) {
    mtmc::Symbols symbols;
    for (const Symbol& symbol : made.symbols) symbols[symbol.name] = draw.pick(symbol.timed);
    const double bytes = bytes_of(made, symbols);
    const double time = static_cast<double>(mtmc::evaluate_expression(cost, symbols));
    const double longest = draw.cuda() ? time : time * slowness(made, strided, bytes);
    const double excess = std::max({1.0, limits.least_cost / time, longest / limits.most_cost,
                                    bytes / limits.most_bytes, limits.least_bytes / bytes});
    if (excess >= least) continue;
    least = excess;
    nearest = symbols;
  }
  return nearest;
}

/// Values for a size that is only checked; `number` is 0, 1 or 2, and the last one is ones.
[[nodiscard]] inline mtmc::Symbols checked_size(Draw& draw, const Operator& made, const mtmc::Symbols& timed,
                                                int number) {
  mtmc::Symbols symbols;
  for (const Symbol& symbol : made.symbols) {
    auto& value = symbols[symbol.name];
    const std::vector<std::int64_t> large = number == 0 ? std::vector<std::int64_t>{17, 19, 23, 29, 31, 37}
                                                        : std::vector<std::int64_t>{41, 43, 53, 61, 67};
    const std::vector<std::int64_t> small =
        number == 0 ? std::vector<std::int64_t>{2, 3, 5} : std::vector<std::int64_t>{5, 7, 11, 13};
    if (symbol.extent == Extent::fixed)
      value = timed.at(symbol.name);
    else if (number == 2)
      value = 1;
    else
      value = draw.pick(symbol.extent == Extent::large ? large : small);
  }
  return symbols;
}

} // namespace generated
