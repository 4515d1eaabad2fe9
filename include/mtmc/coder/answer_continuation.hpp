#pragma once
/// Joining a cut answer with its continuation.

#include <mtmc/coder/answer_fences.hpp>
#include <mtmc/coder/answer_text.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline std::size_t count_name_characters(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return is_name_character(c); }));
}

/// Bytes at the start of `rest` that are also the end of `first`: the most that count as a repetition. Less
/// than 8 letters or digits are chance (a brace, a blank), unless they are the whole last line begun.
[[nodiscard]] inline std::size_t repeated_bytes(std::string_view first, std::string_view rest) {
  const auto length = std::min(first.size(), rest.size());
  const auto tail = first.substr(first.size() - length);
  // Borders of `rest`, then how much of `rest` ends at each byte of `tail` (Knuth, Morris and Pratt).
  std::vector<std::size_t> border(length + 1, 0);
  for (std::size_t i = 1, k = 0; i < length; ++i) {
    while (k > 0 && rest[i] != rest[k]) k = border[k];
    if (rest[i] == rest[k]) ++k;
    border[i + 1] = k;
  }
  std::size_t matched = 0;
  for (const char c : tail) {
    if (matched == length) matched = border[matched];
    while (matched > 0 && rest[matched] != c) matched = border[matched];
    if (matched < length && rest[matched] == c) ++matched;
  }
  const auto line = first.size() - (first.rfind('\n') + 1);
  const auto letters = count_name_characters(rest.substr(0, matched));
  if (letters >= 8 || (letters >= 2 && matched >= line && line > 0)) return matched;
  return 0;
}

/// What of `rest` goes on with an open block: all after the fence that it opens again, if it does.
[[nodiscard]] inline std::string_view after_repeated_fence(std::string_view rest) {
  const auto lines = answer_lines(rest);
  bool words_before = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto fence = read_fence(lines[i]);
    if (!fence) {
      words_before = words_before || !trim(lines[i]).empty();
      continue;
    }
    bool opens = !fence->info.empty();
    // A bare fence at the very start opens only if the next fence can close it.
    if (!opens && !words_before)
      for (std::size_t k = i + 1; k < lines.size(); ++k)
        if (const auto next = read_fence(lines[k])) {
          opens = next->info.empty();
          break;
        }
    if (!opens) return rest;
    const auto end = static_cast<std::size_t>(lines[i].data() - rest.data()) + lines[i].size();
    return rest.substr(std::min(end + 1, rest.size()));
  }
  return rest;
}

/// Whether `rest` is the block again from its beginning.
[[nodiscard]] inline bool starts_over(std::string_view block, std::string_view rest) {
  const auto same = static_cast<std::size_t>(
      std::mismatch(block.begin(), block.end(), rest.begin(), rest.end()).first - block.begin());
  return same >= std::min<std::size_t>(block.size(), 40) && count_name_characters(block.substr(0, same)) >= 8;
}

} // namespace mtmc::detail
