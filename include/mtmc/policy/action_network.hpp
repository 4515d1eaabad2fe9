#pragma once
/// A small network that scores the actions of a state, however many there are, and values the state.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Extents of an `ActionNetwork`.
struct NetworkShape {
  std::size_t state = 0;   ///< features of a state
  std::size_t action = 0;  ///< features of an action
  std::size_t hidden = 32; ///< units that encode the state, and units that score an action

  friend bool operator==(const NetworkShape&, const NetworkShape&) = default; ///< member by member
};

/// One dense layer's weights in a flat list: those of an input (`rows` of them) one input after the other,
/// then `rows` biases.
struct DenseLayer {
  std::size_t first = 0;   ///< place of the first weight
  std::size_t rows = 0;    ///< outputs
  std::size_t columns = 0; ///< inputs

  /// How many weights it has, biases included.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return rows * (columns + 1); }
  /// Place of an input's weights, one for each output.
  [[nodiscard]] constexpr std::size_t input(std::size_t column) const noexcept {
    return first + column * rows;
  }
  /// Place of the biases.
  [[nodiscard]] constexpr std::size_t biases() const noexcept { return first + rows * columns; }
};

/// The layers of a network of that shape. With h = relu(encode(state)), an action scores
/// score(relu(mix(h) + join(action))); `mix` is computed once a state. The value has a network of its own:
/// value(relu(look(state))).
struct NetworkLayers {
  DenseLayer encode{}; ///< of a state's features
  DenseLayer mix{};    ///< of the encoded state, for all its actions
  DenseLayer join{};   ///< of an action's features
  DenseLayer score{};  ///< of both together
  DenseLayer look{};   ///< of a state's features, for its value
  DenseLayer value{};  ///< of what that sees

  /// Lays the layers of a network of that shape one behind the other.
  explicit constexpr NetworkLayers(const NetworkShape& shape) {
    std::size_t place = 0;
    const auto next = [&place](std::size_t rows, std::size_t columns) {
      const DenseLayer layer{place, rows, columns};
      place += layer.size();
      return layer;
    };
    encode = next(shape.hidden, shape.state);
    mix = next(shape.hidden, shape.hidden);
    join = next(shape.hidden, shape.action);
    score = next(1, shape.hidden);
    look = next(shape.hidden, shape.state);
    value = next(1, shape.hidden);
  }
  /// Of all layers.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return value.first + value.size(); }
  /// Place of the first weight of the value's network: those before it are the policy's.
  [[nodiscard]] constexpr std::size_t first_of_value() const noexcept { return look.first; }
};

/// Computes `out = W in + b`. Sums run over the inputs in their order, one after the other, so that results
/// are the same bits wherever floating-point contraction is off; inputs that are 0, as most are, cost
/// nothing.
inline void apply_layer(const DenseLayer& layer, std::span<const double> weights, std::span<const double> in,
                        std::span<double> out) noexcept {
  std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(layer.biases()), layer.rows, out.begin());
  for (std::size_t i = 0; i < layer.columns; ++i) {
    if (in[i] == 0) continue;
    const double* const own = weights.data() + layer.input(i);
    for (std::size_t row = 0; row < layer.rows; ++row) out[row] += own[row] * in[i];
  }
}

/// What is computed on the way, for gradients; reused from state to state.
struct NetworkActivations {
  std::vector<double> encoded{}; ///< h
  std::vector<double> mixed{};   ///< mix(h)
  std::vector<double> joined{};  ///< relu(mix(h) + join(action)), action by action
  std::vector<double> looked{};  ///< relu(look(state))
  std::vector<double> scores{};  ///< of the actions
  double value = 0;              ///< of the state
};

/// The network.
struct ActionNetwork {
  NetworkShape shape{};          ///< its extents
  std::vector<double> weights{}; ///< `NetworkLayers(shape).size()`

  /// Scores actions, whose features stand one after the other (`shape.action` each), and values the state.
  /// After the first call with as many actions nothing is allocated.
  void evaluate(std::span<const double> state, std::span<const double> actions,
                NetworkActivations& result) const {
    const NetworkLayers layers(shape);
    const std::size_t hidden = shape.hidden;
    const std::size_t count = shape.action == 0 ? 0 : actions.size() / shape.action;
    const auto relu = [](std::span<double> values) {
      for (double& one : values) one = std::max(one, 0.0);
    };
    result.encoded.resize(hidden);
    result.mixed.resize(hidden);
    result.looked.resize(hidden);
    result.joined.resize(hidden * count);
    result.scores.resize(count);
    apply_layer(layers.encode, weights, state, result.encoded);
    relu(result.encoded);
    apply_layer(layers.mix, weights, result.encoded, result.mixed);
    for (std::size_t k = 0; k < count; ++k) {
      const auto joined = std::span(result.joined).subspan(k * hidden, hidden);
      apply_layer(layers.join, weights, actions.subspan(k * shape.action, shape.action), joined);
      for (std::size_t i = 0; i < hidden; ++i) joined[i] += result.mixed[i];
      relu(joined);
      apply_layer(layers.score, weights, joined, std::span(&result.scores[k], 1));
    }
    apply_layer(layers.look, weights, state, result.looked);
    relu(result.looked);
    apply_layer(layers.value, weights, result.looked, std::span(&result.value, 1));
  }
};

} // namespace mtmc
