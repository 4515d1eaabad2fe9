#pragma once
/// Many calls one after the other in one process, each on inputs of its own.

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/audit_reference.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/evaluation_context.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A call of a row: its inputs, where it runs, and what it is compared with.
struct CallOfARow {
  CaseId id;
  Slot* slot = nullptr;
  std::shared_ptr<const CaseInputs> inputs{};
  std::shared_ptr<const ReferenceResult> wanted{};
};

/// Whether a size takes part in rows: one that is cheap.
[[nodiscard]] inline bool is_for_rows(const PreparedTask& task, std::size_t size, bool on_device) {
  const auto cost = task.cost(size);
  return is_cheap_secret(cost) && cost.bytes <= max_row_bytes(on_device);
}

/// No more calls than there may be buffers for.
[[nodiscard]] inline std::size_t max_calls_of_a_row(const EvaluationContext& context) {
  const auto buffers = context.task.layouts.front().buffers.size() + context.plans.front().scratch.size();
  return static_cast<std::size_t>(std::max(0, context.shared.options.group_buffers)) /
         std::max<std::size_t>(1, buffers);
}

/// Which inputs the calls of a row have: half of them at one size, which takes turns with `serial`, by turns
/// of structures, of near and far slices, since rows differ most there, and of all distributions; the others
/// one at each of the sizes that are met in rows only. No more than there may be buffers.
[[nodiscard]] inline std::vector<CaseId> cases_of_a_row(const EvaluationContext& context,
                                                        std::uint64_t serial) {
  constexpr std::size_t at_one_size = 32;
  const auto& task = context.task;
  const auto& defences = context.judge.defences();
  const bool on_device = runs_judge_kernels(context.judge.backend());
  std::vector<std::size_t> sizes;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < task.layouts.size(); ++i) {
    if (!is_for_rows(task, i, on_device)) continue;
    if (i >= task.in_rows)
      others.push_back(i);
    else if (defences.sizes || &task.task.sizes[i] == task.task.main_size())
      sizes.push_back(i);
  }
  std::vector<CaseId> cases;
  const auto add = [&](std::size_t size, Distribution distribution) {
    // Captured content is shown as it is on normal inputs, and once is enough.
    if (!task.captured.empty() && distribution == Distribution::normal) distribution = Distribution::slices;
    if (is_far(distribution) ? !defences.far_distributions : !defences.distributions)
      distribution = Distribution::normal;
    cases.push_back({size, distribution, false, ((serial + 1) << 16) + cases.size()});
  };
  for (std::size_t call = 0; call < at_one_size && !sizes.empty(); ++call)
    add(sizes[(serial + sizes.size() - 1) % sizes.size()],
        call % 4 != 0    ? Distribution::structured
        : call % 16 == 0 ? Distribution::slices
        : call % 16 == 8 ? Distribution::far_slices
                         : all_distributions[(call / 8 + serial) % all_distributions.size()]);
  // Where there may be fewer buffers, other sizes come up in the next row.
  if (!others.empty())
    std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(serial % others.size()),
                others.end());
  for (const auto size : others)
    add(size, (size + serial) % 3 == 0   ? Distribution::normal
              : (size + serial) % 3 == 1 ? Distribution::structured
                                         : Distribution::far_slices);
  cases.resize(std::min(cases.size(), max_calls_of_a_row(context)));
  return cases;
}

/// What is wrong with a row, and with which call's results; no case where it did not end well.
struct RefusedRow {
  Refusal refusal{};
  std::optional<CaseId> id{};
};

/// What came of a row.
struct RowOutcome {
  /// Nothing if all of its results are right.
  std::optional<RefusedRow> refused{};
  /// Calls whose results were compared.
  std::size_t compared = 0;
  /// All calls, and how long they took. 0 where no size is cheap enough for a row.
  std::size_t calls = 0;
  double seconds = 0;
};

/// What is wrong with the results of a row; nothing if they are right. One or two elements may be a little
/// wrong by chance, so those of small results are not asked for their precision.
[[nodiscard]] inline std::optional<RefusedRow> look_at_row(EvaluationContext& context,
                                                           std::span<const CallOfARow> row,
                                                           const Poison& poison, bool has_red_zones) {
  constexpr std::int64_t enough_elements = 16;
  const auto has_enough = [&](const CaseId& id) {
    return context.task.layouts[id.size].result_elements() >= enough_elements;
  };
  std::vector<FinishedCall> calls;
  for (const auto& call : row)
    calls.push_back(
        {call.id, call.slot, call.inputs.get(), call.inputs.get(), call.wanted.get(), has_red_zones});
  ComparisonTally unused;
  // All at once, and one by one where there is something.
  if (!context.judge.look_at(context.task, calls, poison, unused)) return std::nullopt;
  for (const auto& call : calls) {
    auto refusal = context.judge.look_at(context.task, {&call, 1}, poison, unused);
    if (refusal && (has_enough(call.id) || refusal->verdict != Verdict::low_precision))
      return RefusedRow{std::move(*refusal), call.id};
  }
  return std::nullopt;
}

/// Whether any result of a case is compared with something.
[[nodiscard]] inline bool tells_anything(const ProblemLayout& layout, const ReferenceResult& wanted) {
  for (std::size_t i = 0; i < layout.buffers.size(); ++i)
    if (layout.buffers[i].is_written() && wanted.tells(i)) return true;
  return false;
}

/// How many calls go before a row in any evaluation, where programs are given memory uncleared: of one launch
/// each, fewer of more.
inline constexpr std::size_t usual_calls_before = 448;

/// What is asked of a row beside its cases.
struct RowPlan {
  /// So many calls go before, whose results nobody looks at.
  std::size_t calls_before = 0;
  /// Whether each call comes once more in the buffers as it left them, on inputs of which some elements have
  /// changed (`follow_up_of`).
  bool followed = false;
};

/// Calls with buffers of their own, one behind the other.
class CallsInARow {
public:
  /// All must outlive it.
  CallsInARow(EvaluationContext& context, std::span<const CaseId> cases)
      : context_(context), judge_(context.judge), task_(context.task), poison_(judge_.noise_or_zeros()) {
    look_up(cases);
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (tells_anything(task_.layouts[cases[i].size], *references_[i]))
        row_.push_back({cases[i], nullptr, inputs_[i], references_[i]});
  }

  /// Calls whose results are compared.
  [[nodiscard]] std::size_t size() const noexcept { return row_.size(); }

  /// All of them, behind others at their smallest size, of which most fit into the time.
  [[nodiscard]] RowOutcome run(std::size_t calls_before) {
    std::vector<LaunchPlan> group;
    if (calls_before > 0) {
      const auto smallest = std::min_element(row_.begin(), row_.end(), [&](const auto& a, const auto& b) {
        return task_.layouts[a.id.size].bytes() < task_.layouts[b.id.size].bytes();
      });
      const auto plan = load_anew(*smallest)->plan;
      group.assign(calls_before / std::max<std::size_t>(1, plan.launches.size()), plan);
    }
    for (auto& call : row_) {
      call.slot = load_anew(call);
      group.push_back(call.slot->plan);
    }
    judge_.finish_loading();
    judge_.overwrite_residue(*context_.candidate);
    return time_and_look(group);
  }

  /// All of them once more, the last one first: nothing but some elements of the inputs has changed since,
  /// and what lies next to the buffers, which is zeros now.
  [[nodiscard]] RowOutcome run_follow_ups() {
    std::vector<CaseId> cases;
    for (const auto& call : row_) cases.push_back(follow_up_of(call.id));
    look_up(cases);
    std::vector<CallOfARow> row;
    std::vector<LaunchPlan> group;
    for (std::size_t i = cases.size(); i-- > 0;) {
      if (!tells_anything(task_.layouts[cases[i].size], *references_[i])) continue;
      row.push_back({cases[i], row_[i].slot, inputs_[i], references_[i]});
      judge_.begin_loading(*row_[i].slot, task_.layouts[cases[i].size], *inputs_[i], poison_,
                           Refill::inputs_only, inputs_[i]);
      judge_.clear_red_zones(*row_[i].slot);
      group.push_back(row_[i].slot->plan);
    }
    row_ = std::move(row);
    has_red_zones_ = false;
    if (row_.empty()) return {};
    judge_.finish_loading();
    return time_and_look(group);
  }

private:
  void look_up(std::span<const CaseId> cases) {
    cases_.assign(cases.begin(), cases.end());
    inputs_.clear();
    for (const auto& id : cases) inputs_.push_back(task_.shared_inputs(id));
    references_ = references_of(judge_, task_, cases_, inputs_);
  }

  Slot* load_anew(const CallOfARow& call) {
    auto& slot = judge_.slot(task_, *context_.candidate, call.id.size, places_[call.id.size]++);
    judge_.begin_loading(slot, task_.layouts[call.id.size], *call.inputs, poison_, Refill::all, call.inputs);
    return &slot;
  }

  [[nodiscard]] RowOutcome time_and_look(const std::vector<LaunchPlan>& group) {
    auto& candidate = *context_.candidate;
    const auto& layout = task_.layouts[row_.front().id.size];
    const double limit = judge_.launch_limit(task_, row_.front().id.size) * static_cast<double>(group.size());
    // A row that never ends is not waited for as long as each of its calls might take.
    constexpr std::chrono::seconds patience{30};
    const auto until = later_by(patience, std::max(context_.until, std::chrono::steady_clock::now()));
    const auto timed =
        judge_.backend().time(*candidate.program, group, false, std::min(deadline_in(limit), until));
    RowOutcome outcome{{}, row_.size(), group.size(), timed.seconds};
    auto& refused = outcome.refused;
    if (!timed.status.finished()) refused = RefusedRow{run_refusal(timed.status, layout.size, limit)};
    if (!refused)
      if (auto changed = judge_.changed_state(candidate, layout)) refused = RefusedRow{std::move(*changed)};
    if (!refused) refused = look();
    if (refused)
      refused->refusal.diagnostics.front().message +=
          " in one of " + std::to_string(group.size()) + " calls in a row";
    return outcome;
  }

  [[nodiscard]] std::optional<RefusedRow> look() {
    auto refused = look_at_row(context_, row_, poison_, has_red_zones_);
    if (!refused || isolates_programs(judge_.backend())) return refused;
    // Another kernel may have written where results of the reference are kept.
    const auto certain = certain_references_of(judge_, task_, cases_, inputs_);
    for (auto& call : row_)
      call.wanted = certain[static_cast<std::size_t>(std::find(cases_.begin(), cases_.end(), call.id) -
                                                     cases_.begin())];
    return look_at_row(context_, row_, poison_, has_red_zones_);
  }

  EvaluationContext& context_;
  Judge& judge_;
  PreparedTask& task_;
  Poison poison_;
  bool has_red_zones_ = true;
  std::vector<CaseId> cases_;
  std::vector<std::shared_ptr<const CaseInputs>> inputs_;
  std::vector<std::shared_ptr<const ReferenceResult>> references_;
  std::vector<CallOfARow> row_;
  std::map<std::size_t, std::size_t> places_;
};

/// Compares the results of many calls in a row, in one process and with nothing between them: what a call
/// leaves to the next, and what few inputs or sizes bring about, has more chances to show. Cases that tell
/// nothing are left out; nothing is done for fewer than two.
[[nodiscard]] inline RowOutcome check_calls_in_a_row(EvaluationContext& context,
                                                     std::span<const CaseId> cases, const RowPlan& plan) {
  auto& task = context.task;
  if (!context.judge.defences().calls_in_a_row || cases.size() < 2) return {};
  CallsInARow row(context, cases);
  if (row.size() < 2) return {};
  // Each buffer may cost a descriptor.
  const auto forget = [&](auto& slots, auto&& size_of) {
    std::erase_if(slots, [&](const auto& entry) { return size_of(entry.first) >= task.in_rows; });
  };
  const auto first_of = [](const auto& key) { return std::get<0>(key); };
  forget(task.reference->slots, first_of);
  if (task.twin) forget(task.twin->slots, std::identity{});
  auto outcome = row.run(plan.calls_before);
  if (!outcome.refused && plan.followed) {
    auto followed = row.run_follow_ups();
    outcome.refused = std::move(followed.refused);
    outcome.compared += followed.compared;
    if (outcome.refused)
      outcome.refused->refusal.diagnostics.front().message +=
          ", in the buffers of calls on almost the same inputs";
  }
  forget(context.candidate->slots, first_of);
  return outcome;
}

} // namespace mtmc::detail
