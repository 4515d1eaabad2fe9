#pragma once
/// Definitions of evaluator/protocol/correctness_stage.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/calls_in_a_row.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/correctness_stage.hpp>
#include <mtmc/evaluator/protocol/outside_reads.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::optional<Refusal> start_promotion_afresh(EvaluationContext& context) {
  if (context.request.purpose == Purpose::promote) context.judge.start_afresh(*context.candidate);
  return std::nullopt;
}

MTMC_INLINE void add_tally(SizeEvaluation& size, const ComparisonTally& tally) {
  size.checked_elements += tally.checked;
  size.total_elements += tally.total;
  size.largest_error = std::max(size.largest_error, tally.largest_error);
}

MTMC_INLINE std::vector<SizeCost> costs_of(const PreparedTask& task, const EvaluatorDefences& defences,
                                           std::uint64_t turn) {
  constexpr std::size_t secret_at_once = 8;
  std::vector<SizeCost> costs;
  const auto secret = task.large - task.listed;
  const auto large = task.in_rows - task.large;
  for (std::size_t i = 0; i < task.layouts.size(); ++i) {
    costs.push_back(task.cost(i));
    const bool its_turn =
        !task.is_secret(i) ? true
        : i < task.large
            ? (i - task.listed + secret - turn * secret_at_once % secret) % secret < secret_at_once
        : i < task.in_rows ? i - task.large == turn % large
                           : false;
    costs.back().checked = its_turn && std::isfinite(costs.back().seconds) &&
                           (defences.sizes || &task.task.sizes[i] == task.task.main_size());
  }
  return costs;
}

[[nodiscard]] inline std::optional<Refusal> compare_bits(Judge& judge, const ProblemLayout& layout,
                                                         const KeptContents& first,
                                                         const CallResults& second) {
  for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
    const auto& buffer = layout.buffers[i];
    const auto difference = judge.difference(second, first, i);
    if (!difference.first) continue;
    const auto place = *difference.first;
    const auto element = element_name(buffer, place) + " with " +
                         number(element_value(first[i], buffer.type, place)) + " and " +
                         number(element_value(second[i], buffer.type, place));
    return nondeterministic_refusal(element, difference.count, buffer.elements, layout.size);
  }
  return std::nullopt;
}

/// One case: a run whose results are compared, and where it is cheap a second one that must repeat them.
[[nodiscard]] inline std::optional<Refusal> check_case(EvaluationContext& context, const CaseId& id,
                                                       const PlannedCheck& check, ComparisonTally& tally) {
  auto& judge = context.judge;
  auto& task = context.task;
  auto& candidate = *context.candidate;
  auto& seconds = context.seconds[check.size];
  const auto shared_inputs = task.shared_inputs(id);
  const auto& inputs = *shared_inputs;
  const double limit = judge.launch_limit(task, id.size);
  auto first = judge.call(task, candidate, id.size, inputs, Poison{}, limit, Refill::all,
                          BufferGuard::red_zones, shared_inputs);
  if (first.refusal) return first.refusal;
  seconds = first.seconds;
  // Where the start kernel is slow, a candidate may still be fast enough to be run again.
  constexpr double fast = 50e-3;
  const bool again = check.twice || seconds <= fast;
  // The second run may need the buffers.
  if (again) judge.keep(first.results);
  if (auto wrong = judge.compare_with_reference(task, id, first.results, inputs, Poison{}, tally))
    return wrong;
  if (!again) return std::nullopt;
  if (check.fresh_process) judge.start_afresh(candidate);
  const auto guard = judge.possible(check.guard);
  const auto poison = judge.noise_or_zeros();
  const bool follows = check.after_another;
  // A host hands the buffers of one call to the next: half of the time results and scratch buffers hold what
  // the call on other inputs left.
  const auto refill = follows && judge.coin() ? Refill::inputs_only : Refill::all;
  std::optional<Refusal> refused;
  if (follows) refused = judge.call_another(task, candidate, id, limit, guard);
  Judge::Call second;
  if (!refused) {
    const bool loaded = guard == BufferGuard::red_zones && !follows;
    second = judge.call(task, candidate, id.size, inputs, poison, limit, loaded ? Refill::inout_only : refill,
                        guard, shared_inputs);
    refused = second.refusal;
  }
  if (follows && has_ability(judge.backend(), BackendAbility::keep_state))
    judge.backend().keep_state(*candidate.program, false);
  if (refused) return refused;
  seconds = std::min(seconds, second.seconds);
  if (task.task.atomics || !judge.defences().same_bits)
    return judge.compare_with_reference(task, id, second.results, inputs, poison, tally);
  return compare_bits(judge, task.layouts[id.size], first.results.kept(), second.results);
}

/// Where a candidate gave wrong results, or different ones, because it reads outside of a buffer: says so.
/// Only for cheap calls, since it takes some more of them.
inline void explain(EvaluationContext& context, const CaseId& id, Refusal& refusal) {
  auto& task = context.task;
  const bool may_read_outside =
      refusal.rule == refusal_rule::same_bits || refusal.rule == refusal_rule::reference ||
      refusal.rule == refusal_rule::precision || refusal.rule == refusal_rule::guard_pages;
  SizeCost cost = task.cost(id.size);
  cost.seconds = context.seconds[id.size];
  // The crash may have cost the backend its device: then nothing can be called any more.
  if (!may_read_outside || !is_medium(cost) || is_spent(context.judge.backend())) return;
  const auto inputs = task.inputs(id);
  OutsideReads reads(context.judge, task, *context.candidate, id.size, inputs,
                     context.judge.launch_limit(task, id.size));
  const auto found = reads.find();
  if (!found) return;
  auto explained = outside_read_refusal(*found, task.layouts[id.size].size);
  if (refusal.rule == refusal_rule::same_bits) {
    refusal = std::move(explained);
    return;
  }
  auto& first = refusal.diagnostics.front();
  first.message +=
      (first.message.ends_with('.') ? " T" : ". T") + explained.diagnostics.front().message.substr(1);
  first.remedy = explained.diagnostics.front().remedy;
}

/// The same once more, with all memory given back, where it had run out.
[[nodiscard]] inline std::optional<Refusal> check_with_room(EvaluationContext& context, const CaseId& id,
                                                            const PlannedCheck& check) {
  ComparisonTally tally;
  std::optional<Refusal> refusal;
  const auto attempt = [&] {
    tally = {};
    refusal = check_case(context, id, check, tally);
    if (refusal) explain(context, id, *refusal);
  };
  if (shortage_in(attempt)) {
    context.judge.make_room(context.task, {context.candidate.get(), context.incumbent.get()});
    attempt();
  }
  if (!context.task.is_secret(check.size)) add_tally(context.evaluation.sizes[check.size], tally);
  return refusal;
}

MTMC_INLINE std::optional<Refusal> check_row(EvaluationContext& context, std::span<const CaseId> cases,
                                             const RowPlan& plan, RowOutcome& outcome) {
  const auto attempt = [&] { outcome = check_calls_in_a_row(context, cases, plan); };
  if (shortage_in(attempt)) {
    // Memory for so many buffers may be more than there is; much of it is checked without them as well.
    context.judge.make_room(context.task, {context.candidate.get(), context.incumbent.get()});
    outcome = {};
    return std::nullopt;
  }
  if (!outcome.refused) return std::nullopt;
  auto& refused = *outcome.refused;
  if (refused.id) explain(context, *refused.id, refused.refusal);
  return std::move(refused.refusal);
}

MTMC_INLINE std::optional<Refusal> run_checks(EvaluationContext& context,
                                              std::span<const PlannedCheck> checks, std::uint64_t serial,
                                              Deadline until) {
  // One or two elements may be a little wrong by chance, so that more have to confirm a lower precision. If
  // all larger results are right, it is something else that is wrong with the small ones.
  constexpr std::int64_t enough_elements = 16;
  std::optional<Refusal> unconfirmed;
  bool confirmed_right = false;
  for (const auto& check : checks) {
    if (std::chrono::steady_clock::now() > context.until)
      return refusal(Verdict::timeout, refusal_rule::evaluation_deadline,
                     "the time limit of the evaluation passed before all checks were done",
                     "Make the kernel faster; it is far slower than the kernel it started from");
    if (std::chrono::steady_clock::now() > until) break;
    auto refusal = check_with_room(context, {check.size, check.distribution, false, serial}, check);
    const bool confirms = context.task.layouts[check.size].result_elements() >= enough_elements;
    // Far from the usual magnitudes a lower precision does not only round.
    const bool far = check.distribution == Distribution::tiny || check.distribution == Distribution::huge ||
                     check.distribution == Distribution::magnitudes;
    if (refusal && unconfirmed && far && !confirms) continue;
    if (refusal && (confirms || refusal->verdict != Verdict::low_precision)) return refusal;
    if (refusal && !unconfirmed) unconfirmed = std::move(refusal);
    if (confirms) confirmed_right = true;
  }
  if (unconfirmed && confirmed_right) {
    unconfirmed->verdict = Verdict::wrong_result;
    unconfirmed->rule = refusal_rule::reference;
    unconfirmed->diagnostics.front().remedy =
        "Look at what the kernel does at this size; the results of larger ones are right";
  }
  return unconfirmed;
}

MTMC_INLINE std::optional<Refusal> check_results(EvaluationContext& context) {
  auto& task = context.task;
  const auto& defences = context.judge.defences();
  context.until = deadline_in(context.shared.options.evaluation_seconds);
  context.seconds.assign(task.layouts.size(), 0);
  const auto serial = task.book.next_check(context.candidate->id);
  const auto turn = task.book.turn_of(context.candidate->id);
  const auto checks = plan_checks(costs_of(task, defences, turn), defences, turn);
  if (auto refusal = run_checks(context, checks, serial, context.until)) return refusal;
  const bool uncleared = has_ability(context.judge.backend(), BackendAbility::overwrite_residue);
  RowOutcome unused;
  return check_row(context, cases_of_a_row(context, serial), {uncleared ? usual_calls_before : 0, false},
                   unused);
}

} // namespace mtmc::detail
