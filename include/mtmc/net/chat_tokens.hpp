#pragma once
/// How many tokens a question is, as far as its text tells.

#include <mtmc/net/chat.hpp>
#include <mtmc/net/json_member.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Tokens of a text, rather too many than too few.
[[nodiscard]] inline std::int64_t max_tokens_of(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes / 2 + 1);
}
/// Tokens of a text as they usually are.
[[nodiscard]] inline std::int64_t usual_tokens_of(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 2) / 3);
}
/// Tokens of a text, never too many: its words and numbers, which no vocabulary in use puts together.
[[nodiscard]] inline std::int64_t fewest_tokens_of(std::string_view text) {
  std::int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || static_cast<unsigned char>(c) >= 0x80;
    if (part && !inside) ++words;
    inside = part;
  }
  return words;
}

[[nodiscard]] inline std::size_t prompt_bytes(const ChatRequest& request) {
  // A template's marks around each message.
  constexpr std::size_t marks = 32;
  std::size_t bytes = 0;
  for (const auto& message : request.messages) bytes += message.role.size() + message.content.size() + marks;
  return bytes;
}
[[nodiscard]] inline std::int64_t fewest_prompt_tokens(const ChatRequest& request) {
  std::int64_t tokens = 0;
  for (const auto& message : request.messages) tokens += fewest_tokens_of(message.content);
  return tokens;
}

/// Whether an endpoint that counted so many tokens of a prompt has read only a part of it.
[[nodiscard]] inline bool was_cut(const ChatRequest& request, std::int64_t counted) {
  // No context in use is so small that less is cut.
  constexpr std::int64_t shortest = 256;
  const auto fewest = fewest_prompt_tokens(request);
  // 0 is told by servers that have the prompt in their cache.
  return counted > 0 && fewest > shortest && counted < fewest / 10 * 9;
}

/// Most tokens of all answers to a request, with what `extra` asks for; `otherwise` where nothing limits
/// them.
[[nodiscard]] inline std::int64_t max_answer_tokens(const ChatRequest& request, std::int64_t otherwise) {
  constexpr std::int64_t endless = 1'000'000'000'000;
  auto limit = request.max_tokens > 0 ? request.max_tokens : otherwise;
  std::int64_t count = std::max(request.count, 1);
  if (!request.extra.empty()) {
    const auto extra = parse_text(request.extra, false);
    for (const char* const name : {"max_tokens", "max_completion_tokens"})
      limit = std::max(limit, count_in(member(extra, name)).value_or(0));
    count = std::max(count, count_in(member(extra, "n")).value_or(0));
  }
  limit = std::min(limit, endless);
  return limit > endless / std::min(count, endless) ? endless : limit * count;
}

} // namespace mtmc::detail
