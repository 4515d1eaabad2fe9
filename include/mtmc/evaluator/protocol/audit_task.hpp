#pragma once
/// The task that promotions are audited on: the same one at many small sizes, on inputs that go as far as
/// their formats do.

#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The same program with plans and buffers of its own.
[[nodiscard]] std::shared_ptr<Contestant> at_other_sizes(const Contestant& known,
                                                         std::vector<LaunchPlan> plans);

/// Whether a size lies beyond what is listed: there, a kernel may have limits if it says so by launches that
/// cannot be made, which misleads nobody.
[[nodiscard]] bool is_beyond_listed(const Task& given, const ProblemSize& size);

/// The same task once more, at no sizes yet, under a key of its own and with all that is known of results at
/// any size.
[[nodiscard]] std::unique_ptr<PreparedTask> without_sizes(Judge& judge, PreparedTask& known);

/// The truth at the sizes of such a task; none where `known` has none.
[[nodiscard]] std::unique_ptr<DoubleTwin> twin_at_sizes_of(Judge& judge, const PreparedTask& known,
                                                           const PreparedTask& other);

/// The start kernel where another one is the reference; else null.
[[nodiscard]] std::shared_ptr<const Contestant> start_beside_reference(const PreparedTask& known);

/// Makes it from a task that has been prepared, and takes over what is known of it. Its sizes are the listed
/// ones that are small enough for rows and dozens that are drawn anew each time; from place
/// `PreparedTask::large` on such as are too large for rows. Numbers that `candidate` names, and the reference
/// does not, suggest some of the sizes (`draw_sizes_at`) and inputs (`InputTwist::planted`). Where the truth
/// in double precision is known, inputs lie far out (`PreparedTask::far`); else they are as in all checks.
/// Without sizes beyond the listed ones at which the candidate's launches cannot be planned with
/// `allowed_scratch` bytes; without any where there is none that is small enough.
[[nodiscard]] std::unique_ptr<PreparedTask>
make_audit_task(Judge& judge, PreparedTask& known, const Kernel& candidate, std::int64_t allowed_scratch);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/audit_task_inl.hpp>
#endif
