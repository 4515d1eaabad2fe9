#pragma once
/// What is right on the inputs of an audit: the truth, how much each case amplifies a rounding error, and
/// which cases tell nothing.

#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/protocol/case_book.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <memory>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Inputs of cases, in their order.
using InputsOfCases = std::span<const std::shared_ptr<const CaseInputs>>;

/// The reference's results for cases of an audit, each computed once and kept in the task's book. Results
/// that the reference cannot give, that are no numbers, or that a rounding of the inputs moves by more than
/// 5 % tell nothing (`ReferenceResult::mute`). For other tasks what `Judge::reference` says.
[[nodiscard]] std::vector<std::shared_ptr<const ReferenceResult>>
references_of(Judge& judge, PreparedTask& prepared, std::span<const CaseId> cases, InputsOfCases inputs);

/// The same, but where programs share an address space computed anew (`Judge::certain_reference`).
[[nodiscard]] std::vector<std::shared_ptr<const ReferenceResult>>
certain_references_of(Judge& judge, PreparedTask& prepared, std::span<const CaseId> cases,
                      InputsOfCases inputs);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/audit_reference_inl.hpp>
#endif
