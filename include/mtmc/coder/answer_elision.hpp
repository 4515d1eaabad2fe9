#pragma once
/// Whether code leaves parts of itself out.

#include <mtmc/coder/answer_code.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A comment in words: lower case, no marks; and whether it had "..." at its beginning or end.
struct CommentWords {
  std::vector<std::string> words;
  std::string text;
  bool begins_with_dots = false;
  bool ends_with_dots = false;
};

[[nodiscard]] inline CommentWords read_comment(std::string_view comment) {
  constexpr std::string_view dots = "\xe2\x80\xa6";
  std::string text = lower_text(comment.substr(0, 400));
  for (auto at = text.find(dots); at != std::string::npos; at = text.find(dots, at))
    text.replace(at, 3, "...");
  const auto first = text.find_first_not_of("/*#!<>[](){}- \t");
  const auto last = text.find_last_not_of("/*#!<>[](){}- \t");
  CommentWords result;
  if (first == std::string::npos) return result;
  text = text.substr(first, last - first + 1);
  result.begins_with_dots = text.starts_with("...");
  result.ends_with_dots = text.ends_with("...");
  std::string word;
  for (const char c : text + ' ') {
    if (is_name_character(c) || c == '\'' || static_cast<unsigned char>(c) >= 0x80) {
      word += c;
    } else if (!word.empty()) {
      result.text += (result.text.empty() ? "" : " ") + word;
      result.words.push_back(std::move(word));
      word.clear();
    }
  }
  return result;
}

/// Whether a line of a comment stands for code that is not there. With "..." before it, words such as "rest"
/// or "existing" are enough; without, a stock phrase, or nothing but words of such phrases. "remaining rows"
/// and "the same tile for B" are about the code that follows, and are not.
[[nodiscard]] inline bool comment_elides(std::string_view comment) {
  constexpr auto phrases = std::to_array<std::string_view>({"rest of the code",
                                                            "rest of code",
                                                            "rest of the kernel",
                                                            "rest of the function",
                                                            "rest of the file",
                                                            "rest of your code",
                                                            "rest of the implementation",
                                                            "rest unchanged",
                                                            "rest is unchanged",
                                                            "rest is the same",
                                                            "rest remains",
                                                            "rest stays",
                                                            "omitted for brevity",
                                                            "omitted for clarity",
                                                            "code omitted",
                                                            "your code here",
                                                            "code goes here",
                                                            "implementation goes here",
                                                            "todo implement",
                                                            "todo fill in",
                                                            "todo complete",
                                                            "todo your",
                                                            "implement here",
                                                            "implement this",
                                                            "existing code",
                                                            "same as the original kernel",
                                                            "same as in the original",
                                                            "unchanged from",
                                                            "code unchanged",
                                                            "code remains",
                                                            "kernel remains",
                                                            "no changes below",
                                                            "not shown",
                                                            "left as an exercise"});
  constexpr auto after_dots = std::to_array<std::string_view>(
      {"rest",     "same",     "existing",  "unchanged",    "omitted", "remaining",
       "previous", "original", "before",    "above",        "code",    "similarly",
       "similar",  "continue", "continues", "other",        "body",    "implementation",
       "etc",      "here",     "setup",     "declarations", "helpers", "includes"});
  constexpr auto before_dots =
      std::to_array<std::string_view>({"unchanged", "omitted", "existing", "implementation"});
  constexpr auto first_before_dots = std::to_array<std::string_view>({"rest", "same", "code"});
  constexpr auto keys = std::to_array<std::string_view>(
      {"unchanged", "omitted", "existing", "same", "snip", "snipped", "truncated", "brevity"});
  constexpr auto stock = std::to_array<std::string_view>(
      {"unchanged",   "omitted",    "existing",     "same",      "snip",       "snipped",
       "truncated",   "brevity",    "rest",         "of",        "the",        "code",
       "kernel",      "function",   "file",         "loop",      "loops",      "body",
       "is",          "are",        "as",           "in",        "before",     "above",
       "earlier",     "previous",   "previously",   "original",  "originally", "remains",
       "remain",      "remaining",  "stays",        "stay",      "for",        "here",
       "goes",        "and",        "so",           "on",        "etc",        "your",
       "other",       "everything", "else",         "all",       "logic",      "implementation",
       "definitions", "includes",   "helpers",      "helper",    "functions",  "keep",
       "parent",      "this",       "part",         "section",   "from",       "with",
       "computation", "setup",      "declarations", "version",   "it",         "we",
       "your",        "exactly",    "mostly",       "continues", "remainder"});
  const auto words = read_comment(comment);
  const auto any_of = [&words](const auto& list) {
    return std::any_of(words.words.begin(), words.words.end(), [&](const std::string& word) {
      return std::find(list.begin(), list.end(), word) != list.end();
    });
  };
  if (words.words.empty()) return words.begins_with_dots;
  if (words.begins_with_dots && any_of(after_dots)) return true;
  // Longer ones tell of something: "loop over the existing rows of the tile, one by one ..."
  constexpr std::size_t max_words = 6;
  if (words.ends_with_dots && words.words.size() <= max_words) {
    if (any_of(before_dots)) return true;
    if (std::find(first_before_dots.begin(), first_before_dots.end(), words.words.front()) !=
        first_before_dots.end())
      return true;
  }
  for (const auto phrase : phrases)
    if (has_word(words.text, phrase)) return true;
  return any_of(keys) && std::all_of(words.words.begin(), words.words.end(), [&](const std::string& word) {
           return std::find(stock.begin(), stock.end(), word) != stock.end();
         });
}

/// The line of the code that has "..." where a statement or a body should be.
[[nodiscard]] inline std::optional<std::string_view> elided_statement(const CodeText& code,
                                                                      std::string_view source) {
  const std::string_view plain = code.plain;
  const auto line_at = [&](std::size_t at) {
    const auto begin = source.rfind('\n', at) + 1;
    return trim(source.substr(begin, source.find('\n', at) - begin));
  };
  for (auto at = plain.find("\xe2\x80\xa6"); at != std::string_view::npos;) return line_at(at);
  for (auto at = plain.find("..."); at != std::string_view::npos; at = plain.find("...", at + 3)) {
    std::size_t before = at;
    while (before > 0 && (plain[before - 1] == ' ' || plain[before - 1] == '\t')) --before;
    std::size_t after = at + 3;
    while (after < plain.size() && (plain[after] == ' ' || plain[after] == '\t')) ++after;
    const bool starts =
        before == 0 || std::string_view("\n{};").find(plain[before - 1]) != std::string_view::npos;
    const bool ends = after == plain.size() || plain[after] == '\n' || plain[after] == '}';
    if (starts && ends) return line_at(at);
  }
  return std::nullopt;
}

/// The first line that stands for code that is not there, or nothing.
[[nodiscard]] inline std::optional<std::string_view> find_elision(const CodeText& code,
                                                                  std::string_view source) {
  for (const auto comment : code.comments)
    if (comment_elides(comment)) return trim(comment);
  return elided_statement(code, source);
}

} // namespace mtmc::detail
