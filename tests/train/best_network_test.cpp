// Which of several networks is kept.

#include <mtmc/train/best_network.hpp>

#include <doctest/doctest.h>

#include <limits>

using namespace mtmc;

TEST_CASE("a gain must be larger than what is asked for, and a score that is no number is none") {
  BestNetwork best;
  const ActionNetwork network{{}, {1}};
  CHECK(best.network().weights.empty());
  CHECK(best.offer(0.5, network, 0.01));
  CHECK(best.network().weights == network.weights);
  CHECK_FALSE(best.offer(0.505, network, 0.01));
  CHECK_FALSE(best.offer(std::numeric_limits<double>::quiet_NaN(), network));
  CHECK(best.since() == 2);
  CHECK(best.offer(0.52, network, 0.01));
  CHECK(best.since() == 0);
  CHECK(best.score() == 0.52);
}
