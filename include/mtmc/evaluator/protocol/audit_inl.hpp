#pragma once
/// Definitions of evaluator/protocol/audit.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/audit.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/audit_turns.hpp>
#include <mtmc/evaluator/protocol/audit_vast.hpp>
#include <mtmc/evaluator/protocol/calls_in_a_row.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/correctness_stage.hpp>
#include <mtmc/support/deadline.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE bool needs_audit(const EvaluationContext& context) {
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

/// The rows of an audit.
class AuditRows {
public:
  /// `budget`: seconds of the whole audit.
  AuditRows(EvaluationContext& audit, double budget)
      : audit_(audit), growing_(budget), small_(small_sizes_of(audit)), large_(large_sizes_of(audit)) {}

  /// Rows at small sizes, and one at sizes that are too large for others, until the time is over.
  [[nodiscard]] std::optional<Refusal> run() {
    while (is_time_left() && !(small_.empty() && large_.empty())) {
      // Buffers for other sizes cost as much as several rows.
      constexpr int rows_at_once = 4;
      const auto sizes = small_.next();
      for (int i = 0; i < rows_at_once && is_time_left(); ++i)
        if (auto refusal = run_row(sizes, {growing_.calls_before(), i % 2 == 1})) return refusal;
      forget_buffers();
      if (large_.empty() || !is_time_left()) continue;
      if (auto refusal = run_row(large_.next(), {})) return refusal;
      forget_buffers();
    }
    return std::nullopt;
  }

  /// "1320 calls at 96 sizes, ..."
  [[nodiscard]] std::string words() const {
    const auto sizes = audit_.task.layouts.size();
    return std::to_string(calls_) + " calls at " + std::to_string(sizes - left_out_) +
           " sizes, in rows that followed up to " + std::to_string(growing_.most_before()) + " others" +
           (left_out_ == 0 ? ""
                           : "; cannot be launched at " + std::to_string(left_out_) +
                                 " sizes beyond those that are listed");
  }

private:
  [[nodiscard]] bool is_time_left() const { return std::chrono::steady_clock::now() < audit_.until; }

  [[nodiscard]] std::optional<Refusal> run_row(std::span<const std::size_t> sizes, const RowPlan& plan) {
    RowOutcome row;
    auto refusal = check_sizes(sizes, plan, row);
    if (plan.calls_before > 0) growing_.grow(row);
    calls_ += row.compared;
    if (refusal && refusal->verdict == Verdict::launch_error && leave_out_what_fails(sizes))
      return std::nullopt;
    return refusal;
  }

  [[nodiscard]] std::optional<Refusal> check_sizes(std::span<const std::size_t> sizes, const RowPlan& plan,
                                                   RowOutcome& row) {
    const auto serial = audit_.task.book.next_check(audit_.candidate->id);
    return check_row(audit_, cases_of_an_audit(audit_, sizes, serial), plan, row);
  }

  /// A kernel may have limits beyond the listed sizes, if it says so: what cannot be launched there misleads
  /// nobody. Whether there were such sizes.
  [[nodiscard]] bool leave_out_what_fails(std::span<const std::size_t> sizes) {
    const auto before = left_out_;
    for (const auto size : sizes) {
      if (!is_beyond_listed(audit_.task.given, audit_.task.task.sizes[size])) continue;
      RowOutcome unused;
      const auto refusal = check_sizes(std::array{size, size}, {}, unused);
      if (!refusal || refusal->verdict != Verdict::launch_error) continue;
      small_.leave_out(size);
      large_.leave_out(size);
      ++left_out_;
    }
    return left_out_ > before;
  }

  void forget_buffers() {
    audit_.candidate->slots.clear();
    audit_.task.reference->slots.clear();
    if (audit_.task.twin) audit_.task.twin->slots.clear();
  }

  EvaluationContext& audit_;
  GrowingRow growing_;
  SizesInTurn small_;
  SizesInTurn large_;
  std::size_t calls_ = 0;
  std::size_t left_out_ = 0;
};

MTMC_INLINE std::optional<Refusal> audit_promotion(EvaluationContext& context) {
  if (!needs_audit(context)) return std::nullopt;
  const double budget = context.shared.options.audit_seconds;
  context.judge.start_afresh(*context.candidate);
  const auto quarter = std::min(context.until, deadline_in(budget / 4));
  if (auto refusal = check_secret_sizes(context, quarter)) return refusal;
  std::string vast;
  if (auto refusal = check_vast_sizes(context, budget / 4, vast)) return refusal;
  context.audit_task = make_audit_task(context.judge, context.task, context.request.candidate,
                                       context.shared.allowed_scratch());
  auto& task = *context.audit_task;
  if (task.layouts.empty()) return std::nullopt;
  context.audit = std::make_unique<EvaluationContext>(
      EvaluationContext{context.shared, context.judge, task, context.request, context.evaluation});
  auto& audit = *context.audit;
  audit.until = std::min(context.until, deadline_in(budget * 3 / 4));
  if (auto refusal = plan_for_audit(audit, *context.candidate)) return refusal;
  AuditRows rows(audit, budget);
  if (auto refusal = rows.run()) return refusal;
  context.evaluation.environment[environment_key::audit] = rows.words() + (vast.empty() ? "" : "; " + vast);
  return std::nullopt;
}

} // namespace mtmc::detail
