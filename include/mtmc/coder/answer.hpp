#pragma once
/// The new kernel in a language model's answer: found, checked for being whole, or refused with a reason that
/// can be sent back to the model.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/kernel.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

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
  AnswerFailure failure = AnswerFailure::none;
  /// On a failure: what was wrong and what to send instead, for the model that tries again.
  std::string message{};
  /// What stands round the code, on one line and shortened: what the model says it did.
  std::string note{};
  /// Where only some edits fit: the parent with those, to which edits that are sent again apply (give it as
  /// `parent` then). Never to be compiled.
  std::optional<Kernel> partly_edited{};
};

/// Names of the functions that a text's launch lines launch, each once, in order; malformed lines count as
/// far as they name one.
[[nodiscard]] std::vector<std::string> launched_entries(std::string_view source, const Language& language);

/// The functions that `source` must define: those its own launch lines launch (a candidate may rename them
/// together with its launch lines), and without launch lines those of `parent_entries`.
[[nodiscard]] std::vector<std::string> needed_entries(std::string_view source, const Language& language,
                                                      const std::vector<std::string>& parent_entries);

/// The kernel in an answer.
///
/// Reasoning is dropped (all up to the last `</think>`, `</thinking>` or `</reasoning>`). Then the first of
/// these that is there is taken: edits, if they are allowed; fenced blocks; a JSON object with the code as a
/// string; `<code>` or `<kernel>` tags; the whole text, if it reads as code from beginning to end. Of several
/// blocks that define what they must and leave nothing out, the language's tag counts 2, three lines or more
/// count 1, and the later one wins. Diffs, other languages and the parent itself never win over a kernel.
///
/// A text without launch lines gets those of a block that holds nothing else, or else the parent's put before
/// it. Line numbers, indentation, HTML escapes and Markdown escapes that the whole block has are taken off.
///
/// An open fence, tag or edit is `truncated`, and so is `cut`, whatever was found. A text without fences
/// shows its end only by its brackets: there `cut` is what to rely on. Does not throw for any bytes; the time
/// is linear in the answer (200 edits, the most there may be, each take a look at the whole kernel).
[[nodiscard]] ExtractedAnswer extract_kernel(std::string_view answer, const AnswerOptions& options);

/// An answer that was cut, and what the model sent when it was asked to go on, as one answer.
///
/// What `rest` repeats of the end of `first` (the longest overlap that has 8 letters or digits, or that is
/// the whole last line begun) stands once. A fence that `rest` opens again is dropped together with words
/// before it, and so is reasoning; where `rest` starts the open block from its beginning, it replaces it.
[[nodiscard]] std::string join_continuation(std::string_view first, std::string_view rest);

} // namespace mtmc

#ifndef MTMC_COMPILED
#include <mtmc/coder/answer_inl.hpp>
#endif
