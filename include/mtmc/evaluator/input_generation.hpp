#pragma once
/// Secret, reproducible contents for the inputs of a kernel.

#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/half_precision.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/wide_vectors.hpp>

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

namespace mtmc {

/// What the values of an input look like. Each shows a different kind of wrong kernel.
///
/// `bell` stands for a number with mean 0, standard deviation 1 and a bell-shaped density: the sum of three
/// uniform numbers, so its values lie within 3 and its kurtosis is 2.6, not the 3 of the true normal
/// distribution; `uniform` for one from [0, 1).
enum class Distribution {
  /// bell
  normal,
  /// bell / (uniform + 0.02): a slash distribution cut off at 150 (binary16: + 0.2, cut off at 15). Shows
  /// samples taken for the whole and ranges assumed.
  heavy_tail,
  /// bell + 16. Shows cancellation and sums kept in too few bits.
  large_offset,
  /// bell / 64, but one element in 64 is 32 * bell. Shows skipped elements and means of a sample.
  sparse_spikes,
  /// -2, -1, 0, 1, 2. Sums of products are exact, whatever their order.
  small_integers,
  /// Exactly 0, but for about eight elements, which are bell (one in eight of fewer than 64 elements). Shows
  /// work that is left out where a sample is zero.
  mostly_zero
};

inline constexpr std::array<Distribution, 6> all_distributions{
    Distribution::normal,        Distribution::heavy_tail,     Distribution::large_offset,
    Distribution::sparse_spikes, Distribution::small_integers, Distribution::mostly_zero};

/// "normal", "heavy_tail", ...
[[nodiscard]] constexpr std::string_view to_string(Distribution distribution) noexcept {
  switch (distribution) {
  case Distribution::normal:
    return "normal";
  case Distribution::heavy_tail:
    return "heavy_tail";
  case Distribution::large_offset:
    return "large_offset";
  case Distribution::sparse_spikes:
    return "sparse_spikes";
  case Distribution::small_integers:
    return "small_integers";
  case Distribution::mostly_zero:
    return "mostly_zero";
  }
  return "";
}

/// Bounds, both included, of the values of one input: its domain, evaluated for a size.
struct ValueRange {
  double low = 0;
  double high = 0;

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// An argument's domain for one size; nothing if it has none. Throws `Error` (`mtmc.task.003`) if a bound
/// cannot be evaluated, (`mtmc.task.002`) if no value of the argument's type lies in it.
[[nodiscard]] inline std::optional<ValueRange> value_range(const Argument& argument,
                                                           const ProblemSize& size) {
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

namespace detail {

/// A multiple of what `philox_fill` does at a time, with and without AVX2.
inline constexpr std::size_t generation_block = 768;
using RandomBlock = std::array<std::uint32_t, generation_block>;
using RealBlock = std::array<float, generation_block>;

/// Sum of an 11-bit, an 11-bit and a doubled 10-bit number, refined by 13 more bits; the standard deviation
/// of the sum is 1024.0. The mean is taken away as an integer, so that small values keep all their bits.
[[nodiscard]] constexpr float bell(std::uint32_t random) noexcept {
  constexpr std::int32_t mean = 3070 * 8192 + 4096;
  const auto coarse =
      static_cast<std::int32_t>((random & 0x7ffu) + ((random >> 11) & 0x7ffu) + ((random >> 22) << 1));
  const auto fine = static_cast<std::int32_t>((random ^ (random >> 7) ^ (random >> 17)) & 0x1fffu);
  return static_cast<float>(coarse * 8192 + fine - mean) * (1.0f / (1024.0f * 8192.0f));
}

/// A second number from the same random word: multiplied by an odd constant, its upper bits depend on all
/// bits.
[[nodiscard]] constexpr std::uint32_t scrambled(std::uint32_t random) noexcept {
  return random * 0x9E3779B1u;
}

/// In [0, 1).
[[nodiscard]] constexpr float unit(std::uint32_t random) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(random >> 8)) * 0x1p-24f;
}

/// Of `count` elements, which are not 0 in `mostly_zero`: those whose scrambled random word is below this.
[[nodiscard]] constexpr std::uint32_t rare_below(std::size_t count) noexcept {
  constexpr std::uint64_t all = std::uint64_t{1} << 32;
  return static_cast<std::uint32_t>(8 * all / std::max<std::uint64_t>(count, 64));
}

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

/// Where in [0, 1] of its domain a value lies.
[[nodiscard]] inline double place_in_domain(Distribution distribution, std::uint32_t random,
                                            std::uint32_t rare, const ValueRange& range) noexcept {
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

/// Sixteen-bit formats are ordered like sign and magnitude, so one step towards the domain is one unit.
template <auto FromFloat, auto ToFloat>
[[nodiscard]] inline std::uint16_t rounded_into(double value, const ValueRange& range) noexcept {
  auto bits = FromFloat(static_cast<float>(value));
  const auto inside = [&](std::uint16_t candidate) {
    const auto real = static_cast<double>(ToFloat(candidate));
    return real >= range.low && real <= range.high;
  };
  if (inside(bits)) return bits;
  const auto up = static_cast<std::uint16_t>(bits + 1);
  const auto down = static_cast<std::uint16_t>(bits - 1);
  return inside(down) ? down : inside(up) ? up : bits;
}

[[nodiscard]] inline float rounded_into_float(double value, const ValueRange& range) noexcept {
  auto real = static_cast<float>(value);
  if (static_cast<double>(real) > range.high) real = std::nextafter(real, -HUGE_VALF);
  if (static_cast<double>(real) < range.low) real = std::nextafter(real, HUGE_VALF);
  return real;
}

inline void store_real(DataType type, double value, const ValueRange& range, std::byte* target) noexcept {
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

/// Writes the low bytes; the machines this library knows are little-endian.
inline void store_integer(DataType type, std::int64_t value, std::byte* target) noexcept {
  std::memcpy(target, &value, size_of(type));
}

/// Smallest and largest value of an integer type, cut to what 64 signed bits hold.
[[nodiscard]] inline std::array<std::int64_t, 2> limits_of(DataType type) noexcept {
  const auto bits = static_cast<int>(8 * size_of(type));
  if (is_signed(type))
    return {bits == 64 ? std::numeric_limits<std::int64_t>::min() : -(std::int64_t{1} << (bits - 1)),
            bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << (bits - 1)) - 1};
  return {0, bits == 64 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1};
}

/// An integer without a domain: small enough that sums and products of thousands stay in 32 bits.
[[nodiscard]] inline std::int64_t default_integer(Distribution distribution, DataType type,
                                                  std::uint32_t random, std::uint32_t rare_word) noexcept {
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

/// What elements are like, wherever they lie.
struct ElementShape {
  DataType type = DataType::f32;
  Distribution distribution = Distribution::normal;
  std::optional<ValueRange> range;
  /// `rare_below` of the whole.
  std::uint32_t rare = 0;
};

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

} // namespace detail

/// Fills `content` with elements of `type`. Every element depends on its place, `key`, `stream` (use one per
/// argument), the distribution and the range (`mostly_zero`: and how many there are), on nothing else. With a
/// range all values lie in it, and the distributions are squeezed into it: in the middle, mostly near the
/// lower end, near the upper end, rare spikes on the value nearest to 0, whole numbers; integers of a range
/// are uniform where a real number would be in the middle. Integers without a range lie between -16 and 16
/// (unsigned: 0 and 16), rare ones further out.
///
/// f32 without a range: 2.8 GB/s on one core of an AMD EPYC (Zen, AVX2, GCC 12.2 -O2); long contents are
/// divided among several threads.
inline void fill_values(std::span<std::byte> content, DataType type, Distribution distribution,
                        std::uint64_t key, std::uint64_t stream,
                        const std::optional<ValueRange>& range = std::nullopt) {
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

/// Everything `fill_values` makes a content from, so that it can be made anywhere and again.
struct ContentRecipe {
  DataType type = DataType::f32;
  std::int64_t elements = 0;
  Distribution distribution = Distribution::normal;
  std::uint64_t key = 0;
  std::uint64_t stream = 0;
  std::optional<ValueRange> range{};

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(elements) * size_of(type);
  }

  friend bool operator==(const ContentRecipe&, const ContentRecipe&) = default;
};

/// Makes the content of a recipe, which is `content.size()` bytes long.
inline void fill_values(std::span<std::byte> content, const ContentRecipe& recipe) {
  fill_values(content, recipe.type, recipe.distribution, recipe.key, recipe.stream, recipe.range);
}

/// Makes as many of the first elements as fit into `content`.
inline void fill_beginning(std::span<std::byte> content, const ContentRecipe& recipe) {
  const detail::ElementShape shape{recipe.type, recipe.distribution, recipe.range,
                                   detail::rare_below(static_cast<std::size_t>(recipe.elements))};
  detail::fill_part(content, shape, recipe.key, 0, recipe.stream);
}

/// Content of one input by the task's `generate` hook. `stream` tells the arguments of a task apart. Throws
/// `Error` (`mtmc.evaluator.002`) if the hook throws.
inline void generate_by_hook(const Task& task, const Argument& argument, const ProblemSize& size,
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
