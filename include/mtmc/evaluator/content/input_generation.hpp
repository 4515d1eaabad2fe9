#pragma once
/// Secret, reproducible contents for the inputs of a kernel.

#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>

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
  mostly_zero,
  /// 2^exponent * bell, with an exponent far below 0 at which results are still normal numbers. Shows
  /// constants that are added or left out, fixed-point arithmetic, and small values taken for zero.
  tiny,
  /// 2^exponent * bell, with an exponent far above 0 at which results are still finite. Shows ranges assumed,
  /// and sums of squares and exponentials that overflow.
  huge,
  /// Each slice (a row, say) of its own kind: bell, the same ascending, with zeros of both signs, with equal
  /// neighbours, of few familiar numbers, all zeros, the slice before once more, the same but for one
  /// element,
  /// bell / 1024, zeros with something at the end, and, unless the exponent is 0, one repeated value. Shows
  /// rows taken for equal or empty after a sample.
  slices,
  /// bell * 2^k, with k drawn for each element from -exponent to exponent. Shows what is done where
  /// neighbours are far apart.
  magnitudes,
  /// Slices around an offset of up to 2^exponent, bell * 64 with and without one, steeply ascending, of one
  /// repeated value, of whole numbers up to 100 and up to 255, with denormals here and there, and equal to
  /// the one before. Shows missing safeguards of norms and exponentials.
  far_slices,
  /// Inputs that have a structure as a whole (`detail::InputStructure`): all ones, an identity, a symmetric
  /// or
  /// triangular matrix, bytes of an image, equal rows, a mask of -10000, the same content in two inputs.
  /// Shows
  /// what is done where inputs look familiar.
  structured
};

/// Every distribution.
inline constexpr std::array<Distribution, 12> all_distributions{
    Distribution::normal,        Distribution::heavy_tail,     Distribution::large_offset,
    Distribution::sparse_spikes, Distribution::small_integers, Distribution::mostly_zero,
    Distribution::slices,        Distribution::tiny,           Distribution::huge,
    Distribution::magnitudes,    Distribution::far_slices,     Distribution::structured};

/// Whether inputs are of far scales, of slices that are unlike each other, or of a structure.
[[nodiscard]] constexpr bool is_far(Distribution distribution) noexcept {
  return distribution == Distribution::tiny || distribution == Distribution::huge ||
         distribution == Distribution::slices || distribution == Distribution::magnitudes ||
         distribution == Distribution::far_slices || distribution == Distribution::structured;
}

/// Whether inputs are there to show something else and amplify errors on purpose.
[[nodiscard]] constexpr bool amplifies(Distribution distribution) noexcept {
  return distribution == Distribution::far_slices || distribution == Distribution::structured;
}

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
  case Distribution::tiny:
    return "tiny";
  case Distribution::huge:
    return "huge";
  case Distribution::slices:
    return "slices";
  case Distribution::magnitudes:
    return "magnitudes";
  case Distribution::far_slices:
    return "far_slices";
  case Distribution::structured:
    return "structured";
  }
  return "";
}

/// Bounds, both included, of the values of one input: its domain, evaluated for a size.
struct ValueRange {
  double low = 0;  ///< least value
  double high = 0; ///< largest value

  friend bool operator==(const ValueRange&, const ValueRange&) = default; ///< member by member
};

/// An argument's domain for one size; nothing if it has none. Throws `Error` (`mtmc.task.003`) if a bound
/// cannot be evaluated, (`mtmc.task.002`) if no value of the argument's type lies in it.
[[nodiscard]] std::optional<ValueRange> value_range(const Argument& argument, const ProblemSize& size);

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

/// Where in [0, 1] of its domain a value lies.
[[nodiscard]] double place_in_domain(Distribution distribution, std::uint32_t random, std::uint32_t rare,
                                     const ValueRange& range) noexcept;

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

void store_real(DataType type, double value, const ValueRange& range, std::byte* target) noexcept;

/// Writes the low bytes; the machines this library knows are little-endian.
void store_integer(DataType type, std::int64_t value, std::byte* target) noexcept;

/// Smallest and largest value of an integer type, cut to what 64 signed bits hold.
[[nodiscard]] std::array<std::int64_t, 2> limits_of(DataType type) noexcept;

/// An integer without a domain: small enough that sums and products of thousands stay in 32 bits.
[[nodiscard]] std::int64_t default_integer(Distribution distribution, DataType type, std::uint32_t random,
                                           std::uint32_t rare_word) noexcept;

/// What elements are like, wherever they lie.
struct ElementShape {
  DataType type = DataType::f32;
  Distribution distribution = Distribution::normal;
  std::optional<ValueRange> range;
  /// `rare_below` of the whole.
  std::uint32_t rare = 0;
  /// Reals without a range are multiplied by the factor, a power of two, and then moved by the offset.
  float factor = 1;
  float offset = 0;
  /// As in `ContentRecipe`; `slice` is at least 1.
  std::int64_t slice = 1;
  int exponent = 0;
  /// Of the whole.
  std::int64_t elements = 1;

  /// Whether elements are reals without a range.
  [[nodiscard]] bool is_free_real() const noexcept { return is_floating(type) && !range; }
};

/// What else a slice may look like; the device's kernel has the same numbers. `ramp`: ascending by 1/64.
/// `signed_zeros`: one element in four is -0. `pairs`: neighbours are equal. `familiar`: 0, 1, -1, 2, 0.5, 3,
/// 0.1, -2. `steep_ramp`: ascending by 1. `far_familiar`: the same, -0, and some up to 100. `early`: zeros in
/// the second half. `rectified`: zeros in place of negative numbers. `pixels`: whole numbers up to 255.
/// `subnormal`: one element in eight is a denormal of f32.
enum class SliceTexture : std::uint8_t {
  none = 0,
  ramp = 1,
  signed_zeros = 2,
  pairs = 3,
  familiar = 4,
  steep_ramp = 5,
  far_familiar = 6,
  early = 7,
  rectified = 8,
  pixels = 9,
  subnormal = 10
};

/// How the elements of one slice are made. The device's kernel has the same rules.
struct SliceStyle {
  /// The slice whose random numbers they are made from.
  std::uint64_t source = 0;
  Distribution distribution = Distribution::normal;
  float factor = 1;
  float offset = 0;
  /// Reals without a range that are no plain distribution.
  SliceTexture texture = SliceTexture::none;
  /// All elements are made from this word.
  std::optional<std::uint32_t> repeated{};
  /// So many elements at the beginning are zero.
  std::uint64_t empty = 0;
  /// The place of the one element that differs from those of `source`.
  std::optional<std::uint64_t> odd{};
};

/// The style of one slice of an input.
[[nodiscard]] SliceStyle style_of(std::uint64_t slice, std::uint64_t key, std::uint64_t stream,
                                  const ElementShape& shape) noexcept;

} // namespace detail

/// Fills `content` with elements of `type`. Every element depends on its place, `key`, `stream` (use one per
/// argument), the distribution and the range (`mostly_zero`: and how many there are), on nothing else. With a
/// range all values lie in it, and the distributions are squeezed into it: in the middle, mostly near the
/// lower end, near the upper end, rare spikes on the value nearest to 0, whole numbers; integers of a range
/// are uniform where a real number would be in the middle. Integers without a range lie between -16 and 16
/// (unsigned: 0 and 16), rare ones further out. With a range, and for integers, `tiny` and `magnitudes` are
/// as `heavy_tail` and `huge` as `large_offset`.
///
/// f32 without a range: 2.8 GB/s on one core of an AMD EPYC (Zen, AVX2, GCC 12.2 -O2); long contents are
/// divided among several threads.
void fill_values(std::span<std::byte> content, DataType type, Distribution distribution, std::uint64_t key,
                 std::uint64_t stream, const std::optional<ValueRange>& range = std::nullopt);

/// The exponent that a distribution is made with where nothing smaller is asked for; 0 if it has none. For
/// `structured` a structure: rows in equal pairs.
[[nodiscard]] constexpr int usual_exponent(Distribution distribution) noexcept {
  switch (distribution) {
  case Distribution::tiny:
    return -24;
  case Distribution::huge:
  case Distribution::magnitudes:
    return 24;
  case Distribution::slices:
    return 1;
  case Distribution::far_slices:
    return 8;
  case Distribution::structured:
    return 10;
  default:
    return 0;
  }
}

/// Everything `fill_values` makes a content from, so that it can be made anywhere and again.
struct ContentRecipe {
  DataType type = DataType::f32;                    ///< type of the elements
  std::int64_t elements = 0;                        ///< how many there are
  Distribution distribution = Distribution::normal; ///< how values are distributed
  std::uint64_t key = 0;                            ///< key of the random numbers
  std::uint64_t stream = 0;                         ///< which stream of the key
  std::optional<ValueRange> range{}; ///< bounds of the values; nothing = those of the distribution
  /// For `slices`, `far_slices` and `structured`: elements of a slice, which lie next to each other; 0 = all
  /// are one slice.
  std::int64_t slice = 0;
  /// For `tiny`, `huge`, `magnitudes`, `slices` and `far_slices`: what they are made with; for `structured`:
  /// which structure.
  int exponent = 0;

  /// Size of the content.
  [[nodiscard]] std::size_t bytes() const noexcept;

  friend bool operator==(const ContentRecipe&, const ContentRecipe&) = default; ///< member by member
};

namespace detail {
/// What the elements of a recipe are like.
[[nodiscard]] ElementShape shape_of(const ContentRecipe& recipe) noexcept;
} // namespace detail

/// Makes the content of a recipe, which is `content.size()` bytes long.
void fill_values(std::span<std::byte> content, const ContentRecipe& recipe);

/// Makes as many of the first elements as fit into `content`.
void fill_beginning(std::span<std::byte> content, const ContentRecipe& recipe);

/// Content of one input by the task's `generate` hook. `stream` tells the arguments of a task apart. Throws
/// `Error` (`mtmc.evaluator.002`) if the hook throws.
void generate_by_hook(const Task& task, const Argument& argument, const ProblemSize& size, std::uint64_t key,
                      std::uint64_t stream, std::span<std::byte> content);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/input_generation_inl.hpp>
#endif
