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
#include <mtmc/coder/answer_choice.hpp>
#include <mtmc/coder/answer_continuation.hpp>
#include <mtmc/coder/answer_elision.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("a cut anywhere, joined with what is missing, is the answer again") {
  std::mt19937 random(3);
  int joined = 0;
  for (const auto& one : corpus()) {
    // Continuations are asked for once reasoning is over.
    if (one.has("write") || one.answer.find("think") != std::string::npos ||
        one.answer.find("reasoning>") != std::string::npos || one.answer.find("<|") != std::string::npos)
      continue;
    for (int i = 0; i < 8; ++i) {
      const auto cut = random() % (one.answer.size() + 1);
      // The continuation repeats up to three lines.
      auto from = cut;
      for (auto lines = random() % 4; lines > 0 && from > 1; --lines) {
        const auto end = one.answer.rfind('\n', from - 2);
        from = end == std::string::npos ? 0 : end + 1;
      }
      const auto repeated = std::string_view(one.answer).substr(from, cut - from);
      if (from != cut && detail::count_name_characters(repeated) < 8) continue;
      INFO(one.name << " cut at " << cut << ", goes on at " << from);
      CHECK(join_continuation(one.answer.substr(0, cut), one.answer.substr(from)) == one.answer);
      ++joined;
    }
  }
  CHECK(joined > 500);
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
      CHECK(find_malformed_utf8(result.message + result.note) == std::string::npos);
      if (result.kernel) CHECK(find_malformed_utf8(result.kernel->source) == std::string::npos);
    }
  CHECK(kernels > 0);
}

TEST_CASE("a continuation goes on, repeats, opens the fence again, or starts over") {
  const std::string first = "Here:\n\n```cpp\nvoid scale(float* a, int n) {\n  for (int i = 0; i < n; ++i)";
  const std::string rest = " a[i] *= 2;\n}\n```\n";
  const auto whole = first + rest;
  CHECK(join_continuation(first, rest) == whole);
  CHECK(join_continuation(first, "  for (int i = 0; i < n; ++i)" + rest) == whole);
  CHECK(join_continuation(first, "```cpp\n" + rest) == whole);
  CHECK(join_continuation(first, "```cpp\n  for (int i = 0; i < n; ++i)" + rest) == whole);
  CHECK(join_continuation(first, "Sorry, here is the rest:\n\n```cpp\n  for (int i = 0; i < n; ++i)" +
                                     rest) == whole);
  CHECK(join_continuation(first, "```\n  for (int i = 0; i < n; ++i)" + rest) == whole);
  CHECK(join_continuation(first, "<think>where was I?</think>" + rest) == whole);
  CHECK(join_continuation(first, "<think>where was I") == first);
  CHECK(join_continuation(first, "```cpp\nvoid scale(float* a, int n) {\n  for (int i = 0; i < n; ++i)" +
                                     rest) == whole);
  CHECK(join_continuation(first, "") == first);
  CHECK(join_continuation("", whole) == whole);
}

TEST_CASE("braces and blanks that are there twice by chance are both kept") {
  CHECK(join_continuation("```cpp\nvoid f() {\n  {\n    {\n    }\n", "    }\n  }\n}\n```\n") ==
        "```cpp\nvoid f() {\n  {\n    {\n    }\n    }\n  }\n}\n```\n");
}

TEST_CASE("what a continuation begins with may be the closing fence") {
  CHECK(join_continuation("```cpp\nint a;\n", "```\n\nThat is all.\n") ==
        "```cpp\nint a;\n```\n\nThat is all.\n");
  CHECK(join_continuation("```cpp\nint a;\n", "```\n\nBuild:\n```bash\nmake\n```\n") ==
        "```cpp\nint a;\n```\n\nBuild:\n```bash\nmake\n```\n");
}

TEST_CASE("the functions a text must define are those that its own launch lines launch, else the parent's") {
  CHECK(
      launched_entries("//@ scratch T: f32[M]\n  //@launch a<<<1, 2>>>(T)\n//@ launch b(\n//@ launch a(T)\n",
                       languages::cuda) == std::vector<std::string>{"a", "b"});
  CHECK(launched_entries("//@ launch a(T)\n#@ launch b(T)\n", languages::triton) ==
        std::vector<std::string>{"b"});
  CHECK(needed_entries("//@ launch b(T)\n", languages::cpp, {"a"}) == std::vector<std::string>{"b"});
  CHECK(needed_entries("void a() {}\n", languages::cpp, {"a"}) == std::vector<std::string>{"a"});

  const std::string answer = "```cpp\nvoid g(float* a) {\n  a[0] = 1;\n}\n```";
  CHECK(extract_kernel(answer, {.language = languages::cpp}).kernel);
  CHECK(extract_kernel(answer, {.language = languages::cpp, .entries = {"g"}}).kernel);
  CHECK(extract_kernel(answer, {.language = languages::cpp, .entries = {"h"}}).failure ==
        AnswerFailure::entry_missing);
  CHECK(extract_kernel(answer, {.language = languages::cpp, .parent = &two_loops}).failure ==
        AnswerFailure::entry_missing);
}

TEST_CASE("of edits that fit in part the rest can be sent again") {
  const std::string first_try = "<<<<<<< SEARCH\n    a[i] += 1;\n=======\n    a[i] += 2;\n>>>>>>> REPLACE\n"
                                "<<<<<<< SEARCH\n  for (int i = 0; i < n; ++i)\n=======\n"
                                "  for (int i = n - 1; i >= 0; --i)\n>>>>>>> REPLACE\n";
  const auto partly =
      extract_kernel(first_try, {.language = languages::cpp, .edits = true, .parent = &two_loops});
  CHECK(partly.failure == AnswerFailure::edit_ambiguous);
  CHECK(!partly.kernel);
  REQUIRE(partly.partly_edited);
  CHECK(partly.message.find("Edit 2 fits in several places") != std::string::npos);
  CHECK(partly.message.find("Send only that edit again") != std::string::npos);

  const std::string second_try = "<<<<<<< SEARCH\n  for (int i = 0; i < n; ++i)\n    a[i] *= 2;\n=======\n"
                                 "  for (int i = n - 1; i >= 0; --i)\n    a[i] *= 2;\n>>>>>>> REPLACE\n";
  const auto done = extract_kernel(
      second_try, {.language = languages::cpp, .edits = true, .parent = &*partly.partly_edited});
  REQUIRE(done.kernel);
  CHECK(done.kernel->source == "//@ launch f(a, n)\n"
                               "void f(float* a, int n) {\n"
                               "  for (int i = 0; i < n; ++i)\n"
                               "    a[i] += 2;\n"
                               "  for (int i = n - 1; i >= 0; --i)\n"
                               "    a[i] *= 2;\n"
                               "}\n");
}

TEST_CASE("a language of the host is known by its name and by its family's tags") {
  const Language dialect{"my_dialect", Syntax::c_family};
  const AnswerOptions options{.language = dialect, .entries = {"g"}};
  const std::string code = "\nvoid g(float* a) {\n  a[0] = 1;\n}\n```";
  for (const std::string tag : {"my_dialect", "cpp", "", "unheard_of"})
    CHECK(extract_kernel("```" + tag + code, options).kernel);
  for (const std::string tag : {"python", "cuda", "bash"})
    CHECK(extract_kernel("```" + tag + code, options).failure == AnswerFailure::no_code);
}

TEST_CASE("the note is one line of at most 500 bytes that ends with a whole character") {
  const auto note =
      extract_kernel(repeated("\xc3\xa9\n \n", 5000) + "```cpp\nint a;\n```\n", {.language = languages::cpp})
          .note;
  CHECK(note.size() <= 503);
  CHECK(note.find('\n') == std::string::npos);
  CHECK(find_malformed_utf8(note) == std::string::npos);
  CHECK(note.ends_with("..."));
}

TEST_CASE("comments that leave code out, and comments that do not") {
  for (const auto* comment :
       {"// ... rest unchanged", "// ...", "/* existing code */", "# existing code here", "// same as before",
        "// ... (same as before)", "// TODO: implement", "# TODO - implement this part", "// [unchanged]",
        "// rest of the kernel remains the same", "/* ... */", "// ... other helpers ...",
        "// (code omitted)", "// Your code here", "// unchanged",
        "// \xe2\x80\xa6 existing code \xe2\x80\xa6", "// ... existing includes", "// -- snip --",
        "// same code as the original"}) {
    INFO(std::string(comment));
    CHECK(detail::comment_elides(comment));
  }
  for (const auto* comment :
       {"// remaining rows", "// the rest of the row", "// rows 0, 1, ..., n - 1", "// same tile for B",
        "// TODO: tune 64", "// existing rows of C are kept", "// ...and now the columns",
        "// original was 16", "// loop over the rest...", "/* before the barrier */",
        "// code motion: hoisted", "// here", "//", "// previous tile", "// continue with k0",
        "// same for the other half", "// other lanes add zero", "// implementation note: fits in L1"}) {
    INFO(std::string(comment));
    CHECK(!detail::comment_elides(comment));
  }
}
