#pragma once
/// Which coarser arithmetic a prepared task can tell from that of its reference.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
#include <mtmc/evaluator/protocol/task_check.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// A coarser arithmetic: that of the reference on f32 inputs rounded to fewer bits, or its results cut to
/// fewer.
struct CoarserArithmetic {
  std::string_view name;
  bool inputs = true;
  /// Of the mantissa behind the point.
  int bits = 0;
};

inline constexpr std::array<CoarserArithmetic, 4> coarser_arithmetics{{{"bf16 inputs", true, 7},
                                                                       {"TF32 inputs", true, 10},
                                                                       {"two bf16 terms", true, 15},
                                                                       {"four bits fewer", false, 19}}};

/// To the nearest number of so many bits.
inline void round_floats(std::span<std::byte> content, int bits) {
  for (std::size_t i = 0; i < content.size() / sizeof(float); ++i)
    store_number(content, DataType::f32, i,
                 rounded_to_bits(element_value(content, DataType::f32, static_cast<std::int64_t>(i)), bits));
}
/// Without the bits behind the first `bits`.
inline void cut_floats(std::span<std::byte> content, int bits) {
  constexpr int all = 23;
  for (std::size_t at = 0; at + sizeof(float) <= content.size(); at += sizeof(float)) {
    std::uint32_t word = 0;
    std::memcpy(&word, content.data() + at, sizeof word);
    word &= ~((1u << (all - bits)) - 1);
    std::memcpy(content.data() + at, &word, sizeof word);
  }
}

} // namespace detail

/// What of "bf16 inputs", "TF32 inputs", "two bf16 terms" (for each input) and "four bits fewer" (in each
/// result) would be refused in the check of some cheap size on normal inputs, separated by commas, or
/// "nothing coarser than f32". Empty for a task without f32 results, and one that compares by itself.
/// A reference that itself errs by more than the coarser arithmetic makes of it cannot tell the two apart,
/// nor can one whose results hardly depend on the last bits of the inputs.
[[nodiscard]] inline std::string told_precision(Judge& judge, PreparedTask& prepared) {
  const auto& written = prepared.layouts.front().buffers;
  if (prepared.task.compare || std::none_of(written.begin(), written.end(), [](const BufferLayout& buffer) {
        return buffer.is_written() && buffer.type == DataType::f32;
      }))
    return {};
  std::array<bool, detail::coarser_arithmetics.size()> told{};
  for (std::size_t size = 0; size < prepared.layouts.size(); ++size) {
    const CaseId id{size, Distribution::normal, false, 0};
    const auto known = prepared.book.find(id);
    if (!known || !is_medium(prepared.cost(size))) continue;
    const auto& buffers = prepared.layouts[size].buffers;
    for (std::size_t which = 0; which < told.size(); ++which) {
      const auto& coarser = detail::coarser_arithmetics[which];
      if (told[which]) continue;
      auto inputs = prepared.inputs(id);
      if (coarser.inputs)
        for (std::size_t i = 0; i < buffers.size(); ++i)
          if (buffers[i].is_read() && buffers[i].type == DataType::f32)
            detail::round_floats(inputs.change(i), coarser.bits);
      const auto outcome =
          judge.call(prepared, *prepared.reference, size, inputs, Poison{}, judge.options().start_seconds);
      for (std::size_t i = 0; i < buffers.size() && !outcome.refusal && !told[which]; ++i) {
        if (!buffers[i].is_written() || buffers[i].type != DataType::f32) continue;
        const auto result = outcome.results[i];
        std::vector<std::byte> content(result.begin(), result.end());
        if (!coarser.inputs) detail::cut_floats(content, coarser.bits);
        told[which] = !ResultComparison::is_right(prepared, id, i, content, *known);
      }
    }
  }
  std::string names;
  for (std::size_t which = 0; which < told.size(); ++which)
    if (told[which])
      names += (names.empty() ? "" : ", ") + std::string(detail::coarser_arithmetics[which].name);
  return names.empty() ? "nothing coarser than f32" : names;
}

} // namespace mtmc
