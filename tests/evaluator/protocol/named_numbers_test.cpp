// Numbers that a kernel's text names.
#include <mtmc/evaluator/protocol/named_numbers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

using namespace mtmc;

namespace {

bool has(const std::vector<std::int64_t>& numbers, std::int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

} // namespace

TEST_CASE("literals are read in every base, with suffixes and separators") {
  const auto found =
      numbers_in("if (n > 8192u || n == 1'000'000 || bits == 0x7FFFu) x = 1e-6f * 70.5 + 0x1.8p3f - .25;");
  CHECK(found.integers == std::vector<std::int64_t>{8192, 32767, 1'000'000});
  CHECK(found.reals == std::vector<double>{1e-6, 0.25, 12, 70.5});
}

TEST_CASE("what neighbours make is read as well, brackets or not, and nothing else is") {
  const auto found = numbers_in("a[4 * 1024 + 1] = b << 3; c = (1 << 20) - 5; d = 3 / 2, 7; e(8)(9);");
  for (const auto number : {4, 1024, 4096, 4097, 1 << 20, (1 << 20) - 5, 3, 2, 7})
    CHECK(has(found.integers, number));
  for (const auto number : {6, 21, 17, 72}) CHECK_FALSE(has(found.integers, number));
}

TEST_CASE("digits of names are no numbers, and odd texts do no harm") {
  CHECK(numbers_in("float32x4_t v8; x2 = y_16;").integers.empty());
  for (const std::string_view text : {"", "0x", "1e", "99999999999999999999999999", "1 << 70", "1e999",
                                      "0x1p99999", "5 * 9999999999999", "'", ".", "..5..", "1'", "-", "<<"})
    CHECK_NOTHROW((void)numbers_in(text));
  CHECK(numbers_in("99999999999999999999").integers.empty());
}

TEST_CASE("only those count that the reference does not name") {
  const auto found = numbers_beyond("for (i = 0; i < 128; ++i) s += 1e-5f; if (n == 777) s = 0.5f;",
                                    "for (i = 0; i < n; ++i) s += 1e-5f; /* 128 */");
  CHECK(found.integers == std::vector<std::int64_t>{777});
  CHECK(found.reals == std::vector<double>{0.5});
}
