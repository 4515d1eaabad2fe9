#include <mtmc/evaluator/content/half_precision.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

using namespace mtmc;

TEST_CASE("every binary16 number survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value))
      CHECK(std::isnan(half_to_float(float_to_half(value))));
    else
      REQUIRE(float_to_half(value) == half);
  }
}

TEST_CASE("binary16 has the values of the standard") {
  CHECK(half_to_float(0x3c00) == 1.0f);
  CHECK(half_to_float(0xc000) == -2.0f);
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0x0400) == 0x1p-14f);
  CHECK(half_to_float(0x7c00) == std::numeric_limits<float>::infinity());
  CHECK(float_to_half(65519.0f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1e30f) == 0x7c00);
  CHECK(float_to_half(-0.0f) == 0x8000);
  CHECK(float_to_half(0x1p-26f) == 0);
}

TEST_CASE("rounding to binary16 is to the nearest, ties to even") {
  const float spacing = 0x1p-10f;
  CHECK(float_to_half(1.0f + 0.5f * spacing) == 0x3c00);
  CHECK(float_to_half(1.0f + 1.5f * spacing) == 0x3c02);
  CHECK(float_to_half(1.0f + 0.51f * spacing) == 0x3c01);
  CHECK(float_to_half(0x1p-25f) == 0);        // a tie between 0 and the smallest subnormal
  CHECK(float_to_half(0x1.8p-24f) == 0x0002); // a tie between two subnormals
  CHECK(float_to_half(0x1.0004p-25f) == 0x0001);
}

TEST_CASE("bfloat16 keeps the exponent of float and rounds to the nearest, ties to even") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto number = static_cast<std::uint16_t>(bits);
    const float value = bfloat16_to_float(number);
    if (std::isnan(value))
      CHECK(std::isnan(bfloat16_to_float(float_to_bfloat16(value))));
    else
      REQUIRE(float_to_bfloat16(value) == number);
  }
  CHECK(float_to_bfloat16(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(float_to_bfloat16(1.0f + 0x1.8p-7f) == 0x3f82);
  CHECK(float_to_bfloat16(std::numeric_limits<float>::max()) == 0x7f80);
}
