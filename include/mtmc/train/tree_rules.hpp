#pragma once
/// The rules by which a tree of recorded searches is played: what is on offer, what comes of it, when it
/// ends.

#include <mtmc/train/kernel_tree.hpp>
#include <mtmc/train/reward.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Which of an action's recorded outcomes an episode meets.
enum class TreeChildren {
  sample, ///< drawn by how often each was seen
  best,   ///< the one with the fastest kernel
  first   ///< the one that was seen first
};

/// What a failed step leads to.
enum class TreeFailure {
  revert,   ///< the kernel stays, the step is used up
  terminate ///< the episode ends
};

/// What becomes of actions that are legal and were never tried.
enum class UnknownActions {
  mask,     ///< they are not offered
  penalise, ///< they are, and do not compile
  live      ///< `TreeOptions::live` carries them out, and the tree grows
};

/// How a tree is played.
struct TreeOptions {
  TreeChildren children = TreeChildren::sample;  ///< of several outcomes
  TreeFailure failure = TreeFailure::revert;     ///< of failed steps
  UnknownActions unknown = UnknownActions::mask; ///< of actions without outcomes
  int minimum_count = 1;                         ///< recorded tries that an action needs to be offered
  /// Least speed-up over the present kernel for the episode to go on from a right one
  /// (`LoopOptions::minimum_gain`); 0 = always.
  double minimum_gain = 0;
  /// An action is offered once an episode on a kernel (`LoopOptions::mask_failed_actions`). `ExactValues`
  /// looks ahead as if it were offered again, which changes nothing where each action has one outcome.
  bool once = false;
  RewardOptions reward{}; ///< `step_limit` is that of episodes
  std::uint64_t seed = 0; ///< of what is drawn
  /// Carries an action out on a kernel of the tree (coder and evaluator), adds the kernel that came of it,
  /// and answers with the outcome; for `UnknownActions::live`.
  std::function<TreeOutcome(KernelTree& tree, int node, const std::string& action)> live{};
};

/// Where an episode stands.
struct TreeState {
  int node = 0;         ///< number of the present kernel
  int best = 0;         ///< number of the fastest one on the way
  RewardState reward{}; ///< steps taken, and what the reward remembers

  friend bool operator==(const TreeState&, const TreeState&) = default; ///< member by member
};

/// What a step came to.
struct TreeStep {
  double reward = 0;                           ///< of the step, and of the end where the episode ended
  StepStage outcome = StepStage::not_compiled; ///< what came of the action
  bool ended = false;                          ///< nothing follows: the next value is 0
  double log2_gain = 0;                        ///< over the kernel that the step started from
  bool kept = false;                           ///< the episode goes on from the new kernel
};

/// An action on offer.
struct TreeChoice {
  const std::string* action = nullptr; ///< its key, in the tree
  const TreeEdge* edge = nullptr;      ///< null where it was never tried
};

/// The actions on offer on a kernel, in a fixed order: those that were tried, then unknown ones.
inline void list_choices(const KernelTree& tree, const TreeOptions& options, int node,
                         std::vector<TreeChoice>& choices) {
  choices.clear();
  const TreeNode& here = tree.nodes[static_cast<std::size_t>(node)];
  for (const TreeEdge& edge : here.edges)
    if (edge.count() >= options.minimum_count) choices.push_back({&edge.action, &edge});
  if (options.unknown == UnknownActions::mask) return;
  for (const std::string& action : here.legal)
    if (here.edge(action) == nullptr) choices.push_back({&action, nullptr});
}

/// Whether an episode may be ended by choice: not before its first step, lest that be what is learnt first.
[[nodiscard]] inline bool may_stop(const TreeState& state) noexcept { return state.reward.step > 0; }

/// Whether a node has an action on offer.
[[nodiscard]] inline bool has_choices(const KernelTree& tree, const TreeOptions& options, int node) {
  const TreeNode& here = tree.nodes[static_cast<std::size_t>(node)];
  if (options.unknown != UnknownActions::mask && !here.legal.empty()) return true;
  return std::any_of(here.edges.begin(), here.edges.end(),
                     [&](const TreeEdge& edge) { return edge.count() >= options.minimum_count; });
}

/// Carries an outcome out on a state, which is then that behind the step.
[[nodiscard]] inline TreeStep take_outcome(const KernelTree& tree, const TreeOptions& options,
                                           const TreeOutcome& outcome, TreeState& state) {
  const auto node = [&tree](int number) -> const TreeNode& {
    return tree.nodes[static_cast<std::size_t>(number)];
  };
  RewardedStep step{outcome.outcome};
  const bool failed = outcome.child < 0;
  TreeStep result{.outcome = outcome.outcome};
  if (!failed) {
    step.log2_speed_up = node(outcome.child).log2_speed_up;
    step.deviation = node(outcome.child).deviation;
    result.log2_gain = step.log2_speed_up - node(state.node).log2_speed_up;
    result.kept = options.minimum_gain <= 0 || result.log2_gain >= std::log2(options.minimum_gain);
    if (step.log2_speed_up > node(state.best).log2_speed_up) state.best = outcome.child;
    if (result.kept) state.node = outcome.child;
  }
  const double previous = state.reward.previous;
  result.reward = reward_of(options.reward, state.reward, step);
  if (!failed && !result.kept) state.reward.previous = previous;
  result.ended = state.reward.step >= options.reward.step_limit ||
                 (failed && options.failure == TreeFailure::terminate) ||
                 !has_choices(tree, options, state.node);
  if (result.ended) result.reward += reward_at_end(options.reward, state.reward);
  return result;
}

/// The outcome with the fastest kernel; one without a kernel where there is no other.
[[nodiscard]] inline const TreeOutcome& best_outcome(const KernelTree& tree, const TreeEdge& edge) {
  const auto speed = [&](const TreeOutcome& one) {
    constexpr double none = -1e9;
    return one.child < 0 ? none : tree.nodes[static_cast<std::size_t>(one.child)].log2_speed_up;
  };
  return *std::max_element(edge.outcomes.begin(), edge.outcomes.end(),
                           [&](const auto& a, const auto& b) { return speed(a) < speed(b); });
}

} // namespace mtmc
