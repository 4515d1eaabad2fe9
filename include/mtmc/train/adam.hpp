#pragma once
/// Adam (Kingma and Ba, 2015): steps against a gradient whose size hardly depends on the gradient's.

#include <mtmc/requirements.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What Adam remembers of earlier gradients.
struct AdamMoments {
  std::vector<double> mean{};   ///< of the gradients, a number a weight
  std::vector<double> square{}; ///< of their squares
  std::int64_t steps = 0;       ///< taken so far

  friend bool operator==(const AdamMoments&, const AdamMoments&) = default; ///< member by member
};

/// Adam over the weights from `first` up to `end`.
class Adam {
public:
  /// Without memory of any gradient.
  Adam(std::size_t first, std::size_t end) : first_(first) {
    moments_.mean.resize(end - first);
    moments_.square.resize(end - first);
  }

  /// Changes the weights of its part; `weights` and `gradient` are those of all. A gradient whose part is
  /// longer than `largest_norm` is shortened to that.
  void step(std::span<double> weights, std::span<const double> gradient, double rate, double largest_norm) {
    constexpr double of_mean = 0.9, of_square = 0.999, epsilon = 1e-5;
    double norm = 0;
    for (std::size_t i = 0; i < moments_.mean.size(); ++i)
      norm += gradient[first_ + i] * gradient[first_ + i];
    norm = std::sqrt(norm);
    const double scale = norm > largest_norm ? largest_norm / norm : 1;
    ++moments_.steps;
    const auto steps = static_cast<double>(moments_.steps);
    const double mean_left = 1 - std::pow(of_mean, steps), square_left = 1 - std::pow(of_square, steps);
    for (std::size_t i = 0; i < moments_.mean.size(); ++i) {
      const double one = scale * gradient[first_ + i];
      double& mean = moments_.mean[i];
      double& square = moments_.square[i];
      mean = of_mean * mean + (1 - of_mean) * one;
      square = of_square * square + (1 - of_square) * one * one;
      weights[first_ + i] -= rate * (mean / mean_left) / (std::sqrt(square / square_left) + epsilon);
    }
  }

  /// What it remembers.
  [[nodiscard]] const AdamMoments& moments() const noexcept { return moments_; }
  /// Goes on from what another remembered of as many weights.
  void restore(AdamMoments moments) { moments_ = std::move(moments); }

private:
  std::size_t first_;
  AdamMoments moments_{};
};

} // namespace mtmc
