#pragma once
/// One step of a search: what was asked of the coder, what came back, and what it was worth.

#include <mtmc/core/action.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a coder's or policy's answer cost.
struct Usage {
  /// Tokens of the question.
  std::int64_t prompt_tokens = 0;
  /// Tokens of the answer.
  std::int64_t completion_tokens = 0;
  /// Of the prompt, served from the provider's cache.
  std::int64_t cached_tokens = 0;
  /// Of the completion, spent on reasoning.
  std::int64_t reasoning_tokens = 0;
  /// In the currency of the host's price table; 0 if there is none.
  double cost = 0;
  double seconds = 0;      ///< wall-clock time of the answer
  UnknownFields unknown{}; ///< fields of a newer form

  /// Tokens of question and answer together.
  [[nodiscard]] std::int64_t tokens() const noexcept { return prompt_tokens + completion_tokens; }
  /// Adds every figure.
  Usage& operator+=(const Usage& other) noexcept {
    prompt_tokens += other.prompt_tokens;
    completion_tokens += other.completion_tokens;
    cached_tokens += other.cached_tokens;
    reasoning_tokens += other.reasoning_tokens;
    cost += other.cost;
    seconds += other.seconds;
    return *this;
  }

  friend bool operator==(const Usage&, const Usage&) = default; ///< member by member
};

/// A policy's answer: one probability per legal action, in their order.
struct ActionDistribution {
  /// Not negative; they sum to 1.
  std::vector<double> probabilities{};
  /// The policy's estimate of what is still to be gained, where it has one.
  std::optional<double> value{};
  /// Whether the numbers are exact probabilities of the policy (needed for training) or a ranking made into
  /// numbers.
  bool exact = false;
  /// Why, in a sentence; may be empty.
  std::string rationale{};
  /// What the answer cost, if a model was asked.
  Usage usage{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// Member by member.
  friend bool operator==(const ActionDistribution&, const ActionDistribution&) = default;
};

/// Why a coder gave no kernel. The list is closed.
enum class DraftFailure {
  none,
  /// The coder cannot do this action here, and says why.
  declined,
  /// The answer holds no kernel.
  no_kernel,
  /// The answer was cut off.
  truncated,
  /// The kernel is the parent again.
  unchanged,
  /// The provider refused to answer.
  refused,
  /// The endpoint failed after all retries.
  endpoint,
  /// A budget is used up.
  budget,
  cancelled,
  /// The coder threw.
  internal
};

namespace detail {
inline constexpr EnumName<DraftFailure> draft_failure_names[] = {
    {DraftFailure::none, "none"},           {DraftFailure::declined, "declined"},
    {DraftFailure::no_kernel, "no_kernel"}, {DraftFailure::truncated, "truncated"},
    {DraftFailure::unchanged, "unchanged"}, {DraftFailure::refused, "refused"},
    {DraftFailure::endpoint, "endpoint"},   {DraftFailure::budget, "budget"},
    {DraftFailure::cancelled, "cancelled"}, {DraftFailure::internal, "internal"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<DraftFailure>> enum_names(DraftFailure) noexcept {
  return detail::draft_failure_names;
}

/// A coder's answer: a kernel, or why not, or the id under which the answer will come later.
struct Draft {
  /// The changed kernel; nothing on a failure, and while the answer is pending.
  std::optional<Kernel> kernel{};
  /// Why there is no kernel; `none` if there is one.
  DraftFailure failure = DraftFailure::none;
  /// One sentence on the failure, or what was done.
  std::string message{};
  /// Id of an answer that is still to come (batch runs); empty otherwise.
  std::string pending{};
  /// The answer as it came, for the record; may be empty.
  std::string raw_text{};
  Usage usage{};           ///< what the answer cost
  UnknownFields unknown{}; ///< fields of a newer form

  /// A draft without a kernel, and why.
  [[nodiscard]] static Draft failed(DraftFailure failure, std::string message) {
    Draft draft;
    draft.failure = failure;
    draft.message = std::move(message);
    return draft;
  }

  friend bool operator==(const Draft&, const Draft&) = default; ///< member by member
};

/// What was tried earlier and what came of it, as a policy and a coder may see it.
struct HistoryEntry {
  /// 0-based number of the step.
  int step = 0;
  /// `Action::key` of what was tried.
  std::string action_key;
  /// The action as people and prompts name it.
  std::string action_text;
  /// Why there was no kernel to judge; `none` if there was one.
  DraftFailure draft_failure = DraftFailure::none;
  /// The evaluator's; nothing if there was no kernel to judge.
  std::optional<Verdict> verdict{};
  /// Whether it was faster.
  Comparison comparison = Comparison::not_timed;
  /// Against the parent of that step.
  std::optional<SpeedUp> speed_up{};
  /// The first diagnostic or the coder's message.
  std::string message{};
  /// Whether the search went on from its kernel.
  bool kept = false;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default; ///< member by member
};

/// All a policy may see when it chooses.
struct Observation {
  /// The task.
  Task task;
  /// The device kernels are judged on.
  Device device;
  /// The kernel the next step starts from.
  Kernel kernel;
  /// Its regions and what is known of them.
  Structure structure{};
  /// What is known of that kernel's speed.
  std::optional<Evaluation> evaluation{};
  /// Oldest first.
  std::vector<HistoryEntry> history{};
  /// 0-based step and the largest number of steps.
  int step = 0;
  int step_limit = 0;      ///< largest number of steps
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Observation&, const Observation&) = default; ///< member by member
};

/// A failed draft that the coder is asked to mend.
struct RepairContext {
  /// The kernel that failed, and how.
  Kernel kernel;
  Evaluation evaluation;   ///< what the evaluator said of it
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const RepairContext&, const RepairContext&) = default; ///< member by member
};

/// One question to a coder: do this one action on this kernel.
struct CodingRequest {
  /// All that is known where the step starts.
  Observation seen;
  /// What is to be done.
  Action action;
  /// The optimisation's intent and principle, for a prompt; empty for free text.
  std::string intent{};
  /// How the optimisation is done.
  std::string principle{};
  /// 0-based: the same request with another index should give another draft.
  int sample = 0;
  std::optional<RepairContext> repair{}; ///< the failed draft that is to be mended; nothing for a first draft
  UnknownFields unknown{};               ///< fields of a newer form

  /// Identity for the draft cache: task name, kernel, action and, for repairs, what failed. Not the sample
  /// index.
  [[nodiscard]] std::string id() const {
    std::string text = seen.task.name + '\n' + seen.kernel.id() + '\n' + action.key();
    if (repair) text += '\n' + repair->kernel.id();
    return sha256_hex(text);
  }

  friend bool operator==(const CodingRequest&, const CodingRequest&) = default; ///< member by member
};

/// One step as the journal keeps it: enough to resume, to cache and to train from.
struct Step {
  /// 0-based number of the round, of the beam's parent within it, of the sample, and of the repair (0 = first
  /// draft).
  int step = 0;
  /// Place of the parent in the beam.
  int parent_index = 0;
  /// Number of the sample.
  int sample = 0;
  /// Number of the repair; 0 = first draft.
  int repair = 0;
  /// Id of the parent kernel.
  std::string parent;
  /// Keys of the legal actions.
  std::vector<std::string> legal_actions{};
  /// The policy's answer.
  ActionDistribution distribution{};
  /// The action that was taken.
  Action action{};
  /// The coder's answer.
  Draft draft{};
  /// Nothing if there was no kernel to judge.
  std::optional<Evaluation> evaluation{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Step&, const Step&) = default; ///< member by member
};

} // namespace mtmc
