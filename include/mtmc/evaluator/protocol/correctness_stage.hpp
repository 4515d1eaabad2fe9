#pragma once
/// The stage that decides whether a candidate computes the right thing, and touches nothing else.

#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/calls_in_a_row.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>
#include <mtmc/support/deadline.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A candidate for promotion starts in a fresh process.
[[nodiscard]] std::optional<Refusal> start_promotion_afresh(EvaluationContext& context);

/// The cheapest size first, then all sizes and distributions: two runs on two poisons, red zones, inputs
/// unchanged, results within the tolerance (design, section 5, steps 3 and 4).
[[nodiscard]] std::optional<Refusal> check_results(EvaluationContext& context);

/// What the checks of each size cost, and which sizes are checked at all: of the secret ones a few and one of
/// the large ones, other ones each `turn`.
[[nodiscard]] std::vector<SizeCost> costs_of(const PreparedTask& task, const EvaluatorDefences& defences,
                                             std::uint64_t turn);

/// Runs planned checks on inputs of a serial number, up to the first refusal; none is begun after `until`.
[[nodiscard]] std::optional<Refusal> run_checks(EvaluationContext& context,
                                                std::span<const PlannedCheck> checks, std::uint64_t serial,
                                                Deadline until);

/// A row of calls (`check_calls_in_a_row`); where memory is too short for one, none.
[[nodiscard]] std::optional<Refusal> check_row(EvaluationContext& context, std::span<const CaseId> cases,
                                               const RowPlan& plan, RowOutcome& outcome);

/// Adds what a comparison counted to what is known of a size.
void add_tally(SizeEvaluation& size, const ComparisonTally& tally);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/correctness_stage_inl.hpp>
#endif
