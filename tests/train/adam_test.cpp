// Adam: steps by hand, on a bowl, and gone on with.

#include <mtmc/train/adam.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace mtmc;
using doctest::Approx;

namespace {
constexpr double any_norm = std::numeric_limits<double>::infinity();
} // namespace

TEST_CASE("the first step is as long as the rate, whatever the gradient, and touches its part only") {
  Adam adam(1, 3);
  std::vector<double> weights{1, 1, 1, 1};
  adam.step(weights, std::vector<double>{5, 5, -0.2, 5}, 0.1, any_norm);
  CHECK(weights[0] == 1);
  CHECK(weights[1] == Approx(0.9).epsilon(1e-4));
  CHECK(weights[2] == Approx(1.1).epsilon(1e-4));
  CHECK(weights[3] == 1);
}

TEST_CASE("a gradient that is too long is remembered as a short one of its direction") {
  Adam adam(0, 2);
  std::vector<double> weights{0, 0};
  adam.step(weights, std::vector<double>{30, 40}, 0.1, 0.5);
  CHECK(adam.moments().mean[0] == Approx(0.1 * 0.3));
  CHECK(adam.moments().mean[1] == Approx(0.1 * 0.4));
  CHECK(adam.moments().square[1] == Approx(0.001 * 0.16));
  CHECK(adam.moments().steps == 1);
}

TEST_CASE("it finds the bottom of a bowl that is steep in one direction, also where another goes on") {
  Adam first(0, 2), whole(0, 2), second(0, 2);
  std::vector<double> parted{3, 3}, weights{3, 3};
  const auto gradient = [](const std::vector<double>& at) {
    return std::vector<double>{2 * (at[0] - 1), 200 * (at[1] + 2)};
  };
  for (int i = 0; i < 2000; ++i) whole.step(weights, gradient(weights), 0.02, any_norm);
  CHECK(weights[0] == Approx(1).epsilon(1e-3));
  CHECK(weights[1] == Approx(-2).epsilon(1e-3));
  for (int i = 0; i < 1000; ++i) first.step(parted, gradient(parted), 0.02, any_norm);
  second.restore(first.moments());
  for (int i = 0; i < 1000; ++i) second.step(parted, gradient(parted), 0.02, any_norm);
  CHECK(parted == weights);
  CHECK(second.moments() == whole.moments());
}
