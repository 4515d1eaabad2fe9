#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/core/json.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;
using doctest::Contains;

namespace {

/// A task for one launch of `f` on the buffer `x`, the buffer `y` that it writes, and the scalar N.
TaskBuilder task(const std::string& x, const std::string& n = "int n", const std::string& before = "") {
  return TaskBuilder{"t"}
      .kernel(languages::cpp, before + "void f(" + x + ", float* y, " + n + ") {\n  y[n] = x[0];\n}\n" +
                                  "//@ launch f(x, y, N)\n")
      .shape("x", {"N"})
      .shape("y", {"N"})
      .size({{"N", 64}});
}

/// The error of building a task, as place and message; empty if there is none.
std::string refusal(const TaskBuilder& builder) {
  try {
    (void)builder.build();
    return {};
  } catch (const Error& error) {
    CHECK(error.id() == error_id::task_signature);
    CHECK_FALSE(error.remedy().empty());
    return error.place() + ": " + error.message();
  }
}

} // namespace

TEST_CASE(
    "contradictions: another element type than the parameter's is refused with field, line and declaration") {
  CHECK(refusal(task("const long long* x").type("x", DataType::i32)) ==
        "argument x, dtype: \"x\" is called i32, but line 1 of the kernel declares `const long long* x`, "
        "elements of i64");
}

TEST_CASE("contradictions: each data type is known by all its usual spellings") {
  struct Spelling {
    const char* text;
    DataType type;
  };
  constexpr Spelling spellings[] = {{"float", DataType::f32},
                                    {"double", DataType::f64},
                                    {"__half", DataType::f16},
                                    {"half", DataType::f16},
                                    {"__nv_bfloat16", DataType::bf16},
                                    {"long long", DataType::i64},
                                    {"long", DataType::i64},
                                    {"std::int64_t", DataType::i64},
                                    {"int", DataType::i32},
                                    {"std::int32_t", DataType::i32},
                                    {"short int", DataType::i16},
                                    {"int8_t", DataType::i8},
                                    {"signed char", DataType::i8},
                                    {"unsigned long long int", DataType::u64},
                                    {"std::size_t", DataType::u64},
                                    {"unsigned", DataType::u32},
                                    {"unsigned int", DataType::u32},
                                    {"::std::uint32_t", DataType::u32},
                                    {"unsigned short", DataType::u16},
                                    {"unsigned char", DataType::u8},
                                    {"real", DataType::f32},
                                    {"index_type", DataType::i64}};
  const std::string names = "typedef float real;\nusing index_type = long long;\n";
  for (const auto& spelling : spellings)
    for (const auto& facts : mtmc::detail::data_type_facts) {
      const auto type = *parse_data_type(facts.name);
      CAPTURE(spelling.text);
      CAPTURE(facts.name);
      const bool bits = spelling.type == DataType::u16 && (type == DataType::f16 || type == DataType::bf16);
      const auto said =
          refusal(task("const " + std::string(spelling.text) + "* x", "int n", names).type("x", type));
      CHECK(said.empty() == (type == spelling.type || bits));
    }
}

TEST_CASE("contradictions: types that the library does not know contradict nothing") {
  CHECK(refusal(task("const Widget* x").type("x", DataType::i32)).empty());
  CHECK(refusal(task("const real* x", "int n",
                     "#ifdef D\ntypedef double real;\n#else\ntypedef float real;\n#endif\n")
                    .type("x", DataType::i32))
            .empty());
  CHECK(refusal(task("const char* x").type("x", DataType::u8)).empty());
}

TEST_CASE("contradictions: a scalar is converted to its parameter, but no fraction to an integer") {
  CHECK(refusal(task("const float* x", "long long n").type("N", DataType::i32)).empty());
  CHECK(refusal(task("const float* x", "float n").type("N", DataType::i32)).empty());
  CHECK(refusal(task("const float* x").type("N", DataType::f32)) ==
        "argument N, dtype: \"N\" is called f32, but line 1 of the kernel declares `int n`, a value of i32");
}

TEST_CASE("contradictions: an output that every kernel takes as const is refused") {
  const char* const says = "is called an output, but line 1 of the kernel declares `const float* x`";
  CHECK(refusal(task("const float* x").role("x", ArgumentRole::output)).find(says) != std::string::npos);
  CHECK_FALSE(refusal(task("const float* x").role("x", ArgumentRole::inout)).empty());
  // One launch that may write it is enough.
  CHECK(refusal(TaskBuilder{"t"}
                    .kernel(languages::cpp,
                            "void f(const float* x, float* y) { y[0] = x[0]; }\n"
                            "void g(float* x) { x[0] = 1; }\n//@ launch g(x)\n//@ launch f(x, y)\n")
                    .role("x", ArgumentRole::output)
                    .shape("x", {"N"})
                    .shape("y", {"N"})
                    .size({{"N", 64}}))
            .empty());
  // So is one whose function is not in the text.
  CHECK(refusal(TaskBuilder{"t"}
                    .kernel(languages::cpp, "void f(const float* x, float* y) { y[0] = x[0]; }\n"
                                            "DEFINE_CLEAR(g)\n//@ launch g(x)\n//@ launch f(x, y)\n")
                    .role("x", ArgumentRole::output)
                    .shape("x", {"N"})
                    .shape("y", {"N"})
                    .size({{"N", 64}}))
            .empty());
}

TEST_CASE("contradictions: an input is refused where a statement of the kernel writes it, and only there") {
  CHECK(refusal(task("const float* x").role("y", ArgumentRole::input)).find("line 2 writes it") !=
        std::string::npos);
  CHECK(refusal(task("float* x").role("x", ArgumentRole::input)).empty());
}

TEST_CASE("contradictions: scalars called buffers, and buffers called scalars") {
  CHECK(refusal(task("const float* x").shape("N", {"1"})) ==
        "argument N, shape: \"N\" has a shape, but line 1 of the kernel declares `int n`, a scalar");
  CHECK(refusal(task("const float* x").role("N", ArgumentRole::input)).find("argument N, role") == 0);
  CHECK(refusal(task("const float* x").role("x", ArgumentRole::scalar)).find("argument x, role") == 0);
  CHECK(refusal(task("const float* x").value("x", "3")).find("argument x, value") == 0);
}

TEST_CASE("contradictions: a launch line passes as many arguments as the function takes") {
  const auto said =
      refusal(TaskBuilder{"t"}
                  .kernel(languages::cpp, "void f(float* y, int n) { y[n] = 1; }\n//@ launch f(y)\n")
                  .shape("y", {"8"})
                  .size({{"N", 8}}));
  CHECK(said == "kernel, line 2: the launch line passes 1 argument, but `f` of line 1 takes 2");
}

TEST_CASE("contradictions: the reference's signature counts as well") {
  CHECK(refusal(task("const Widget* x")
                    .type("x", DataType::f32)
                    .reference(languages::cpp,
                               "\nvoid f(const double* x, float* y) { y[0] = 1; }\n//@ launch f(x, y)\n"))
            .find("line 2 of the reference declares `const double* x`") != std::string::npos);
}

TEST_CASE("contradictions: in a task file the file is named, too") {
  const auto document = nlohmann::json::parse(R"({"name": "t",
    "kernel": {"language": {"name": "cpp", "syntax": "c_family"}, "source": "void f(const long long* i, float* y) { y[0] = i[0]; }"},
    "arguments": [{"name": "i", "dtype": "i32", "shape": ["N"]}, {"name": "y", "shape": ["N"]}],
    "sizes": [{"N": 8}]})");
  CHECK_THROWS_WITH_AS((void)parse_task(document.dump(), "folder/t.json"),
                       Contains("(folder/t.json, argument i, dtype)"), Error);
}
