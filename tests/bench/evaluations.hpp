#pragma once
/// What the benchmarks of the evaluator share.

#include <mtmc/core/kernel.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <string>

namespace bench {

/// The same code as a text that no evaluator has seen yet.
[[nodiscard]] inline mtmc::Kernel with_comment(const mtmc::Kernel& kernel, int number) {
  auto result = kernel;
  result.source += "\n// candidate " + std::to_string(number) + "\n";
  return result;
}

using mtmc::seconds_since;

} // namespace bench
