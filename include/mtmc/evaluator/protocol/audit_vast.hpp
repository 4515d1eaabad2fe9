#pragma once
/// Checks of promotions at sizes that are far larger than all others.

#include <mtmc/evaluator/protocol/evaluation_context.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Calls a candidate once at each of the sizes that `draw_vast_sizes` draws, as long as all buffers, scratch
/// included, take less than 256 MiB (a sixteenth of a device's memory), none has more than 2^27 elements, and
/// the task's own kernels need a quarter of `seconds` at most, and compares all results. Sizes that the
/// task's own kernels do not bear, or at which the truth is not known well enough, are left out, as are those
/// at which the candidate cannot be launched. `done`: says afterwards what was compared, "2 vast sizes";
/// empty for nothing.
[[nodiscard]] std::optional<Refusal> check_vast_sizes(EvaluationContext& context, double seconds,
                                                      std::string& done);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/audit_vast_inl.hpp>
#endif
