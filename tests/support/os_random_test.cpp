#include <mtmc/support/os_random.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <set>

TEST_CASE("keys from the operating system are all different and use all 64 bits") {
  std::set<std::uint64_t> keys;
  std::uint64_t ever_set = 0;
  std::uint64_t always_set = ~std::uint64_t{0};
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t key = mtmc::random_key_from_os();
    keys.insert(key);
    ever_set |= key;
    always_set &= key;
  }
  CHECK(keys.size() == 200);
  CHECK(std::popcount(ever_set) == 64);
  CHECK(always_set == 0);
}
