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
[[nodiscard]] inline std::optional<RefusedRow>
look_at_row(EvaluationContext& context, std::span<const CallOfARow> row, const Poison& poison) {
  constexpr std::int64_t enough_elements = 16;
  const auto has_enough = [&](const CaseId& id) {
    return context.task.layouts[id.size].result_elements() >= enough_elements;
  };
  std::vector<FinishedCall> calls;
  for (const auto& call : row)
    calls.push_back({call.id, call.slot, call.inputs.get(), call.inputs.get(), call.wanted.get()});
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

/// Compares the results of many calls in a row, in one process and with nothing between them: what a call
/// leaves to the next, and what few inputs or sizes bring about, has more chances to show. `calls_before`
/// others go before, whose results nobody looks at. Cases that tell nothing are left out; nothing is done for
/// fewer than two.
[[nodiscard]] inline RowOutcome
check_calls_in_a_row(EvaluationContext& context, std::span<const CaseId> cases, std::size_t calls_before) {
  auto& judge = context.judge;
  auto& task = context.task;
  auto& candidate = *context.candidate;
  if (!judge.defences().calls_in_a_row || cases.size() < 2) return {};
  std::vector<std::shared_ptr<const CaseInputs>> inputs;
  for (const auto& id : cases) inputs.push_back(task.shared_inputs(id));
  const auto references = references_of(judge, task, cases, inputs);
  std::vector<CallOfARow> row;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (tells_anything(task.layouts[cases[i].size], *references[i]))
      row.push_back({cases[i], nullptr, inputs[i], references[i]});
  if (row.size() < 2) return {};
  // Each buffer may cost a descriptor.
  const auto forget = [&](auto& slots, auto&& size_of) {
    std::erase_if(slots, [&](const auto& entry) { return size_of(entry.first) >= task.in_rows; });
  };
  const auto first_of = [](const auto& key) { return std::get<0>(key); };
  forget(task.reference->slots, first_of);
  if (task.twin) forget(task.twin->slots, std::identity{});
  const auto poison = judge.noise_or_zeros();
  std::map<std::size_t, std::size_t> places;
  std::vector<LaunchPlan> group;
  const auto load = [&](const CallOfARow& call) {
    auto& slot = judge.slot(task, candidate, call.id.size, places[call.id.size]++);
    judge.begin_loading(slot, task.layouts[call.id.size], *call.inputs, poison, Refill::all, call.inputs);
    return &slot;
  };
  if (calls_before > 0) {
    // The smallest, of which most fit into the time.
    const auto smallest = std::min_element(row.begin(), row.end(), [&](const auto& a, const auto& b) {
      return task.layouts[a.id.size].bytes() < task.layouts[b.id.size].bytes();
    });
    const auto plan = load(*smallest)->plan;
    group.assign(calls_before / std::max<std::size_t>(1, plan.launches.size()), plan);
  }
  for (auto& call : row) {
    call.slot = load(call);
    group.push_back(call.slot->plan);
  }
  judge.finish_loading();
  judge.overwrite_residue(candidate);
  const auto& layout = task.layouts[row.front().id.size];
  const double limit = judge.launch_limit(task, row.front().id.size) * static_cast<double>(group.size());
  const auto timed = judge.backend().time(*candidate.program, group, false, deadline_in(limit));
  RowOutcome outcome{{}, row.size(), group.size(), timed.seconds};
  auto& refused = outcome.refused;
  if (!timed.status.finished()) refused = RefusedRow{run_refusal(timed.status, layout.size, limit)};
  if (!refused)
    if (auto changed = judge.changed_state(candidate, layout)) refused = RefusedRow{std::move(*changed)};
  if (!refused) {
    refused = look_at_row(context, row, poison);
    if (refused && !isolates_programs(judge.backend())) {
      // Another kernel may have written where results of the reference are kept.
      const auto certain = certain_references_of(judge, task, cases, inputs);
      for (auto& call : row)
        call.wanted =
            certain[static_cast<std::size_t>(std::find(cases.begin(), cases.end(), call.id) - cases.begin())];
      refused = look_at_row(context, row, poison);
    }
  }
  forget(candidate.slots, first_of);
  if (refused)
    refused->refusal.diagnostics.front().message +=
        " in one of " + std::to_string(group.size()) + " calls in a row";
  return outcome;
}

} // namespace mtmc::detail
