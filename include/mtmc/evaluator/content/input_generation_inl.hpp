#pragma once
/// Definitions of evaluator/content/input_generation.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/input_structure.hpp>
#include <mtmc/support/parallel.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/wide_vectors.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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

/// 2^k for k from `-farthest` to `farthest`, by an element's random word.
[[nodiscard]] inline float power_within(std::uint32_t random, std::int32_t farthest) noexcept {
  const auto choices = static_cast<std::uint32_t>(2 * farthest + 1);
  const auto above_least = static_cast<std::int32_t>(((scrambled(random) >> 16) * choices) >> 16);
  return std::bit_cast<float>(static_cast<std::uint32_t>(above_least - farthest + 127) << 23);
}

/// One block of values without a domain. `tail` is what keeps the heavy tail finite.
inline void shape_reals(const ElementShape& shape, const RandomBlock& random, float tail,
                        RealBlock& values) noexcept {
  const auto rare = shape.rare;
  switch (shape.distribution) {
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
  case Distribution::magnitudes:
    for (std::size_t i = 0; i < generation_block; ++i)
      values[i] = bell(random[i]) * power_within(random[i], std::abs(shape.exponent));
    break;
  case Distribution::tiny:
  case Distribution::huge:
  case Distribution::slices:
  case Distribution::far_slices:
  case Distribution::structured:
    break;
  }
}

/// `values[i] * factor + offset`. The product is exact, so that it does not matter whether the sum is fused.
inline void scale_reals(float factor, float offset, RealBlock& values) noexcept {
  for (std::size_t i = 0; i < generation_block; ++i) values[i] = values[i] * factor + offset;
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
  case Distribution::tiny:
  case Distribution::huge:
  case Distribution::slices:
  case Distribution::magnitudes:
  case Distribution::far_slices:
  case Distribution::structured:
    break;
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
  case Distribution::tiny:
  case Distribution::huge:
  case Distribution::slices:
  case Distribution::magnitudes:
  case Distribution::far_slices:
  case Distribution::structured:
    break;
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

/// The elements from place `from` on, all made by one of the plain distributions. `repeated`: the random word
/// of each of them.
inline void fill_run(std::span<std::byte> content, const ElementShape& shape, std::uint64_t key,
                     std::uint64_t from, std::uint64_t stream,
                     std::optional<std::uint32_t> repeated = std::nullopt) {
  const auto type = shape.type;
  const auto distribution = shape.distribution;
  const auto& range = shape.range;
  const auto rare = shape.rare;
  const std::size_t width = size_of(type);
  const std::size_t count = content.size() / width;
  const float tail = type == DataType::f16 ? 0.2f : 0.02f;
  RandomBlock random;
  RealBlock values;
  const bool moved = shape.factor != 1 || shape.offset != 0;
  if (repeated) random.fill(*repeated);
  // Random words come in blocks of four.
  std::size_t skip = from % 4;
  for (std::size_t first = 0, here = 0; first < count; first += here, skip = 0) {
    here = std::min(generation_block - skip, count - first);
    // Runs of a single element are many: no more words than are used. `shape_reals` reads them all.
    const std::size_t used = range || !is_floating(type) ? (skip + here + 3) / 4 * 4 : random.size();
    if (!repeated) philox_fill(std::span(random).first(used), key, (from + first) / 4, stream);
    std::byte* target = content.data() + first * width;
    const std::uint32_t* const words = random.data() + skip;
    if (!is_floating(type)) {
      for (std::size_t i = 0; i < here; ++i)
        store_integer(type,
                      range ? integer_in(*range, distribution, words[i], rare)
                            : default_integer(distribution, type, words[i], rare),
                      target + i * width);
      continue;
    }
    if (range) {
      for (std::size_t i = 0; i < here; ++i) {
        const double place = place_in_domain(distribution, words[i], rare, *range);
        const double value =
            std::clamp(range->low + place * (range->high - range->low), range->low, range->high);
        store_real(type, value, *range, target + i * width);
      }
      continue;
    }
    with_wide_vectors([&] { shape_reals(shape, random, tail, values); });
    if (moved) with_wide_vectors([&] { scale_reals(shape.factor, shape.offset, values); });
    const float* const made = values.data() + skip;
    if (type == DataType::f32) {
      std::memcpy(target, made, here * sizeof(float));
    } else if (type == DataType::f64) {
      // The lower half of the mantissa must be filled as well, or f32 arithmetic would pass for f64.
      const bool fill = distribution != Distribution::small_integers;
      for (std::size_t i = 0; i < here; ++i) {
        const double more = fill ? static_cast<double>(scrambled(words[i] ^ 0x5bd1e995u)) * 0x1p-56 : 0;
        const double value = static_cast<double>(made[i]) * (1 + more);
        std::memcpy(target + i * width, &value, sizeof value);
      }
    } else {
      for (std::size_t i = 0; i < here; ++i) {
        const std::uint16_t bits =
            type == DataType::f16 ? float_to_half(made[i]) : float_to_bfloat16(made[i]);
        std::memcpy(target + i * width, &bits, sizeof bits);
      }
    }
  }
}

[[nodiscard]] inline bool copies(std::uint64_t hash) noexcept { return hash >> 60 >= 10 && hash >> 60 <= 12; }
[[nodiscard]] inline bool almost_copies(std::uint64_t hash) noexcept { return hash >> 60 == 12; }

/// The style of a slice of `slices` that copies no other, by its kind.
[[nodiscard]] inline SliceStyle near_style(std::uint64_t hash, const ElementShape& shape) noexcept {
  const auto length = static_cast<std::uint64_t>(shape.slice);
  const auto kind = hash >> 60;
  SliceStyle style;
  if (kind >= 1 && kind <= 4) style.texture = static_cast<SliceTexture>(kind);
  if (kind == 5) style.texture = SliceTexture::rectified;
  if (kind == 6) style.texture = SliceTexture::early;
  if (kind == 15) style.texture = SliceTexture::familiar;
  if (kind == 7 || kind == 8) style.empty = length;
  if (kind == 9 && shape.exponent != 0) style.repeated = static_cast<std::uint32_t>(hash);
  if (kind == 13) style.factor = 0x1p-10f;
  if (kind == 14) style.empty = length - std::max<std::uint64_t>(1, length / 16);
  return style;
}

/// The style of a slice of `far_slices` that copies no other, by its kind.
[[nodiscard]] inline SliceStyle far_style(std::uint64_t hash, const ElementShape& shape) noexcept {
  const auto kind = hash >> 60;
  SliceStyle style;
  if (kind >= 2 && kind <= 7) {
    const float share = static_cast<float>(16 + (hash & 15u)) / 32.0f;
    const float offset = std::ldexp(share, shape.exponent);
    style.offset = kind % 2 == 0 ? offset : -offset;
    if (kind >= 6) style.factor = 64;
  }
  if (kind == 1) style.texture = SliceTexture::steep_ramp;
  const bool odd = (hash >> 8 & 1u) != 0;
  if (kind == 8) style.repeated = static_cast<std::uint32_t>(hash);
  if (kind == 8 && odd) style.factor = 64;
  if (kind == 9) style.texture = SliceTexture::pixels;
  if (kind == 13) style.texture = SliceTexture::far_familiar;
  if (kind == 14) style.empty = static_cast<std::uint64_t>(shape.slice) / 2;
  if (kind >= 14) style.factor = 64;
  if (kind == 15 && odd && shape.exponent != 0) style.texture = SliceTexture::subnormal;
  return style;
}

/// The style of a slice that copies no other. Values of a range and integers have no textures, factors and
/// offsets: those that would are far up in their range.
[[nodiscard]] inline SliceStyle own_style(std::uint64_t slice, std::uint64_t hash,
                                          const ElementShape& shape) noexcept {
  auto style = shape.distribution == Distribution::slices ? near_style(hash, shape) : far_style(hash, shape);
  style.source = slice;
  if (shape.is_free_real()) return style;
  if (style.offset != 0 || style.factor != 1) style.distribution = Distribution::large_offset;
  style.texture = SliceTexture::none;
  style.offset = 0;
  style.factor = 1;
  return style;
}

MTMC_INLINE SliceStyle style_of(std::uint64_t slice, std::uint64_t key, std::uint64_t stream,
                                const ElementShape& shape) noexcept {
  const auto hash = slice_hash(slice, key, stream);
  if (!copies(hash)) return own_style(slice, hash, shape);
  SliceStyle style;
  style.source = slice;
  if (slice == 0) return style;
  const auto before = slice_hash(slice - 1, key, stream);
  if (copies(before)) return style;
  style = own_style(slice - 1, before, shape);
  if (almost_copies(hash)) style.odd = (hash & 0xffffffffu) % static_cast<std::uint64_t>(shape.slice);
  return style;
}

/// Stores a real number that has no bounds.
inline void store_free_real(DataType type, float value, std::byte* target) noexcept {
  if (type == DataType::f64) {
    const double wide = static_cast<double>(value);
    std::memcpy(target, &wide, sizeof wide);
  } else if (type == DataType::f32) {
    std::memcpy(target, &value, sizeof value);
  } else {
    const auto bits = type == DataType::f16 ? float_to_half(value) : float_to_bfloat16(value);
    std::memcpy(target, &bits, sizeof bits);
  }
}

/// Elements of a slice with a texture, from place `in` of the slice on; `first`: its first element's place.
inline void fill_texture(std::span<std::byte> content, const ElementShape& shape, SliceTexture texture,
                         std::uint64_t key, std::uint64_t first, std::uint64_t in, std::uint64_t stream) {
  const auto type = shape.type;
  const auto half = static_cast<std::uint64_t>(shape.slice) / 2;
  constexpr std::array<float, 8> familiar{0, 1, -1, 2, 0.5f, 3, 0.1f, -2};
  constexpr std::array<float, 16> far_familiar{0,     1, -1, 10,   -10, 100,  -100, 50,
                                               -0.0f, 2, -2, 0.5f, 3,   0.1f, 20,   -50};
  const auto width = size_of(type);
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < content.size() / width; ++i) {
    const auto at = in + i;
    const auto place = first + (texture == SliceTexture::pairs ? at & ~std::uint64_t{1} : at);
    philox_fill(words, key, place / 4, stream);
    const auto word = words[place % 4];
    float value = bell(word);
    if (texture == SliceTexture::ramp) value = static_cast<float>(at % 1024) * 0x1p-6f - 4.0f;
    if (texture == SliceTexture::signed_zeros && word % 4 == 0) value = -0.0f;
    if (texture == SliceTexture::steep_ramp) value = static_cast<float>(at % 256) - 64.0f;
    if (texture == SliceTexture::familiar) value = familiar[word >> 29];
    if (texture == SliceTexture::far_familiar) value = far_familiar[word >> 28];
    if (texture == SliceTexture::early && at >= half) value = 0;
    if (texture == SliceTexture::rectified && value < 0) value = 0;
    if (texture == SliceTexture::pixels) value = static_cast<float>(word >> 24);
    if (texture == SliceTexture::subnormal && word % 8 == 0)
      value = std::bit_cast<float>((word & 0x80000000u) | ((word >> 12 & 0x7ffu) + 1u));
    store_free_real(type, value, content.data() + i * width);
  }
}

/// Elements of one slice, from place `in` of it on.
inline void fill_slice(std::span<std::byte> content, const ElementShape& shape, std::uint64_t key,
                       std::uint64_t slice, std::uint64_t in, std::uint64_t stream) {
  const auto length = static_cast<std::uint64_t>(shape.slice);
  const auto width = size_of(shape.type);
  const auto count = content.size() / width;
  const auto style = style_of(slice, key, stream, shape);
  ElementShape plain = shape;
  plain.distribution = Distribution::mostly_zero;
  plain.rare = 0;
  const auto zeros = std::min<std::uint64_t>(count, style.empty > in ? style.empty - in : 0);
  fill_run(content.first(zeros * width), plain, key, 0, stream, 0);
  plain.distribution = style.distribution;
  plain.factor = style.factor;
  plain.offset = style.offset;
  const auto rest = content.subspan(zeros * width);
  if (style.texture == SliceTexture::none)
    fill_run(rest, plain, key, style.source * length + in + zeros, stream, style.repeated);
  else
    fill_texture(rest, shape, style.texture, key, style.source * length, in + zeros, stream);
  if (!style.odd || *style.odd < in || *style.odd >= in + count) return;
  plain.distribution = Distribution::normal;
  plain.factor = 1;
  plain.offset = 0;
  fill_run(content.subspan((*style.odd - in) * width, width), plain, key, slice * length + *style.odd,
           stream);
}

/// The elements from place `from` on of an input with a structure. Values of a range and integers have but
/// what repeats in it.
inline void fill_structured(std::span<std::byte> content, const ElementShape& shape, std::uint64_t key,
                            std::uint64_t from, std::uint64_t stream) {
  const auto structure = static_cast<InputStructure>(shape.exponent);
  const auto slice = static_cast<std::uint64_t>(shape.slice);
  const auto own = structure == InputStructure::shared ? shared_stream : stream;
  const auto width = size_of(shape.type);
  ElementShape plain = shape;
  plain.distribution = Distribution::normal;
  std::array<std::uint32_t, 4> words{};
  std::uint64_t filled = ~std::uint64_t{0};
  const auto word_of = [&](std::uint64_t place) {
    if (place / 4 != filled) philox_fill(words, key, place / 4, own);
    filled = place / 4;
    return words[place % 4];
  };
  for (std::size_t i = 0; i < content.size() / width; ++i) {
    const auto element = from + i;
    const auto source = source_of(structure, element, slice, static_cast<std::uint64_t>(shape.elements), key);
    const auto target = content.subspan(i * width, width);
    if (!shape.is_free_real()) {
      fill_run(target, plain, key, source, own);
      continue;
    }
    const float of_column =
        structure == InputStructure::separable ? bell(word_of(first_column_word + element % slice)) : 0;
    const auto word = word_of(source);
    store_free_real(shape.type,
                    structured_value(structure, element, slice, word, bell(word), unit(word), of_column),
                    target.data());
  }
}

/// The elements from place `from` on.
inline void fill_part(std::span<std::byte> content, const ElementShape& shape, std::uint64_t key,
                      std::uint64_t from, std::uint64_t stream) {
  if (shape.distribution == Distribution::slices || shape.distribution == Distribution::far_slices) {
    const auto length = static_cast<std::uint64_t>(shape.slice);
    const auto width = size_of(shape.type);
    for (std::size_t done = 0, here = 0; done < content.size() / width; done += here) {
      const auto in = (from + done) % length;
      here = std::min<std::size_t>(content.size() / width - done, length - in);
      fill_slice(content.subspan(done * width, here * width), shape, key, (from + done) / length, in, stream);
    }
    return;
  }
  if (shape.distribution == Distribution::structured)
    return fill_structured(content, shape, key, from, stream);
  ElementShape plain = shape;
  if (shape.distribution == Distribution::magnitudes && !shape.is_free_real())
    plain.distribution = Distribution::heavy_tail;
  const bool scaled = shape.distribution == Distribution::tiny || shape.distribution == Distribution::huge;
  if (scaled && shape.is_free_real()) {
    plain.distribution = Distribution::normal;
    plain.factor = std::ldexp(1.0f, shape.exponent);
  } else if (scaled) {
    plain.distribution =
        shape.distribution == Distribution::tiny ? Distribution::heavy_tail : Distribution::large_offset;
  }
  fill_run(content, plain, key, from, stream);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void fill_values(std::span<std::byte> content, DataType type, Distribution distribution,
                             std::uint64_t key, std::uint64_t stream,
                             const std::optional<ValueRange>& range) {
  constexpr std::int64_t usual_slice = 64;
  const auto elements = static_cast<std::int64_t>(content.size() / size_of(type));
  fill_values(content, ContentRecipe{type, elements, distribution, key, stream, range, usual_slice,
                                     usual_exponent(distribution)});
}

MTMC_INLINE std::size_t ContentRecipe::bytes() const noexcept {
  return static_cast<std::size_t>(elements) * size_of(type);
}

MTMC_INLINE detail::ElementShape detail::shape_of(const ContentRecipe& recipe) noexcept {
  ElementShape shape;
  shape.type = recipe.type;
  shape.distribution = recipe.distribution;
  shape.range = recipe.range;
  shape.rare = rare_below(static_cast<std::size_t>(recipe.elements));
  shape.elements = recipe.elements;
  shape.slice = std::max<std::int64_t>(1, recipe.slice > 0 ? recipe.slice : recipe.elements);
  // binary16 reaches neither far up nor far down.
  constexpr int farthest = 5;
  const bool scaled = recipe.distribution != Distribution::structured;
  shape.exponent = scaled && recipe.type == DataType::f16 ? std::clamp(recipe.exponent, -farthest, farthest)
                                                          : recipe.exponent;
  return shape;
}

MTMC_INLINE void fill_values(std::span<std::byte> content, const ContentRecipe& recipe) {
  const std::size_t width = size_of(recipe.type);
  const std::size_t count = content.size() / width;
  const auto shape = detail::shape_of(recipe);
  // Starting a thread takes as long as 100 KiB.
  constexpr std::size_t worth_a_thread = std::size_t{1} << 19;
  detail::for_each_part(count, worth_a_thread, detail::generation_block,
                        [&](std::size_t first, std::size_t size) {
                          detail::fill_part(content.subspan(first * width, size * width), shape, recipe.key,
                                            first, recipe.stream);
                        });
}

MTMC_INLINE void fill_beginning(std::span<std::byte> content, const ContentRecipe& recipe) {
  detail::fill_part(content, detail::shape_of(recipe), recipe.key, 0, recipe.stream);
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
