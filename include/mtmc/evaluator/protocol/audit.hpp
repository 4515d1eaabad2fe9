#pragma once
/// The stage that looks at a promotion once more, for longer: what comes into use is a kernel or two of a
/// search, so that each of them can be asked a thousand questions that there is no time to ask of every
/// candidate.

#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether this kernel may be about to be used: it is to be promoted, and is not proven slower.
[[nodiscard]] bool needs_audit(const EvaluationContext& context);

/// For `KernelEvaluatorOptions::audit_seconds`: a quarter of them at secret sizes of the task, large ones
/// among them, up to a quarter at vast ones (`check_vast_sizes`), three quarters in rows of calls at the
/// sizes of a task that is made for this audit (`make_audit_task`), on new inputs each time: the first rows
/// follow four times as many calls each, every second one is called once more in the same buffers on almost
/// the same inputs. Only for what `needs_audit`. The environment record says under "audit" how much was done.
[[nodiscard]] std::optional<Refusal> audit_promotion(EvaluationContext& context);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/audit_inl.hpp>
#endif
