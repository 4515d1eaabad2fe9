#pragma once
/// How large an error of a result may be.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What is allowed for one output: element i of the candidate may differ from the reference by
/// `relative` * max(`scale`, |reference i|).
struct Tolerance {
  /// Share of the larger of `scale` and the reference's magnitude.
  double relative = 0;
  /// Mean magnitude of the reference's finite elements, so that outputs of 1e-6 are judged as strictly as
  /// those of 1, and elements that cancel to almost nothing are not asked for digits they never had.
  double scale = 0;
  /// Errors up to this many times the allowed one are what arithmetic in the next lower precision makes.
  double lower_precision_factor = 1;

  friend bool operator==(const Tolerance&, const Tolerance&) = default; ///< member by member
};

/// What was measured of the reference when the task was prepared.
struct Conditioning {
  /// How many numbers are combined into one output element (the K of a matrix product).
  double terms = 1;
  /// How many times a change of the inputs by one unit in the last place grows on its way to the output.
  double amplification = 1;
  /// Epsilons that are allowed for sums, times the square root of `terms`.
  double walk = 8;
  /// Epsilons that are allowed for everything else, in 32 and 64 bits.
  double base = 16;

  friend bool operator==(const Conditioning&, const Conditioning&) = default; ///< member by member
};

/// `Conditioning::walk` where results are compared with the truth, on inputs that are alike and of both
/// signs: three times what adding one number after the other, the most unlucky order, was seen to err there.
/// Two terms of bf16 for each factor err more than that in sums of up to some hundred products.
inline constexpr double walk_on_even_inputs = 2.25;

/// `Conditioning::base` where the reference is off by the truth by so many epsilons at most, and what it does
/// is not in sums: eight times that, 16 at most, and at least 6, which fast intrinsics of two units in the
/// last place and a rounding or two keep, and a mantissa cut by four bits (16, or 8 rounded) does not.
[[nodiscard]] constexpr double base_for(double reference_epsilons) noexcept {
  constexpr double least = 6, most = 16;
  const double allowed = 8 * reference_epsilons;
  return allowed < least ? least : allowed > most ? most : allowed;
}

/// Relative spacing of the next lower precision that a kernel for this type may be tempted to use: f32 for
/// f64, f16 (and TF32, which has as many bits) for f32, 8-bit floats for the 16-bit types. 0 for integers.
[[nodiscard]] constexpr double lower_epsilon(DataType type) noexcept {
  switch (type) {
  case DataType::f64:
    return epsilon_of(DataType::f32);
  case DataType::f32:
    return epsilon_of(DataType::f16);
  case DataType::f16:
  case DataType::bf16:
    return 0x1p-3;
  default:
    return 0;
  }
}

/// Relative spacing of the coarsest format that a kernel for this type may be tempted to read its inputs in:
/// bf16 for f32, else that of `lower_epsilon`.
[[nodiscard]] constexpr double coarsest_epsilon(DataType type) noexcept {
  return type == DataType::f32 ? epsilon_of(DataType::bf16) : lower_epsilon(type);
}

/// The largest relative error allowed for results of a type on inputs that are to tell precisions apart: a
/// quarter of the next lower precision's spacing.
[[nodiscard]] constexpr double largest_tolerance(DataType type) noexcept { return lower_epsilon(type) / 4; }

/// The same on inputs that are there to show something else and amplify errors on purpose, where that is
/// more.
inline constexpr double largest_deliberate_tolerance = 0.05;

/// The relative error allowed for results of a type; 0 for integers, which must be exact.
///
/// Rounding errors of an honest kernel that adds `terms` numbers in whatever order walk at random: measured
/// on the most unlucky order, one after the other, the largest of a million outputs is off by 0.75 epsilon *
/// sqrt(terms) of the output's mean magnitude, and by up to 6 where one sum feeds the next (a mean, then a
/// variance, on sparse inputs). Allowed is 8 epsilon * sqrt(terms), plus 16 epsilon for
/// elementary functions of a few units in the last place, times the amplification; less where more is known
/// (`Conditioning::walk`, `Conditioning::base`). 16-bit results are taken
/// to be computed in f32 and rounded: 4 of their own epsilons. Never more than `largest_tolerance`, so that
/// arithmetic in the next lower precision fails; on inputs that are there to show something else and amplify
/// errors on purpose (`deliberate`), never more than `largest_deliberate_tolerance`.
[[nodiscard]] inline double relative_tolerance(DataType type, const Conditioning& conditioning,
                                               bool deliberate = false) noexcept {
  if (!is_floating(type)) return 0;
  const bool half = size_of(type) == 2;
  const double accumulated = half ? epsilon_of(DataType::f32) : epsilon_of(type);
  const double base = half ? 4 * epsilon_of(type) : conditioning.base * epsilon_of(type);
  const double walk = conditioning.walk * accumulated * std::sqrt(std::max(1.0, conditioning.terms));
  const double largest =
      deliberate ? std::max(largest_deliberate_tolerance, largest_tolerance(type)) : largest_tolerance(type);
  return std::min((base + walk) * std::max(1.0, conditioning.amplification), largest);
}

/// How far arithmetic in a lower precision goes beyond an allowed relative error, a tenth at most. Measured:
/// two epsilons of the next lower precision for results and 0.7 * sqrt(terms) of them for an accumulator;
/// inputs rounded or cut off to the coarsest format, two of its epsilons, however many there are. A term left
/// out of 512 shows as 0.06 of the output's scale, four times as much.
[[nodiscard]] inline double lower_precision_factor(DataType type, double relative,
                                                   const Conditioning& conditioning) noexcept {
  if (!is_floating(type) || !(relative > 0)) return 1;
  const double accumulated = lower_epsilon(type) * (2 + 0.7 * std::sqrt(std::max(1.0, conditioning.terms)));
  const double typical =
      std::max(accumulated, 2 * coarsest_epsilon(type)) * std::max(1.0, conditioning.amplification);
  return std::max(1.0, std::min(typical, 0.1) / relative);
}

namespace detail {

/// Calls `use(i, value)` for every element of a floating-point buffer.
template <class Use> void for_each_real(std::span<const std::byte> content, DataType type, Use&& use) {
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i * width < content.size(); ++i) {
    const std::byte* at = content.data() + i * width;
    double value = 0;
    if (type == DataType::f64) {
      std::memcpy(&value, at, sizeof value);
    } else if (type == DataType::f32) {
      float real = 0;
      std::memcpy(&real, at, sizeof real);
      value = static_cast<double>(real);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      value = static_cast<double>(type == DataType::f16 ? half_to_float(bits) : bfloat16_to_float(bits));
    }
    use(i, value);
  }
}

/// Whether all elements of a floating-point buffer are finite numbers.
[[nodiscard]] inline bool all_finite(std::span<const std::byte> content, DataType type) {
  bool finite = true;
  for_each_real(content, type, [&](std::size_t, double value) { finite = finite && std::isfinite(value); });
  return finite;
}

template <class Real> [[nodiscard]] double mean_magnitude(std::span<const std::byte> content) noexcept {
  // Lanes, so that compilers may vectorise the sum without being allowed to reorder it.
  constexpr std::size_t lanes = 16;
  const std::size_t count = content.size() / sizeof(Real);
  double total = 0;
  double finite = 0;
  std::size_t i = 0;
  for (; i + 512 <= count; i += 512) {
    Real values[512];
    std::memcpy(values, content.data() + i * sizeof(Real), sizeof values);
    Real sums[lanes] = {};
    for (std::size_t j = 0; j < 512; j += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += std::abs(values[j + lane]);
    double block = 0;
    for (const Real sum : sums) block += static_cast<double>(sum);
    if (std::isfinite(block)) {
      total += block;
      finite += 512;
      continue;
    }
    for (const Real value : values)
      if (std::isfinite(value)) total += std::abs(static_cast<double>(value)), finite += 1;
  }
  for (; i < count; ++i) {
    Real value;
    std::memcpy(&value, content.data() + i * sizeof(Real), sizeof value);
    if (std::isfinite(value)) total += std::abs(static_cast<double>(value)), finite += 1;
  }
  return finite > 0 ? total / finite : 0;
}

} // namespace detail

/// Mean magnitude of the finite elements; 0 for integers and if there are none.
[[nodiscard]] inline double output_scale(std::span<const std::byte> content, DataType type) {
  if (!is_floating(type)) return 0;
  if (type == DataType::f32) return detail::mean_magnitude<float>(content);
  if (type == DataType::f64) return detail::mean_magnitude<double>(content);
  double total = 0;
  double finite = 0;
  detail::for_each_real(content, type, [&](std::size_t, double value) {
    if (std::isfinite(value)) total += std::abs(value), finite += 1;
  });
  return finite > 0 ? total / finite : 0;
}

/// Moves every finite element of a floating-point buffer by one unit in the last place, up or down at random;
/// integers stay. Zero stays too, because its neighbour is no rounding error.
inline void perturb_last_place(std::span<std::byte> content, DataType type, std::uint64_t key) {
  if (!is_floating(type)) return;
  const std::size_t width = size_of(type);
  PhiloxEngine random(key, 0x7e27);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i * width < content.size(); ++i) {
    if (i % 32 == 0) bits = random();
    const bool up = (bits >> (i % 32)) & 1u;
    std::byte* at = content.data() + i * width;
    // In all these formats the next larger magnitude is the next larger integer.
    const auto step = [&](auto word, auto exponent_mask) {
      using Word = decltype(word);
      std::memcpy(&word, at, sizeof word);
      if ((word & exponent_mask) == exponent_mask || (word & exponent_mask) == 0) return;
      word = static_cast<Word>(up ? word + 1 : word - 1);
      std::memcpy(at, &word, sizeof word);
    };
    if (type == DataType::f64) step(std::uint64_t{}, std::uint64_t{0x7ff0000000000000u});
    if (type == DataType::f32) step(std::uint32_t{}, std::uint32_t{0x7f800000u});
    if (type == DataType::f16) step(std::uint16_t{}, std::uint16_t{0x7c00u});
    if (type == DataType::bf16) step(std::uint16_t{}, std::uint16_t{0x7f80u});
  }
}

/// Amplification from the reference's results on some inputs and on the same inputs after
/// `perturb_last_place`: the `share` quantile, over (a sample of at most 65,536 of) the elements, of the
/// change in units of epsilon * max(scale, |element|). A quantile, because a function with jumps (a
/// rounding, a comparison) may move a few elements by any amount. At least 1.
[[nodiscard]] inline double measured_amplification(std::span<const std::byte> plain,
                                                   std::span<const std::byte> perturbed, DataType type,
                                                   double share = 0.9) {
  if (!is_floating(type) || plain.size() != perturbed.size()) return 1;
  const double scale = output_scale(plain, type);
  const std::size_t width = size_of(type);
  const std::size_t count = plain.size() / width;
  const std::size_t stride = count / 65536 + 1;
  std::vector<double> moves;
  for (std::size_t i = 0; i < count; i += stride) {
    double a = 0;
    double b = 0;
    detail::for_each_real(plain.subspan(i * width, width), type, [&](std::size_t, double v) { a = v; });
    detail::for_each_real(perturbed.subspan(i * width, width), type, [&](std::size_t, double v) { b = v; });
    const double unit = epsilon_of(type) * std::max(scale, std::abs(a));
    if (std::isfinite(a) && std::isfinite(b) && unit > 0) moves.push_back(std::abs(a - b) / unit);
  }
  if (moves.empty()) return 1;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(moves.size() - 1) * share);
  std::nth_element(moves.begin(), moves.begin() + at, moves.end());
  return std::max(1.0, moves[static_cast<std::size_t>(at)]);
}

/// Number of elements of `a` and `b` whose bits differ.
[[nodiscard]] inline std::int64_t count_different(std::span<const std::byte> a, std::span<const std::byte> b,
                                                  DataType type) noexcept {
  if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)) return 0;
  const std::size_t width = size_of(type);
  std::int64_t count = 0;
  for (std::size_t i = 0; i + width <= a.size() && i + width <= b.size(); i += width)
    count += std::memcmp(a.data() + i, b.data() + i, width) != 0 ? 1 : 0;
  return count;
}

/// Place of the first element whose bits differ; nothing where none does.
[[nodiscard]] inline std::optional<std::int64_t>
first_different(std::span<const std::byte> a, std::span<const std::byte> b, DataType type) noexcept {
  const std::size_t width = size_of(type);
  for (std::size_t i = 0; i + width <= a.size() && i + width <= b.size(); i += width)
    if (std::memcmp(a.data() + i, b.data() + i, width) != 0) return static_cast<std::int64_t>(i / width);
  return std::nullopt;
}

} // namespace mtmc
