#pragma once
/// Which branches of a kernel checks have met.

#include <mtmc/core/branch.hpp>
#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <optional>
#include <span>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// "23 branches, each gone both ways", or how many were not and in which lines they stand.
[[nodiscard]] std::string words_about(std::span<const Branch> branches);

/// Calls a promoted candidate, compiled with probes, on inputs as its audit shows them, at the listed sizes
/// and at those of the audit, until all of its branches have gone both ways or half of
/// `KernelEvaluatorOptions::audit_seconds` are over. What stands behind a branch that never went there has
/// been shown to nobody: the environment record says under "branches" how many there are and where, and with
/// `KernelEvaluatorOptions::refuse_uncovered_branches` the candidate is refused. Nothing for what needs no
/// audit (`needs_audit`).
///
/// The last of all stages: a program without the compiler's optimisations may exceed limits that the
/// candidate itself keeps, which on a GPU costs the context.
[[nodiscard]] std::optional<Refusal> observe_branches(EvaluationContext& context);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/branch_coverage_inl.hpp>
#endif
