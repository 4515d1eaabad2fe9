#pragma once
/// What reading a language model's answer starts from, and what it gives.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/kernel.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Why an answer holds no kernel. The list is closed.
enum class AnswerFailure {
  none,
  /// Nothing in it is code of the kernel's language: prose, a diff, commands, another language.
  no_code,
  /// Several kernels, and nothing says which; or parts of a kernel in several blocks.
  ambiguous,
  /// It ends too early: a fence, a tag, a reasoning or an edit is open, or the answer was cut.
  truncated,
  /// Parts are left out ("... rest unchanged").
  elided,
  /// Code, but a function that the launch lines launch is not defined.
  entry_missing,
  /// The SEARCH part of an edit is not in the kernel, or the edit is malformed.
  edit_no_match,
  /// The SEARCH part of an edit is in the kernel more than once.
  edit_ambiguous,
  /// The model will not do it.
  refusal,
  /// The kernel that was there before.
  unchanged,
  /// The code holds a NUL byte or bytes that are not UTF-8.
  not_text
};

namespace detail {
inline constexpr EnumName<AnswerFailure> answer_failure_names[] = {
    {AnswerFailure::none, "none"},
    {AnswerFailure::no_code, "no_code"},
    {AnswerFailure::ambiguous, "ambiguous"},
    {AnswerFailure::truncated, "truncated"},
    {AnswerFailure::elided, "elided"},
    {AnswerFailure::entry_missing, "entry_missing"},
    {AnswerFailure::edit_no_match, "edit_no_match"},
    {AnswerFailure::edit_ambiguous, "edit_ambiguous"},
    {AnswerFailure::refusal, "refusal"},
    {AnswerFailure::unchanged, "unchanged"},
    {AnswerFailure::not_text, "not_text"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<AnswerFailure>> enum_names(AnswerFailure) noexcept {
  return detail::answer_failure_names;
}

/// What is known before an answer is read.
struct AnswerOptions {
  /// Of the kernel that is expected.
  Language language;
  /// Functions that a text without launch lines of its own must define; empty = those that the parent's
  /// launch lines launch.
  std::vector<std::string> entries{};
  /// The answer may be SEARCH/REPLACE edits of the parent. A whole kernel is taken as well.
  bool edits = false;
  /// The kernel the model was asked to change; null = none. It is only read during the call.
  const Kernel* parent = nullptr;
  /// The endpoint says that the answer was cut at its largest length.
  bool cut = false;
};

/// What an answer holds.
struct ExtractedAnswer {
  /// As `normalize_text` leaves it, without blank lines before; set exactly if `failure` is `none`.
  std::optional<Kernel> kernel{};
  /// Why there is no kernel; `none` if there is one.
  AnswerFailure failure = AnswerFailure::none;
  /// On a failure: what was wrong and what to send instead, for the model that tries again.
  std::string message{};
  /// What stands round the code, on one line and shortened: what the model says it did.
  std::string note{};
  /// Where only some edits fit: the parent with those, to which edits that are sent again apply (give it as
  /// `parent` then). Never to be compiled.
  std::optional<Kernel> partly_edited{};
};

} // namespace mtmc
