#pragma once

#include <mtmc/analysis/function_analysis.hpp>

#include <vector>

/// \file
/// What the scalars used in a loop are to that loop.

namespace mtmc {

/// What a scalar is to a loop.
enum class ScalarRole : std::uint8_t {
  /// Not written in the loop.
  invariant,
  /// Every iteration writes it before it reads it (or it is declared in the body): iterations do not
  /// communicate through it.
  privatizable,
  /// Moves by the same amount in every iteration (`p += 2` once, unconditionally).
  induction,
  /// Only ever updated by one operation whose order does not matter (but for rounding).
  reduction,
  /// An iteration reads what an earlier one wrote, in some other way.
  carried
};

/// A scalar as seen from one loop.
struct ScalarFacts {
  const Variable* variable = nullptr;
  ScalarRole role = ScalarRole::invariant;
  /// Of a reduction.
  ReductionOperation operation = ReductionOperation::none;
  /// Declared inside the loop's body.
  bool declared_inside = false;
  /// Declared outside and written in the loop, and read after it: the last value must survive.
  bool live_out = false;
};

/// The scalars used in a loop (heads of inner loops included, its own variable not), in order of first use.
[[nodiscard]] std::vector<ScalarFacts> classify_scalars(const Loop& loop);

} // namespace mtmc
