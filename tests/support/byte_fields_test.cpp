#include <mtmc/support/byte_fields.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

using namespace mtmc::detail;

TEST_CASE("fields come back in order, whatever their bytes") {
  const std::string bytes("\0\n\xff", 3);
  ByteFieldWriter to;
  to.number(std::numeric_limits<std::uint64_t>::max());
  to.text(bytes);
  to.text("");
  to.number(1);
  to.number(7);
  ByteFieldReader from(to.bytes());
  CHECK(from.number() == std::numeric_limits<std::uint64_t>::max());
  CHECK(from.text() == bytes);
  CHECK(from.text().empty());
  CHECK(from.count() == 1);
  CHECK(from.number() == 7);
  CHECK_THROWS_AS((void)from.number(), std::out_of_range);
}

TEST_CASE("what is cut short, or counts more than there is, is noticed") {
  ByteFieldWriter to;
  to.text("twelve bytes");
  for (std::size_t size = 0; size < to.bytes().size(); ++size) {
    ByteFieldReader from(std::string_view(to.bytes()).substr(0, size));
    CHECK_THROWS_AS((void)from.text(), std::out_of_range);
  }
  ByteFieldReader from(to.bytes());
  CHECK_THROWS_AS((void)from.count(), std::out_of_range);
}
