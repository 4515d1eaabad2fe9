#pragma once
/// What the benchmarks of the evaluator share.

#include <mtmc/core/kernel.hpp>

#include <chrono>
#include <string>

namespace bench {

/// The same code as a text that no evaluator has seen yet.
[[nodiscard]] inline mtmc::Kernel with_comment(const mtmc::Kernel& kernel, int number) {
  auto result = kernel;
  result.source += "\n// candidate " + std::to_string(number) + "\n";
  return result;
}

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace bench
