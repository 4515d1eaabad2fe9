#pragma once
/// The parts of a loop without their types, so that the search is compiled once for all of them.

#include <mtmc/core/any.hpp>

namespace mtmc::inline MTMC_ABI::detail {

/// The four parts. What they refer to outlives them.
struct LoopParts {
  AnyPolicy policy;
  AnyCoder coder;
  AnyRegionFinder finder;
  AnyEvaluator evaluator;
};

} // namespace mtmc::detail
