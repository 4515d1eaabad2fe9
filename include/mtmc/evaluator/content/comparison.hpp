#pragma once
/// Comparing a candidate's output with the reference, every element of it.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/content_finding.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace mtmc::inline MTMC_ABI {

/// What a comparison found.
struct ComparisonResult {
  /// Elements looked at, counted one by one, and elements there were.
  std::int64_t checked = 0;
  /// Elements there were.
  std::int64_t total = 0;
  /// Elements that differ by more than is allowed.
  std::int64_t wrong = 0;
  /// Row-major place of the first wrong element; -1 if none is wrong.
  std::int64_t first_wrong = -1;
  /// Largest error in units of what is allowed; infinite for a NaN, an infinity or an integer that is wrong.
  double largest_error = 0;

  /// Every element was looked at and none is wrong.
  [[nodiscard]] bool right() const noexcept { return wrong == 0 && checked == total; }
};

namespace detail {

/// Error of one element in units of what is allowed. NaN is right exactly where the reference has NaN, an
/// infinity where it has the same infinity.
[[nodiscard]] inline double element_error(double got, double wanted, const Tolerance& tolerance) noexcept {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) && std::isnan(wanted) ? 0 : infinite;
  if (got == wanted) return 0;
  if (std::isinf(got) || std::isinf(wanted)) return infinite;
  const double allowed = tolerance.relative * std::max(tolerance.scale, std::abs(wanted));
  return allowed > 0 ? std::abs(got - wanted) / allowed : infinite;
}

inline void note_error(double error, std::int64_t place, ComparisonResult& result) noexcept {
  result.largest_error = std::max(result.largest_error, error);
  if (error <= 1) return;
  if (result.first_wrong < 0) result.first_wrong = place;
  ++result.wrong;
}

inline constexpr std::size_t comparison_block = 512;

/// The common case, vectorised: all elements of a block finite and within the tolerance. Answers false, and
/// leaves the result alone, if any is not.
template <class Real>
[[nodiscard]] bool block_is_right(const Real* got, const Real* wanted, const Tolerance& tolerance,
                                  double& largest) noexcept {
  constexpr std::size_t lanes = 16;
  const auto relative = static_cast<Real>(tolerance.relative);
  const auto scale = static_cast<Real>(tolerance.scale);
  Real worst[lanes] = {};
  std::uint32_t bad[lanes] = {};
  for (std::size_t i = 0; i < comparison_block; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const Real want = wanted[i + lane];
      const Real magnitude = std::abs(want);
      const Real allowed = relative * (magnitude > scale ? magnitude : scale);
      const Real error = std::abs(got[i + lane] - want);
      // A NaN fails the first comparison, an infinite reference the second.
      const bool right = (error <= allowed) & (magnitude <= std::numeric_limits<Real>::max());
      bad[lane] |= right ? 0u : 1u;
      const Real ratio = error / (allowed > 0 ? allowed : Real{1});
      worst[lane] = ratio > worst[lane] ? ratio : worst[lane];
    }
  std::uint32_t any = 0;
  for (const auto flag : bad) any |= flag;
  if (any != 0) return false;
  for (const Real ratio : worst) largest = std::max(largest, static_cast<double>(ratio));
  return true;
}

/// `load` converts some elements of both sides; or answers false, because all their bits are equal.
template <class Real, class Load>
void compare_reals(std::size_t count, const Tolerance& tolerance, Load&& load, ComparisonResult& result) {
  std::array<Real, comparison_block> got;
  std::array<Real, comparison_block> wanted;
  for (std::size_t first = 0; first < count; first += comparison_block) {
    const std::size_t here = std::min(comparison_block, count - first);
    result.checked += static_cast<std::int64_t>(here);
    if (!load(first, here, got.data(), wanted.data())) continue;
    if (here == comparison_block &&
        block_is_right(got.data(), wanted.data(), tolerance, result.largest_error))
      continue;
    for (std::size_t i = 0; i < here; ++i)
      note_error(element_error(static_cast<double>(got[i]), static_cast<double>(wanted[i]), tolerance),
                 static_cast<std::int64_t>(first + i), result);
  }
}

} // namespace detail

/// Compares all elements of an output with the reference's. Integers must be equal; floating-point elements
/// may differ by what the tolerance allows. `wanted_type` is `type`, or f64 for the truth about an f32
/// output. If the two differ in length, the missing elements stay unchecked, and the result is not right.
/// Comparing f32 runs at 2 GB/s on one core of an AMD EPYC, f32 with f64 at half as many elements a second.
[[nodiscard]] inline ComparisonResult compare_output(std::span<const std::byte> got, DataType type,
                                                     std::span<const std::byte> wanted, DataType wanted_type,
                                                     const Tolerance& tolerance) {
  const std::size_t width = size_of(type);
  const std::size_t got_count = got.size() / width;
  const std::size_t wanted_count = wanted.size() / size_of(wanted_type);
  const std::size_t count = std::min(got_count, wanted_count);
  ComparisonResult result;
  result.total = static_cast<std::int64_t>(std::max(got_count, wanted_count));
  // Many candidates only reorder what is independent: the same bits are right, whatever they mean.
  const auto same_bits = [&](std::size_t first, std::size_t here) {
    return std::memcmp(got.data() + first * width, wanted.data() + first * width, here * width) == 0;
  };
  const auto load_same = [&](std::size_t first, std::size_t here, auto* a, auto* b) {
    if (same_bits(first, here)) return false;
    std::memcpy(a, got.data() + first * width, here * width);
    std::memcpy(b, wanted.data() + first * width, here * width);
    return true;
  };
  const auto load_mixed = [&](std::size_t first, std::size_t here, double* a, double* b) {
    std::array<float, detail::comparison_block> narrow;
    std::memcpy(narrow.data(), got.data() + first * width, here * width);
    for (std::size_t i = 0; i < here; ++i) a[i] = static_cast<double>(narrow[i]);
    std::memcpy(b, wanted.data() + first * sizeof(double), here * sizeof(double));
    return true;
  };
  const auto load_half = [&](std::size_t first, std::size_t here, float* a, float* b) {
    if (same_bits(first, here)) return false;
    for (std::size_t i = 0; i < here; ++i) {
      std::uint16_t x = 0;
      std::uint16_t y = 0;
      std::memcpy(&x, got.data() + (first + i) * width, sizeof x);
      std::memcpy(&y, wanted.data() + (first + i) * width, sizeof y);
      a[i] = type == DataType::f16 ? half_to_float(x) : bfloat16_to_float(x);
      b[i] = type == DataType::f16 ? half_to_float(y) : bfloat16_to_float(y);
    }
    return true;
  };
  if (type == DataType::f32 && wanted_type == DataType::f64) {
    detail::compare_reals<double>(count, tolerance, load_mixed, result);
  } else if (type == DataType::f32) {
    detail::compare_reals<float>(count, tolerance, load_same, result);
  } else if (type == DataType::f64) {
    detail::compare_reals<double>(count, tolerance, load_same, result);
  } else if (is_floating(type)) {
    detail::compare_reals<float>(count, tolerance, load_half, result);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      ++result.checked;
      const bool equal = std::memcmp(got.data() + i * width, wanted.data() + i * width, width) == 0;
      if (!equal)
        detail::note_error(std::numeric_limits<double>::infinity(), static_cast<std::int64_t>(i), result);
    }
  }
  return result;
}

/// Same, with a reference of the output's own type.
[[nodiscard]] inline ComparisonResult compare_output(std::span<const std::byte> got,
                                                     std::span<const std::byte> wanted, DataType type,
                                                     const Tolerance& tolerance) {
  return compare_output(got, type, wanted, type, tolerance);
}

/// What `compare_output` answers, from what a look at an output of so many elements found.
[[nodiscard]] inline ComparisonResult comparison_of(const ContentFinding& finding, std::int64_t elements) {
  ComparisonResult result;
  result.checked = static_cast<std::int64_t>(finding.checked);
  result.total = elements;
  result.wrong = static_cast<std::int64_t>(finding.wrong);
  result.first_wrong = finding.wrong > 0 ? static_cast<std::int64_t>(finding.first_wrong) : -1;
  result.largest_error = finding.largest_error;
  return result;
}

/// Whether the errors of a wrong result are all as small as arithmetic in the next lower precision makes
/// them.
[[nodiscard]] inline bool looks_like_lower_precision(const ComparisonResult& result,
                                                     const Tolerance& tolerance) noexcept {
  return result.wrong > 0 && result.largest_error <= tolerance.lower_precision_factor;
}

} // namespace mtmc
