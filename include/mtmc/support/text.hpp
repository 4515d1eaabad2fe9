#pragma once
/// Small questions about text that several readers ask.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// An ASCII letter as a small one; anything else as it is.
[[nodiscard]] constexpr char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The texts one after the other: "M, N, K".
template <class Texts>
[[nodiscard]] std::string joined(const Texts& parts, std::string_view separator = ", ") {
  std::string text;
  for (const auto& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

/// "1 task", "2 tasks".
template <class Count> [[nodiscard]] std::string counted(Count count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// Takes the first line off a text, without its end.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

} // namespace detail

/// `text` without blanks, tabs and line ends at both ends.
[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Whether an identifier may start with `c` (ASCII).
[[nodiscard]] constexpr bool is_name_start(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Whether an identifier may go on with `c` (ASCII).
[[nodiscard]] constexpr bool is_name_character(char c) noexcept {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

/// Whether the whole text is an identifier (ASCII).
[[nodiscard]] inline bool is_identifier(std::string_view text) noexcept {
  if (text.empty() || !is_name_start(text.front())) return false;
  for (const char c : text)
    if (!is_name_character(c)) return false;
  return true;
}

/// Consumes an identifier at the front of `text`, and the blanks round it; empty if there is none.
[[nodiscard]] inline std::string take_identifier(std::string_view& text) {
  text = trim(text);
  std::size_t n = 0;
  if (!text.empty() && is_name_start(text.front()))
    while (n < text.size() && is_name_character(text[n])) ++n;
  std::string name(text.substr(0, n));
  text = trim(text.substr(n));
  return name;
}

/// Offset of the first byte of `text` that is not part of well-formed UTF-8 (RFC 3629), or npos.
[[nodiscard]] inline std::size_t find_malformed_utf8(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length == 0 || lead > 0xf4 || length > text.size() - i) return i;
    for (std::size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return i;
    // Too long a form, a surrogate, or beyond the last code point: the second byte tells.
    if ((lead == 0xe0 && byte(i + 1) < 0xa0) || (lead == 0xed && byte(i + 1) > 0x9f) ||
        (lead == 0xf0 && byte(i + 1) < 0x90) || (lead == 0xf4 && byte(i + 1) > 0x8f))
      return i;
    i += length;
  }
  return std::string_view::npos;
}

/// Whether `word` stands in `text` with no character of an identifier next to it.
[[nodiscard]] inline bool has_word(std::string_view text, std::string_view word) noexcept {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_name_character(text[at - 1])) &&
        (end == text.size() || !is_name_character(text[end])))
      return true;
  }
  return false;
}

namespace detail {

/// A text as one word of a POSIX shell: as it is where that is one already, else in single quotes.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + '\'';
}

/// At most so many bytes of a server's words, on one line that no terminal acts on. Where a text is no UTF-8
/// (older servers write Latin-1), each byte that is none becomes `?`.
[[nodiscard]] inline std::string shortened(std::string_view text, std::size_t longest = 300) {
  std::string line;
  bool cut = false;
  for (const char c : trim(text)) {
    const bool space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (space && (line.empty() || line.back() == ' ')) continue;
    cut = line.size() >= longest;
    if (cut) break;
    line += space ? ' ' : c;
  }
  for (auto bad = find_malformed_utf8(line); bad != std::string_view::npos; bad = find_malformed_utf8(line)) {
    constexpr std::size_t longest_character = 4;
    // Not in the middle of a character.
    if (cut && line.size() - bad < longest_character)
      line.resize(bad);
    else
      line[bad] = '?';
  }
  return cut ? line + "..." : line;
}

} // namespace detail

} // namespace mtmc
