#include <mtmc/analysis/task_builder.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

namespace {

/// y = a * x, nothing wrong with it.
TaskBuilder scale() {
  return TaskBuilder{"scale"}
      .kernel(languages::cpp, "void scale(const float* x, float* y, float a, int n) {\n"
                              "  for (int i = 0; i < n; ++i) y[i] = a * x[i];\n}\n"
                              "//@ launch scale(x, y, a, N)\n")
      .shape("x", {"N"})
      .shape("y", {"N"})
      .value("a", "0.5")
      .size({{"N", 1 << 20}})
      .check({{"N", 17}});
}

} // namespace

TEST_CASE("task builder: shapes and sizes are enough, the signature tells the rest") {
  const auto task = scale().build();
  REQUIRE(task.arguments.size() == 4);
  CHECK(task.arguments[0].name == "x");
  CHECK(task.arguments[0].role == ArgumentRole::input);
  CHECK(task.arguments[1].role == ArgumentRole::output);
  CHECK(task.arguments[2].value == "0.5");
  CHECK(task.arguments[3].value == "N");
  REQUIRE(task.sizes.size() == 2);
  CHECK(task.sizes[0].weight == 1);
  CHECK(task.sizes[1].weight == 0);
  CHECK(task.main_size() == &task.sizes[0]);
}

TEST_CASE("task builder: whatever is said is in the task") {
  const auto task = scale()
                        .summary("y = a x")
                        .role("y", ArgumentRole::inout)
                        .type("a", DataType::f64)
                        .domain("x", "-1", "1")
                        .data("x", "captured/x.npy")
                        .size({{"N", 999}}, 0.5)
                        .atomics()
                        .special_values(true)
                        .tolerance(1e-3)
                        .flops("N")
                        .bytes("8*N")
                        .reference(languages::cpp, "void f(const float* x, float* y, double a, int n) {}\n"
                                                   "//@ launch f(x, y, a, N)\n")
                        .build();
  CHECK(task.summary == "y = a x");
  CHECK(task.arguments[1].role == ArgumentRole::inout);
  CHECK(task.arguments[2].type == DataType::f64);
  CHECK(task.arguments[0].domain->low == "-1");
  CHECK(task.arguments[0].data == "captured/x.npy");
  CHECK(task.sizes[2].weight == 0.5);
  CHECK(task.atomics);
  CHECK(task.special_values);
  CHECK_FALSE(scale().build().special_values);
  CHECK(task.tolerance == 1e-3);
  CHECK(task.flops == "N");
  CHECK(task.bytes == "8*N");
  REQUIRE(task.reference);
}

TEST_CASE("task builder: a builder can be used again") {
  const auto builder = scale();
  CHECK(builder.build() == builder.build());
}

TEST_CASE("task builder: what is missing or wrong is named") {
  CHECK_THROWS_WITH_AS((void)TaskBuilder{"t"}.build(), doctest::Contains("the language has no name"), Error);
  CHECK_THROWS_WITH_AS((void)scale().shape("x", {"Q"}).build(), doctest::Contains("shape of x"), Error);
  CHECK_THROWS_WITH_AS((void)scale().shape("x", {"N / 0"}).build(), doctest::Contains("division by zero"),
                       Error);
  CHECK_THROWS_WITH_AS((void)scale().shape("z", {"N"}).build(), doctest::Contains("\"z\""), Error);
}
