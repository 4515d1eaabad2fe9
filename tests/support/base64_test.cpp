#include <mtmc/support/base64.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {
std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }
} // namespace

TEST_CASE("base64: the examples of RFC 4648, both ways") {
  const std::pair<std::string_view, std::string_view> examples[] = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : examples) {
    const auto& shown = plain;
    CAPTURE(shown);
    CHECK(to_base64(bytes(plain)) == encoded);
    CHECK(from_base64(encoded) == bytes(plain));
  }
}

TEST_CASE("base64: all bytes come back, what is no base64 is refused") {
  std::vector<std::uint8_t> all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  CHECK(from_base64(to_base64(all)) == all);
  for (const std::string_view broken : {"Zg=", "Zg", "Z*==", "Zm9v\n", "=m9v"}) {
    CAPTURE(broken);
    CHECK_FALSE(from_base64(broken));
  }
}
