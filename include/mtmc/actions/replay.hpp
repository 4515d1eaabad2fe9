#pragma once
/// A sequence of steps that is known beforehand, made by hand or recorded: what a loop replays without a
/// model.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/core/step.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One answer of a sequence: from which kernel, by which action, and what came of it.
struct ReplayStep {
  /// Name of the task; empty = any.
  std::string task{};
  /// Id of the kernel it starts from; empty = the task's own kernel. For a repair, that of the kernel that
  /// failed.
  std::string parent{};
  /// Id of the optimisation type: "tiling".
  std::string optimization{};
  /// Path or label of the region: "gemm/k", "the k loop of gemm"; empty = any.
  std::string region{};
  /// 0-based: which of the answers to the same question it is.
  int sample = 0;
  /// It answers a request to mend `parent`.
  bool repair = false;
  Draft draft{}; ///< the answer itself

  friend bool operator==(const ReplayStep&, const ReplayStep&) = default; ///< member by member
};

/// Steps in the order in which they are wanted. Several may start from one kernel.
struct ReplaySequence {
  std::vector<ReplayStep> steps{}; ///< the recorded steps

  /// Takes another sequence's steps behind its own.
  void append(ReplaySequence other) {
    steps.insert(steps.end(), std::make_move_iterator(other.steps.begin()),
                 std::make_move_iterator(other.steps.end()));
  }

  friend bool operator==(const ReplaySequence&, const ReplaySequence&) = default; ///< member by member
};

/// Whether a step starts from a kernel of a task. `kernel_id` is the kernel's id.
[[nodiscard]] inline bool starts_from(const ReplayStep& step, const Task& task,
                                      const std::string& kernel_id) {
  if (!step.task.empty() && step.task != task.name) return false;
  return step.parent.empty() ? kernel_id == task.kernel.id() : kernel_id == step.parent;
}

/// Whether a step is what an action asks for.
[[nodiscard]] inline bool carries_out(const ReplayStep& step, const Action& action) {
  return action.kind == Action::Kind::optimize && action.optimization == step.optimization &&
         (step.region.empty() || step.region == action.region || step.region == action.label);
}

/// The space that a sequence needs: each of its optimisation types, offered on the regions that its steps
/// name (on all where a step names none), whatever an analysis can prove of them: whoever wrote the steps
/// knew more. Types that `ActionSpace::extended()` has come with its words.
[[nodiscard]] inline ActionSpace action_space_of(const ReplaySequence& sequence) {
  const auto known = ActionSpace::extended();
  ActionSpace space;
  for (const auto& step : sequence.steps) {
    if (space.find(step.optimization) != nullptr) continue;
    OptimizationType type{step.optimization, "applying " + step.optimization + " to", {}, {}, {}};
    if (const auto* found = known.find(step.optimization); found != nullptr) type = *found;
    std::vector<std::string> regions;
    for (const auto& other : sequence.steps)
      if (other.optimization == step.optimization) regions.push_back(other.region);
    type.applies = [regions = std::move(regions)](const Region& region, const Structure&, const Device&) {
      return std::any_of(regions.begin(), regions.end(), [&region](const std::string& named) {
        return named.empty() || named == region.path || named == region.label;
      });
    };
    space.types.push_back(std::move(type));
  }
  return space;
}

} // namespace mtmc
