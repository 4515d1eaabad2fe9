#pragma once
/// Whether an evaluator's answer is one.

#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>

namespace mtmc::inline MTMC_ABI {

/// Throws `Error` (`mtmc.evaluator.005`) for an evaluation whose verdict was not given. Whoever takes an
/// answer from an evaluator asks: the loop, a worker, and the host of a worker.
inline void validate_evaluation(const Evaluation& evaluation) {
  if (evaluation.verdict == Verdict::not_given)
    throw Error(
        error_id::evaluator_verdict, "the evaluator gave an evaluation without a verdict",
        "Set Evaluation::verdict in every answer: Verdict::correct for a candidate that is right, for "
        "any other what is wrong with it");
}

} // namespace mtmc
