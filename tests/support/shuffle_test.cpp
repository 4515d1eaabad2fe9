// Orders by chance.

#include <mtmc/support/shuffle.hpp>

#include <doctest/doctest.h>

#include <map>
#include <vector>

using namespace mtmc;

TEST_CASE("each order is as likely as any other, and one seed gives one course of them") {
  constexpr int draws = 6000;
  const auto counted = [](std::uint64_t seed) {
    PhiloxEngine random{seed};
    std::map<std::vector<int>, int> orders;
    for (int i = 0; i < draws; ++i) {
      std::vector<int> items{1, 2, 3};
      detail::shuffle(items, random);
      ++orders[items];
    }
    return orders;
  };
  const auto orders = counted(1);
  CHECK(orders.size() == 6);
  for (const auto& [order, count] : orders) {
    CHECK(count > draws / 6 - 150); // five deviations
    CHECK(count < draws / 6 + 150);
  }
  CHECK(orders == counted(1));
  std::vector<int> none;
  PhiloxEngine random{1};
  detail::shuffle(none, random);
  CHECK(none.empty());
}
