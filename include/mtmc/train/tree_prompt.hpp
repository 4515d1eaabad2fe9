#pragma once
/// What a served policy would be asked where an episode in a tree stands, so that what is learnt there is
/// what is asked later.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/policy_prompt.hpp>
#include <mtmc/train/kernel_texts.hpp>
#include <mtmc/train/tree_environment.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Whether the texts tell of every kernel of a tree on which an action was tried, and of those actions.
[[nodiscard]] inline bool has_texts(const KernelTexts& texts, const KernelTree& tree) {
  return std::all_of(tree.nodes.begin(), tree.nodes.end(), [&](const TreeNode& node) {
    const KernelSight* const sight = texts.sight(tree, node.kernel);
    return std::all_of(node.edges.begin(), node.edges.end(), [&](const TreeEdge& edge) {
      return sight != nullptr && std::any_of(sight->legal.begin(), sight->legal.end(),
                                             [&](const Action& one) { return one.key() == edge.action; });
    });
  });
}

namespace detail {

[[nodiscard]] inline const KernelSight& sight_of(const TreeEnvironment& environment, int node,
                                                 const KernelTexts& texts) {
  const KernelTree& tree = environment.tree();
  const std::string& kernel = tree.nodes[static_cast<std::size_t>(node)].kernel;
  if (const KernelSight* const sight = texts.sight(tree, kernel)) return *sight;
  throw Error(error_id::train_data, "the texts do not tell of kernel " + kernel,
              "Make texts and data set from the same journals", tree.task);
}

/// The line of history of an episode's step. It is the recorded one of that action and outcome; where the
/// step made the kernel `child` ("" = not known), that kernel's before others.
[[nodiscard]] inline HistoryEntry entry_of(const KernelSight& sight, const PastStep& step,
                                           const std::string& child) {
  const HistoryEntry* recorded = nullptr;
  for (const ActionOutcome& one : sight.tried) {
    const PastStep seen = past_of(std::span(&one.entry, 1)).front();
    if (seen.action != step.action || seen.compiled != step.compiled || seen.correct != step.correct)
      continue;
    if (recorded == nullptr || (!child.empty() && one.kernel == child)) recorded = &one.entry;
  }
  if (recorded != nullptr) return *recorded;
  HistoryEntry entry;
  entry.action_key = step.action;
  entry.action_text = step.action;
  for (const Action& action : sight.legal)
    if (action.key() == step.action) entry.action_text = action.text();
  entry.verdict = step.correct    ? Verdict::correct
                  : step.compiled ? Verdict::wrong_result
                                  : Verdict::compile_error;
  if (step.correct) entry.speed_up = SpeedUp::without_interval(std::exp2(step.log2_gain));
  return entry;
}

[[nodiscard]] inline std::vector<HistoryEntry> history_of(const TreeEnvironment& environment,
                                                          const KernelTexts& texts) {
  std::vector<HistoryEntry> history;
  const auto past = environment.past();
  const auto nodes = environment.past_nodes();
  for (std::size_t i = 0; i < past.size(); ++i) {
    const int next = i + 1 < nodes.size() ? nodes[i + 1] : environment.state().node;
    const auto& child = environment.tree().nodes[static_cast<std::size_t>(next)].kernel;
    HistoryEntry entry =
        entry_of(sight_of(environment, nodes[i], texts), past[i], past[i].kept ? child : std::string());
    entry.step = static_cast<int>(i);
    entry.kept = past[i].kept;
    history.push_back(std::move(entry));
  }
  return history;
}

/// The actions that a search would be offered: all legal ones but those that the episode may not take again,
/// `stop` last.
[[nodiscard]] inline std::vector<Action> offered(const TreeEnvironment& environment,
                                                 const KernelSight& sight) {
  const auto taken = [&](const std::string& key) {
    for (std::size_t i = 0; i < environment.past().size(); ++i)
      if (environment.past_nodes()[i] == environment.state().node && environment.past()[i].action == key)
        return true;
    return false;
  };
  const auto on_offer = [&](const std::string& key) {
    return std::any_of(environment.actions().begin(), environment.actions().end(),
                       [&](const TreeChoice& one) { return *one.action == key; });
  };
  std::vector<Action> legal;
  for (const Action& action : sight.legal)
    if (action.kind != Action::Kind::stop && (on_offer(action.key()) || !taken(action.key())))
      legal.push_back(action);
  legal.push_back(Action::stop());
  return legal;
}

} // namespace detail

/// What a served policy would be asked, as far as a tree can answer.
struct TreePrompt {
  std::string context{}; ///< the prompt; its list of steps has all that a search would be offered
  std::vector<std::string> continuations{}; ///< the texts of the environment's `choices()`, in their order
  std::vector<std::string> untried{};       ///< those of the listed actions that no search took there
};

/// The prompt of a checked card where an episode stands that has not ended. Of the cuts the first is made
/// that leaves at most `longest` bytes (0 = any number), the last one where none does. Throws `Error`
/// (`mtmc.train.001`) where the texts do not tell of the kernel.
[[nodiscard]] inline TreePrompt tree_prompt(const TreeEnvironment& environment, const KernelTexts& texts,
                                            const PolicyCard& card, std::size_t longest = 0) {
  const KernelSight& sight = detail::sight_of(environment, environment.state().node, texts);
  Observation seen = texts.observation(sight);
  seen.history = detail::history_of(environment, texts);
  seen.step = environment.state().reward.step;
  seen.step_limit = environment.step_limit();
  const std::vector<Action> legal = detail::offered(environment, sight);
  PolicyPrompt whole = policy_prompt(card, seen, legal);
  for (const PromptCut cut : {PromptCut::history, PromptCut::regions})
    if (longest > 0 && whole.context.size() > longest) whole = policy_prompt(card, seen, legal, cut);

  TreePrompt prompt{.context = std::move(whole.context)};
  std::vector<bool> known(legal.size(), false);
  known.back() = true; // stopping, whose worth needs no search
  for (const TreeChoice& choice : environment.actions()) {
    const auto at = std::find_if(legal.begin(), legal.end(),
                                 [&](const Action& one) { return one.key() == *choice.action; });
    if (at == legal.end())
      throw Error(error_id::train_data, "the texts do not tell of the action " + *choice.action,
                  "Make texts and data set from the same journals", environment.tree().task);
    const auto place = static_cast<std::size_t>(at - legal.begin());
    prompt.continuations.push_back(whole.continuations[place]);
    known[place] = true;
  }
  if (environment.choices() > environment.actions().size())
    prompt.continuations.push_back(whole.continuations.back());
  for (std::size_t i = 0; i < legal.size(); ++i)
    if (!known[i]) prompt.untried.push_back(whole.continuations[i]);
  return prompt;
}

} // namespace mtmc
