#pragma once
/// The policy that wants what a sequence of steps does next.

#include <mtmc/actions/replay.hpp>
#include <mtmc/core/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Wants the actions of the steps that start from the present kernel, the first of the sequence most (each
/// gets half of what the one before it has), and `stop` where there is none left: also where every step was
/// tried, or is not legal (`action_space_of` makes a space in which all are). A step that names no region
/// means the first legal action of its type, once. Deterministic; no state.
class ReplayPolicy {
public:
  /// Follows this sequence.
  explicit ReplayPolicy(ReplaySequence sequence) : sequence_(std::move(sequence)) {}

  /// Prefers the next step of the sequence. See above.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token) const {
    std::vector<double> weights(legal.size(), 0.0);
    const auto kernel = seen.kernel.id();
    double next = 1;
    std::string reason;
    for (const auto& step : sequence_.steps) {
      if (step.repair || !starts_from(step, seen.task, kernel) || was_tried(step, seen)) continue;
      const auto action =
          std::find_if(legal.begin(), legal.end(), [&](const Action& one) { return carries_out(step, one); });
      if (action == legal.end()) continue;
      auto& weight = weights[static_cast<std::size_t>(action - legal.begin())];
      if (weight > 0) continue; // another sample of the same action
      weight = next;
      next /= 2;
      if (reason.empty())
        reason = step.draft.message.empty() ? "the next step of the sequence" : step.draft.message;
    }
    if (reason.empty())
      for (std::size_t i = 0; i < legal.size(); ++i)
        if (legal[i].kind == Action::Kind::stop) weights[i] = 1;
    ActionDistribution answer;
    double sum = 0;
    for (const double weight : weights) sum += weight;
    const double share = 1.0 / static_cast<double>(legal.size()); // where not even `stop` is legal
    for (const double weight : weights) answer.probabilities.push_back(sum > 0 ? weight / sum : share);
    answer.rationale = reason.empty() ? "the sequence ends here" : reason;
    return answer;
  }

  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const {
    return "replay, " + std::to_string(sequence_.steps.size()) + " steps";
  }

private:
  /// Whether a step that names no region was tried on the present kernel: the loop no longer offers the
  /// action, but others of the same type may be legal. What was tried since the last step that was kept was
  /// tried on the present kernel.
  [[nodiscard]] static bool was_tried(const ReplayStep& step, const Observation& seen) {
    if (!step.region.empty()) return false;
    int since = 0;
    for (const auto& entry : seen.history)
      if (entry.kept) since = std::max(since, entry.step + 1);
    return std::any_of(seen.history.begin(), seen.history.end(), [&](const HistoryEntry& entry) {
      return entry.step >= since && entry.action_key.starts_with(step.optimization + '|');
    });
  }

  ReplaySequence sequence_;
};

static_assert(check_policy<ReplayPolicy>());

} // namespace mtmc
