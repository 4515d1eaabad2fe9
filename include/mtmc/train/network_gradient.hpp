#pragma once
/// First weights of an `ActionNetwork`, and how its results change with them.

#include <mtmc/policy/action_network.hpp>
#include <mtmc/support/philox.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Fills a layer with rows (or columns, where there are fewer) that are orthogonal to each other and have the
/// length `gain`; biases are 0.
inline void make_orthogonal(const DenseLayer& layer, double gain, PhiloxEngine& random,
                            std::span<double> weights) {
  const bool by_rows = layer.rows <= layer.columns;
  const std::size_t vectors = by_rows ? layer.rows : layer.columns;
  const std::size_t length = by_rows ? layer.columns : layer.rows;
  std::vector<std::vector<double>> basis;
  while (basis.size() < vectors) {
    std::vector<double> one(length);
    for (double& value : one) { // Box and Muller
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      value = radius * std::cos(2 * std::numbers::pi * random.uniform());
    }
    for (const auto& other : basis) {
      double along = 0;
      for (std::size_t i = 0; i < length; ++i) along += one[i] * other[i];
      for (std::size_t i = 0; i < length; ++i) one[i] -= along * other[i];
    }
    double square = 0;
    for (const double value : one) square += value * value;
    if (square < 1e-12) continue;
    for (double& value : one) value /= std::sqrt(square);
    basis.push_back(std::move(one));
  }
  for (std::size_t row = 0; row < layer.rows; ++row)
    for (std::size_t column = 0; column < layer.columns; ++column)
      weights[layer.input(column) + row] = gain * (by_rows ? basis[row][column] : basis[column][row]);
  for (std::size_t row = 0; row < layer.rows; ++row) weights[layer.biases() + row] = 0;
}

/// Adds what a layer's weights and inputs contribute to a loss whose gradient by the outputs is `out`.
inline void add_gradient(const DenseLayer& layer, std::span<const double> weights, std::span<const double> in,
                         std::span<const double> out, std::span<double> gradient,
                         std::span<double> by_input) {
  for (std::size_t i = 0; i < layer.columns; ++i) {
    const std::size_t own = layer.input(i);
    if (in[i] != 0)
      for (std::size_t row = 0; row < layer.rows; ++row) gradient[own + row] += out[row] * in[i];
    if (!by_input.empty())
      for (std::size_t row = 0; row < layer.rows; ++row) by_input[i] += out[row] * weights[own + row];
  }
  for (std::size_t row = 0; row < layer.rows; ++row) gradient[layer.biases() + row] += out[row];
}

} // namespace detail

/// A network with orthogonal first weights: gain sqrt(2) in hidden layers, 0.01 for the scores, so that all
/// actions begin nearly equal, and 1 for the value. The same seed gives the same bits.
[[nodiscard]] inline ActionNetwork make_network(const NetworkShape& shape, std::uint64_t seed) {
  const NetworkLayers layers(shape);
  ActionNetwork network{shape, std::vector<double>(layers.size())};
  PhiloxEngine random{seed};
  for (const DenseLayer* layer : {&layers.encode, &layers.mix, &layers.join, &layers.look})
    detail::make_orthogonal(*layer, std::numbers::sqrt2, random, network.weights);
  detail::make_orthogonal(layers.score, 0.01, random, network.weights);
  detail::make_orthogonal(layers.value, 1, random, network.weights);
  return network;
}

/// Computes gradients; its buffers are reused.
class NetworkGradient {
public:
  /// Adds the gradient of a loss to `gradient` (as long as the weights): `by_scores` and `by_value` are the
  /// loss's derivatives, `seen` what `ActionNetwork::evaluate` left for that state and those actions.
  void add(const ActionNetwork& network, std::span<const double> state, std::span<const double> actions,
           const NetworkActivations& seen, std::span<const double> by_scores, double by_value,
           std::span<double> gradient) {
    const NetworkLayers layers(network.shape);
    const std::size_t hidden = network.shape.hidden, each = network.shape.action;
    const std::span<const double> weights = network.weights;
    by_mixed_.assign(hidden, 0);
    for (std::size_t k = 0; k < by_scores.size(); ++k) {
      const auto joined = std::span(seen.joined).subspan(k * hidden, hidden);
      by_joined_.assign(hidden, 0);
      detail::add_gradient(layers.score, weights, joined, by_scores.subspan(k, 1), gradient, by_joined_);
      cut(joined, by_joined_);
      detail::add_gradient(layers.join, weights, actions.subspan(k * each, each), by_joined_, gradient, {});
      for (std::size_t i = 0; i < hidden; ++i) by_mixed_[i] += by_joined_[i];
    }
    by_joined_.assign(hidden, 0);
    detail::add_gradient(layers.mix, weights, seen.encoded, by_mixed_, gradient, by_joined_);
    cut(seen.encoded, by_joined_);
    detail::add_gradient(layers.encode, weights, state, by_joined_, gradient, {});

    by_joined_.assign(hidden, 0);
    detail::add_gradient(layers.value, weights, seen.looked, std::span(&by_value, 1), gradient, by_joined_);
    cut(seen.looked, by_joined_);
    detail::add_gradient(layers.look, weights, state, by_joined_, gradient, {});
  }

private:
  /// Nothing flows back through units that are 0.
  static void cut(std::span<const double> units, std::span<double> gradient) noexcept {
    for (std::size_t i = 0; i < units.size(); ++i)
      if (units[i] <= 0) gradient[i] = 0;
  }

  std::vector<double> by_mixed_{}, by_joined_{};
};

} // namespace mtmc
