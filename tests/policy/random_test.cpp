#include <mtmc/policy/random.hpp>

#include <doctest/doctest.h>

#include <numeric>

using namespace mtmc;

namespace {

std::vector<Action> actions(int count) {
  std::vector<Action> legal;
  for (int i = 0; i < count; ++i) {
    Action action;
    action.kind = Action::Kind::optimize;
    action.optimization = "tiling";
    action.region = "f/" + std::to_string(i);
    legal.push_back(action);
  }
  legal.push_back(Action::stop());
  return legal;
}

} // namespace

TEST_CASE("random policy: every action alike, stop never unless asked for") {
  RandomPolicy policy;
  const auto answer = policy.distribution({}, actions(4), {});
  CHECK(answer.probabilities == std::vector<double>{0.25, 0.25, 0.25, 0.25, 0});
  CHECK(answer.exact);
}

TEST_CASE("random policy: stop has the probability it was given") {
  RandomPolicy policy{0.2};
  const auto probabilities = policy.distribution({}, actions(4), {}).probabilities;
  CHECK(probabilities.back() == doctest::Approx(0.2));
  CHECK(probabilities.front() == doctest::Approx(0.2));
  CHECK(std::accumulate(probabilities.begin(), probabilities.end(), 0.0) == doctest::Approx(1));
}

TEST_CASE("random policy: stop is certain where nothing else is legal") {
  RandomPolicy policy;
  CHECK(policy.distribution({}, actions(0), {}).probabilities == std::vector<double>{1});
}
