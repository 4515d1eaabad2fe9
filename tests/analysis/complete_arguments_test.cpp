#include <mtmc/analysis/complete_arguments.hpp>

#include <doctest/doctest.h>

using namespace mtmc;
using doctest::Contains;

namespace {

/// The task's arguments as "name role dtype value", after completion from the kernel.
std::string completed(const std::string& text, std::vector<StatedArgument> stated = {}) {
  Task task;
  task.name = "t";
  task.kernel = {languages::cpp, text};
  complete_arguments(task, std::move(stated));
  std::string result;
  for (const auto& argument : task.arguments) {
    if (!result.empty()) result += "; ";
    result += argument.name + ' ' + std::string(to_string(argument.role)) + ' ' +
              std::string(to_string(argument.type));
    if (!argument.value.empty()) result += ' ' + argument.value;
  }
  return result;
}

StatedArgument stated(const std::string& name) {
  StatedArgument entry;
  entry.argument.name = name;
  return entry;
}

} // namespace

TEST_CASE("complete arguments: roles, types and values come from the signature, in order of use") {
  CHECK(completed("void f(const float* x, double* y, int n, long m) {}\n//@ launch f(x, y, N, m)\n") ==
        "x input f32; y output f64; N scalar i32 N; m scalar i64 m");
}

TEST_CASE(
    "complete arguments: what one launch writes and another reads is an output, scratch is no argument") {
  CHECK(completed("void f(const float* x, float* y) {}\nvoid g(const float* y, float* z) {}\n"
                  "//@ scratch t: f32[4]\n//@ launch g(y, t)\n//@ launch f(x, y)\n//@ launch g(t, z)\n") ==
        "y output f32; x input f32; z output f32");
}

TEST_CASE("complete arguments: what is stated wins over the signature") {
  auto entry = stated("y");
  entry.has_role = true;
  entry.argument.role = ArgumentRole::inout;
  CHECK(completed("void f(float* y, int n) {}\n//@ launch f(y, n)\n", {entry}) ==
        "y inout f32; n scalar i32 n");
}

TEST_CASE("complete arguments: a single function that takes a buffer is launched with its own names") {
  Task task;
  task.kernel = {languages::cpp, "int twice(int x) { return 2 * x; }\nvoid f(float* y, int n) {}"};
  complete_arguments(task, {});
  CHECK(task.kernel.source.ends_with("{}\n//@ launch f(y, n)\n"));
  CHECK(task.arguments.size() == 2);
}

TEST_CASE("complete arguments: two candidates without a launch line are an error that says what to write") {
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\nvoid g(float* y) {}\n"),
                       doctest::Contains("`//@ launch ENTRY(ARGUMENTS)`"), Error);
}

TEST_CASE("complete arguments: one that no launch names must say its type") {
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\n//@ launch f(y)\n", {stated("elsewhere")}),
                       doctest::Contains("\"elsewhere\""), Error);
}

TEST_CASE("complete arguments: a bracket that is never closed is named with its place") {
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y, int n {\n  y[0] = n;\n}\n", {stated("y")}),
                       Contains("cannot be parsed: the '(' at line 1, column 7 is never closed"), Error);
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y, int n {\n}\n//@ launch f(y, n)\n", {stated("y")}),
                       Contains("the '(' at line 1, column 7 is never closed"), Error);
}

TEST_CASE("complete arguments: a text without any function says so") {
  CHECK_THROWS_WITH_AS((void)completed("", {stated("y")}), Contains("the kernel has no text"), Error);
  CHECK_THROWS_WITH_AS((void)completed("// to be written\n", {stated("y")}),
                       Contains("the kernel's text defines no function"), Error);
  CHECK_THROWS_WITH_AS((void)completed("//@ launch f(y)\n", {stated("y")}),
                       Contains("the kernel's text defines no function"), Error);
}

TEST_CASE("complete arguments: a launch of a function that is not there names those that are") {
  CHECK_THROWS_WITH_AS((void)completed("void scale(float* y) {}\n//@ launch scal(y)\n", {stated("y")}),
                       Contains("Did you mean \"scale\"?"), Error);
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\n//@ launch f(y, z)\n", {stated("z")}),
                       Contains("passes 2 arguments, but `f` of line 1 takes 1"), Error);
}

TEST_CASE("complete arguments: a type that is not the library's is shown as it is declared") {
  CHECK_THROWS_WITH_AS(
      (void)completed("struct Pixel { char r; };\nvoid f(\n  Pixel* p) {}\n//@ launch f(p)\n"),
      Contains("\"p\" cannot be read from `Pixel* p` in line 3"), Error);
}

TEST_CASE("complete arguments: one that neither kernel nor reference is passed is refused, however "
          "completely stated") {
  auto spare = stated("spare");
  spare.has_role = spare.has_type = true;
  spare.argument.shape = {"N"};
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\n//@ launch f(y)\n", {spare}),
                       Contains("no launch of the kernel passes \"spare\""), Error);
  Task task;
  task.kernel = {languages::cpp, "void f(float* y) { y[0] = 1; }\n"};
  task.reference =
      Kernel{languages::cpp, "void f(float* y, const float* spare) { y[0] = 1; }\n//@ launch f(y, spare)\n"};
  complete_arguments(task, {spare});
  CHECK(task.arguments.size() == 2);
}
