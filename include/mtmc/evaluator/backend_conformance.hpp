#pragma once
/// Does a backend keep what the `Backend` concept promises? The checks for a host's own hardware, without any
/// test framework.
///
///     MyBackend backend;
///     const auto report = mtmc::test::check_backend(backend, mtmc::test::opencl_probe());
///     std::fputs(report.to_text().c_str(), stdout);
///     return report.passed() ? 0 : 1;

#include <mtmc/requirements.hpp>

#include <mtmc/core/concepts.hpp>
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
#include <exception>
#include <optional>
#include <string>

namespace mtmc::test {

/// Tries everything that the evaluator asks of a backend, with the probe's kernels, and at the end the whole
/// `KernelEvaluator`. Takes seconds to a minute, and about 200 MiB of memory here and on the device. Prints
/// nothing and throws nothing: what a backend throws is a failed check.
template <class B> [[nodiscard]] ConformanceReport check_backend(B& backend, const BackendProbe& probe) {
  static_assert(mtmc::check_backend<B>());
  Trial<B> trial(backend, probe);
  std::optional<Device> before;
  try {
    before = backend.device();
    trial.report().device = before->name;
  } catch (...) { // the check of the device says it again
  }
  check_memory(trial);
  check_compiler(trial);
  check_runs(trial);
  check_times(trial);
  check_evaluator(trial);
  trial.check("device.stable", "the device is the same at the end, measured ceilings aside",
              {"device.filled"}, [&]() -> Finding {
                Device after = backend.device();
                after.measured = before->measured;
                if (after == *before) return {};
                return unexpected("the device as it was in the beginning", "a changed one",
                                  "Find out what the device is once, where the backend is made");
              });
  check_failures(trial);
  return std::move(trial.report());
}

/// The same for a backend that is made for the purpose and gone afterwards.
template <std::default_initializable B>
[[nodiscard]] ConformanceReport check_backend(const BackendProbe& probe) {
  std::optional<B> backend;
  std::string came = "no std::exception";
  try {
    backend.emplace();
    return check_backend(*backend, probe);
  } catch (const std::exception& error) {
    came = error.what();
  } catch (...) { // said by `came`
  }
  const auto finding = unexpected("the backend to be made", came, "Correct what the message names");
  return {{}, {{"backend.made", "the backend can be made", finding.outcome, finding.message, 0}}};
}

} // namespace mtmc::test
