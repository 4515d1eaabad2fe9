#include <mtmc/support/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

using mtmc::philox4x32;
using mtmc::philox_fill;
using mtmc::PhiloxCounter;
using mtmc::PhiloxEngine;

static_assert(std::uniform_random_bit_generator<PhiloxEngine>);

TEST_CASE("Philox4x32-10 gives the published known answers") {
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  static_assert(philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST_CASE("each element of a fill is a word of the block that its place names") {
  constexpr std::uint64_t key = 0x0123456789abcdef;
  constexpr std::uint64_t stream = 0xfedcba9876543210;
  constexpr std::uint64_t first = 0xfffffffffffffff0; // wraps round within the fill
  std::vector<std::uint32_t> words(1003);
  philox_fill(words, key, first, stream);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t counter = first + i / 4;
    const PhiloxCounter block =
        philox4x32({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                    0x76543210, 0xfedcba98},
                   {0x89abcdef, 0x01234567});
    REQUIRE(words[i] == block[i % 4]);
  }
}

TEST_CASE("processors without AVX2 get the same numbers") {
  std::vector<std::uint32_t> words(4 * 32);
  mtmc::detail::philox_blocks<32>(words.data(), {0x89abcdef, 0x01234567}, 0xfffffffffffffff0,
                                  0xfedcba9876543210);
  std::vector<std::uint32_t> filled(words.size());
  philox_fill(filled, 0x0123456789abcdef, 0xfffffffffffffff0, 0xfedcba9876543210);
  CHECK(words == filled);
}

TEST_CASE("a fill in pieces equals the fill in one go, whatever the lengths") {
  std::vector<std::uint32_t> whole(2048);
  philox_fill(whole, 7, 100);
  for (const std::size_t blocks : {1u, 3u, 31u, 32u, 33u, 100u}) {
    CAPTURE(blocks);
    std::vector<std::uint32_t> pieces(whole.size());
    const std::size_t count = (whole.size() / 4 + blocks - 1) / blocks;
    for (std::size_t piece = count; piece-- > 0;) { // last piece first: the order does not matter
      const std::size_t at = piece * blocks * 4;
      const std::size_t length = std::min(blocks * 4, whole.size() - at);
      philox_fill(std::span{pieces}.subspan(at, length), 7, 100 + piece * blocks);
    }
    CHECK(pieces == whole);
  }
  for (std::size_t length = 0; length < 300; ++length) {
    std::vector<std::uint32_t> prefix(length + 1, 0xabababab);
    philox_fill(std::span{prefix}.first(length), 7, 100);
    REQUIRE(std::vector<std::uint32_t>(prefix.begin(), prefix.end() - 1) ==
            std::vector<std::uint32_t>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    REQUIRE(prefix.back() == 0xabababab);
  }
}

TEST_CASE("another key, counter or stream gives other bits") {
  std::array<std::uint32_t, 4> base{}, key{}, counter{}, stream{}, high_key{};
  philox_fill(base, 1, 0);
  philox_fill(key, 2, 0);
  philox_fill(high_key, 1 | std::uint64_t{1} << 32, 0);
  philox_fill(counter, 1, 1);
  philox_fill(stream, 1, 0, 1);
  CHECK(base != key);
  CHECK(base != high_key);
  CHECK(base != counter);
  CHECK(base != stream);
  CHECK(counter != stream);
}

TEST_CASE("the engine gives the words of a fill one after the other") {
  std::array<std::uint32_t, 10> words{};
  philox_fill(words, 99, 0, 5);
  PhiloxEngine engine{99, 5};
  for (const std::uint32_t word : words) CHECK(engine() == word);
}

TEST_CASE("uniform() lies in [0, 1) and is spread evenly") {
  PhiloxEngine engine{2024};
  std::array<int, 10> counts{};
  constexpr int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double value = engine.uniform();
    REQUIRE(value >= 0.0);
    REQUIRE(value < 1.0);
    ++counts[static_cast<std::size_t>(value * 10)];
  }
  // 10'000 expected, standard deviation 95.
  for (const int count : counts) CHECK(std::abs(count - draws / 10) < 500);
}

TEST_CASE("below() is unbiased, in range, and repeatable") {
  PhiloxEngine engine{7};
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(engine.below(6));
  // 10'000 expected, standard deviation 91.
  for (const int count : counts) CHECK(std::abs(count - 10'000) < 500);

  // With this bound a plain remainder would give the lower half twice as often as the upper.
  constexpr std::uint64_t bound = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 62);
  int low = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = engine.below(bound);
    REQUIRE(value < bound);
    low += value < bound / 2 ? 1 : 0;
  }
  CHECK(std::abs(low - 5'000) < 300);

  CHECK(PhiloxEngine{1}.below(1) == 0);
  CHECK(PhiloxEngine{3}.below(1'000'000) == PhiloxEngine{3}.below(1'000'000));
  CHECK_THROWS_AS(engine.below(0), std::invalid_argument);
}
