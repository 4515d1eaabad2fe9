#pragma once
/// From scores to probabilities.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace mtmc::inline MTMC_ABI::detail {

/// Makes scores probabilities in their proportion of e^score, by the distance to the largest, so that nothing
/// overflows. They sum to 1; no scores, none.
inline void softmax(std::span<double> scores) {
  if (scores.empty()) return;
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& one : scores) {
    one = std::exp(one - largest);
    sum += one;
  }
  for (double& one : scores) one /= sum;
}

} // namespace mtmc::detail
