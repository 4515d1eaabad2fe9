#pragma once
/// What a search remembers: the kernels it has stood on, and the drafts of the present step.

#include <mtmc/core/step.hpp>
#include <mtmc/loop/gain.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/no_gain.hpp>
#include <mtmc/loop/step_account.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// An evaluation with the name under which the journal keeps it.
struct Judged {
  Evaluation evaluation;
  std::string key;
  bool replayed = false;
};

/// A draft, and whether the journal gave it.
struct Drafted {
  Draft draft;
  /// Id of its kernel; empty if it has none.
  std::string kernel_id{};
  bool replayed = false;
};

/// A kernel the search stands on, or stood on.
struct SearchNode {
  Kernel kernel{};
  std::string id{};
  /// Id of the kernel it was made from; empty for the start kernel.
  std::string parent{};
  Evaluation evaluation{};
  std::string evaluation_key{};
  /// Over the start kernel.
  SpeedUp speed_up{};
  /// Speed-up of the last kernel on the way here that was proven faster than its parent: neutral steps may
  /// not fall far below it.
  double anchor = 1;
  Structure structure{};
  /// The actions on offer, `stop` last; empty until the structure is known.
  std::vector<Action> legal{};
  /// Samples asked for so far, by the action's key.
  std::map<std::string, int> samples{};
  /// The policy has stopped here.
  bool stopped = false;

  /// Offers an action no longer.
  void mask(const Action& action) { std::erase(legal, action); }
  /// Whether there is anything to be tried but to stop.
  [[nodiscard]] bool can_go_on() const { return !stopped && legal.size() > 1; }
};

/// One draft and its judgement.
struct SearchTry {
  DraftName name{};
  Draft draft{};
  /// Id of its kernel; empty if it has none.
  std::string kernel_id{};
  std::optional<Judged> judged{};
};

/// One sample of one action on one kernel, with its repairs.
struct SearchChain {
  SearchNode* parent = nullptr;
  int parent_index = 0;
  Action action{};
  CodingRequest request{};
  std::vector<SearchTry> tries{};
  /// The run's end came before its answer.
  bool cut = false;

  /// The newest one, and the only one that can be correct: the others were repaired.
  [[nodiscard]] const SearchTry* last() const { return tries.empty() ? nullptr : &tries.back(); }

  /// Whether another draft could mend it: there is something a coder can act on.
  [[nodiscard]] bool needs_repair() const {
    if (tries.empty()) return false;
    if (tries.back().judged) return !tries.back().judged->evaluation.correct();
    const auto failure = tries.back().draft.failure;
    return failure == DraftFailure::no_kernel || failure == DraftFailure::truncated;
  }
};

/// A correct candidate of the present step.
struct SearchChild {
  const SearchChain* chain = nullptr;
  std::string id{};
  /// Against the best kernel at the start of the step.
  Gain gain{};
  Gain over_parent{};
  /// Over the start kernel.
  SpeedUp speed_up{};
  Evaluation evaluation{};
  std::string evaluation_key{};
  /// The second look found it incorrect.
  bool refuted = false;
  bool new_best = false;
  /// Proven faster than its parent.
  bool proven = false;
  /// Good enough for the search to continue from.
  bool accepted = false;
  /// Gone on from: there was a place in the beam.
  bool kept = false;
};

/// What one action of a step came to, or one of its candidates.
struct SearchOutcome {
  const SearchChain* chain = nullptr;
  ActionOutcome record{};
  std::optional<Evaluation> evaluation{};
  bool new_best = false;
  int drafts = 0;
  Usage usage{};
};

/// What the history says of an evaluation: the first error, or else the first remark, or the rule.
[[nodiscard]] inline std::string first_message(const Evaluation& evaluation) {
  for (const auto& diagnostic : evaluation.diagnostics)
    if (diagnostic.severity == Severity::error) return diagnostic.message;
  return evaluation.diagnostics.empty() ? evaluation.rule : evaluation.diagnostics.front().message;
}

/// What the coder is told of a failure. An answer without a kernel is reported as the parent with the reason.
[[nodiscard]] inline RepairContext repair_context(const SearchChain& chain) {
  const auto& failed = chain.tries.back();
  RepairContext context;
  if (failed.judged) {
    context.kernel = *failed.draft.kernel;
    context.evaluation = failed.judged->evaluation;
    return context;
  }
  context.kernel = chain.parent->kernel;
  context.evaluation.verdict = Verdict::refused;
  context.evaluation.rule = "answer";
  Diagnostic diagnostic;
  diagnostic.message =
      failed.draft.message.empty() ? "the answer holds no complete kernel" : failed.draft.message;
  diagnostic.remedy = "Answer with the whole new kernel";
  context.evaluation.diagnostics.push_back(std::move(diagnostic));
  return context;
}

/// The try that says most about a chain: the last, or the last judged one where the coder then had no answer
/// to its failure.
[[nodiscard]] inline const SearchTry& telling_try(const SearchChain& chain) {
  for (auto attempt = chain.tries.rbegin(); attempt != chain.tries.rend(); ++attempt)
    if (attempt->judged) return *attempt;
  return chain.tries.back();
}

/// What became of one candidate, or of a chain that led to none.
[[nodiscard]] inline SearchOutcome outcome_of(const SearchChain& chain, const SearchChild* child, int step) {
  const auto& last = telling_try(chain);
  SearchOutcome outcome;
  outcome.chain = &chain;
  outcome.record.parent_index = chain.parent_index;
  outcome.record.parent = chain.parent->id;
  outcome.record.kernel = last.kernel_id;
  auto& entry = outcome.record.entry;
  entry.step = step;
  entry.action_key = chain.action.key();
  entry.action_text = chain.action.text();
  entry.draft_failure = last.draft.failure;
  entry.message = last.draft.message;
  if (child != nullptr) {
    outcome.evaluation = child->evaluation;
    entry.verdict = child->evaluation.verdict;
    if (child->refuted) entry.message = first_message(child->evaluation);
    entry.comparison = child->over_parent.comparison;
    if (child->over_parent.timed()) entry.speed_up = child->over_parent.ratio;
    entry.kept = child->kept;
    if (entry.message.empty() && !child->kept)
      entry.message = what_changed(chain.parent->evaluation, child->evaluation);
    outcome.new_best = child->new_best;
  } else if (last.judged) {
    outcome.evaluation = last.judged->evaluation;
    entry.verdict = last.judged->evaluation.verdict;
    entry.message = last.judged->evaluation.correct() ? "the search has already been at this kernel"
                                                      : first_message(last.judged->evaluation);
  }
  return outcome;
}

/// The candidates of one action that its history should show: those the search continues from, or else the
/// best one.
[[nodiscard]] inline std::vector<const SearchChild*>
shown_children(const std::vector<SearchChild>& children, const SearchChain* first, const SearchChain* end) {
  std::vector<const SearchChild*> kept;
  const SearchChild* best = nullptr;
  for (const auto& child : children) {
    if (child.chain < first || child.chain >= end) continue;
    if (child.kept) kept.push_back(&child);
    if (best == nullptr || child.over_parent.ratio.value > best->over_parent.ratio.value * (1 + near_tie))
      best = &child;
  }
  if (kept.empty() && best != nullptr) kept.push_back(best);
  return kept;
}

/// What the actions of a step came to. `children` are its correct candidates, their fate decided.
[[nodiscard]] inline std::vector<SearchOutcome>
outcomes_of(const std::vector<SearchChain>& chains, const std::vector<SearchChild>& children, int step) {
  std::vector<SearchOutcome> outcomes;
  for (std::size_t first = 0, end = 0; first < chains.size(); first = end) {
    const auto key = chains[first].action.key();
    // Without a candidate the most telling failure speaks: one with a verdict before one without.
    const SearchChain* telling = nullptr;
    int drafts = 0;
    Usage usage;
    for (end = first; end < chains.size() && chains[end].parent_index == chains[first].parent_index &&
                      chains[end].action.key() == key;
         ++end) {
      const auto& chain = chains[end];
      drafts += static_cast<int>(chain.tries.size());
      for (const auto& one : chain.tries) usage += one.draft.usage;
      if (chain.last() != nullptr &&
          (telling == nullptr || (chain.last()->judged && !telling->last()->judged)))
        telling = &chain;
    }
    if (telling == nullptr) continue; // cut short
    const auto position = outcomes.size();
    for (const auto* child : shown_children(children, chains.data() + first, chains.data() + end))
      outcomes.push_back(outcome_of(*child->chain, child, step));
    if (outcomes.size() == position) outcomes.push_back(outcome_of(*telling, nullptr, step));
    outcomes[position].drafts = drafts;
    outcomes[position].usage = usage;
  }
  return outcomes;
}

/// What each action of a step cost and brought. `before` and `after`: speed-up of the best kernel before and
/// after the step.
[[nodiscard]] inline std::vector<StepAccount> accounts_of(std::span<const SearchOutcome> outcomes,
                                                          double before, double after) {
  std::vector<StepAccount> accounts;
  for (const auto& outcome : outcomes) {
    // The outcomes of one action stand together, and the first has the drafts of all.
    if (outcome.drafts > 0 || accounts.empty())
      accounts.push_back({outcome.record.entry.step, outcome.record.entry.action_key,
                          outcome.record.entry.action_text, outcome.drafts, outcome.usage, 1});
    if (outcome.new_best) accounts.back().gain = after / before;
  }
  return accounts;
}

/// Whether an action has been answered: trying it again on the same kernel would be the same again.
[[nodiscard]] inline bool is_settled(const std::vector<SearchChain>& chains, const SearchChain& first) {
  return std::any_of(chains.begin(), chains.end(), [&first](const SearchChain& chain) {
    return chain.parent == first.parent && chain.action.key() == first.action.key() &&
           chain.last() != nullptr && is_answer(chain.last()->draft);
  });
}

/// The drafts of a finished step as the journal keeps them.
[[nodiscard]] inline std::vector<StepRecord> step_records(const std::vector<SearchChain>& chains, int step) {
  std::vector<StepRecord> records;
  for (const auto& chain : chains)
    for (const auto& one : chain.tries)
      records.push_back({step,
                         chain.parent_index,
                         one.name.sample,
                         one.name.repair,
                         chain.parent->id,
                         chain.action.key(),
                         one.name.request,
                         one.judged ? one.judged->key : std::string(),
                         {}});
  return records;
}

/// Adds what `steps_of` reads from the journal: decisions to stop and, of a finished step, all drafts.
inline void add_steps(std::vector<Step>& trajectory, const std::vector<DecisionRecord>& decisions,
                      const std::vector<SearchChain>& chains, bool finished) {
  for (const auto& decision : decisions) {
    auto step = step_of(decision);
    if (stops(decision)) trajectory.push_back(step);
    for (const auto& chain : chains) {
      if (!finished || chain.parent_index != decision.parent_index) continue;
      step.action = chain.action;
      for (const auto& one : chain.tries) {
        step.sample = one.name.sample;
        step.repair = one.name.repair;
        step.draft = one.draft;
        step.evaluation.reset();
        if (one.judged) step.evaluation = one.judged->evaluation;
        trajectory.push_back(step);
      }
    }
  }
}

} // namespace mtmc::detail
