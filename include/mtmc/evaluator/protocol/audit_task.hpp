#pragma once
/// The task that promotions are audited on: the same one at many small sizes, on inputs that go as far as
/// their formats do.

#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <memory>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The same program with plans and buffers of its own.
[[nodiscard]] std::shared_ptr<Contestant> at_other_sizes(const Contestant& known,
                                                         std::vector<LaunchPlan> plans);

/// Makes it from a task that has been prepared, and takes over what is known of it: its listed sizes that are
/// small enough for rows, and dozens of others near them that they bear. Where the truth in double precision
/// is known, inputs lie far out (`PreparedTask::far`); else they are as in all checks. Without
/// any size where there is none that is small enough.
[[nodiscard]] std::unique_ptr<PreparedTask> make_audit_task(Judge& judge, PreparedTask& known);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/audit_task_inl.hpp>
#endif
