#pragma once
/// The stage that decides whether a candidate computes the right thing, and touches nothing else.

#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// A candidate for promotion starts in a fresh process.
[[nodiscard]] std::optional<Refusal> start_promotion_afresh(EvaluationContext& context);

/// The cheapest size first, then all sizes and distributions: two runs on two poisons, red zones, inputs
/// unchanged, results within the tolerance (design, section 5, steps 3 and 4).
[[nodiscard]] std::optional<Refusal> check_results(EvaluationContext& context);

/// Adds what a comparison counted to what is known of a size.
void add_tally(SizeEvaluation& size, const ComparisonTally& tally);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/correctness_stage_inl.hpp>
#endif
