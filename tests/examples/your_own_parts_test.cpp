// The example with parts of a host's own: it needs neither compiler nor device, and shows no interval that
// nobody measured.

#include <doctest/doctest.h>

#include "programs.hpp"

using doctest::Contains;
using programs::shown;

TEST_CASE("03_your_own_parts: a cost model's seconds are compared, without an interval") {
  const auto done = programs::run("03_your_own_parts", {}, {});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(shown(done.output) == Contains("the model believes in "));
  CHECK(shown(done.output) != Contains("x ["));
}
