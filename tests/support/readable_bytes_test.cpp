#include <mtmc/support/readable_bytes.hpp>

#include <doctest/doctest.h>

#include <limits>

using mtmc::readable_bytes;

TEST_CASE("small sizes are exact, large ones have three digits and a unit of 1024") {
  CHECK(readable_bytes(0) == "0 bytes");
  CHECK(readable_bytes(1) == "1 byte");
  CHECK(readable_bytes(49152) == "49152 bytes");
  CHECK(readable_bytes(1048575) == "1048575 bytes");
  CHECK(readable_bytes(1048576) == "1 MiB");
  CHECK(readable_bytes(1572864) == "1.5 MiB");
  CHECK(readable_bytes(2.83391645e+10) == "26.4 GiB");
  CHECK(readable_bytes(268435456) == "256 MiB");
  CHECK(readable_bytes(85899345920) == "80 GiB");
  CHECK(readable_bytes(1073741823) == "1 GiB");
  CHECK(readable_bytes(1.5e15) == "1.33 PiB");
  CHECK(readable_bytes(9.3e18) == "8.07 EiB");
}

TEST_CASE("what is no size is not made one") {
  CHECK(readable_bytes(-1) == "? bytes");
  CHECK(readable_bytes(std::numeric_limits<double>::infinity()) == "? bytes");
  CHECK(readable_bytes(std::numeric_limits<double>::quiet_NaN()) == "? bytes");
}
