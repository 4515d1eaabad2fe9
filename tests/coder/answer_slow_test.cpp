// Hostile answers of a megabyte: the time is linear, and nothing crashes.

#include <mtmc/coder/answer.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace mtmc;

namespace {

constexpr std::size_t megabyte = 1 << 20;

std::string repeated(const std::string& piece, std::size_t size) {
  std::string text;
  text.reserve(size + piece.size());
  while (text.size() < size) text += piece;
  return text;
}

const Kernel parent{languages::cpp, "//@ launch f(a, n)\nvoid f(float* a, int n) {\n  a[n] = 1;\n}\n"};

/// Seconds that reading the answer takes; also checks that the result is in order.
double seconds_for(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = extract_kernel(text, {.language = languages::cpp, .edits = true, .parent = &parent});
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  CHECK(result.kernel.has_value() == (result.failure == AnswerFailure::none));
  CHECK(result.message.size() < 20000);
  CHECK(result.note.size() < 600);
  return passed.count();
}

} // namespace

// A step of quadratic cost would take an hour for a megabyte, and minutes for a sixteenth of it.
constexpr double far_from_quadratic = 30;

TEST_CASE("a megabyte of marks takes linear time") {
  for (const std::string piece : {"`", "```\n", "```cpp\n", "```cpp\nvoid f(float* a, int n) {\n}\n```\n",
                                  "x", "<code>", "<think>\n</think>\n", "f(){", "// ... existing code\n",
                                  "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n"}) {
    INFO(piece);
    CHECK(seconds_for(repeated(piece, megabyte)) < far_from_quadratic);
  }
}

TEST_CASE("the same of all that the reader looks for, alone, in a block, and after code") {
  const std::vector<std::string> pieces{
      "~~~\n```\n",
      "```markdown\n",
      "<think>",
      "<code ",
      "</code>",
      "<kernel>x</kernel>",
      " ",
      "\n",
      "- ",
      "f(",
      "f()",
      "((((",
      "{[(",
      "R\"a(",
      "/*",
      "//@ launch f(a)\n",
      "...",
      "\"",
      "'",
      "\\",
      "&lt;",
      "a\\_",
      "12 | x\n",
      "<<<<<<< SEARCH\n",
      "<<<<<<< SEARCH\n  a[n] = 1;\n=======\n  a[n] = 1;\n  a[n]++;\n>>>>>>> REPLACE\n",
      "=======\n",
      "{\"code\":",
      "[",
      "option a\n",
      "i cannot ",
      "def f(",
      "\"\"\"",
      "\xff",
      std::string(1, '\0'),
      "</s>\n",
      "#include \"a.h\"\n",
      "Option a\n```cpp\nvoid f(float* a, int n) {\n}\n```\nOption b\n"};
  for (const auto& piece : pieces)
    for (const std::string before : {"", "```cpp\n", "void f(float* a, int n) {\n"}) {
      INFO(before << piece);
      auto text = before + repeated(piece, megabyte / 16);
      if (before.starts_with("```")) text += "\n```\n";
      CHECK(seconds_for(text) < far_from_quadratic);
    }
}

TEST_CASE("as many different names, files and launch lines as a megabyte holds") {
  std::string launches = "```cpp\n";
  std::string files;
  for (int i = 0; launches.size() < megabyte; ++i)
    launches += "//@ launch f" + std::to_string(i) + "(a)\nvoid f" + std::to_string(i) + "(int a) {}\n";
  for (int i = 0; files.size() < megabyte; ++i)
    files += "```cpp:h" + std::to_string(i) + ".h\n#include \"h" + std::to_string(i + 1) +
             ".h\"\nvoid f(float* a, int n) {}\n```\n";
  CHECK(seconds_for(launches + "```\n") < far_from_quadratic);
  CHECK(seconds_for(files) < far_from_quadratic);
}

TEST_CASE("JSON nested as deep as a megabyte allows") {
  const auto depth = megabyte / 2;
  CHECK(seconds_for("{\"code\":" + std::string(depth, '[') + std::string(depth, ']') + "}") <
        far_from_quadratic);
  CHECK(seconds_for(repeated("{\"code\":", megabyte) + "1" + std::string(megabyte / 8, '}')) <
        far_from_quadratic);
}

TEST_CASE("joining two megabytes of the same line takes linear time") {
  const auto lines = repeated("    }\n", megabyte);
  const auto start = std::chrono::steady_clock::now();
  const auto joined = join_continuation("```cpp\n" + lines, lines + "x\n```\n");
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  CHECK(joined.ends_with("x\n```\n"));
  CHECK(passed.count() < far_from_quadratic);
}
