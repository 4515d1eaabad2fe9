#pragma once
/// The new kernel in a language model's answer: found, checked for being whole, or refused with a reason that
/// can be sent back to the model.

#include <mtmc/coder/answer_types.hpp>

#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

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

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/coder/answer_inl.hpp>
#endif
