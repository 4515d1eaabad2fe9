// Which of the calls that a program was compiled for a launch is.
#include <mtmc/backend/launch_check.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace mtmc;

TEST_CASE("a plan may leave launches out, and has the others in their order") {
  Launch f{.entry = "f"};
  Launch g{.entry = "g"};
  f.arguments.push_back({.name = "x"});
  const std::vector<detail::LaunchSignature> compiled{detail::signature_of(f), detail::signature_of(g),
                                                      detail::signature_of(f)};
  CHECK(detail::place_of_call(f, compiled, 0) == 0);
  CHECK(detail::place_of_call(f, compiled, 1) == 2);
  CHECK(detail::place_of_call(g, compiled, 0) == 1);
  CHECK(detail::place_of_call(g, compiled, 2) == 3);
  f.arguments.front().type = DataType::f64;
  CHECK(detail::place_of_call(f, compiled, 0) == 3);
}
