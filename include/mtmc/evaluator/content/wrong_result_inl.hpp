#pragma once
/// Definitions of evaluator/content/wrong_result.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>
#include <mtmc/support/parallel.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE double element_value(std::span<const std::byte> content, DataType type, std::int64_t place) {
  const std::size_t width = size_of(type);
  const auto element = content.subspan(static_cast<std::size_t>(place) * width, width);
  double value = 0;
  if (is_floating(type)) {
    for_each_real(element, type, [&](std::size_t, double real) { value = real; });
    return value;
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), width);
  if (!is_signed(type)) return static_cast<double>(bits);
  const auto unused = static_cast<unsigned>(64 - 8 * width);
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

MTMC_INLINE std::string element_name(const BufferLayout& buffer, std::int64_t place) {
  std::vector<std::int64_t> index(buffer.extents.size());
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = place % buffer.extents[d];
    place /= buffer.extents[d];
  }
  std::string text = buffer.name + '[';
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(index[d]);
  }
  return text + ']';
}

inline void add_wrong_elements(WrongElements& to, const WrongElements& from) {
  to.count += from.count;
  to.poisoned += from.poisoned;
  to.zero += from.zero;
  to.not_a_number += from.not_a_number;
  for (std::size_t d = 0; d < to.low.size(); ++d) {
    to.low[d] = std::min(to.low[d], from.low[d]);
    to.high[d] = std::max(to.high[d], from.high[d]);
  }
  to.least_ratio = std::min(to.least_ratio, from.least_ratio);
  to.greatest_ratio = std::max(to.greatest_ratio, from.greatest_ratio);
  to.ratios += from.ratios;
  to.least_got = std::min(to.least_got, from.least_got);
  to.greatest_got = std::max(to.greatest_got, from.greatest_got);
}

/// Those among `count` elements from `first` on, `stride` apart.
[[nodiscard]] inline WrongElements wrong_elements_in(const BufferLayout& buffer, std::int64_t first,
                                                     std::int64_t count, std::int64_t stride,
                                                     std::span<const std::byte> got,
                                                     const WantedContent& wanted, const Tolerance& tolerance,
                                                     const Poison& poison) {
  WrongElements facts;
  facts.stride = stride;
  const std::size_t dimensions = buffer.extents.size();
  facts.low = buffer.extents;
  facts.high.assign(dimensions, -1);
  const std::size_t width = size_of(buffer.type);
  for (auto place = first; place < first + count * stride; place += stride) {
    const auto offset = static_cast<std::size_t>(place) * width;
    if (wanted.type == buffer.type &&
        std::memcmp(got.data() + offset, wanted.content.data() + offset, width) == 0)
      continue;
    const double value = element_value(got, buffer.type, place);
    const double want = element_value(wanted.content, wanted.type, place);
    if (is_floating(buffer.type) && element_error(value, want, tolerance) <= 1) continue;
    ++facts.count;
    facts.poisoned += count_poisoned(got.subspan(offset, width), width, poison);
    facts.zero += value == 0 ? 1 : 0;
    facts.not_a_number += std::isnan(value) ? 1 : 0;
    auto rest = place;
    for (std::size_t d = dimensions; d-- > 0;) {
      const auto index = rest % buffer.extents[d];
      rest /= buffer.extents[d];
      facts.low[d] = std::min(facts.low[d], index);
      facts.high[d] = std::max(facts.high[d], index);
    }
    facts.least_got = std::min(facts.least_got, value);
    facts.greatest_got = std::max(facts.greatest_got, value);
    if (std::isfinite(value) && std::isfinite(want) && want != 0 && value != 0) {
      facts.least_ratio = std::min(facts.least_ratio, value / want);
      facts.greatest_ratio = std::max(facts.greatest_ratio, value / want);
      ++facts.ratios;
    }
  }
  return facts;
}

[[nodiscard]] inline WrongElements
gather_wrong_elements(const BufferLayout& buffer, std::span<const std::byte> got, const WantedContent& wanted,
                      const Tolerance& tolerance, const ComparisonResult& comparison, const Poison& poison) {
  const auto from = std::max<std::int64_t>(comparison.first_wrong, 0);
  // Odd, so that the elements looked at are spread over all rows and columns.
  constexpr std::int64_t enough = std::int64_t{1} << 20;
  const std::int64_t stride = comparison.wrong > enough ? comparison.wrong / enough * 2 + 1 : 1;
  const auto looks = (buffer.elements - from + stride - 1) / stride;
  // The end of a row is where tails are: the very last element is always looked at.
  auto all = wrong_elements_in(buffer, buffer.elements - 1, stride > 1 ? 1 : 0, stride, got, wanted,
                               tolerance, poison);
  std::mutex mutex;
  constexpr std::size_t worth_a_thread = std::size_t{1} << 16;
  for_each_part(
      static_cast<std::size_t>(looks), worth_a_thread, 1, [&](std::size_t first, std::size_t count) {
        const auto part =
            wrong_elements_in(buffer, from + static_cast<std::int64_t>(first) * stride,
                              static_cast<std::int64_t>(count), stride, got, wanted, tolerance, poison);
        const std::scoped_lock lock(mutex);
        add_wrong_elements(all, part);
      });
  return all;
}

/// "the last 29 indices (739 to 767) of dimension 2", where the wrong elements keep to one end of a
/// dimension.
[[nodiscard]] inline std::string edge_of(const BufferLayout& buffer, const WrongElements& facts) {
  for (std::size_t d = buffer.extents.size(); d-- > 0;) {
    const auto extent = buffer.extents[d];
    const bool at_end = facts.high[d] == extent - 1 && facts.low[d] > 0 && facts.low[d] >= extent / 2;
    const bool at_start = facts.low[d] == 0 && facts.high[d] < extent - 1 && facts.high[d] < extent / 2;
    if (!at_end && !at_start) continue;
    const auto width = facts.high[d] - facts.low[d] + 1;
    return std::string(at_end ? "the last " : "the first ") + std::to_string(width) +
           (width == 1 ? " index (" : " indices (") + std::to_string(facts.low[d]) +
           (width == 1 ? "" : " to " + std::to_string(facts.high[d])) + ") of dimension " +
           std::to_string(d + 1) + " of " + std::to_string(buffer.extents.size()) + " (extent " +
           std::to_string(extent) + ')';
  }
  return {};
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE WrongResult describe_wrong_result(const ProblemLayout& layout, std::size_t output,
                                              std::span<const std::byte> got, const WantedContent& wanted,
                                              std::span<const std::vector<std::byte>> inputs,
                                              const Tolerance& tolerance, const ComparisonResult& comparison,
                                              const Poison& poison) {
  const auto& buffer = layout.buffers[output];
  const auto facts = detail::gather_wrong_elements(buffer, got, wanted, tolerance, comparison, poison);
  WrongResult result;
  const auto place = std::max<std::int64_t>(comparison.first_wrong, 0);
  result.message = detail::element_name(buffer, place) + " is " +
                   detail::number(detail::element_value(got, buffer.type, place)) + " but should be " +
                   detail::number(detail::element_value(wanted.content, wanted.type, place)) + "; " +
                   std::to_string(comparison.wrong) + " of " + std::to_string(comparison.total) +
                   " elements are wrong";
  if (is_floating(buffer.type) && std::isfinite(comparison.largest_error))
    result.message += ", the worst by " + detail::number(std::round(comparison.largest_error * 10) / 10) +
                      " times the allowed error (" + detail::number(tolerance.relative) +
                      " of max(|value|, " + detail::number(tolerance.scale) + "))";
  result.message += '.';

  const auto hint = [&](const std::string& fact, const std::string& remedy) {
    result.message += ' ' + fact + '.';
    if (result.remedy.empty()) result.remedy = remedy;
  };
  const bool all_wrong = comparison.wrong == buffer.elements;
  const auto number_of = [&](std::int64_t found) {
    return (facts.stride > 1 ? "about " : "") + std::to_string(found * facts.stride);
  };
  if (const auto edge = detail::edge_of(buffer, facts); !edge.empty())
    hint("All wrong elements lie in " + edge,
         "Handle the rest of a loop whose length is no multiple of the tile, unroll or vector width");
  if (facts.poisoned == facts.count && facts.count > 0) {
    hint("They were never written, or were computed from memory that was never written",
         "Write every element of the output; buffers do not start out as zero, so set an accumulator to 0 "
         "before adding to it");
    return result;
  }
  if (facts.poisoned > 0)
    hint(number_of(facts.poisoned) + " of them were never written", "Write every element of the output");
  if (facts.not_a_number > facts.poisoned && is_floating(buffer.type))
    hint(number_of(facts.not_a_number - facts.poisoned) + " of them are NaN",
         "Look for reads of memory that was never written (outputs and scratch buffers do not start out as "
         "zero), overflow, and division by zero");
  if (facts.zero == facts.count && facts.count > 0)
    hint("They are all zero", "Compute these elements");
  else if (facts.count > 1 && facts.least_got == facts.greatest_got)
    hint("They all have the same value", "Compute each element from its own inputs");
  for (std::size_t i = 0; i < inputs.size() && i < layout.buffers.size(); ++i)
    if (layout.buffers[i].is_read() && inputs[i].size() == got.size() &&
        std::memcmp(inputs[i].data(), got.data(), got.size()) == 0)
      hint("The result is a copy of " + layout.buffers[i].name,
           "Compute the result instead of copying an input");
  const bool steady =
      facts.ratios == facts.count && facts.count > 1 &&
      std::abs(facts.greatest_ratio - facts.least_ratio) <= 1e-3 * std::abs(facts.greatest_ratio);
  if (steady && is_floating(buffer.type))
    hint("They are off by a constant factor of " +
             detail::number((facts.greatest_ratio + facts.least_ratio) / 2),
         "Look for a missing or repeated scaling, or terms added more than once");
  if (result.remedy.empty())
    result.remedy = all_wrong
                        ? "Check the indexing and the order of the operations against the original kernel"
                        : "Check bounds and indexing for the elements named against the original kernel";
  return result;
}

} // namespace mtmc
