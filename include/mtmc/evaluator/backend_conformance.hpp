#pragma once
/// Does a backend keep what the `Backend` concept promises? The checks for a host's own hardware, without any
/// test framework.
///
///     const auto report = mtmc::test::check_conformance([] { return MyBackend{}; },
///     mtmc::test::opencl_probe()); std::fputs(report.to_text().c_str(), stdout); return report.exit_code();
///     // 0 passed, 1 failed, 2 passed with gaps

#include <mtmc/requirements.hpp>

#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/conformance/abilities.hpp>
#include <mtmc/evaluator/conformance/compile_checks.hpp>
#include <mtmc/evaluator/conformance/evaluator_checks.hpp>
#include <mtmc/evaluator/conformance/failure_checks.hpp>
#include <mtmc/evaluator/conformance/memory_checks.hpp>
#include <mtmc/evaluator/conformance/probe.hpp>
#include <mtmc/evaluator/conformance/report.hpp>
#include <mtmc/evaluator/conformance/run_checks.hpp>
#include <mtmc/evaluator/conformance/time_checks.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

namespace mtmc::test {

namespace detail {

/// All checks, one after the other.
template <class B> [[nodiscard]] ConformanceReport make_checks(Trial<B>& trial) {
  check_memory(trial);
  check_compiler(trial);
  check_runs(trial);
  check_times(trial);
  check_evaluator(trial);
  trial.check("device.stable", "the device is the same after kernels have run, measured ceilings aside",
              {"device.filled", "run.result"}, [&]() -> Finding {
                const auto text = trial.unseen(trial.probe().vector_add);
                BoundPlan<B> bound(trial.backend(), trial.plan(text, 1000));
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

} // namespace detail

/// Tries everything that the evaluator asks of a backend, with the probe's kernels, and at the end the whole
/// `KernelEvaluator`: each check in a process of its own, forked from this one, with a backend that `make`
/// makes there. A backend that crashes or never answers costs one check, which is reported by its name. Takes
/// half a minute to some minutes, as each check makes its own backend and programs, and about 200 MiB of
/// memory here and on the device. Throws nothing: what a backend throws is a failed check.
///
/// Nothing of the device may be open in this process, because neither contexts nor handles of most drivers
/// survive a fork: let `make` be the first that touches it. Where something has to be open before, use the
/// overload below.
template <class Make>
  requires Backend<std::invoke_result_t<Make&>>
[[nodiscard]] ConformanceReport check_conformance(Make make, const BackendProbe& probe,
                                                  const ConformanceOptions& options = {}) {
  using B = std::invoke_result_t<Make&>;
  static_assert(mtmc::check_backend<B>());
  Trial<B> trial(std::function<B()>(std::move(make)), probe, options);
  trial.check("backend.made", "the backend can be made", {}, [] { return Finding{}; });
  if (!trial.has_passed("backend.made")) return std::move(trial.report());
  return detail::make_checks(trial);
}

/// The same in this process, with one backend for all checks, which is faster and open to a debugger. A check
/// that ends the process ends everything; it is the one that was announced last.
template <Backend B>
[[nodiscard]] ConformanceReport check_conformance(B& backend, const BackendProbe& probe,
                                                  const ConformanceOptions& options = {}) {
  static_assert(mtmc::check_backend<B>());
  Trial<B> trial(backend, probe, options);
  return detail::make_checks(trial);
}

/// As it was called before.
template <Backend B>
[[deprecated("mtmc: renamed; call mtmc::test::check_conformance")]] [[nodiscard]] ConformanceReport
check_backend(B& backend, const BackendProbe& probe) {
  return check_conformance(backend, probe);
}
template <std::default_initializable B>
[[deprecated(
    "mtmc: call mtmc::test::check_conformance([] { return B{}; }, probe)")]] [[nodiscard]] ConformanceReport
check_backend(const BackendProbe& probe) {
  return check_conformance([] { return B{}; }, probe);
}

} // namespace mtmc::test
