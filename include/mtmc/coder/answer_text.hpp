#pragma once
/// What every answer has, whatever it holds: reasoning before it, line ends, end markers, prose.

#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The lines of a text without their ends.
[[nodiscard]] inline std::vector<std::string_view> answer_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

[[nodiscard]] inline std::string lower_text(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}

[[nodiscard]] inline bool contains_any(std::string_view text, const auto& needles) {
  for (const std::string_view needle : needles)
    if (text.find(needle) != std::string_view::npos) return true;
  return false;
}

/// Without byte order mark and carriage returns before line ends.
[[nodiscard]] inline std::string plain_line_ends(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') plain += text[i];
  return plain;
}

/// Marks of chat templates that servers let through at the end of an answer.
inline constexpr auto end_markers = std::to_array<std::string_view>(
    {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<|return|>", "</s>", "<|end_of_text|>",
     "<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"});

[[nodiscard]] inline std::string_view without_end_markers(std::string_view text) {
  for (bool again = true; again;) {
    again = false;
    const auto trimmed = trim(text);
    for (const auto marker : end_markers)
      if (trimmed.ends_with(marker)) {
        text = text.substr(0, static_cast<std::size_t>(trimmed.data() - text.data()) + trimmed.size() -
                                  marker.size());
        again = true;
        break;
      }
  }
  return text;
}

/// An answer without its reasoning.
struct StrippedAnswer {
  std::string_view text;
  /// The reasoning never ends: there is no answer.
  bool open = false;
};

/// Drops all up to the last end of a reasoning; the beginning may be missing, since templates put it into the
/// prompt. A beginning counts only as the first thing on its line.
[[nodiscard]] inline StrippedAnswer strip_reasoning(std::string_view text) {
  constexpr auto ends = std::to_array<std::string_view>(
      {"</think>", "</thinking>", "</reasoning>", "<|channel|>final<|message|>"});
  constexpr auto begins = std::to_array<std::string_view>(
      {"<think>", "<thinking>", "<reasoning>", "<|channel|>analysis<|message|>"});
  std::size_t from = 0;
  for (const auto end : ends)
    if (const auto at = text.rfind(end); at != std::string_view::npos && at + end.size() > from)
      from = at + end.size();
  text.remove_prefix(from);
  for (const auto line : answer_lines(text))
    for (const auto begin : begins)
      if (trim(line).starts_with(begin)) return {{}, true};
  return {text, false};
}

/// With "?" for each byte that is not UTF-8, and for NUL.
[[nodiscard]] inline std::string well_formed(std::string text) {
  for (std::size_t from = 0; from < text.size();) {
    const auto bad = find_malformed_utf8(std::string_view(text).substr(from));
    if (bad == std::string_view::npos) break;
    text[from + bad] = '?';
    from += bad;
  }
  std::replace(text.begin(), text.end(), '\0', '?');
  return text;
}

/// Prose on one line: blanks as one, bytes that are no text as "?", at most 500 bytes.
[[nodiscard]] inline std::string answer_note(std::string_view prose) {
  constexpr std::size_t longest = 500;
  std::string note;
  for (const char c : prose) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (space && (note.empty() || note.back() == ' ')) continue;
    note += space ? ' ' : c;
    if (note.size() > longest + 8) break;
  }
  while (!note.empty() && note.back() == ' ') note.pop_back();
  const bool shortened = note.size() > longest;
  if (shortened) {
    note.resize(longest);
    while (!note.empty() && (static_cast<unsigned char>(note.back()) & 0xc0) == 0x80) note.pop_back();
    if (!note.empty() && static_cast<unsigned char>(note.back()) >= 0xc0) note.pop_back();
  }
  note = well_formed(std::move(note));
  return shortened ? note + "..." : note;
}

/// Whether prose without code says that the model will not do it.
[[nodiscard]] inline bool reads_as_refusal(std::string_view prose) {
  constexpr auto stems = std::to_array<std::string_view>(
      {"i can't", "i can\xe2\x80\x99t", "i cannot", "i can not", "i won't", "i won\xe2\x80\x99t",
       "i will not", "i'm unable to", "i\xe2\x80\x99m unable to", "i am unable to", "i'm not able to",
       "i\xe2\x80\x99m not able to", "i am not able to", "i must decline", "i have to decline"});
  constexpr auto deeds =
      std::to_array<std::string_view>({"help", "assist", "provide", "comply", "fulfill", "fulfil", "do that",
                                       "do this", "continue", "generate", "write", "create", "produce",
                                       "share", "complete", "decline", "support", "rewrite", "modify"});
  constexpr auto other_languages = std::to_array<std::string_view>(
      {"lo siento, pero no puedo", "je ne peux pas", "je suis d\xc3\xa9sol\xc3\xa9", "es tut mir leid",
       "\xe6\x8a\xb1\xe6\xad\x89", "\xe6\x97\xa0\xe6\xb3\x95\xe6\x8f\x90\xe4\xbe\x9b"});
  const auto start = lower_text(trim(prose).substr(0, 600));
  if (contains_any(start, other_languages)) return true;
  for (const auto stem : stems)
    if (const auto at = start.find(stem); at != std::string::npos)
      if (contains_any(std::string_view(start).substr(at, stem.size() + 60), deeds)) return true;
  return false;
}

} // namespace mtmc::detail
