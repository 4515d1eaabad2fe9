#pragma once
/// A recorded run as a sequence that a loop can replay: every draft again, judged anew.

#include <mtmc/actions/replay.hpp>
#include <mtmc/loop/journal.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// The drafts of all finished steps of a run, in their order. A step names its region by its path. Drafts
/// that were to mend another are repairs of that one's kernel, or of the parent where it had none. What the
/// drafts cost is left behind with the run.
[[nodiscard]] inline ReplaySequence replay_of(const JournalRun& run) {
  ReplaySequence sequence;
  // The kernel that a repair of the chain would start from.
  std::map<std::tuple<int, int, std::string, int>, std::string> failed;
  for (auto& step : steps_of(run)) {
    if (step.action.kind != Action::Kind::optimize) continue;
    const auto chain = std::tuple{step.step, step.parent_index, step.action.key(), step.sample};
    const auto mended = failed.find(chain);
    ReplayStep replayed;
    replayed.task = run.header.task.name;
    replayed.repair = step.repair > 0;
    replayed.parent = replayed.repair && mended != failed.end() ? mended->second : step.parent;
    replayed.optimization = step.action.optimization;
    replayed.region = step.action.region;
    replayed.sample = step.sample;
    failed[chain] = step.draft.kernel ? step.draft.kernel->id() : step.parent;
    replayed.draft = std::move(step.draft);
    replayed.draft.usage = {};
    sequence.steps.push_back(std::move(replayed));
  }
  return sequence;
}

} // namespace mtmc
