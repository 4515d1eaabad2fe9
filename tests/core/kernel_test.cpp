#include <mtmc/core/kernel.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

TEST_CASE("a kernel's id ignores line ends and trailing blanks, not comments") {
  const Kernel kernel{languages::cpp, "int a;\nint b;\n"};
  CHECK(kernel.id().size() == 64);
  CHECK(kernel.id() == Kernel{languages::cpp, "int a;  \r\nint b;\t\r\n\r\n\n"}.id());
  CHECK(kernel.id() == Kernel{languages::cpp, "int a;\nint b;"}.id());
  CHECK(kernel.id() != Kernel{languages::cpp, "int a;\n//@ launch f()\nint b;\n"}.id());
  CHECK(kernel.id() != Kernel{languages::cpp, "int a;\n int b;\n"}.id());
}

TEST_CASE("the language is part of the id") {
  CHECK(Kernel{languages::cpp, "x"}.id() != Kernel{languages::cuda, "x"}.id());
}

TEST_CASE("launch lines are comments of the language") {
  CHECK(launch_marker(languages::cuda) == "//@");
  CHECK(launch_marker(languages::triton) == "#@");
  CHECK(launch_marker({"my_dsl", Syntax::python}) == "#@");
}
