#pragma once

#include <mtmc/analysis/dependence/iteration_system.hpp>
#include <mtmc/analysis/flow/function_analysis.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// \file
/// Flattened subscripts taken apart: `i*N + j` with 0 <= j < N is element [i][j].

namespace mtmc::inline MTMC_ABI::detail {

/// `a` divided by `b`, if that leaves no remainder.
[[nodiscard]] inline std::optional<Polynomial::Term> divide(const Polynomial::Term& a,
                                                            const Polynomial::Term& b) noexcept {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0 || a.degree < b.degree) return std::nullopt;
  Polynomial::Term quotient;
  quotient.coefficient = a.coefficient / b.coefficient;
  std::size_t matched = 0;
  for (std::size_t i = 0; i < a.degree; ++i) {
    if (matched < b.degree && a.factors[i] == b.factors[matched])
      ++matched;
    else
      quotient.factors[quotient.degree++] = a.factors[i];
  }
  if (matched != b.degree) return std::nullopt;
  return quotient;
}

[[nodiscard]] inline Polynomial polynomial_of(const Polynomial::Term& term) {
  Polynomial result{term.coefficient};
  for (std::size_t i = 0; i < term.degree; ++i) result = result * Polynomial(term.factors[i]);
  return result;
}

/// What the varying part of a term is multiplied with: `N` in `i*N`. Nothing if nothing or more than one
/// factor varies.
[[nodiscard]] inline std::optional<Polynomial::Term> stride_of(const Polynomial::Term& term) noexcept {
  Polynomial::Term stride;
  stride.coefficient = term.coefficient < 0 ? -term.coefficient : term.coefficient;
  int varying = 0;
  for (std::size_t i = 0; i < term.degree; ++i) {
    if (term.factors[i]->loop != nullptr)
      ++varying;
    else
      stride.factors[stride.degree++] = term.factors[i];
  }
  if (varying != 1 || stride.coefficient < 0) return std::nullopt;
  return stride;
}

/// The strides of all accesses to an array, smallest first and 1 among them, if each divides the next.
[[nodiscard]] inline std::vector<Polynomial::Term> common_strides(std::span<Access* const> accesses) {
  std::vector<Polynomial::Term> strides;
  strides.push_back({1, 0, {}});
  constexpr std::size_t max_dimensions = 8;
  for (const Access* access : accesses) {
    if (access->subscripts.size() != 1 || !access->subscripts.front().defined()) continue;
    for (const auto& term : access->subscripts.front().terms()) {
      const auto stride = stride_of(term);
      if (!stride) continue;
      const bool known = std::any_of(strides.begin(), strides.end(), [&](const Polynomial::Term& other) {
        return other.coefficient == stride->coefficient && other.alike(*stride);
      });
      if (known) continue;
      if (strides.size() == max_dimensions) return {};
      strides.push_back(*stride);
    }
  }
  std::stable_sort(strides.begin(), strides.end(), [](const Polynomial::Term& a, const Polynomial::Term& b) {
    return a.degree != b.degree ? a.degree < b.degree : a.coefficient < b.coefficient;
  });
  for (std::size_t i = 0; i + 1 < strides.size(); ++i)
    if (!divide(strides[i + 1], strides[i])) return {};
  return strides;
}

/// The flattened subscript as one polynomial per stride, innermost first.
[[nodiscard]] inline std::vector<Polynomial> split_by_strides(const Polynomial& subscript,
                                                              std::span<const Polynomial::Term> strides) {
  std::vector<Polynomial> parts(strides.size());
  for (const auto& term : subscript.terms()) {
    if (term.degree == 0) { // a number: shared out so that what remains in each dimension is small
      std::int64_t rest = term.coefficient;
      for (std::size_t d = strides.size(); d-- > 0;) {
        if (strides[d].degree != 0) continue;
        const std::int64_t stride = strides[d].coefficient;
        std::int64_t quotient = rest / stride;
        const std::int64_t remainder = rest % stride;
        if (2 * remainder > stride) ++quotient;
        if (2 * remainder < -stride) --quotient;
        parts[d] += Polynomial(quotient);
        rest -= quotient * stride;
      }
      continue;
    }
    for (std::size_t d = strides.size(); d-- > 0;)
      if (const auto quotient = divide(term, strides[d])) {
        parts[d] += polynomial_of(*quotient);
        break;
      }
  }
  return parts;
}

/// Whether the part of a dimension provably lies in [0, extent), perhaps after one extent was moved from or
/// to the next dimension: `i*M + (M - 1 - j)` is [i][M - 1 - j], not [i + 1][-1 - j].
[[nodiscard]] inline bool bring_within(Polynomial& part, Polynomial& next, const Polynomial& extent,
                                       const LoopInfo* loop, std::span<const Polynomial> assumptions,
                                       WorkBudget& budget) {
  for (const std::int64_t moved : {0, 1, -1}) {
    const Polynomial candidate = part + extent * Polynomial(moved);
    if (!provably_nonnegative(candidate, loop, assumptions, budget) ||
        !provably_nonnegative(extent - candidate - Polynomial(1), loop, assumptions, budget))
      continue;
    part = candidate;
    next -= Polynomial(moved);
    return true;
  }
  return false;
}

/// Fills `Access::dimensions` of all accesses to one array (and the array's strides).
inline void delinearize(Array& array, std::span<Access* const> accesses,
                        std::span<const Polynomial> assumptions, WorkBudget& budget) {
  if (!array.extents.empty()) {
    for (Access* access : accesses) access->dimensions = access->subscripts;
    return;
  }
  array.strides = common_strides(accesses);
  if (array.strides.empty()) return;
  std::vector<Polynomial> extents; // of all dimensions but the outermost, innermost first
  for (std::size_t d = 0; d + 1 < array.strides.size(); ++d)
    extents.push_back(polynomial_of(*divide(array.strides[d + 1], array.strides[d])));
  for (Access* access : accesses) {
    if (access->subscripts.size() != 1 || !access->subscripts.front().defined()) continue;
    std::vector<Polynomial> parts = split_by_strides(access->subscripts.front(), array.strides);
    bool within = true;
    for (std::size_t d = 0; within && d < extents.size(); ++d)
      within = bring_within(parts[d], parts[d + 1], extents[d], access->loop, assumptions, budget);
    if (!within) continue;
    std::reverse(parts.begin(), parts.end());
    access->dimensions = std::move(parts);
  }
}

} // namespace mtmc::detail
