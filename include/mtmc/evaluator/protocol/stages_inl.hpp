#pragma once
/// Definitions of evaluator/protocol/stages.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/evaluator/protocol/stages.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// A stage on the device, with a verdict where the candidate leaves too little memory for it.
[[nodiscard]] inline std::optional<Refusal> run_in_memory(const ProtocolStage& stage,
                                                          EvaluationContext& context) {
  std::optional<Refusal> refusal;
  const auto shortage = shortage_in([&] { refusal = stage.run(context); });
  if (!shortage) return refusal;
  context.judge.make_room(context.task, {context.candidate.get(), context.incumbent.get()});
  return blame_for(shortage, context);
}

MTMC_INLINE std::optional<Refusal> go_through_stages(EvaluationContext& context) {
  std::unique_lock<std::mutex> device;
  std::optional<Refusal> refusal;
  for (const auto& stage : protocol_stages) {
    if (stage.on_device && !device) device = context.shared.take_device();
    const auto start = std::chrono::steady_clock::now();
    refusal = stage.on_device ? run_in_memory(stage, context) : stage.run(context);
    if (stage.cost != nullptr) context.evaluation.cost.*stage.cost += seconds_since(start);
    if (refusal) break;
  }
  if (device) {
    context.audit.reset();
    context.audit_task.reset();
    for (auto* contestant : {context.candidate.get(), context.incumbent.get()})
      if (contestant != nullptr) contestant->forget_groups(context.shared.kept_scratch());
    device.unlock();
    if (!refusal && context.request.purpose == Purpose::promote)
      context.shared.keep_incumbent(context.task, context.candidate);
    context.shared.retire(std::move(context.candidate));
    context.shared.retire(std::move(context.incumbent));
  }
  return refusal;
}

} // namespace mtmc::detail
