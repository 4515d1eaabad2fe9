#pragma once
/// Definitions of evaluator/backend_conformance.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/backend_conformance.hpp>
#include <mtmc/evaluator/conformance/compile_checks.hpp>
#include <mtmc/evaluator/conformance/evaluator_checks.hpp>
#include <mtmc/evaluator/conformance/failure_checks.hpp>
#include <mtmc/evaluator/conformance/memory_checks.hpp>
#include <mtmc/evaluator/conformance/run_checks.hpp>
#include <mtmc/evaluator/conformance/time_checks.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI::test::detail {

MTMC_INLINE ConformanceReport try_all(Trial& trial) {
  check_memory(trial);
  check_compiler(trial);
  check_runs(trial);
  check_times(trial);
  check_evaluator(trial);
  trial.check("device.stable", "the device is the same after kernels have run, measured ceilings aside",
              {"device.filled", "run.result"}, [&]() -> Finding {
                const auto text = trial.unseen(trial.probe().vector_add);
                BoundPlan bound(trial.backend(), trial.plan(text, 1000));
                bound.run(*trial.fresh_program(text));
                auto before = trial.first_device().value();
                before.measured = {};
                Device after = trial.backend().device();
                after.measured = {};
                if (after == before) return {};
                return unexpected("the device as it was in the beginning", "a changed one",
                                  "Find out what the device is once, where the backend is made");
              });
  check_failures(trial);
  return std::move(trial.report());
}

MTMC_INLINE ConformanceReport try_all_apart(Trial& trial) {
  trial.check("backend.made", "the backend can be made", {}, [] { return Finding{}; });
  if (!trial.has_passed("backend.made")) return std::move(trial.report());
  return try_all(trial);
}

} // namespace mtmc::test::detail
