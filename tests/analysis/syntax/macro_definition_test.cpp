// Lines that define macros: names, meanings, parameters.

#include <mtmc/analysis/syntax/macro_definition.hpp>

#include <doctest/doctest.h>

using mtmc::detail::macro_definition;

TEST_CASE("a macro has a name and what stands behind it") {
  const auto macro = macro_definition("#  define WIDTH 64 // elements");
  REQUIRE(macro);
  CHECK(macro->name == "WIDTH");
  CHECK(macro->meaning == " 64 // elements");
  CHECK_FALSE(macro->has_parameters());
}

TEST_CASE("a bracket right behind the name holds parameters") {
  CHECK(macro_definition("#define AT(i, j) ((i) * N + (j))")->has_parameters());
  CHECK_FALSE(macro_definition("#define AT (1 + 2)")->has_parameters());
  CHECK(macro_definition("#define DEBUG")->meaning.empty());
}

TEST_CASE("other directives define nothing") {
  for (const char* line : {"#include <math.h>", "#undef WIDTH", "#define", "#", "define WIDTH 64", ""})
    CHECK_FALSE(macro_definition(line));
}
