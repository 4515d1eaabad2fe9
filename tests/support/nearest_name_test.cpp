#include <mtmc/support/nearest_name.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>

namespace {

constexpr std::array<std::string_view, 5> known{"tiling", "fusion", "pipeline", "reordering", "M"};

} // namespace

TEST_CASE("the nearest name is found across a typing error") {
  CHECK(mtmc::nearest_name("tilling", known) == "tiling");
  CHECK(mtmc::nearest_name("tilng", known) == "tiling");
  CHECK(mtmc::nearest_name("fusoin", known) == "fusion");
  CHECK(mtmc::nearest_name("pipelime", known) == "pipeline");
}

TEST_CASE("a difference in case alone is nearest of all") {
  CHECK(mtmc::nearest_name("Tiling", known) == "tiling");
  CHECK(mtmc::nearest_name("m", known) == "M");
  const std::array<std::string_view, 2> close{"KK", "ka"};
  CHECK(mtmc::nearest_name("KA", close) == "ka");
}

TEST_CASE("nothing is suggested when nothing is near") {
  CHECK(mtmc::nearest_name("vectorize", known).empty());
  CHECK(mtmc::nearest_name("N", known).empty());
  CHECK(mtmc::nearest_name("", known).empty());
  CHECK(mtmc::nearest_name("tiling", {}).empty());
  const std::string long_name(100'000, 'x');
  const std::array<std::string_view, 1> equally_long{long_name};
  CHECK(mtmc::nearest_name(long_name, equally_long).empty());
}
