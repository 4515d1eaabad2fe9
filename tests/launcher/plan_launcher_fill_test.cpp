#include <mtmc/launcher/plan_launcher_fill.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

using mtmc::detail::bits_of_16;
using mtmc::detail::filled_bits;
using mtmc::detail::filled_rows;

TEST_CASE("numbers of 16 bits are rounded to the nearest, ties to even") {
  constexpr int f16 = 10, bf16 = 7;
  CHECK(bits_of_16(1, f16) == 0x3C00);
  CHECK(bits_of_16(-2, f16) == 0xC000);
  CHECK(bits_of_16(65504, f16) == 0x7BFF);
  CHECK(bits_of_16(65519.996F, f16) == 0x7BFF);
  CHECK(bits_of_16(65520, f16) == 0x7C00); // the tie above the largest number is infinite
  CHECK(bits_of_16(1e30F, f16) == 0x7C00);
  CHECK(bits_of_16(0x1p-24F, f16) == 1);
  CHECK(bits_of_16(0x1p-25F, f16) == 0); // a tie
  CHECK(bits_of_16(0x1.8p-24F, f16) == 2);
  CHECK(bits_of_16(0x1.ffcp-15F, f16) == 0x0400); // the largest subnormal number is carried over
  CHECK(bits_of_16(1 + 0x1p-11F, f16) == 0x3C00);
  CHECK(bits_of_16(1 + 0x1.8p-10F, f16) == 0x3C02);
  CHECK(bits_of_16(-0.0F, f16) == 0x8000);
  CHECK(bits_of_16(-std::numeric_limits<float>::infinity(), bf16) == 0xFF80);
  CHECK(bits_of_16(std::numeric_limits<float>::quiet_NaN(), bf16) == 0x7FC0);
  CHECK(bits_of_16(1.0F / 3, bf16) == 0x3EAB);
  CHECK(bits_of_16(0x1p-133F, bf16) == 1);
}

TEST_CASE("what a type cannot hold has no bits") {
  mtmc::RecordedValue value{.kind = mtmc::RecordedValue::Kind::real, .real = 2.75};
  CHECK(filled_bits(value, "i32") == 2);
  CHECK(filled_bits(value, "bool") == 1);
  value.real = -1;
  CHECK(filled_bits(value, "i64") == 0xFFFFFFFFFFFFFFFF);
  CHECK(filled_bits(value, "i8") == 0xFF);
  CHECK(!filled_bits(value, "f8e4m3"));
  value.real = std::numeric_limits<double>::infinity();
  CHECK(!filled_bits(value, "i64"));
  CHECK(filled_bits(value, "f32") == 0x7F800000);
}

TEST_CASE("views are rows where their elements are") {
  const auto rows = [](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
    const auto found = filled_rows({.sizes = std::move(sizes), .strides = std::move(strides)});
    return found ? std::vector{found->width, found->rows, found->pitch} : std::vector<std::int64_t>{};
  };
  using Rows = std::vector<std::int64_t>;
  CHECK(rows({}, {}) == Rows{1, 1, 0});
  CHECK(rows({2, 3, 4}, {12, 4, 1}) == Rows{24, 1, 0});
  CHECK(rows({4, 3}, {1, 4}) == Rows{12, 1, 0}); // lies in columns
  CHECK(rows({3, 4}, {10, 1}) == Rows{4, 3, 10});
  CHECK(rows({2, 3, 4}, {30, 10, 1}) == Rows{4, 6, 10});
  CHECK(rows({5}, {3}) == Rows{1, 5, 3});
  CHECK(rows({5, 1}, {0, 7}) == Rows{1, 1, 0}); // one element five times
  CHECK(rows({2, 0}, {1, 1}) == Rows{0, 0, 0});
  CHECK(rows({2, 3, 4}, {100, 10, 1}).empty());
  CHECK(rows({2, 3}, {2, 1}).empty()); // rows that overlap
}
