#pragma once
/// Definitions of evaluator/protocol/audit.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/audit.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/calls_in_a_row.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/correctness_stage.hpp>
#include <mtmc/support/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether this kernel may be about to be used.
[[nodiscard]] inline bool needs_audit(const EvaluationContext& context) {
  return context.request.purpose == Purpose::promote && context.shared.options.audit_seconds > 0 &&
         context.evaluation.comparison != Comparison::slower;
}

/// How many calls go before the rows of an audit: each time four times as many, while they take less than an
/// eighth of its time, and then none any more, since so many calls once do what they do each time.
class GrowingRow {
public:
  /// Seconds of the whole audit.
  explicit GrowingRow(double budget) : budget_(budget) {}

  /// Before the next row.
  [[nodiscard]] std::size_t calls_before() const noexcept { return next_; }
  /// Before the row that followed most of them.
  [[nodiscard]] std::size_t most_before() const noexcept { return most_; }

  void grow(const RowOutcome& outcome) noexcept {
    if (outcome.calls == 0 || next_ == 0) return;
    most_ = next_;
    const double seconds = outcome.seconds / static_cast<double>(outcome.calls);
    const auto wanted = growth * next_;
    next_ = static_cast<double>(wanted) * seconds <= share * budget_ && wanted <= limit ? wanted : 0;
  }

private:
  static constexpr std::size_t growth = 4;
  static constexpr std::size_t limit = 1U << 15;
  static constexpr double share = 0.125;
  double budget_;
  std::size_t next_ = 1U << 9;
  std::size_t most_ = 0;
};

/// Which sizes the rows of an audit have at the same time, since buffers are made for them: with each `turn`
/// the next ones.
[[nodiscard]] inline std::vector<std::size_t> sizes_in_turn(const EvaluationContext& audit,
                                                            std::uint64_t turn) {
  constexpr std::size_t at_once = 32;
  const auto sizes = audit.task.layouts.size();
  std::vector<std::size_t> chosen(std::min({at_once, sizes, max_calls_of_a_row(audit)}));
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = (turn * chosen.size() + i) % sizes;
  return chosen;
}

/// The calls of one row of an audit, one at each of some sizes; two of five have a structure, and the others
/// go through all distributions.
[[nodiscard]] inline std::vector<CaseId>
cases_of_an_audit(const EvaluationContext& audit, std::span<const std::size_t> sizes, std::uint64_t serial) {
  constexpr std::size_t others = all_distributions.size() - 1;
  const auto& defences = audit.judge.defences();
  std::vector<CaseId> cases;
  for (std::size_t call = 0; call < sizes.size(); ++call) {
    const auto turn = serial * 7 + call;
    auto distribution =
        turn % 5 < 2 ? Distribution::structured : all_distributions[(turn / 5 * 3 + turn % 5 - 2) % others];
    if (is_far(distribution) ? !defences.far_distributions : !defences.distributions)
      distribution = Distribution::normal;
    cases.push_back(
        {sizes[call], distribution, false, (serial + 1) << 16 | (call + serial * 5) % (1U << 16)});
  }
  return cases;
}

/// The candidate at the sizes of the audit's task; a refusal where its launch lines make no sense there.
[[nodiscard]] inline std::optional<Refusal> plan_for_audit(EvaluationContext& audit,
                                                           const Contestant& candidate) {
  try {
    audit.plans = audit.judge.plans_of(audit.task.task, candidate.kernel);
  } catch (const Error& error) {
    return launch_lines_refusal(error);
  }
  audit.candidate = at_other_sizes(candidate, audit.plans);
  audit.seconds.assign(audit.task.layouts.size(), 0);
  return check_plans(audit.task.task, audit.plans, audit.shared.allowed_scratch());
}

/// Checks at secret sizes of the task itself, large ones among them, on inputs of their own.
[[nodiscard]] inline std::optional<Refusal> check_secret_sizes(EvaluationContext& context, Deadline until) {
  auto& task = context.task;
  const auto& defences = context.judge.defences();
  const auto serial = task.book.next_check(context.candidate->id);
  const auto turn = task.book.turn_of(context.candidate->id);
  auto costs = costs_of(task, defences, turn);
  for (std::size_t size = 0; size < costs.size(); ++size)
    costs[size].checked = costs[size].checked && task.is_secret(size);
  return run_checks(context, plan_checks(costs, defences, turn), serial, until);
}

MTMC_INLINE std::optional<Refusal> audit_promotion(EvaluationContext& context) {
  if (!needs_audit(context)) return std::nullopt;
  auto& known = context.task;
  const double budget = context.shared.options.audit_seconds;
  if (!known.audit) known.audit = make_audit_task(context.judge, known);
  const auto until = std::min(context.until, deadline_in(budget));
  const auto quarter = std::min(context.until, deadline_in(budget / 4));
  context.judge.start_afresh(*context.candidate);
  if (auto refusal = check_secret_sizes(context, quarter)) return refusal;
  if (known.audit->layouts.empty()) return std::nullopt;
  EvaluationContext audit{context.shared, context.judge, *known.audit, context.request, context.evaluation};
  audit.until = until;
  if (auto refusal = plan_for_audit(audit, *context.candidate)) return refusal;
  GrowingRow growing(budget);
  std::size_t calls = 0;
  while (std::chrono::steady_clock::now() < until) {
    // Buffers for other sizes cost as much as several rows.
    constexpr int rows_at_once = 8;
    const auto sizes =
        sizes_in_turn(audit, known.audit->book.next_check("sizes of " + context.candidate->id));
    for (int i = 0; i < rows_at_once && std::chrono::steady_clock::now() < until; ++i) {
      const auto serial = known.audit->book.next_check(context.candidate->id);
      RowOutcome row;
      const auto cases = cases_of_an_audit(audit, sizes, serial);
      if (auto refusal = check_row(audit, cases, growing.calls_before(), row)) return refusal;
      growing.grow(row);
      calls += row.compared;
    }
    audit.candidate->slots.clear();
    known.audit->reference->slots.clear();
    if (known.audit->twin) known.audit->twin->slots.clear();
  }
  context.evaluation.environment["audit"] =
      std::to_string(calls) + " calls at " + std::to_string(known.audit->layouts.size()) +
      " sizes, in rows that followed up to " + std::to_string(growing.most_before()) + " others";
  return std::nullopt;
}

} // namespace mtmc::detail
