#pragma once
/// Questions about the code in an answer, asked before anything compiles it: what it defines, whether its
/// brackets close, whether parts are left out.

#include <mtmc/coder/answer_text.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A text with comments and literals told apart from the rest.
struct CodeText {
  /// As long as the source; what is in comments and literals is blank, line ends are kept.
  std::string plain;
  /// Each line of each comment, with its marks.
  std::vector<std::string_view> comments;
  /// A comment or a literal of several lines has no end.
  bool open_end = false;
};

/// Takes a text apart. Any bytes are accepted.
class CodeReader {
public:
  CodeReader(std::string_view source, Syntax syntax) : source_(source), python_(syntax == Syntax::python) {
    result_.plain = source;
  }

  [[nodiscard]] CodeText run() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (python_ ? c == '#' : source_.substr(at_, 2) == "//")
        comment(source_.find('\n', at_));
      else if (!python_ && source_.substr(at_, 2) == "/*")
        block_comment();
      else if (!python_ && c == '"' && after_raw_prefix())
        raw_literal();
      else if (python_ && (source_.substr(at_, 3) == "\"\"\"" || source_.substr(at_, 3) == "'''"))
        long_literal();
      else if (c == '"' || (c == '\'' && !between_digits()))
        literal(c);
      else
        ++at_;
    }
    return std::move(result_);
  }

private:
  [[nodiscard]] bool between_digits() const {
    return !python_ && at_ > 0 && is_name_character(source_[at_ - 1]) && at_ + 1 < source_.size() &&
           is_name_character(source_[at_ + 1]) && source_[at_ - 1] >= '0' && source_[at_ - 1] <= '9';
  }
  [[nodiscard]] bool after_raw_prefix() const {
    if (at_ == 0 || source_[at_ - 1] != 'R') return false;
    return at_ < 2 || !is_name_character(source_[at_ - 2]) || source_[at_ - 2] == 'u' ||
           source_[at_ - 2] == 'U' || source_[at_ - 2] == 'L' || source_[at_ - 2] == '8';
  }
  void blank_until(std::size_t end) {
    for (; at_ < end; ++at_)
      if (source_[at_] != '\n') result_.plain[at_] = ' ';
  }
  void comment(std::size_t end) {
    end = std::min(end, source_.size());
    for (const auto line : answer_lines(source_.substr(at_, end - at_))) result_.comments.push_back(line);
    blank_until(end);
  }
  void block_comment() {
    const auto end = source_.find("*/", at_ + 2);
    result_.open_end = end == std::string_view::npos;
    comment(result_.open_end ? end : end + 2);
  }
  void until(std::string_view end_mark, std::size_t from) {
    const auto end = source_.find(end_mark, from);
    result_.open_end = end == std::string_view::npos;
    blank_until(result_.open_end ? source_.size() : end + end_mark.size());
  }
  void raw_literal() {
    const auto bracket = source_.substr(at_ + 1, 17).find('(');
    if (bracket == std::string_view::npos) return literal('"');
    until(")" + std::string(source_.substr(at_ + 1, bracket)) + '"', at_ + 1);
  }
  void long_literal() { until(source_.substr(at_, 3), at_ + 3); }
  void literal(char mark) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != mark && source_[end] != '\n')
      end += source_[end] == '\\' ? 2 : 1;
    blank_until(std::min(end + (end < source_.size() && source_[end] == mark ? 1 : 0), source_.size()));
  }

  std::string_view source_;
  bool python_;
  std::size_t at_ = 0;
  CodeText result_;
};

[[nodiscard]] inline CodeText read_code(std::string_view source, Syntax syntax) {
  return CodeReader(source, syntax).run();
}

/// For each opening bracket of the text the place of its closing one, else npos; and whether all match.
struct BracketPairs {
  std::vector<std::size_t> closes;
  bool balanced = true;
};

[[nodiscard]] inline BracketPairs pair_brackets(std::string_view plain) {
  BracketPairs pairs{std::vector<std::size_t>(plain.size(), std::string_view::npos), true};
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    if (c == '(' || c == '[' || c == '{') open.push_back(i);
    if (c != ')' && c != ']' && c != '}') continue;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || plain[open.back()] != wanted) {
      pairs.balanced = false;
      continue;
    }
    pairs.closes[open.back()] = i;
    open.pop_back();
  }
  pairs.balanced = pairs.balanced && open.empty();
  return pairs;
}

/// Whether a body follows a parameter list that ends before `at`: only qualifiers, attributes and a return
/// type may stand between them.
[[nodiscard]] inline bool body_follows(std::string_view plain, const BracketPairs& pairs, std::size_t at) {
  constexpr std::size_t farthest = 400;
  const std::size_t limit = std::min(plain.size(), at + farthest);
  while (at < limit) {
    const char c = plain[at];
    if (c == '{') return true;
    if (c == '(' || c == '[') {
      if (pairs.closes[at] == std::string_view::npos) return false;
      at = pairs.closes[at] + 1;
    } else if (is_name_character(c) || c == ' ' || c == '\t' || c == '\n' || c == ':' || c == '-' ||
               c == '<' || c == '>' || c == '&' || c == '*') {
      ++at;
    } else {
      return false;
    }
  }
  return false;
}

[[nodiscard]] inline std::set<std::string, std::less<>> c_definitions(std::string_view plain) {
  constexpr auto keywords = std::to_array<std::string_view>(
      {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "requires", "asm",
       "__launch_bounds__", "__attribute__", "__declspec", "noexcept", "else", "do", "constexpr"});
  const auto pairs = pair_brackets(plain);
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < plain.size();) {
    if (!is_name_start(plain[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < plain.size() && is_name_character(plain[i])) ++i;
    const auto name = plain.substr(begin, i - begin);
    const auto bracket = plain.find_first_not_of(" \t\n", i);
    if (bracket == std::string_view::npos || plain[bracket] != '(') continue;
    if (pairs.closes[bracket] == std::string_view::npos) continue;
    if (std::find(keywords.begin(), keywords.end(), name) != keywords.end()) continue;
    if (body_follows(plain, pairs, pairs.closes[bracket] + 1)) names.emplace(name);
  }
  return names;
}

[[nodiscard]] inline std::set<std::string, std::less<>> python_definitions(std::string_view plain) {
  std::set<std::string, std::less<>> names;
  for (const auto line : answer_lines(plain)) {
    auto rest = line;
    auto word = take_identifier(rest);
    if (word == "async") word = take_identifier(rest);
    if (word == "def" || word == "class")
      names.insert(take_identifier(rest));
    else if (!line.empty() && is_name_start(line.front()) && rest.starts_with('=') && !rest.starts_with("=="))
      names.insert(word);
  }
  names.erase("");
  return names;
}

/// Names of the functions that a text defines (Python: classes and names bound at the top, too).
[[nodiscard]] inline std::set<std::string, std::less<>> defined_names(const CodeText& code, Syntax syntax) {
  return syntax == Syntax::python ? python_definitions(code.plain) : c_definitions(code.plain);
}

/// Whether the first line that is no comment is one that code starts with.
[[nodiscard]] inline bool starts_like_code(const CodeText& code, std::string_view source, Syntax syntax) {
  constexpr auto c_words = std::to_array<std::string_view>(
      {"extern",  "template", "static", "inline",    "void",  "using",    "namespace",
       "typedef", "struct",   "class",  "constexpr", "const", "unsigned", "int",
       "float",   "double",   "bool",   "auto",      "enum",  "union"});
  constexpr auto python_words =
      std::to_array<std::string_view>({"import", "from", "def", "class", "try", "if", "async"});
  const auto at = code.plain.find_first_not_of(" \t\n");
  if (at == std::string::npos) return false;
  auto rest = std::string_view(code.plain).substr(at);
  rest = rest.substr(0, rest.find('\n'));
  if (syntax == Syntax::python) {
    // A docstring is blank in `plain`.
    if (rest.front() == '@') return true;
    const auto whole = rest;
    const auto word = take_identifier(rest);
    if (rest.starts_with('=')) return true;
    const bool known = std::find(python_words.begin(), python_words.end(), word) != python_words.end();
    return known && (word == "import" || whole.find_first_of("(:") != std::string_view::npos ||
                     whole.find(" import ") != std::string_view::npos);
  }
  if (rest.front() == '#') return rest.size() > 1 && is_name_start(rest[1]);
  if (source.substr(at).starts_with("__")) return true;
  const auto word = take_identifier(rest);
  return std::find(c_words.begin(), c_words.end(), word) != c_words.end();
}

/// Whether every line of Python that starts at the margin can be code.
[[nodiscard]] inline bool margin_is_python(std::string_view plain) {
  constexpr auto words = std::to_array<std::string_view>(
      {"import", "from", "def", "class", "if", "for", "while", "with", "try", "except", "finally", "else",
       "elif", "async", "assert", "global", "del", "raise"});
  int depth = 0;
  for (const auto line : answer_lines(plain)) {
    if (depth == 0 && !line.empty() && is_name_start(line.front())) {
      auto rest = line;
      const auto word = take_identifier(rest);
      const bool known = std::find(words.begin(), words.end(), word) != words.end();
      if (!known &&
          (rest.empty() || std::string_view("=([.:,+-*/|&").find(rest.front()) == std::string_view::npos))
        return false;
    }
    for (const char c : line) {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
    }
  }
  return true;
}

} // namespace mtmc::detail
