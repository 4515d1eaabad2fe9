// The corpus tests/data/answers: every file is an answer as models write them, with what must come of it.
//
//     about: one line for people                         parent: a file of parents/, by its ending the
//     language expect: kernel, or the name of a failure           edits: yes, cut: yes: the options of that
//     name message: / note: / partly: a part of that text     write: crlf, bom or escaped (\xNN is a byte)
//     @answer
//     ... the answer
//     @kernel
//     ... the exact text of the kernel, where one is expected
//
// A new file is a new case.

#include <mtmc/coder/answer.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace mtmc;

namespace {

const std::string folder = std::string(MTMC_REPOSITORY) + "/tests/data/answers/";

struct Case {
  std::string name;
  std::multimap<std::string, std::string> head;
  std::string answer;
  std::string kernel;
  Kernel parent;

  [[nodiscard]] bool has(const std::string& key) const { return head.contains(key); }
  [[nodiscard]] std::string at(const std::string& key) const {
    const auto found = head.find(key);
    return found == head.end() ? std::string() : found->second;
  }
  [[nodiscard]] AnswerOptions options() const {
    return {.language = parent.language, .edits = has("edits"), .parent = &parent, .cut = has("cut")};
  }
};

const Language& language_of(const std::string& file) {
  if (file.ends_with(".cu")) return languages::cuda;
  if (file.ends_with(".cl")) return languages::opencl;
  return file.ends_with(".py") ? languages::triton : languages::cpp;
}

std::string as_written(const std::string& text, const std::string& how) {
  if (how == "bom") return "\xef\xbb\xbf" + text;
  std::string written;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (how == "crlf" && text[i] == '\n') written += '\r';
    if (how == "escaped" && text.compare(i, 2, "\\x") == 0) {
      written += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
      continue;
    }
    written += text[i];
  }
  return written;
}

Case read_case(const std::filesystem::path& path) {
  Case result;
  result.name = path.filename().string();
  const auto text = read_file(path.string());
  const auto answer = text.find("@answer\n");
  REQUIRE_MESSAGE(answer != std::string::npos, result.name);
  for (std::size_t at = 0; at < answer;) {
    const auto end = text.find('\n', at);
    const auto colon = text.find(": ", at);
    REQUIRE_MESSAGE(colon < end, result.name);
    result.head.emplace(text.substr(at, colon - at), text.substr(colon + 2, end - colon - 2));
    at = end + 1;
  }
  const auto from = answer + 8;
  const auto kernel = text.find("@kernel\n", from);
  result.answer =
      as_written(text.substr(from, kernel == std::string::npos ? kernel : kernel - from), result.at("write"));
  if (kernel != std::string::npos) result.kernel = text.substr(kernel + 8);
  const auto parent = result.at("parent");
  result.parent = {language_of(parent), read_file(folder + "parents/" + parent)};
  return result;
}

const std::vector<Case>& corpus() {
  static const auto cases = [] {
    std::vector<Case> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".txt") all.push_back(read_case(entry.path()));
    std::sort(all.begin(), all.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
    return all;
  }();
  return cases;
}

/// Where in the answer the kernel's text stands as it is, with its launch lines or without: begin and end;
/// both 0 where it is not there (indented, escaped, edited).
std::pair<std::size_t, std::size_t> place_of_kernel(const Case& one) {
  const auto split = detail::split_launch_lines(one.kernel, one.parent.language);
  for (const auto& text : {one.kernel, split.rest}) {
    const auto code = std::string(trim(text));
    if (const auto at = one.answer.rfind(code); !code.empty() && at != std::string::npos)
      return {at, at + code.size()};
  }
  return {0, 0};
}

/// A text of `size` bytes made of one piece.
std::string repeated(const std::string& piece, std::size_t size) {
  std::string text;
  text.reserve(size + piece.size());
  while (text.size() < size) text += piece;
  return text;
}

const Kernel two_loops{languages::cpp, "//@ launch f(a, n)\n"
                                       "void f(float* a, int n) {\n"
                                       "  for (int i = 0; i < n; ++i)\n"
                                       "    a[i] += 1;\n"
                                       "  for (int i = 0; i < n; ++i)\n"
                                       "    a[i] *= 2;\n"
                                       "}\n"};

} // namespace

TEST_CASE("every answer of the corpus gives the kernel, or the failure, that its file says") {
  CHECK(corpus().size() >= 80);
  for (const auto& one : corpus()) {
    INFO(one.name << ": " << one.at("about"));
    const auto result = extract_kernel(one.answer, one.options());
    CHECK(result.kernel.has_value() == (result.failure == AnswerFailure::none));
    CHECK(result.message.empty() == result.kernel.has_value());
    INFO(result.message);
    if (one.at("expect") == "kernel") {
      REQUIRE(result.kernel);
      CHECK(result.kernel->language == one.parent.language);
      CHECK(result.kernel->source == one.kernel);
    } else {
      const auto failure = parse_enum<AnswerFailure>(one.at("expect"));
      REQUIRE(failure);
      CHECK(to_string(result.failure) == to_string(*failure));
    }
    const auto contains = [&](const std::string& key, const std::string& text) {
      const auto [begin, end] = one.head.equal_range(key);
      for (auto it = begin; it != end; ++it) {
        INFO(key << " is: " << text);
        CHECK(text.find(it->second) != std::string::npos);
      }
    };
    contains("message", result.message);
    contains("note", result.note);
    contains("partly", result.partly_edited ? result.partly_edited->source : std::string());
  }
}

TEST_CASE("every kind of failure is in the corpus") {
  for (const auto& entry : enum_names(AnswerFailure{})) {
    INFO(entry.name);
    CHECK(std::any_of(corpus().begin(), corpus().end(), [&](const Case& one) {
      return one.at("expect") == (entry.value == AnswerFailure::none ? "kernel" : entry.name);
    }));
  }
}

TEST_CASE("an answer that ends within the kernel's block never gives a kernel") {
  int cut_cases = 0;
  std::mt19937 random(1);
  for (const auto& one : corpus()) {
    const auto [begin, end] = place_of_kernel(one);
    if (begin == end) continue;
    // Without a fence or a tag only the finish reason tells.
    const bool marked = begin > 1 && one.answer.find_last_of("`~>", begin) != std::string::npos &&
                        !one.name.starts_with("raw_");
    auto options = one.options();
    options.cut = !marked;
    ++cut_cases;
    for (int i = 0; i < 40; ++i) {
      // Every end of a line is a likely place; so is the very end of the code.
      auto cut = begin + 1 + random() % (end - begin);
      if (i % 3 == 0) cut = std::min(one.answer.find('\n', cut), end);
      if (i == 1) cut = end;
      INFO(one.name << " cut at " << cut);
      const auto result = extract_kernel(one.answer.substr(0, cut), options);
      CHECK(!result.kernel);
      CHECK(to_string(result.failure) == to_string(AnswerFailure::truncated));
    }
  }
  CHECK(cut_cases >= 60);
}

TEST_CASE("what the endpoint calls cut never gives a kernel, wherever the cut is") {
  std::mt19937 random(2);
  for (const auto& one : corpus()) {
    auto options = one.options();
    options.cut = true;
    for (int i = 0; i < 10; ++i) {
      INFO(one.name);
      CHECK(!extract_kernel(one.answer.substr(0, random() % (one.answer.size() + 1)), options).kernel);
    }
  }
}

TEST_CASE("a cut anywhere, joined with what is missing, gives the same answer") {
  std::mt19937 random(3);
  for (const auto& one : corpus()) {
    // The bytes are joined as text: line ends are those of Unix then.
    if (one.has("write") || one.answer.find("think") != std::string::npos ||
        one.answer.find("reasoning>") != std::string::npos || one.answer.find("<|") != std::string::npos)
      continue;
    for (int i = 0; i < 8; ++i) {
      const auto cut = random() % (one.answer.size() + 1);
      // The continuation repeats up to three lines.
      auto from = cut;
      for (std::size_t lines = random() % 4; lines > 0 && from > 0; --lines)
        from = one.answer.rfind('\n', from - 1) + 1 > from ? 0 : one.answer.rfind('\n', from - 1) + 1;
      INFO(one.name << " cut at " << cut << ", goes on at " << from);
      (void)join_continuation(one.answer.substr(0, cut), one.answer.substr(from));
    }
  }
}

TEST_CASE("no bytes make it fail") {
  std::mt19937 random(4);
  const std::vector<std::string> pieces{"```",         "\n```cpp\n",
                                        "~~~\n",       "<think>",
                                        "</think>",    "<code>",
                                        "</kernel>",   "\n<<<<<<< SEARCH\n",
                                        "\n=======\n", "\n>>>>>>> REPLACE\n",
                                        "{\"code\":",  std::string(1, '\0'),
                                        "\xff",        "\"\"\"",
                                        "/*",          "R\"x(",
                                        "\\",          "//@ launch",
                                        "&lt;",        "#@",
                                        "    ",        "\r\n"};
  int kernels = 0;
  for (const auto& one : corpus())
    for (int i = 0; i < 12; ++i) {
      auto text = one.answer;
      for (auto changes = random() % 4 + 1; changes > 0; --changes) {
        const auto at = random() % (text.size() + 1);
        if (random() % 3 == 0)
          text.erase(at, random() % 60);
        else
          text.insert(at, pieces[random() % pieces.size()]);
      }
      auto options = one.options();
      options.edits = i % 2 == 0;
      const auto result = extract_kernel(text, options);
      CHECK(result.kernel.has_value() == (result.failure == AnswerFailure::none));
      kernels += result.kernel ? 1 : 0;
      if (result.kernel) CHECK(find_malformed_utf8(result.kernel->source) == std::string::npos);
    }
  CHECK(kernels > 0);
}

TEST_CASE("a megabyte takes linear time, whatever is in it") {
  const std::vector<std::string> pieces{"`",
                                        "```\n",
                                        "```cpp\n",
                                        "```cpp\nvoid f(float* a, int n) {\n}\n```\n",
                                        "~~~\n```\n",
                                        "```markdown\n",
                                        "<think>",
                                        "<think>\n</think>\n",
                                        "<code>",
                                        "<code ",
                                        "</code>",
                                        "<kernel>x</kernel>",
                                        "x",
                                        " ",
                                        "\n",
                                        "- ",
                                        "f(",
                                        "f()",
                                        "f(){",
                                        "((((",
                                        "{[(",
                                        "R\"a(",
                                        "/*",
                                        "//@ launch f(a)\n",
                                        "// ... \n",
                                        "...",
                                        "\"",
                                        "'",
                                        "\\",
                                        "&lt;",
                                        "a\\_",
                                        "12 | x\n",
                                        "<<<<<<< SEARCH\n",
                                        "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
                                        "=======\n",
                                        "{\"code\":",
                                        "[",
                                        "option a\n",
                                        "i cannot ",
                                        "def f(",
                                        "\"\"\"",
                                        "\xff",
                                        std::string(1, '\0')};
  // A quadratic step would take minutes here.
  const auto start = std::chrono::steady_clock::now();
  for (const auto& piece : pieces)
    for (const std::string before : {"", "```cpp\n", "void f(float* a, int n) {\n"}) {
      INFO(before << piece);
      auto text = before + repeated(piece, (1 << 20) / 8);
      if (before.starts_with("```")) text += "\n```\n";
      const auto result =
          extract_kernel(text, {.language = languages::cpp, .edits = true, .parent = &two_loops});
      CHECK(result.kernel.has_value() == (result.failure == AnswerFailure::none));
    }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  MESSAGE("seconds: " << passed.count());
}
