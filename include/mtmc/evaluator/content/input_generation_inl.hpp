#pragma once
/// Definitions of evaluator/content/input_generation.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/wide_vectors.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::optional<ValueRange> value_range(const Argument& argument, const ProblemSize& size) {
  if (!argument.domain) return std::nullopt;
  const auto place = "domain of argument " + argument.name + " at " + to_string(size);
  ValueRange range{detail::evaluate_real(argument.domain->low, size.symbols, place),
                   detail::evaluate_real(argument.domain->high, size.symbols, place)};
  if (!is_floating(argument.type)) {
    range.low = std::ceil(range.low);
    range.high = std::floor(range.high);
  }
  if (!(range.low <= range.high) || !std::isfinite(range.low) || !std::isfinite(range.high))
    throw Error(error_id::task_malformed, "no value lies in the domain",
                "Give finite bounds, the lower one first", place);
  return range;
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

/// One block of values without a domain. `tail` is what keeps the heavy tail finite, `rare` is `rare_below`.
inline void shape_reals(Distribution distribution, const RandomBlock& random, float tail, std::uint32_t rare,
                        RealBlock& values) noexcept {
  switch (distribution) {
  case Distribution::normal:
    for (std::size_t i = 0; i < generation_block; ++i) values[i] = bell(random[i]);
    break;
  case Distribution::heavy_tail:
    for (std::size_t i = 0; i < generation_block; ++i)
      values[i] = bell(random[i]) / (unit(scrambled(random[i])) + tail);
    break;
  case Distribution::large_offset:
    for (std::size_t i = 0; i < generation_block; ++i) values[i] = bell(random[i]) + 16.0f;
    break;
  case Distribution::sparse_spikes:
    for (std::size_t i = 0; i < generation_block; ++i)
      values[i] = bell(random[i]) * (scrambled(random[i]) >> 26 == 0 ? 32.0f : 1.0f / 64.0f);
    break;
  case Distribution::small_integers:
    for (std::size_t i = 0; i < generation_block; ++i)
      values[i] = static_cast<float>(static_cast<std::int32_t>(((random[i] >> 16) * 5u) >> 16) - 2);
    break;
  case Distribution::mostly_zero:
    for (std::size_t i = 0; i < generation_block; ++i)
      values[i] = scrambled(random[i]) < rare ? bell(random[i]) : 0.0f;
    break;
  }
}

MTMC_INLINE double place_in_domain(Distribution distribution, std::uint32_t random, std::uint32_t rare,
                                   const ValueRange& range) noexcept {
  const double uniform = static_cast<double>(scrambled(random)) * 0x1p-32;
  const double width = range.high - range.low;
  const double background = range.low <= 0 && range.high >= 0 && width > 0 ? -range.low / width : 0;
  switch (distribution) {
  case Distribution::normal:
    return static_cast<double>(bell(random)) / 6.02 + 0.5;
  case Distribution::heavy_tail:
    return uniform * uniform * uniform * uniform;
  case Distribution::large_offset:
    return 1 - uniform / 16;
  case Distribution::sparse_spikes:
    return (random >> 26) == 0 ? uniform : background;
  case Distribution::mostly_zero:
    return scrambled(random) < rare ? static_cast<double>(random) * 0x1p-32 : background;
  case Distribution::small_integers: {
    const double value = std::round(range.low + uniform * width);
    if (width >= 1 && value >= range.low && value <= range.high) return (value - range.low) / width;
    return std::floor(uniform * 5) / 4;
  }
  }
  return 0.5;
}

[[nodiscard]] inline float rounded_into_float(double value, const ValueRange& range) noexcept {
  auto real = static_cast<float>(value);
  if (static_cast<double>(real) > range.high) real = std::nextafter(real, -HUGE_VALF);
  if (static_cast<double>(real) < range.low) real = std::nextafter(real, HUGE_VALF);
  return real;
}

MTMC_INLINE void store_real(DataType type, double value, const ValueRange& range,
                            std::byte* target) noexcept {
  if (type == DataType::f64) {
    std::memcpy(target, &value, sizeof value);
  } else if (type == DataType::f32) {
    const float real = rounded_into_float(value, range);
    std::memcpy(target, &real, sizeof real);
  } else {
    const auto bits = type == DataType::f16
                          ? rounded_into<float_to_half, half_to_float>(value, range)
                          : rounded_into<float_to_bfloat16, bfloat16_to_float>(value, range);
    std::memcpy(target, &bits, sizeof bits);
  }
}

MTMC_INLINE void store_integer(DataType type, std::int64_t value, std::byte* target) noexcept {
  std::memcpy(target, &value, size_of(type));
}

MTMC_INLINE std::array<std::int64_t, 2> limits_of(DataType type) noexcept {
  const auto bits = static_cast<int>(8 * size_of(type));
  if (is_signed(type))
    return {bits == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (bits - 1)),
            bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1};
  return {0, bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1};
}

MTMC_INLINE std::int64_t default_integer(Distribution distribution, DataType type, std::uint32_t random,
                                         std::uint32_t rare_word) noexcept {
  const std::int64_t lowest = is_signed(type) ? -1 : 0;
  const auto within = [&](std::int64_t bound) {
    const std::int64_t low = lowest * bound;
    return low + static_cast<std::int64_t>(
                     (std::uint64_t{scrambled(random)} * static_cast<std::uint64_t>(bound - low + 1)) >> 32);
  };
  const bool rare = (random & 63u) == 0;
  switch (distribution) {
  case Distribution::normal:
    return within(16);
  case Distribution::heavy_tail:
    return within(rare ? std::min<std::int64_t>(1000, limits_of(type)[1]) : 4);
  case Distribution::large_offset:
    return 64 + within(16);
  case Distribution::sparse_spikes:
    return rare ? within(100) : 0;
  case Distribution::small_integers:
    return within(2);
  case Distribution::mostly_zero:
    return scrambled(random) < rare_word ? 1 + static_cast<std::int64_t>(random >> 29) : 0;
  }
  return 0;
}

/// An integer of a domain; ends of the domain come up as often as any other value.
[[nodiscard]] inline std::int64_t integer_in(const ValueRange& range, Distribution distribution,
                                             std::uint32_t random, std::uint32_t rare) noexcept {
  const auto low = static_cast<std::int64_t>(range.low);
  const auto high = static_cast<std::int64_t>(range.high);
  const double width = static_cast<double>(high - low) + 1;
  double place = static_cast<double>(scrambled(random)) * 0x1p-32;
  // Normal and small integers stay uniform: an index must reach every row.
  if (distribution == Distribution::heavy_tail) place = place * place * place * place;
  if (distribution == Distribution::large_offset) place = 1 - (place + 0x1p-32) / 16;
  const bool background = (distribution == Distribution::sparse_spikes && (random & 63u) != 0) ||
                          (distribution == Distribution::mostly_zero && scrambled(random) >= rare);
  if (background) return low <= 0 && high >= 0 ? 0 : low;
  if (distribution == Distribution::mostly_zero) place = static_cast<double>(random) * 0x1p-32;
  return std::clamp(low + static_cast<std::int64_t>(place * width), low, high);
}

/// The elements from place `from` on, a multiple of four.
inline void fill_part(std::span<std::byte> content, const ElementShape& shape, std::uint64_t key,
                      std::size_t from, std::uint64_t stream) {
  const auto type = shape.type;
  const auto distribution = shape.distribution;
  const auto& range = shape.range;
  const auto rare = shape.rare;
  const std::size_t width = size_of(type);
  const std::size_t count = content.size() / width;
  const float tail = type == DataType::f16 ? 0.2f : 0.02f;
  RandomBlock random;
  RealBlock values;
  for (std::size_t first = 0; first < count; first += generation_block) {
    philox_fill(random, key, (from + first) / 4, stream);
    const std::size_t here = std::min(generation_block, count - first);
    std::byte* target = content.data() + first * width;
    if (!is_floating(type)) {
      for (std::size_t i = 0; i < here; ++i)
        store_integer(type,
                      range ? integer_in(*range, distribution, random[i], rare)
                            : default_integer(distribution, type, random[i], rare),
                      target + i * width);
      continue;
    }
    if (range) {
      for (std::size_t i = 0; i < here; ++i) {
        const double place = place_in_domain(distribution, random[i], rare, *range);
        const double value =
            std::clamp(range->low + place * (range->high - range->low), range->low, range->high);
        store_real(type, value, *range, target + i * width);
      }
      continue;
    }
    with_wide_vectors([&] { shape_reals(distribution, random, tail, rare, values); });
    if (type == DataType::f32) {
      std::memcpy(target, values.data(), here * sizeof(float));
    } else if (type == DataType::f64) {
      // The lower half of the mantissa must be filled as well, or f32 arithmetic would pass for f64.
      const bool fill = distribution != Distribution::small_integers;
      for (std::size_t i = 0; i < here; ++i) {
        const double more = fill ? static_cast<double>(scrambled(random[i] ^ 0x5bd1e995u)) * 0x1p-56 : 0;
        const double value = static_cast<double>(values[i]) * (1 + more);
        std::memcpy(target + i * width, &value, sizeof value);
      }
    } else {
      for (std::size_t i = 0; i < here; ++i) {
        const std::uint16_t bits =
            type == DataType::f16 ? float_to_half(values[i]) : float_to_bfloat16(values[i]);
        std::memcpy(target + i * width, &bits, sizeof bits);
      }
    }
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void fill_values(std::span<std::byte> content, DataType type, Distribution distribution,
                             std::uint64_t key, std::uint64_t stream,
                             const std::optional<ValueRange>& range) {
  const std::size_t width = size_of(type);
  const std::size_t count = content.size() / width;
  const detail::ElementShape shape{type, distribution, range, detail::rare_below(count)};
  // Starting a thread takes as long as 100 KiB.
  constexpr std::size_t worth_a_thread = std::size_t{1} << 19;
  detail::for_each_part(
      count, worth_a_thread, detail::generation_block, [&](std::size_t first, std::size_t size) {
        detail::fill_part(content.subspan(first * width, size * width), shape, key, first, stream);
      });
}

MTMC_INLINE std::size_t ContentRecipe::bytes() const noexcept {
  return static_cast<std::size_t>(elements) * size_of(type);
}

MTMC_INLINE void fill_values(std::span<std::byte> content, const ContentRecipe& recipe) {
  fill_values(content, recipe.type, recipe.distribution, recipe.key, recipe.stream, recipe.range);
}

MTMC_INLINE void fill_beginning(std::span<std::byte> content, const ContentRecipe& recipe) {
  const detail::ElementShape shape{recipe.type, recipe.distribution, recipe.range,
                                   detail::rare_below(static_cast<std::size_t>(recipe.elements))};
  detail::fill_part(content, shape, recipe.key, 0, recipe.stream);
}

MTMC_INLINE void generate_by_hook(const Task& task, const Argument& argument, const ProblemSize& size,
                                  std::uint64_t key, std::uint64_t stream, std::span<std::byte> content) {
  try {
    task.generate(argument, size, key ^ (stream * 0x9E3779B97F4A7C15u), content);
  } catch (const std::exception& error) {
    throw Error(error_id::evaluator_hook, std::string("the task's generate hook threw: ") + error.what(),
                "Correct the hook, or leave it out to get built-in contents",
                "argument " + argument.name + " at " + to_string(size));
  }
}

} // namespace mtmc
