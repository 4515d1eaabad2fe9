#include <mtmc/loop/kernel_shape.hpp>

#include <doctest/doctest.h>

namespace {
std::string shape(std::string source, const mtmc::Language& language = mtmc::languages::cuda) {
  return mtmc::detail::shape_of({language, std::move(source)});
}
} // namespace

TEST_CASE("numbers, comments and blanks are no difference") {
  CHECK(shape("int x = 16; // a tile\n") == shape("int  x=32;/* another\n tile */"));
  CHECK(shape("a[0x1F] + 1.5e-3f + .5 + 1'000u") == shape("a[2] + 7 + 1e+9 + 3"));
  CHECK(shape("//@ launch f<<<N, 256>>>(x)\n") == shape("//@ launch f<<<N, 128>>>(x)\n"));
  CHECK(shape("x = 1  # one\n", mtmc::languages::triton) == shape("x = 2", mtmc::languages::triton));
}

TEST_CASE("everything else is one") {
  CHECK(shape("int x;") != shape("intx;"));
  CHECK(shape("sum0 += a;") != shape("sum1 += a;"));
  CHECK(shape("a - 1") != shape("a + 1"));
  CHECK(shape("1e-3 - x") != shape("1e-3 + x"));
  CHECK(shape("0xE + x") != shape("0xE - x")); // no exponent
  CHECK(shape("f(\"1 // no comment\");") != shape("f(\"2 // no comment\");"));
  CHECK(shape("//@ launch f(x)\n") != shape("//@ launch g(x)\n"));
  CHECK(shape("#pragma unroll\n") != shape("")); // a comment in Python alone
}

TEST_CASE("texts that end in the middle of something") {
  CHECK(shape("x /* never closed 1") == "x");
  CHECK(shape("'") == "'");
  CHECK(shape("\"1\\") == "\"1\\");
  CHECK(shape("1.") == "0");
  CHECK(shape("") == "");
}
