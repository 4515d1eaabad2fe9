#pragma once
/// Many calls of one of the judge's own programs at once: a call costs a process of its own on some backends,
/// and a wait for the device on others, which a group of calls pays once.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/content/call_results.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/content/slot_content.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/support/deadline.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A program, the layouts it is called with, by size, and buffers of its own at a size.
struct PlannedProgram {
  AnyBackend::Program& program;
  const std::vector<ProblemLayout>& layouts;
  std::function<Slot&(std::size_t size)> slot_at;
};

/// One of the task's own kernels.
[[nodiscard]] inline PlannedProgram planned(Judge& judge, const PreparedTask& task, Contestant& contestant) {
  return {*contestant.program, task.layouts,
          [&](std::size_t size) -> Slot& { return judge.slot(task, contestant, size); }};
}
/// Its twin in double precision.
[[nodiscard]] inline PlannedProgram planned(Judge& judge, DoubleTwin& twin) {
  return {*twin.program, twin.layouts, [&](std::size_t size) -> Slot& {
            return slot_of(judge.backend(), twin, size, judge.options().red_zone_bytes);
          }};
}

/// One of the calls. The inputs must outlive it.
struct JointCall {
  std::size_t size = 0;
  const CaseInputs* inputs = nullptr;
};

/// The results of a group of calls, each at a size of its own; nothing if it does not end well.
[[nodiscard]] inline std::optional<std::vector<KeptContents>> run_group(Judge& judge,
                                                                        const PlannedProgram& planned,
                                                                        std::span<const JointCall> calls,
                                                                        const Poison& poison) {
  judge.heed_stop();
  auto& backend = judge.backend();
  std::vector<Slot*> slots;
  std::vector<LaunchPlan> group;
  for (const auto& call : calls) {
    slots.push_back(&planned.slot_at(call.size));
    judge.begin_loading(*slots.back(), planned.layouts[call.size], *call.inputs, poison);
    group.push_back(slots.back()->plan);
  }
  judge.finish_loading();
  const auto timed = backend.time(planned.program, group, false, deadline_in(judge.options().start_seconds));
  if (!timed.status.finished()) return std::nullopt;
  std::vector<KeptContents> kept;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& layout = planned.layouts[calls[i].size];
    CallResults results(backend, *slots[i], layout);
    judge.keep(results);
    kept.push_back(results.kept());
    if (!isolates_programs(backend)) forget_results(backend, *slots[i], layout);
  }
  return kept;
}

/// How many of the first calls are at sizes of their own.
[[nodiscard]] inline std::size_t distinct_sizes(std::span<const JointCall> calls) {
  std::set<std::size_t> seen;
  std::size_t count = 0;
  while (count < calls.size() && seen.insert(calls[count].size).second) ++count;
  return count;
}

/// The results of calls; nothing for those that do not end well, which are found by halves. Calls at sizes of
/// their own that follow each other go together.
[[nodiscard]] inline std::vector<std::optional<KeptContents>> run_jointly(Judge& judge,
                                                                          const PlannedProgram& planned,
                                                                          std::span<const JointCall> calls,
                                                                          const Poison& poison) {
  std::vector<std::optional<KeptContents>> results;
  const auto add = [&](std::span<const JointCall> part, auto&& self) -> void {
    if (auto kept = run_group(judge, planned, part, poison)) {
      std::move(kept->begin(), kept->end(), std::back_inserter(results));
    } else if (part.size() == 1) {
      results.emplace_back();
    } else {
      self(part.first(part.size() / 2), self);
      self(part.subspan(part.size() / 2), self);
    }
  };
  while (!calls.empty()) {
    const auto together = distinct_sizes(calls);
    add(calls.first(together), add);
    calls = calls.subspan(together);
  }
  return results;
}

} // namespace mtmc::detail
