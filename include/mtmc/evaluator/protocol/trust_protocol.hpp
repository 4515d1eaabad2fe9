#pragma once
/// The trust protocol (design, section 5), written once for every backend. Its stages: protocol/stages.hpp.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/evaluator_state.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// What `KernelEvaluator` does, on any backend: see there.
class TrustProtocol {
public:
  TrustProtocol(AnyBackend backend, const KernelEvaluatorOptions& options);

  /// What candidates run on. A backend that can measure its ceilings (`measure_ceilings()`) does so when this
  /// is first asked for, because policies and the plausibility rule live on them.
  [[nodiscard]] const Device& device();

  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const noexcept { return state_->options.start_seconds; }

  /// For cache keys: protocol version, defences that are off, and what the backend says of itself.
  [[nodiscard]] std::string identity() const;

  /// Gets a task ready: compiles, tries and measures its own kernel and makes sure that the task can tell
  /// right from wrong. Does nothing if it is ready.
  void prepare(const Task& task, std::stop_token stop);

  /// Judges one candidate, from the first suspicion to the last figure.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop);

private:
  [[nodiscard]] std::shared_ptr<PreparedTask> prepared(const Task& task, std::stop_token stop);

  std::unique_ptr<EvaluatorState> state_;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/trust_protocol_inl.hpp>
#endif
