// A way out behind each outermost loop, on the lines on which everything stands.
#include <mtmc/backend/divided_kernel.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

namespace {

std::optional<DividedKernel> divided(const std::string& text) {
  return detail::divided_kernel({languages::cpp, text, {}});
}

} // namespace

TEST_CASE("each outermost loop but the last can be the last one that is executed") {
  const auto two = divided("//@ launch f(x, y, n)\n"
                           "void f(const float* x, float* y, int n) {\n"
                           "  float sum = 0;\n"
                           "  for (int i = 0; i < n; ++i)\n"
                           "    sum += x[i];\n"
                           "#pragma omp parallel for\n"
                           "  for (int i = 0; i < n; ++i) {\n"
                           "    y[i] = x[i] / sum;\n"
                           "  }\n"
                           "  y[0] = 1;\n"
                           "}\n");
  REQUIRE(two);
  CHECK(two->parts == std::vector<KernelPart>{{"f", 4, 5}, {"f", 7, 9}});
  CHECK(two->kernel.source ==
        "//@ launch f(x, y, n, 1000000)\n"
        "void f(const float* x, float* y, int n, int mtmc_parts) { if (mtmc_parts <= 0) return;\n"
        "  float sum = 0;\n"
        "  for (int i = 0; i < n; ++i)\n"
        "    sum += x[i]; if (mtmc_parts <= 1) return;\n"
        "#pragma omp parallel for\n"
        "  for (int i = 0; i < n; ++i) {\n"
        "    y[i] = x[i] / sum;\n"
        "  }\n"
        "  y[0] = 1;\n"
        "}\n");
}

TEST_CASE("statements with loops in them are parts, whatever they are") {
  const auto all = divided("//@ launch f()\n"
                           "void helper(int n) { for (;;) { if (n-- < 0) break; } }\n"
                           "void f() {\n"
                           "  int n = 3;\n"
                           "  do { --n; } while (n > 0);\n"
                           "  if (n > 2)\n"
                           "    for (;;) break;\n"
                           "  else { n = 4; }\n"
                           "  {\n"
                           "    while (n > 0) --n;\n"
                           "  }\n"
                           "  auto g = [&] { for (int i = 0; i < 3; ++i) ++n; };\n"
                           "  g();\n"
                           "}\n");
  REQUIRE(all);
  CHECK(all->parts == std::vector<KernelPart>{{"f", 5, 5}, {"f", 6, 8}, {"f", 9, 11}});
  CHECK(all->kernel.source.find("//@ launch f(1000000)\n") == 0);
  CHECK(all->kernel.source.find("void f(int mtmc_parts) {") != std::string::npos);
  CHECK(all->kernel.source.find("while (n > 0); if (mtmc_parts <= 1) return;\n") != std::string::npos);
}

TEST_CASE("several entries each have parts of their own") {
  const auto both = divided("//@ launch f(x, n)\n"
                            "//@ launch g(x)\n"
                            "//@ launch f(x, n)\n"
                            "void f(float* x, int n) {\n"
                            "  for (int i = 0; i < n; ++i) x[i] += 1;\n"
                            "  for (int i = 0; i < n; ++i) x[i] *= 2;\n"
                            "}\n"
                            "void g(float* x) { x[0] = 0; }\n");
  REQUIRE(both);
  CHECK(both->parts == std::vector<KernelPart>{{"f", 5, 5}, {"f", 6, 6}});
  CHECK(both->kernel.source.find("void g(float* x, int mtmc_parts) { if (mtmc_parts <= 0) return; x[0]") !=
        std::string::npos);
}

TEST_CASE("nothing where there are no two parts to tell apart") {
  CHECK_FALSE(divided("//@ launch f(n)\nvoid f(int n) { for (int i = 0; i < n; ++i); }\n"));
  CHECK_FALSE(divided("//@ launch f(n)\nvoid f(int n);\n"));
  CHECK_FALSE(divided("//@ launch f(n)\nvoid f(int n) { for (;;) break; for (;;) break;\n"));
  std::string deep = "for (;;) break; ";
  for (int i = 0; i < 100000; ++i) deep += "if (n) ";
  CHECK_FALSE(divided("//@ launch f(n)\nvoid f(int n) { for (;;) break; " + deep + "; }\n"));
  CHECK_FALSE(detail::divided_kernel({languages::cuda, "//@ launch f(n)\n", {}}));
}
