#pragma once
/// What is done to the inputs of a far case after they were made: relations between elements and between
/// inputs that no distribution of single elements has.

#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/input_relation.hpp>
#include <mtmc/evaluator/content/input_structure.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Each shows what a kernel assumes of its inputs.
enum class InputTwist : std::uint8_t {
  none = 0,      ///< as they were made
  one_sided = 1, ///< no negative numbers, or no positive ones; at times far from 1
  graded = 2,    ///< columns of the first input fall where rows of the others rise: all terms of a sum of
                 ///< products count, though each factor looks small somewhere
  holes = 3,     ///< zeros in runs of a power of two, at multiples of their length
  fenced = 4,    ///< zeros in each first row and column of square blocks
  dominated = 5, ///< one input is far from zero and nearly constant, the others are small
  tied = 6,      ///< cut off from above, so that many elements are the largest
  sharpened = 7, ///< one element of each slice far above the others
  mirrored = 8,  ///< the same, or the opposite, at opposite places
  rows = 9,      ///< rows that are the row before, rotated, turned round, or times a factor
  permuted = 10, ///< one number in each row
  pattern = 11,  ///< zeros but where two axes' places are related
  whole = 12,    ///< whole numbers of some size
  doubled = 13,  ///< the second half of an axis is the first one, or its opposite
  periodic = 14, ///< repeated after any number of elements
  alike = 15,    ///< one input is another one, or its opposite, or transposed
  planted = 16   ///< a given number among or instead of elements
};

/// "none", "one_sided", ...
[[nodiscard]] constexpr std::string_view to_string(InputTwist twist) noexcept {
  switch (twist) {
  case InputTwist::none:
    return "none";
  case InputTwist::one_sided:
    return "one_sided";
  case InputTwist::graded:
    return "graded";
  case InputTwist::holes:
    return "holes";
  case InputTwist::fenced:
    return "fenced";
  case InputTwist::dominated:
    return "dominated";
  case InputTwist::tied:
    return "tied";
  case InputTwist::sharpened:
    return "sharpened";
  case InputTwist::mirrored:
    return "mirrored";
  case InputTwist::rows:
    return "rows";
  case InputTwist::permuted:
    return "permuted";
  case InputTwist::pattern:
    return "pattern";
  case InputTwist::whole:
    return "whole";
  case InputTwist::doubled:
    return "doubled";
  case InputTwist::periodic:
    return "periodic";
  case InputTwist::alike:
    return "alike";
  case InputTwist::planted:
    return "planted";
  }
  return "";
}

/// The twist of a case, by a hash of its own: planted numbers, where there are any, for every eighth; of the
/// rest none for every fourth, and each of the others as often.
[[nodiscard]] constexpr InputTwist draw_twist(std::uint64_t hash, bool has_numbers) noexcept {
  if (has_numbers && hash % 8 == 0) return InputTwist::planted;
  constexpr auto others = static_cast<std::uint64_t>(InputTwist::alike);
  return (hash >> 8) % 4 == 0 ? InputTwist::none : static_cast<InputTwist>(1 + (hash >> 16) % others);
}

/// Whether a twist gives elements scales of its own, so that what it changes is to be normal before.
[[nodiscard]] constexpr bool has_own_scale(InputTwist twist) noexcept {
  return twist == InputTwist::one_sided || twist == InputTwist::graded || twist == InputTwist::dominated ||
         twist == InputTwist::sharpened || twist == InputTwist::planted;
}

namespace detail {

inline void turn_to_one_side(const RelatedInput& input, std::uint64_t hash) {
  // Each has its own sign and scale: every other time as it is, else up to 2^16 or 2^112, where one product
  // more overflows.
  const auto own = (hash >> 8) ^ slice_hash(input.place, hash, 10);
  const auto range = own % 4;
  const int exponent = range < 2 ? 0 : static_cast<int>((own >> 8) % (range == 2 ? 17 : 113));
  const float sign = (own >> 4) % 2 == 0 ? 1.0f : -1.0f;
  for (auto& element : input.elements) element = sign * std::ldexp(std::abs(element), exponent);
}

inline void grade(const RelatedInput& input, std::uint64_t hash) {
  constexpr std::uint64_t widths[] = {1, 4, 16, 32, 32, 64};
  const auto width = widths[(hash >> 8) % 6];
  const int steepest = 3 << (hash >> 16) % 4;
  const bool two_levels = (hash >> 20) % 2 == 0;
  const bool by_row = input.place > 0 && (hash >> 24) % 4 != 0;
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const auto step = (by_row ? i / input.slice() : i % input.slice()) / width;
    const auto random = slice_hash(step, hash, 0);
    const int exponent = two_levels
                             ? (random % 2 == 0 ? steepest : -steepest)
                             : static_cast<int>(random % static_cast<unsigned>(2 * steepest + 1)) - steepest;
    input.elements[i] = std::ldexp(input.elements[i], input.place == 0 ? exponent : -exponent);
  }
}

inline void cut_holes(const RelatedInput& input, std::uint64_t hash, bool fenced) {
  const auto length = std::uint64_t{2} << (hash >> 8) % (fenced ? 6 : 9);
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const auto row = i / input.slice();
    const auto column = i % input.slice();
    const bool empty = fenced ? row % length == 0 || column % length == 0
                              : slice_hash(row << 24 | column / length, hash, 1) % 2 == 0;
    if (empty) input.elements[i] = 0;
  }
}

/// A number, a neighbour of it, or its opposite.
[[nodiscard]] inline float near_number(double number, std::uint64_t hash) noexcept {
  const auto value = static_cast<float>(number);
  const bool negative = (hash >> 8) % 4 == 0;
  float near = value;
  switch (hash % 8) {
  case 0:
    near = std::nextafter(value, HUGE_VALF);
    break;
  case 1:
    near = std::nextafter(value, -HUGE_VALF);
    break;
  case 2:
    near = value * 1.0625f;
    break;
  case 3:
    near = value * 0.9375f;
    break;
  case 4:
    near = value * 2;
    break;
  default:
    break;
  }
  return negative ? -near : near;
}

inline void plant(const RelatedInput& input, std::uint64_t hash, double number) {
  const auto mode = (hash >> 8) % 5;
  for (std::size_t i = 0; i < input.elements.size(); ++i) {
    const auto row = i / input.slice();
    const auto own = slice_hash(i, hash, 2);
    const auto of_row = slice_hash(row, hash, 3);
    auto& element = input.elements[i];
    if (mode == 0 && own % 16 == 0) element = near_number(number, own >> 8);
    if (mode == 1 && i % input.slice() == 0) element = near_number(number, of_row);
    if (mode == 2 && of_row % 2 == 0) element = near_number(number, own >> 8);
    if (mode == 3) element *= static_cast<float>(number);
    if (mode == 4 && of_row % 4 == 0)
      element = static_cast<float>(number) * (1 + std::ldexp(element, -static_cast<int>(3 + of_row / 4 % 8)));
  }
}

/// Relations within one input; every fourth is broken somewhere.
inline void relate(InputTwist twist, const RelatedInput& input, std::uint64_t hash) {
  if (twist == InputTwist::mirrored) mirror(input, hash);
  if (twist == InputTwist::rows) relate_rows(input, hash);
  if (twist == InputTwist::permuted) permute_unit(input, hash);
  if (twist == InputTwist::pattern) keep_pattern(input, hash);
  if (twist == InputTwist::whole) make_whole(input, hash);
  if (twist == InputTwist::doubled) double_up(input, hash);
  if (twist == InputTwist::periodic) repeat(input, hash);
  if (pick(hash, 56, 4) == 0) spoil(input, slice_hash(0, hash, 8));
}

} // namespace detail

/// Does it to all inputs of a case. `hash`: the case's own; `numbers` are for `InputTwist::planted`.
inline void apply_twist(InputTwist twist, std::span<const RelatedInput> inputs, std::uint64_t hash,
                        std::span<const double> numbers) {
  if (inputs.empty()) return;
  // Every other time one input alone.
  const auto chosen = static_cast<std::size_t>((hash >> 32) % inputs.size());
  const bool alone = inputs.size() > 1 && (hash >> 40) % 2 == 0;
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    const auto& input = inputs[n];
    const auto all = input.elements;
    switch (twist) {
    case InputTwist::none:
      break;
    case InputTwist::one_sided:
      if (!alone || n == chosen) detail::turn_to_one_side(input, hash);
      break;
    case InputTwist::graded:
      detail::grade(input, hash);
      break;
    case InputTwist::holes:
    case InputTwist::fenced:
      if (!alone || n == chosen) detail::cut_holes(input, hash, twist == InputTwist::fenced);
      break;
    case InputTwist::dominated: {
      const float far =
          std::ldexp((hash >> 8) % 2 == 0 ? 1.5f : -1.5f, static_cast<int>((hash >> 16) % 11) - 2);
      for (auto& element : all) element = n == chosen ? far + element * 0x1p-6f : element * 0x1p-8f;
      break;
    }
    case InputTwist::tied: {
      const float limit = static_cast<float>((hash >> 8) % 8) * 0.25f;
      for (auto& element : all) element = std::min(element, limit);
      break;
    }
    case InputTwist::sharpened: {
      const int exponent = 3 + static_cast<int>((hash >> 8) % 18);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (i % input.slice() == detail::slice_hash(i / input.slice(), hash, 4) % input.slice())
          all[i] = std::ldexp(all[i], exponent);
      break;
    }
    case InputTwist::alike:
      if (n != chosen) detail::make_alike(input, inputs[chosen], hash);
      break;
    case InputTwist::mirrored:
    case InputTwist::rows:
    case InputTwist::permuted:
    case InputTwist::pattern:
    case InputTwist::whole:
    case InputTwist::doubled:
    case InputTwist::periodic:
      if (!alone || n == chosen) detail::relate(twist, input, hash);
      break;
    case InputTwist::planted:
      if (!numbers.empty() && (!alone || n == chosen))
        detail::plant(input, hash, numbers[static_cast<std::size_t>((hash >> 48) % numbers.size())]);
      break;
    }
  }
}

/// Changes a little or a lot of a content, as what a host gives to a kernel next may differ from what it gave
/// before: one element, one in 64, all but the first 64, all but the last slice, or only the order.
inline void change_some(const RelatedInput& input, std::uint64_t hash) {
  const auto count = input.elements.size();
  const auto mode = (hash >> 8) % 6;
  if (mode == 4) std::reverse(input.elements.begin(), input.elements.end());
  if (mode == 5)
    for (std::size_t i = input.slice(); i + input.slice() <= count; i += 2 * input.slice())
      std::swap_ranges(input.elements.begin() + static_cast<std::ptrdiff_t>(i - input.slice()),
                       input.elements.begin() + static_cast<std::ptrdiff_t>(i),
                       input.elements.begin() + static_cast<std::ptrdiff_t>(i));
  if (mode >= 4) return;
  const auto one = static_cast<std::size_t>((hash >> 16) % std::max<std::size_t>(1, count));
  constexpr std::size_t beginning = 64;
  for (std::size_t i = 0; i < count; ++i) {
    const auto own = detail::slice_hash(i, hash, 5);
    const bool changes = i == one || (mode == 1 && own % 64 == 0) || (mode == 2 && i >= beginning) ||
                         (mode == 3 && i + input.slice() < count);
    if (changes) input.elements[i] = detail::bell(static_cast<std::uint32_t>(own >> 32));
  }
}

} // namespace mtmc
