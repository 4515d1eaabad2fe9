#pragma once
/// Definitions of evaluator/protocol/compile_stages.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/compile_stages.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::optional<Refusal> screen_text(EvaluationContext& context) {
  return context.judge.screen(context.request.candidate);
}

MTMC_INLINE std::optional<Refusal> plan_candidate(EvaluationContext& context) {
  const auto& task = context.task.task;
  try {
    const auto lines = parse_launch_lines(context.request.candidate);
    if (auto refusal = check_amounts(lines)) return refusal;
    context.plans = context.judge.plans_of(task, lines);
  } catch (const Error& error) {
    return launch_lines_refusal(error);
  }
  return check_plans(task, context.plans, context.shared.allowed_scratch());
}

/// Alone with compiler and device where the backend does one thing at a time.
[[nodiscard]] inline std::shared_ptr<Contestant>
compile_alone_if_need_be(EvaluationContext& context, const Kernel& kernel,
                         const std::vector<LaunchPlan>& plans, CompileResult<AnyBackend::Program>& result) {
  auto& shared = context.shared;
  std::unique_lock serial(shared.compile_mutex, std::defer_lock);
  std::unique_lock device(shared.device_mutex, std::defer_lock);
  if (concurrency_limit_of(shared.backend) <= 1) std::lock(serial, device);
  return context.judge.compile(context.task, kernel, plans, result);
}

MTMC_INLINE std::optional<Refusal> compile_candidate(EvaluationContext& context) {
  CompileResult<AnyBackend::Program> result;
  const auto attempt = [&] {
    context.candidate = compile_alone_if_need_be(context, context.request.candidate, context.plans, result);
  };
  const auto make_room = [&] {
    auto device = context.shared.take_device();
    context.judge.make_room(context.task, {});
    return device;
  };
  if (shortage_in(attempt)) {
    (void)make_room();
    if (const auto shortage = shortage_in(attempt)) {
      const auto device = make_room();
      return blame_for(shortage, context);
    }
  }
  auto& evaluation = context.evaluation;
  evaluation.cost.compile = result.seconds;
  evaluation.resources = std::move(result.resources);
  if (result.timed_out)
    return refusal(Verdict::compile_timeout, refusal_rule::compile_deadline,
                   "the compiler did not finish within " +
                       readable_seconds(context.shared.options.compile_seconds),
                   "Write less code: unroll less, and avoid recursive templates and huge inlined functions");
  if (result.refused)
    return Refusal{Verdict::refused, std::string(refusal_rule::screen), std::move(result.diagnostics)};
  if (!context.candidate->program)
    return Refusal{Verdict::compile_error, std::string(refusal_rule::compiler),
                   std::move(result.diagnostics)};
  evaluation.diagnostics = std::move(result.diagnostics);
  evaluation.binary_hash = context.candidate->binary_hash;
  for (auto& [name, value] : resources_of(context.shared.backend, *context.candidate->program))
    evaluation.resources[name] = value;
  return std::nullopt;
}

/// The incumbent as an earlier evaluation left it; null if none did.
[[nodiscard]] inline std::shared_ptr<Contestant> known_incumbent(PreparedTask& task, const std::string& id) {
  const std::scoped_lock lock(task.lock);
  if (task.reference->id == id) return task.reference;
  auto& known = task.incumbents;
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& contestant) { return contestant->id == id; });
  if (found == known.end()) return nullptr;
  std::rotate(found, found + 1, known.end());
  return known.back();
}

/// Compiles an incumbent and keeps it for later evaluations. Throws as `find_incumbent`.
[[nodiscard]] inline std::shared_ptr<Contestant> compile_incumbent(EvaluationContext& context,
                                                                   const Kernel& kernel) {
  auto& task = context.task;
  CompileResult<AnyBackend::Program> result;
  std::vector<LaunchPlan> plans;
  try {
    plans = context.judge.plans_of(task.task, kernel);
  } catch (const Error& error) {
    throw Error(error_id::evaluator_incumbent, "the incumbent's launch lines are wrong: " + error.message(),
                error.remedy(), error.place());
  }
  auto incumbent = compile_alone_if_need_be(context, kernel, plans, result);
  if (!incumbent->program)
    throw Error(error_id::evaluator_incumbent,
                result.timed_out || result.diagnostics.empty()
                    ? std::string("the incumbent did not compile in time")
                    : "the incumbent does not compile: " + result.diagnostics.front().message,
                "Compare with a kernel that was found correct", "task " + task.task.name);
  context.shared.keep_incumbent(task, incumbent);
  return incumbent;
}

MTMC_INLINE std::optional<Refusal> find_incumbent(EvaluationContext& context) {
  if (!context.request.incumbent) return std::nullopt;
  const auto& kernel = *context.request.incumbent;
  context.incumbent = known_incumbent(context.task, kernel.id());
  if (!context.incumbent) context.incumbent = compile_incumbent(context, kernel);
  context.evaluation.incumbent_binary_hash = context.incumbent->binary_hash;
  return std::nullopt;
}

MTMC_INLINE Refusal blame_for(const std::exception_ptr& shortage, EvaluationContext& context) {
  auto& shared = context.shared;
  const auto reason = reason_of(shortage);
  if (!reason.of_memory || !has_room(shared.backend, context.task, shared.options.red_zone_bytes))
    std::rethrow_exception(shortage);
  const auto& plans = context.plans;
  std::size_t largest = 0;
  for (std::size_t i = 1; i < plans.size(); ++i)
    if (scratch_bytes(plans[i]) > scratch_bytes(plans[largest])) largest = i;
  return memory_refusal(plans[largest], context.task.layouts[largest].bytes(), shared.allowed_scratch(),
                        reason.message);
}

} // namespace mtmc::detail
