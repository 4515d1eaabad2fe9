#pragma once
/// The stages before a candidate runs: its text, its launch lines, its compilation, and the incumbent's.

#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <exception>
#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// What the backend's screen says of the text.
[[nodiscard]] std::optional<Refusal> screen_text(EvaluationContext& context);

/// Plans the launches for every size, and refuses lines that ask for too much.
[[nodiscard]] std::optional<Refusal> plan_candidate(EvaluationContext& context);

/// Compiles the candidate, once more where something had run out. Several candidates are compiled at a time
/// where the backend allows it.
[[nodiscard]] std::optional<Refusal> compile_candidate(EvaluationContext& context);

/// The compiled incumbent, kept from an earlier evaluation if possible. Throws `Error`
/// (`mtmc.evaluator.004`) if it does not compile.
[[nodiscard]] std::optional<Refusal> find_incumbent(EvaluationContext& context);

/// The verdict on a candidate for whose calls something has run out, when all that could be has been given
/// back. Throws the shortage on where there is not even room for the task's own buffers, or where it is not
/// memory. With the device to ourselves.
[[nodiscard]] Refusal blame_for(const std::exception_ptr& shortage, EvaluationContext& context);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/compile_stages_inl.hpp>
#endif
