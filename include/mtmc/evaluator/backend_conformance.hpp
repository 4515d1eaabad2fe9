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
#include <mtmc/evaluator/conformance/memory_checks.hpp>
#include <mtmc/evaluator/conformance/probe.hpp>
#include <mtmc/evaluator/conformance/report.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

/// All checks, one after the other.
[[nodiscard]] ConformanceReport try_all(Trial& trial);
/// The same, each check with a backend of its own.
[[nodiscard]] ConformanceReport try_all_apart(Trial& trial);

/// What the type of a backend tells; `with_backend` calls a function with one.
template <class B, class WithBackend> [[nodiscard]] BackendType backend_type(WithBackend with_backend) {
  return {declared_abilities<B>(), &list_abilities<B>,
          [with_backend] { return with_backend([](B& backend) { return check_move(backend); }); }};
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
  const auto type = detail::backend_type<B>([&make](const auto& use) {
    auto backend = make();
    return use(backend);
  });
  Trial trial([&make] { return AnyBackend::made_by(make); }, type, probe, options);
  return detail::try_all_apart(trial);
}

/// The same in this process, with one backend for all checks, which is faster and open to a debugger. A check
/// that ends the process ends everything; it is the one that was announced last.
template <Backend B>
[[nodiscard]] ConformanceReport check_conformance(B& backend, const BackendProbe& probe,
                                                  const ConformanceOptions& options = {}) {
  static_assert(mtmc::check_backend<B>());
  AnyBackend erased(std::ref(backend));
  Trial trial(erased, detail::backend_type<B>([&backend](const auto& use) { return use(backend); }), probe,
              options);
  return detail::try_all(trial);
}

/// As it was called before.
template <Backend B>
[[deprecated("mtmc: renamed; call mtmc::test::check_conformance")]] [[nodiscard]] ConformanceReport
check_backend(B& backend, const BackendProbe& probe) {
  return check_conformance(backend, probe);
}
/// As it was called before, with a backend made by its default constructor for each check.
template <std::default_initializable B>
[[deprecated(
    "mtmc: call mtmc::test::check_conformance([] { return B{}; }, probe)")]] [[nodiscard]] ConformanceReport
check_backend(const BackendProbe& probe) {
  return check_conformance([] { return B{}; }, probe);
}

} // namespace mtmc::test

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/backend_conformance_inl.hpp>
#endif
