#pragma once
/// Definitions of evaluator/protocol/trust_protocol.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/environment_record.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/evaluator/protocol/stages.hpp>
#include <mtmc/evaluator/protocol/task_preparation.hpp>
#include <mtmc/evaluator/protocol/trust_protocol.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE TrustProtocol::TrustProtocol(AnyBackend backend, const KernelEvaluatorOptions& options)
    : state_(std::make_unique<EvaluatorState>(std::move(backend), options)) {}

MTMC_INLINE const Device& TrustProtocol::device() {
  std::call_once(state_->measured, [this] { measure_ceilings_of(state_->backend); });
  return state_->backend.device();
}

MTMC_INLINE std::string TrustProtocol::identity() const {
  auto text = "kernel_evaluator " + std::to_string(protocol_version);
  if (state_->options.defences != EvaluatorDefences{}) text += " without all of its defences";
  if (const auto of_backend = identity_of(state_->backend); !of_backend.empty()) text += ", " + of_backend;
  return text;
}

MTMC_INLINE void TrustProtocol::prepare(const Task& task, std::stop_token stop) {
  (void)prepared(task, std::move(stop));
}

/// Whether reads where nothing lies are seen, as the environment record has it.
[[nodiscard]] inline std::string guard_record(const AnyBackend& backend) {
  if (guards_buffers(backend)) return "observed";
  const auto missing = backend.guarded_allocation().missing;
  return missing.empty() ? "not observed" : "not observed: " + missing;
}

/// The answer before anything is known: where it is judged, and the sizes.
[[nodiscard]] inline Evaluation empty_evaluation(const PreparedTask& task, const Device& device,
                                                 const AnyBackend& backend) {
  Evaluation evaluation;
  evaluation.environment = environment_record(device);
  evaluation.environment["truth"] = task.truth;
  if (!task.told_precision.empty()) evaluation.environment["precision"] = "tells " + task.told_precision;
  const auto observed = [&](BackendAbility ability) {
    return has_ability(backend, ability) ? "observed" : "not observed";
  };
  evaluation.environment["state"] = observed(BackendAbility::changed_state);
  evaluation.environment["binary"] = observed(BackendAbility::binary_hash);
  evaluation.environment["guarded_allocation"] = guard_record(backend);
  const bool overwritten = has_ability(backend, BackendAbility::overwrite_residue);
  evaluation.environment["residue"] = overwritten ? "overwritten" : "not overwritten";
  const bool reloaded = has_ability(backend, BackendAbility::reload);
  evaluation.environment["reload"] = reloaded ? "between pairs" : "not between pairs";
  evaluation.environment["secret_sizes"] = std::to_string(task.layouts.size() - task.listed);
  for (const auto& size : task.given.sizes) evaluation.sizes.emplace_back().size = size;
  return evaluation;
}

/// A refused candidate has no time that counts.
inline void refuse(const Refusal& refusal, Evaluation& evaluation) {
  evaluation.verdict = refusal.verdict;
  evaluation.rule = refusal.rule;
  evaluation.diagnostics.insert(evaluation.diagnostics.begin(), refusal.diagnostics.begin(),
                                refusal.diagnostics.end());
  evaluation.seconds = 0;
  evaluation.speed_up.reset();
  evaluation.comparison = Comparison::not_timed;
}

MTMC_INLINE Evaluation TrustProtocol::evaluate(const EvaluationRequest& request, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  const auto task = prepared(request.task, stop);
  Judge judge(state_->backend, *state_->work, state_->options, state_->keys, stop);
  judge.when_short([this, own = task.get()] { state_->release_others(own); });
  auto evaluation = empty_evaluation(*task, device(), state_->backend);
  EvaluationContext context{*state_, judge, *task, request, evaluation};
  const auto refusal = go_through_stages(context);
  if (context.conditions) record_conditions(*context.conditions, !refusal, evaluation);
  evaluation.verdict = Verdict::correct;
  if (refusal) refuse(*refusal, evaluation);
  evaluation.cost.total = seconds_since(start);
  return evaluation;
}

MTMC_INLINE std::shared_ptr<PreparedTask> TrustProtocol::prepared(const Task& task, std::stop_token stop) {
  auto entry = state_->entry_of(task);
  const std::scoped_lock lock(entry->lock);
  if (entry->ready) return entry;
  const auto device = state_->take_device();
  const auto attempt = [&] {
    // A preparation that failed half-way, or was cancelled, starts again from nothing.
    entry->layouts.clear();
    entry->incumbents.clear();
    Judge judge(state_->backend, *state_->work, state_->options, state_->keys, stop);
    TaskPreparation(judge, *entry).run();
  };
  if (shortage_in(attempt)) {
    state_->work->forget();
    entry->release_buffers();
    state_->release_others(entry.get());
    attempt();
  }
  entry->ready = true;
  return entry;
}

} // namespace mtmc::detail
