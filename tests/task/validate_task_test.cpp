#include <mtmc/task/validate_task.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

using namespace mtmc;

namespace {

/// y = alpha * A x, two sizes, nothing wrong with it.
Task valid_task() {
  Task task{
      "gemv", "y = alpha A x", {languages::cpp, "void gemv() {}\n//@ launch gemv(A, x, y, n, alpha)\n"}};
  task.arguments = {{"A", ArgumentRole::input, DataType::f32, {"M", "N"}},
                    {"x", ArgumentRole::input, DataType::f32, {"N"}},
                    {"y", ArgumentRole::output, DataType::f32, {"M"}},
                    {"n", ArgumentRole::scalar, DataType::i32, {}, "N"},
                    {"alpha", ArgumentRole::scalar, DataType::f32, {}, "0.5"}};
  task.sizes = {{{{"M", 64}, {"N", 48}}}, {{{"M", 3}, {"N", 5}}, 0}};
  return task;
}

/// The error of a valid task after `change`, if any.
std::optional<Error> error_after(const std::function<void(Task&)>& change) {
  auto task = valid_task();
  change(task);
  try {
    validate_task(task);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Checks that the change is refused with that id, says `message` and names `place`.
void check_refused(std::string_view id, std::string_view message, std::string_view place,
                   const std::function<void(Task&)>& change) {
  CAPTURE(message);
  const auto error = error_after(change);
  REQUIRE(error);
  CAPTURE(std::string(error->what()));
  CHECK(error->id() == id);
  CHECK(error->message().find(message) != std::string::npos);
  CHECK(error->place().find(place) != std::string::npos);
  CHECK_FALSE(error->remedy().empty());
}

constexpr auto malformed = error_id::task_malformed;
constexpr auto expression = error_id::task_expression;
constexpr auto launch = error_id::launch_malformed;

} // namespace

TEST_CASE("a complete task is accepted, whatever it may leave out") {
  CHECK_FALSE(error_after([](Task&) {}));
  CHECK_FALSE(error_after([](Task& task) { task.summary.clear(); }));
  CHECK_FALSE(error_after([](Task& task) {
    task.arguments[3].value.clear(), task.arguments[3].name = "N",
                                     task.kernel.source = "//@ launch gemv(A, x, y, N, 0)\n";
  }));
  CHECK_FALSE(error_after([](Task& task) { task.reference = task.kernel; }));
  CHECK_FALSE(error_after([](Task& task) { task.tolerance = 1e-4; }));
  CHECK_FALSE(error_after([](Task& task) { task.arguments[1].domain = ValueDomain{"0", "M - 1"}; }));
  CHECK_FALSE(error_after([](Task& task) { task.arguments[1].data = "x.npy"; }));
  CHECK_FALSE(error_after([](Task& task) {
    task.arguments[2].role = ArgumentRole::inout;
    task.arguments[2].data = "y.npy";
  }));
  CHECK_FALSE(error_after([](Task& task) { task.arguments[1].domain = ValueDomain{"-1e-3", ".5"}; }));
  CHECK_FALSE(error_after([](Task& task) { task.sizes[0].unknown.json["note"] = R"("the usual one")"; }));
  CHECK_FALSE(error_after([](Task& task) { task.name = "größe 7/8"; }));
}

TEST_CASE("only what has content before a call can have captured content") {
  check_refused(malformed, "the output \"y\" has captured content", "argument y",
                [](Task& task) { task.arguments[2].data = "y.npy"; });
  check_refused(malformed, "the scalar \"n\" has captured content", "argument n",
                [](Task& task) { task.arguments[3].data = "n.npy"; });
}

TEST_CASE("what is missing is said, and what to add") {
  check_refused(malformed, "has no name", "name", [](Task& task) { task.name = " "; });
  check_refused(malformed, "no text", "kernel", [](Task& task) { task.kernel.source = " \n"; });
  check_refused(malformed, "language has no name", "kernel", [](Task& task) { task.kernel.language = {}; });
  check_refused(malformed, "no text", "reference",
                [](Task& task) { task.reference = Kernel{languages::cpp, ""}; });
  check_refused(malformed, "no arguments", "arguments", [](Task& task) { task.arguments.clear(); });
  check_refused(malformed, "no sizes", "sizes", [](Task& task) { task.sizes.clear(); });
  check_refused(malformed, "no size is timed", "sizes", [](Task& task) { task.sizes[0].weight = 0; });
  check_refused(malformed, "no shape", "argument A", [](Task& task) { task.arguments[0].shape.clear(); });
  check_refused(malformed, "no argument is an output", "arguments",
                [](Task& task) { task.arguments[2].role = ArgumentRole::input; });
  check_refused(launch, "no launch line", "kernel", [](Task& task) { task.kernel.source = "void f();\n"; });
}

TEST_CASE("names are identifiers, and each is taken once") {
  check_refused(malformed, "cannot be an argument's name", "arguments",
                [](Task& task) { task.arguments[0].name = "a-b"; });
  check_refused(malformed, "cannot be an argument's name", "arguments",
                [](Task& task) { task.arguments[0].name.clear(); });
  check_refused(malformed, "two arguments have the name \"x\"", "argument x",
                [](Task& task) { task.arguments[0].name = "x"; });
  check_refused(malformed, "cannot be a symbol's name", "size",
                [](Task& task) { task.sizes[1].symbols["a b"] = 1; });
  check_refused(malformed, "cannot be a symbol's name", "size",
                [](Task& task) { task.sizes[1].symbols["compute_units"] = 1; });
  check_refused(malformed, "control character", "name", [](Task& task) { task.name = "a\nb"; });
}

TEST_CASE("roles, shapes and values must not contradict each other") {
  check_refused(malformed, "has a shape", "argument n", [](Task& task) { task.arguments[3].shape = {"N"}; });
  check_refused(malformed, "has a value", "argument x", [](Task& task) { task.arguments[1].value = "3"; });
  check_refused(malformed, "domain of \"x\" is empty", "domain of x at M=64 N=48",
                [](Task& task) { task.arguments[1].domain = ValueDomain{"M", "3"}; });
}

TEST_CASE("numbers must make sense") {
  for (const double weight : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    check_refused(malformed, "weight", "size M=64 N=48", [=](Task& task) { task.sizes[0].weight = weight; });
  for (const double tolerance : {0.0, -1e-3, 1.0, std::nan("")})
    check_refused(malformed, "tolerance", "tolerance", [=](Task& task) { task.tolerance = tolerance; });
  check_refused(malformed, "negative", "size M=64 N=48", [](Task& task) { task.flops = "M - 1000"; });
  check_refused(malformed, "negative", "size M=64 N=48", [](Task& task) { task.bytes = "0 - N"; });
}

TEST_CASE("every expression is evaluated at every size, and the error names both") {
  check_refused(expression, "unknown symbol 'Q'", "shape of A at M=64 N=48",
                [](Task& task) { task.arguments[0].shape = {"M", "Q"}; });
  check_refused(expression, "unknown symbol 'N'", "M=3",
                [](Task& task) { task.sizes[1].symbols.erase("N"); });
  check_refused(expression, "division by zero", "shape of y at M=3 N=5",
                [](Task& task) { task.arguments[2].shape = {"M / (N - 5)"}; });
  check_refused(expression, "is 0", "shape of y at M=3 N=5",
                [](Task& task) { task.arguments[2].shape = {"M / 4"}; });
  check_refused(expression, "is -2", "shape of y at M=3 N=5",
                [](Task& task) { task.arguments[2].shape = {"M - 5"}; });
  check_refused(expression, "does not fit into 64 bits", "shape of A",
                [](Task& task) { task.arguments[0].shape = {"M * 9223372036854775807"}; });
  check_refused(expression, "more bytes than an address", "shape of A",
                [](Task& task) { task.arguments[0].shape = {"M / 64 * 2305843009213693952"}; });
  check_refused(expression, "unexpected", "shape of A",
                [](Task& task) { task.arguments[0].shape = {"M N"}; });
  check_refused(expression, "it is empty", "shape of A", [](Task& task) { task.arguments[0].shape = {""}; });
  check_refused(expression, "nested more than", "shape of A",
                [](Task& task) { task.arguments[0].shape = {std::string(100000, '(')}; });
  check_refused(expression, "unknown symbol 'K'", "value of n",
                [](Task& task) { task.arguments[3].value = "K"; });
  check_refused(expression, "not an integer", "value of n",
                [](Task& task) { task.arguments[3].value = "0.5"; });
  check_refused(expression, "unknown symbol 'inf'", "value of alpha",
                [](Task& task) { task.arguments[4].value = "inf"; });
  check_refused(expression, "not an integer", "value of alpha",
                [](Task& task) { task.arguments[4].value = "1e999"; });
  check_refused(expression, "unknown symbol", "domain of x",
                [](Task& task) { task.arguments[1].domain = ValueDomain{"0", "Q"}; });
  check_refused(expression, "unknown symbol", "flops", [](Task& task) { task.flops = "2*M*Q"; });
  check_refused(expression, "division by zero", "bytes", [](Task& task) { task.bytes = "M / (N - 48)"; });
}

TEST_CASE("a symbol whose value was no integer is blamed, and not the shape that uses it") {
  check_refused(malformed, "the value of \"N\" is not an integer: \"48\"", "size M=64", [](Task& task) {
    task.sizes[0].symbols.erase("N");
    task.sizes[0].unknown.json["N"] = R"("48")";
  });
}

TEST_CASE("a scalar's value fits its type at every size") {
  const auto with = [](DataType type, std::string value) {
    return [=](Task& task) { task.arguments[3].type = type, task.arguments[3].value = value; };
  };
  for (const auto& [type, largest, smallest] :
       {std::tuple{DataType::i8, "127", "-128"},
        {DataType::u8, "255", "0"},
        {DataType::i16, "32767", "-32768"},
        {DataType::u16, "65535", "0"},
        {DataType::i32, "2147483647", "-2147483648"},
        {DataType::u32, "4294967295", "0"},
        {DataType::i64, "9223372036854775807", "-9223372036854775808"},
        {DataType::u64, "9223372036854775807", "0"}}) {
    const auto name = to_string(type);
    CAPTURE(name);
    CHECK_FALSE(error_after(with(type, largest)));
    CHECK_FALSE(error_after(with(type, smallest)));
    if (size_of(type) < 8) {
      const auto beyond = std::string(largest) + " + 1", below = std::string(smallest) + " - 1";
      check_refused(malformed, "does not fit", "value of n at M=64 N=48", with(type, beyond));
      check_refused(malformed, "does not fit", "value of n", with(type, below));
    }
  }
  check_refused(malformed, "does not fit u64", "value of n", with(DataType::u64, "0 - N"));
  check_refused(malformed, "does not fit f16", "value of n", with(DataType::f16, "65536"));
  check_refused(malformed, "does not fit f32", "value of n", with(DataType::f32, "-1e39"));
  CHECK_FALSE(error_after(with(DataType::f64, "-1e39")));
  CHECK_FALSE(error_after(with(DataType::bf16, "1e38")));
}

TEST_CASE("launch lines are checked at every size, the reference's too") {
  check_refused(launch, "neither `scratch` nor `launch`", "kernel, line 1",
                [](Task& task) { task.kernel.source = "//@ lunch f(A)\n"; });
  check_refused(launch, "arguments in parentheses", "reference, line 1",
                [](Task& task) { task.reference = Kernel{languages::cpp, "//@ launch f(A\n"}; });
  check_refused(expression, "is 0", "kernel, scratch buffer T, line 1", [](Task& task) {
    task.kernel.source = "//@ scratch T: f32[M / 4]\n//@ launch gemv(A, x, y, n, T)\n";
  });
  check_refused(expression, "\"z\" is not an argument, scratch buffer or symbol",
                "kernel, launch of gemv, line 2",
                [](Task& task) { task.kernel.source = "\n//@ launch gemv(A, x, y, z)\n"; });
}

TEST_CASE("an output that no launch is given could never be written") {
  check_refused(launch, "\"y\" is passed to no launch", "kernel",
                [](Task& task) { task.kernel.source = "//@ launch gemv(A, x, n)\n"; });
  check_refused(launch, "\"y\" is passed to no launch", "reference",
                [](Task& task) { task.reference = Kernel{languages::cpp, "//@ launch gemv(A, x, n)\n"}; });
  CHECK_FALSE(
      error_after([](Task& task) { task.kernel.source = "//@ launch gemv(y)\n"; })); // unused inputs may be
}

TEST_CASE("a kernel is UTF-8 text") {
  CHECK_FALSE(error_after([](Task& task) {
    task.kernel.source += "// Gr\xc3\xb6\xc3\x9f"
                          "e\n";
  }));
  check_refused(malformed, "is not UTF-8 text", "kernel, line 3",
                [](Task& task) { task.kernel.source += "// caf\xe9\n"; });
  check_refused(malformed, "is not UTF-8 text", "kernel, line 3",
                [](Task& task) { task.kernel.source += std::string("\0\n", 2); });
}
