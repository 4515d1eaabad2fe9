#include <mtmc/support/streaming_copy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace mtmc::detail;

TEST_CASE("streaming writes exactly what it is told, at any alignment and length") {
  std::vector<std::byte> source(20'000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 31 % 251);
  constexpr std::byte untouched{0xee};
  constexpr std::byte value{0x5a};
  for (const std::size_t at : {0u, 1u, 15u, 63u, 64u, 65u})
    for (const std::size_t from : {0u, 3u})
      for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 200u, 4096u, 12'345u}) {
        std::vector<std::byte> target(13'000, untouched);
        copy_streaming(target.data() + at, source.data() + from, size);
        CHECK(std::equal(source.begin() + static_cast<std::ptrdiff_t>(from),
                         source.begin() + static_cast<std::ptrdiff_t>(from + size),
                         target.begin() + static_cast<std::ptrdiff_t>(at)));
        CHECK(std::count(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(at), untouched) ==
              static_cast<std::ptrdiff_t>(at));
        CHECK(std::all_of(target.begin() + static_cast<std::ptrdiff_t>(at + size), target.end(),
                          [](std::byte byte) { return byte == untouched; }));
        fill_streaming(target.data() + at, value, size);
        CHECK(std::count(target.begin(), target.end(), value) == static_cast<std::ptrdiff_t>(size));
      }
}
