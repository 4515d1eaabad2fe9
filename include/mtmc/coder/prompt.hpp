#pragma once
/// What a coder asks a language model, as a value that a host can look at, redact and replace piece by piece.
///
/// The paper's prompt has three elements: the kernel, the action, and examples of that optimisation. The
/// others (rules, hardware, what was tried, what failed) are what hosts of such loops found to help.

#include <mtmc/core/step.hpp>
#include <mtmc/net/chat.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

struct Example;

/// One piece of a prompt.
struct PromptPart {
  /// Names the piece: see `prompt_part`.
  std::string id;
  /// As it is sent; empty pieces are left out.
  std::string text;
  /// Belongs to the system message instead of the user's.
  bool system = false;
  /// Rank among those that may be dropped for length, the first to go being 1; 0 = never dropped.
  int drop = 0;

  friend bool operator==(const PromptPart&, const PromptPart&) = default; ///< member by member
};

/// Ids of the pieces, in the order in which they stand: what is the same for all steps of a task comes first,
/// so that a provider's cache can serve it.
namespace prompt_part {
inline constexpr std::string_view role = "role";         ///< who the model is
inline constexpr std::string_view rules = "rules";       ///< what every answer must keep to
inline constexpr std::string_view format = "format";     ///< how an answer is written
inline constexpr std::string_view hardware = "hardware"; ///< the device
inline constexpr std::string_view task = "task";         ///< the task
inline constexpr std::string_view examples = "examples"; ///< examples of the same optimisation
inline constexpr std::string_view history = "history";   ///< steps that were tried before
inline constexpr std::string_view kernel = "kernel";     ///< the kernel the step starts from
inline constexpr std::string_view speed = "speed";       ///< what is known of its speed
inline constexpr std::string_view region = "region";     ///< the region the action is for
inline constexpr std::string_view action = "action";     ///< the action
inline constexpr std::string_view failure = "failure";   ///< what was wrong with the last draft
} // namespace prompt_part

/// A whole prompt.
struct Prompt {
  std::vector<PromptPart> parts; ///< the pieces, in order

  /// The first piece of that id; null if there is none.
  [[nodiscard]] PromptPart* find(std::string_view id) noexcept {
    for (auto& part : parts)
      if (part.id == id) return &part;
    return nullptr;
  }
  /// Bytes of all that is sent.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t all = 0;
    for (const auto& part : parts) all += part.text.size();
    return all;
  }
  /// Drops pieces in the order of their rank until no more than `most` bytes are left, or all that is left is
  /// never dropped. Answers the ids of what was dropped.
  std::vector<std::string> fit(std::size_t most);
  /// The system message, and the user's.
  [[nodiscard]] std::vector<ChatMessage> messages() const;
  /// For people: exactly what is sent, each message under its role.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Prompt&, const Prompt&) = default; ///< member by member
};

/// Settings of a prompt.
struct PromptOptions {
  /// Largest prompt in bytes (about three a token).
  std::size_t max_bytes = std::size_t{96} << 10;
  /// Newest history entries shown.
  std::size_t history = 8;
  /// Ask for search/replace edits instead of the whole text; for kernels of several hundred lines.
  bool edits = false;
  /// Leave out all that was measured or found on this machine: hardware, speed, ratios and messages in the
  /// history, diagnostics of the failed attempt. Equal steps are then asked for in equal words wherever a run
  /// takes place, so that recorded answers fit; but the model is told less.
  bool plain = false;
};

/// The prompt for one request, with these examples; fits `options.max_bytes` as far as it can. Equal
/// requests give equal prompts.
[[nodiscard]] Prompt build_prompt(const CodingRequest& request, std::span<const Example* const> examples,
                                  const PromptOptions& options = {});

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/coder/prompt_inl.hpp>
#endif
