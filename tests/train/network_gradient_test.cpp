// Gradients against differences, first weights, and bits that do not depend on anything else.

#include <mtmc/train/network_gradient.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace mtmc;
using doctest::Approx;

namespace {
constexpr NetworkShape shape{5, 3, 8};
std::vector<double> some(std::size_t count, std::uint64_t seed) {
  PhiloxEngine random{seed};
  std::vector<double> values(count);
  for (double& one : values) one = 2 * random.uniform() - 1;
  return values;
}
/// A loss of everything that the network says.
double loss(const ActionNetwork& network, const std::vector<double>& state,
            const std::vector<double>& actions) {
  NetworkActivations seen;
  network.evaluate(state, actions, seen);
  double sum = 0.3 * seen.value;
  for (std::size_t k = 0; k < seen.scores.size(); ++k) sum += static_cast<double>(k + 1) * seen.scores[k];
  return sum;
}
} // namespace

TEST_CASE("gradients are what small changes of weights do") {
  ActionNetwork network = make_network(shape, 3);
  for (double& weight : network.weights) weight += 0.05; // biases, too
  const auto state = some(5, 1), actions = some(4 * 3, 2);
  NetworkActivations seen;
  network.evaluate(state, actions, seen);
  std::vector<double> gradient(network.weights.size(), 0);
  NetworkGradient{}.add(network, state, actions, seen, std::vector<double>{1, 2, 3, 4}, 0.3, gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    constexpr double step = 1e-6;
    ActionNetwork more = network, less = network;
    more.weights[i] += step;
    less.weights[i] -= step;
    const double slope = (loss(more, state, actions) - loss(less, state, actions)) / (2 * step);
    CHECK(gradient[i] == Approx(slope).epsilon(1e-5));
  }
}

TEST_CASE("first weights: orthogonal, scores near 0, one seed one network") {
  const ActionNetwork network = make_network(shape, 7);
  CHECK(network.weights == make_network(shape, 7).weights);
  CHECK(network.weights != make_network(shape, 8).weights);
  const NetworkLayers layers(shape);
  double length = 0, across = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length += std::pow(network.weights[layers.mix.first + i], 2);
    across += network.weights[layers.mix.first + i] * network.weights[layers.mix.first + 8 + i];
  }
  CHECK(length == Approx(2));
  CHECK(across == Approx(0).epsilon(1e-9));
  NetworkActivations seen;
  network.evaluate(some(5, 1), some(6, 2), seen);
  CHECK(std::abs(seen.scores[0]) < 0.1);
}

TEST_CASE("an action's score does not depend on the others") {
  const ActionNetwork network = make_network(shape, 7);
  const auto state = some(5, 1), actions = some(6, 2);
  NetworkActivations both, second;
  network.evaluate(state, actions, both);
  network.evaluate(state, std::span(actions).subspan(3), second);
  CHECK(both.scores[1] == second.scores[0]);
  CHECK(both.value == second.value);
}
