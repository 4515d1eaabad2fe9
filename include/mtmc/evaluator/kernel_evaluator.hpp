#pragma once
/// The trust protocol (design, section 5), for every backend.

#include <mtmc/core/any.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/refusal_rule.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// What `KernelEvaluator` wraps, on any backend: the same judge without the type of its backend.
[[nodiscard]] AnyEvaluator kernel_evaluator(AnyBackend backend, KernelEvaluatorOptions options = {});

/// Judges candidates on whatever a `Backend` offers: screen, compile, smoke test, correctness, timing,
/// plausibility, and a second look for promotion.
///
/// `evaluate` may be called concurrently: kernels are compiled in parallel (unless the backend limits itself
/// to one call at a time), run and timed one after the other. A backend whose compiler disturbs its own
/// timing keeps the two apart itself. A task is prepared when it is first seen; two tasks are the same if all
/// their data are and they have the same kinds of hooks, so give tasks whose hooks differ different names.
///
/// Throws `Error` where the surroundings or the task are at fault, never for what a candidate does:
/// `mtmc.task.001` to `.003`, `.005`, `.006` (the task), `mtmc.evaluator.002` to `.004`, and what the backend
/// throws.
template <class B> class KernelEvaluator {
  static_assert(check_backend<B>());

public:
  /// With a backend made by its default constructor.
  KernelEvaluator()
    requires std::default_initializable<B>
      : KernelEvaluator(B{}) {}
  /// Takes the backend over.
  explicit KernelEvaluator(B backend, KernelEvaluatorOptions options = {})
      : backend_(std::make_unique<B>(std::move(backend))), options_(options),
        judge_(kernel_evaluator(AnyBackend(std::ref(*backend_)), options)) {}

  /// What candidates run on. A backend that can measure its ceilings (`measure_ceilings()`) does so when this
  /// is first asked for, because policies and the plausibility rule live on them.
  [[nodiscard]] const Device& device() { return judge_.device(); }
  /// The backend, for what only it can tell.
  [[nodiscard]] B& backend() noexcept { return *backend_; }
  /// The settings it was made with.
  [[nodiscard]] const KernelEvaluatorOptions& options() const noexcept { return options_; }

  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const { return judge_.start_seconds(); }

  /// For cache keys: protocol version, defences that are off, and what the backend says of itself.
  [[nodiscard]] std::string identity() const { return judge_.identity(); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return judge_.concurrency_limit(); }

  /// Gets a task ready: compiles, tries and measures its own kernel and makes sure that the task can tell
  /// right from wrong. Does nothing if it is ready.
  void prepare(const Task& task, std::stop_token stop) { judge_.prepare(task, std::move(stop)); }

  /// Judges one candidate, from the first suspicion to the last figure.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    return judge_.evaluate(request, std::move(stop));
  }

private:
  /// Declared before the judge, which uses it until it is destroyed.
  std::unique_ptr<B> backend_;
  KernelEvaluatorOptions options_;
  AnyEvaluator judge_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/kernel_evaluator_inl.hpp>
#endif
