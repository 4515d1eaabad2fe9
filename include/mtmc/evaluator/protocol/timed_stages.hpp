#pragma once
/// The stages that decide how fast a candidate is, whether that can be, and where its time goes.

#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// Times the candidate, against the incumbent if there is one, and writes the times down.
[[nodiscard]] std::optional<Refusal> time_candidate(EvaluationContext& context);

/// Refuses times that no kernel can have which reads its inputs.
[[nodiscard]] std::optional<Refusal> check_times(EvaluationContext& context);

/// Divides the time of a call among its launches, for candidates that a search may go on from: those that are
/// not slower than the incumbent. Refuses nothing.
[[nodiscard]] std::optional<Refusal> divide_time(EvaluationContext& context);

/// Takes the candidate's profile if the options ask for it and the backend can.
[[nodiscard]] std::optional<Refusal> take_profile(EvaluationContext& context);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/timed_stages_inl.hpp>
#endif
