// What a type's text tells.

#include <mtmc/analysis/flow/type_facts.hpp>

#include <doctest/doctest.h>

TEST_CASE("type facts: what a type's text tells") {
  const auto pointer = mtmc::type_facts("const float* __restrict__");
  CHECK(pointer.pointer);
  CHECK(pointer.constant);
  CHECK(pointer.floating);
  CHECK(pointer.size == 4);
  CHECK_FALSE(mtmc::type_facts("float* const").constant);
  CHECK(mtmc::type_facts("std::size_t").is_unsigned);
  CHECK(mtmc::type_facts("unsigned long long").size == 8);
  CHECK(mtmc::type_facts("short int").size == 2);
  CHECK(mtmc::type_facts("long double").floating);
  CHECK(mtmc::type_facts("static float").persistent);
  CHECK(mtmc::type_facts("const double&").reference);
  CHECK_FALSE(mtmc::type_facts("Matrix").integer);
  CHECK_FALSE(mtmc::type_facts("Matrix").floating);
}
