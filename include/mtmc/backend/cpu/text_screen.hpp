#pragma once
/// The first screen of a candidate in C++: its text before the preprocessor, and what the preprocessor made
/// of it.
///
/// Before: what acts while files are read, that is includes, questions about files, and lines that lie about
/// where they stand. After: names, attributes and pragmas, however macros spelled them. Both go by tokens.

#include <mtmc/backend/cpu/allowed_names.hpp>
#include <mtmc/backend/directive_screen.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What kernels in C++ may include, and tell the compiler.
inline constexpr TextRules cpp_text_rules{
    [](std::string_view name) { return is_one_of(name, allowed_headers); },
    "Use headers that compute, such as <cmath>, <algorithm>, <cstdint>, <vector>, <immintrin.h>, <omp.h>; a "
    "kernel has no files, output, threads of its own or clocks",
    is_allowed_pragma,
    "Leave it out; `#pragma omp`, `#pragma GCC unroll` and `#pragma GCC ivdep` are understood"};

/// The screen of what the preprocessor made of the program: `kernel_file` is the name under which it knows
/// the kernel's text, whose tokens are looked at, and `end_file` the one that begins behind it.
class PreprocessedScreen {
public:
  PreprocessedScreen(std::string_view kernel_file, std::string_view end_file)
      : kernel_file_(kernel_file), end_file_(end_file) {}

  /// What is not allowed, as errors with lines of the kernel's text; none if all is well.
  [[nodiscard]] std::vector<Diagnostic> screen(std::string_view text) {
    SourceTokens tokens(text);
    int brackets = 0;     // depth within [[ ]], which count
    int parentheses = -1; // depth within the parentheses of an __attribute__, -1 outside
    SourceToken before;
    for (auto token = tokens.next(); token.kind != SourceToken::Kind::end && !ended_; token = tokens.next()) {
      if (token.starts_line && token.is("#")) {
        mark(tokens.rest_of_line(), token.line);
        before = {};
        continue;
      }
      if (!in_kernel_) continue;
      token.line += shift_;
      if (brackets == 0 && token.is("[") && before.is("["))
        brackets = 2;
      else if (brackets > 0)
        brackets += token.is("[") ? 1 : token.is("]") ? -1 : 0;
      found_.check_clear(token);
      if (before.is("__attribute__") || before.is("__attribute")) parentheses = 0;
      if (parentheses >= 0 && token.is("(")) ++parentheses;
      if (parentheses >= 0 && token.is(")")) parentheses = parentheses > 1 ? parentheses - 1 : -1;
      if (token.kind == SourceToken::Kind::name) name(token, brackets > 0 || parentheses > 0);
      if (!token.suffix.empty())
        name({.kind = SourceToken::Kind::name, .spelling = token.suffix, .line = token.line}, brackets > 0);
      before = std::move(token);
    }
    return found_.take();
  }

private:
  void name(const SourceToken& token, bool in_attribute) {
    found_.check_own_name(token);
    if (const auto why = why_forbidden(token.spelling); !why.empty())
      found_.refuse(
          token.line, "`" + token.spelling + "` is not allowed: " + std::string(why),
          "Write plain C++; intrinsics of <immintrin.h> and `#pragma omp simd` reach the vector units");
    if (in_attribute && is_forbidden_attribute(token.spelling))
      found_.refuse(token.line,
                    "the attribute `" + token.spelling +
                        "` is not allowed: it makes code run unasked or hides it",
                    "Leave the attribute out");
  }

  /// A mark of the preprocessor (`# 12 "kernel.cpp" 2`), or a pragma.
  void mark(const std::vector<SourceToken>& line, int here) {
    if (line.empty()) return;
    if (line[0].is("pragma")) {
      if (in_kernel_) found_.check_pragma(std::span(line).subspan(1), here + shift_);
      return;
    }
    if (line[0].kind != SourceToken::Kind::number || line.size() < 2) return;
    int number = 0;
    std::from_chars(line[0].spelling.data(), line[0].spelling.data() + line[0].spelling.size(), number);
    ended_ = ended_ || line[1].spelling == end_file_;
    std::string_view file = line[1].spelling;
    if (file.starts_with("./")) file.remove_prefix(2); // as Clang has it
    in_kernel_ = file == kernel_file_;
    shift_ = number - (here + 1);
  }

  std::string_view kernel_file_;
  std::string_view end_file_;
  bool in_kernel_ = false;
  bool ended_ = false;
  /// Added to a line of the preprocessed text gives that of the kernel's.
  int shift_ = 0;
  TextFindings found_{cpp_text_rules};
};

/// Errors for what a kernel's text must not hold, before it is preprocessed.
[[nodiscard]] inline std::vector<Diagnostic> screen_text(std::string_view text,
                                                         std::span<const std::string> more_headers = {}) {
  return DirectiveScreen(cpp_text_rules, more_headers).screen(text);
}

} // namespace mtmc::detail
