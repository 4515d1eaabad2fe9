#include <mtmc/support/bootstrap.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace mtmc;

TEST_CASE("a bootstrap's interval of a mean is about as wide as its standard error says") {
  std::vector<double> sample;
  for (int i = 0; i < 400; ++i) sample.push_back(i % 2 == 0 ? 1.0 : 3.0); // mean 2, deviation 1: error 0.05
  const auto mean = [&](std::span<const std::size_t> drawn) {
    double sum = 0;
    for (const auto one : drawn) sum += sample[one];
    return std::array<double, 1>{sum / static_cast<double>(drawn.size())};
  };
  const auto intervals = detail::bootstrap_intervals(sample.size(), 2000, 0.95, PhiloxEngine{1, 0}, mean);
  REQUIRE(intervals.size() == 1);
  CHECK(intervals[0].first == doctest::Approx(2 - 1.96 * 0.05).epsilon(0.01));
  CHECK(intervals[0].second == doctest::Approx(2 + 1.96 * 0.05).epsilon(0.01));
  CHECK(detail::bootstrap_intervals(sample.size(), 2000, 0.95, PhiloxEngine{1, 0}, mean) == intervals);
  CHECK(detail::bootstrap_intervals(0, 2000, 0.95, PhiloxEngine{1, 0}, mean).empty());
}
