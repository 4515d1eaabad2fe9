#pragma once
/// What a token-scored policy was trained with and must be asked with: the card that comes with its weights.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/net/scoring_types.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// What a continuation's summed log-probability is divided by before actions are compared.
enum class ScoreNormalization {
  /// Nothing (paper, eq. 2). Favours short texts.
  sum,
  /// Its number of tokens.
  token_mean,
  /// Its number of words between blanks (as TWOSOME's published runs).
  word_mean
};

namespace detail {
inline constexpr EnumName<ScoreNormalization> score_normalization_names[] = {
    {ScoreNormalization::sum, "sum"},
    {ScoreNormalization::token_mean, "token_mean"},
    {ScoreNormalization::word_mean, "word_mean"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ScoreNormalization>>
enum_names(ScoreNormalization) noexcept {
  return detail::score_normalization_names;
}

/// How an action's text names its region.
enum class RegionNames {
  /// By label and lines: "tiling the k loop of gemm in line 15 to 20".
  text,
  /// By a number, "tiling R2", with a legend in the prompt: no digits of lines that cost a sum something, and
  /// no two actions of the same text.
  legend,
  /// The same, and the legend tells what is known of each region, as `{regions}` does of all of them: nothing
  /// to be looked up by lines, which small models cannot.
  described_legend
};

namespace detail {
inline constexpr EnumName<RegionNames> region_names_names[] = {
    {RegionNames::text, "text"},
    {RegionNames::legend, "legend"},
    {RegionNames::described_legend, "described_legend"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RegionNames>> enum_names(RegionNames) noexcept {
  return detail::region_names_names;
}

/// The prompt of a policy that was trained with no other.
inline constexpr std::string_view default_policy_template = R"({observation}

## Possible next steps
{actions}

## Decision
Next step:)";

/// A policy card. As it stands: for a model that was not trained as a policy.
struct PolicyCard {
  /// For people.
  std::string name{};
  /// The prompt, which must not end with a blank or a line end. `{observation}` is all of `describe`;
  /// `{task}`, `{device}`, `{kernel}`, `{regions}`, `{history}` its parts; `{actions}` the legal actions in
  /// lines, below a legend where there is one; `{legend}` that alone. `{{` and `}}` are braces.
  std::string prompt_template{default_policy_template};
  /// Between the prompt and the text of an action.
  std::string separator = " ";
  /// What a score is divided by.
  ScoreNormalization normalization = ScoreNormalization::token_mean;
  /// Scores are divided by it before they become probabilities; above 0.
  double temperature = 1;
  /// The model as its server calls it; empty = whichever the endpoint has.
  std::string model{};
  /// See `ScoringOptions::adapter`.
  std::string adapter{};
  /// The only method it may be scored with (a policy that was trained on letters, say).
  std::optional<ScoringMethod> method{};
  /// How regions are named in actions.
  RegionNames region_names = RegionNames::text;
  /// SHA-256 of the chat template that `prompt_template` was written after; empty = not said.
  std::string chat_template_hash{};
  /// Newest steps shown, at least 0, and whether the kernel's lines are numbered.
  int history = 8;
  /// Number the kernel's lines.
  bool line_numbers = true;
  /// Facts of the training (data, rewards, steps, ...): JSON text, kept as it is; empty = none.
  std::string training{};

  friend bool operator==(const PolicyCard&, const PolicyCard&) = default; ///< member by member
};

/// The card that asks an untrained model as the paper does: sums, temperature 1.
[[nodiscard]] PolicyCard paper_policy_card();

/// Throws `Error` (`mtmc.policy.001`) that names the field, for a card that contradicts itself: a placeholder
/// that does not exist, a prompt that ends with a blank, a legend that is not shown, a temperature of 0.
void check_policy_card(const PolicyCard& card);

/// Reads and checks a card. Throws `Error` (`mtmc.policy.001`) that names the field, also for one that does
/// not exist; `place` names the text there.
[[nodiscard]] PolicyCard read_policy_card(std::string_view json, const std::string& place = {});

/// The same of a file.
[[nodiscard]] PolicyCard load_policy_card(const std::string& path);

/// The card as JSON text, which `read_policy_card` reads.
[[nodiscard]] std::string write_policy_card(const PolicyCard& card);

/// SHA-256 of the card; for cache keys.
[[nodiscard]] std::string policy_card_hash(const PolicyCard& card);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/policy_card_inl.hpp>
#endif
