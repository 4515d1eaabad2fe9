#include <mtmc/analysis/signature.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

namespace {

std::vector<Signature> signatures(const std::string& text) { return read_signatures({languages::cpp, text}); }

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

TEST_CASE("signature: names, element types, pointers and const are read as declared") {
  const auto found =
      signatures("namespace engine {\n"
                 "void f(const float* __restrict__ a, std::uint8_t b[16], unsigned long long n,\n"
                 "       const double scale, Widget* w) {}\n}\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "f");
  CHECK(found[0].line == 2);
  const auto& p = found[0].parameters;
  REQUIRE(p.size() == 5);
  CHECK((p[0].name == "a" && p[0].type == DataType::f32 && p[0].pointer && p[0].points_to_const));
  CHECK((p[1].name == "b" && p[1].type == DataType::u8 && p[1].pointer && !p[1].points_to_const));
  CHECK((p[2].name == "n" && p[2].type == DataType::u64 && !p[2].pointer));
  CHECK((p[3].name == "scale" && p[3].type == DataType::f64 && !p[3].points_to_const));
  CHECK((p[4].pointer && !p[4].type));
}

TEST_CASE("signature: a language that is not C-like has none") {
  CHECK(read_signatures({languages::triton, "def f(x): pass"}).empty());
}

TEST_CASE("arguments: roles, types and values come from the signature, in order of use") {
  CHECK(completed("void f(const float* x, double* y, int n, long m) {}\n//@ launch f(x, y, N, m)\n") ==
        "x input f32; y output f64; N scalar i32 N; m scalar i64 m");
}

TEST_CASE("arguments: what one launch writes and another reads is an output, scratch is no argument") {
  CHECK(completed("void f(const float* x, float* y) {}\nvoid g(const float* y, float* z) {}\n"
                  "//@ scratch t: f32[4]\n//@ launch g(y, t)\n//@ launch f(x, y)\n//@ launch g(t, z)\n") ==
        "y output f32; x input f32; z output f32");
}

TEST_CASE("arguments: what is stated wins over the signature") {
  auto entry = stated("y");
  entry.has_role = true;
  entry.argument.role = ArgumentRole::inout;
  CHECK(completed("void f(float* y, int n) {}\n//@ launch f(y, n)\n", {entry}) ==
        "y inout f32; n scalar i32 n");
}

TEST_CASE("arguments: a single function that takes a buffer is launched with its own names") {
  Task task;
  task.kernel = {languages::cpp, "int twice(int x) { return 2 * x; }\nvoid f(float* y, int n) {}"};
  complete_arguments(task, {});
  CHECK(task.kernel.source.ends_with("{}\n//@ launch f(y, n)\n"));
  CHECK(task.arguments.size() == 2);
}

TEST_CASE("arguments: two candidates without a launch line are an error that says what to write") {
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\nvoid g(float* y) {}\n"),
                       doctest::Contains("`//@ launch ENTRY(ARGUMENTS)`"), Error);
}

TEST_CASE("arguments: one that no launch names must say its type") {
  CHECK_THROWS_WITH_AS((void)completed("void f(float* y) {}\n//@ launch f(y)\n", {stated("elsewhere")}),
                       doctest::Contains("\"elsewhere\""), Error);
}
