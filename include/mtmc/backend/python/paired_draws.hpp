#pragma once
/// Whether two modules draw the same random numbers when they are made, so that they have the same weights.

#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <optional>

namespace mtmc::inline MTMC_ABI {

/// The first draw of a candidate's constructor that is not the problem's: another initialiser, shape, layout,
/// type or range, one too many or too few; nothing if all of them pair, in order. Weights of both then come
/// from the same numbers, whatever either does to them afterwards.
[[nodiscard]] std::optional<Diagnostic> check_paired_draws(const RecordedPlan& problem,
                                                           const RecordedPlan& candidate);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/paired_draws_inl.hpp>
#endif
