#pragma once
/// The coder that answers from a sequence of steps known beforehand. No model, no network, no cost.

#include <mtmc/actions/replay.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/support/sha256.hpp>

#include <algorithm>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Answers a request with the draft of the step that starts from the request's kernel and carries out its
/// action as the same sample. Where the sequence has none it declines (`DraftFailure::declined`) and says
/// what it does have. A draft that was recorded as a failure is that failure again. Calls may run at once.
class ReplayCoder {
public:
  /// Answers from this sequence.
  explicit ReplayCoder(ReplaySequence sequence) : sequence_(std::move(sequence)) {}

  /// The recorded draft of the request, or why there is none.
  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token) const {
    const auto& task = request.seen.task;
    const auto kernel = request.repair ? request.repair->kernel.id() : request.seen.kernel.id();
    bool other_samples = false;
    std::string others;
    for (const auto& step : sequence_.steps) {
      if (step.repair != request.repair.has_value() || !starts_from(step, task, kernel)) continue;
      if (carries_out(step, request.action)) {
        if (step.sample == request.sample) return step.draft;
        other_samples = true;
      } else {
        others += (others.empty() ? "" : ", ") + step.optimization;
        if (!step.region.empty()) others += " on " + step.region;
      }
    }
    if (other_samples)
      return Draft::failed(DraftFailure::declined,
                           "the sequence has no sample " + std::to_string(request.sample) + " of this step");
    return Draft::failed(
        DraftFailure::declined,
        std::string("the sequence has no ") +
            (request.repair ? "repair of this kernel by \"" : "step from this kernel by \"") +
            request.action.text() +
            (others.empty() ? "\", nor by any other action" : "\", but by " + others));
  }

  /// Whether some step of the sequence is of that type.
  [[nodiscard]] bool writes(std::string_view optimization, const Language&) const {
    return std::any_of(sequence_.steps.begin(), sequence_.steps.end(),
                       [&](const ReplayStep& step) { return step.optimization == optimization; });
  }

  /// Names the coder and what it holds, for cache keys and reports.
  [[nodiscard]] std::string identity() const {
    std::string text;
    for (const auto& step : sequence_.steps)
      text += step.task + '\n' + step.parent + '\n' + step.optimization + '\n' + step.region + '\n' +
              (step.draft.kernel ? step.draft.kernel->id() : step.draft.message) + '\n';
    return "replay of " + std::to_string(sequence_.steps.size()) + " steps, " +
           sha256_hex(text).substr(0, 16);
  }

private:
  ReplaySequence sequence_;
};

static_assert(check_coder<ReplayCoder>() && KnowsWhatItWrites<ReplayCoder>);

} // namespace mtmc
