#pragma once
/// The environment that policies learn in: recorded searches as trees, played without coder or compiler
/// (paper, section 4.2).

#include <mtmc/policy/features.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/train/tree_rules.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One tree being played. Choices of a state are numbered: the actions on offer first, `stop` last where it
/// is allowed.
class TreeEnvironment {
public:
  /// The tree outlives the environment; it grows where `UnknownActions::live` is asked for, for all
  /// environments on it. It must have a node.
  TreeEnvironment(KernelTree& tree, TreeOptions options)
      : tree_(&tree), options_(std::move(options)), random_(options_.seed) {
    reset();
  }

  /// Begins an episode on the start kernel.
  void reset() {
    state_ = {};
    past_.clear();
    keys_.clear();
    nodes_.clear();
    list_actions();
    ended_ = actions_.empty();
  }

  /// The tree.
  [[nodiscard]] const KernelTree& tree() const noexcept { return *tree_; }
  /// Where the episode stands.
  [[nodiscard]] const TreeState& state() const noexcept { return state_; }
  /// Whether the episode is over: `reset` begins the next one.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// The actions on offer besides stopping; none at the end of an episode.
  [[nodiscard]] std::span<const TreeChoice> actions() const noexcept {
    return ended_ ? std::span<const TreeChoice>{} : std::span<const TreeChoice>{actions_};
  }
  /// Number of choices: the actions, and `stop` where it is allowed.
  [[nodiscard]] std::size_t choices() const noexcept {
    return ended_ ? 0 : actions_.size() + (may_stop(state_) ? 1 : 0);
  }

  /// The steps of the episode so far; valid until it ends or goes on.
  [[nodiscard]] std::span<const PastStep> past() const noexcept { return past_; }
  /// Numbers of the kernels that those were taken on.
  [[nodiscard]] std::span<const int> past_nodes() const noexcept { return nodes_; }
  /// Largest number of steps of an episode.
  [[nodiscard]] int step_limit() const noexcept { return options_.reward.step_limit; }

  /// Takes the choice of that number, below `choices()`.
  TreeStep step(std::size_t choice) {
    TreeStep result;
    if (choice >= actions_.size()) {
      result = {reward_at_end(options_.reward, state_.reward), StepStage::correct, true};
    } else {
      const int before = state_.node;
      const std::string_view action =
          *keys_.emplace_back(std::make_shared<const std::string>(*actions_[choice].action));
      result = take_outcome(*tree_, options_, outcome_of(choice), state_);
      past_.push_back({action, result.outcome != StepStage::not_compiled,
                       result.outcome == StepStage::correct, result.log2_gain, result.kept});
      nodes_.push_back(before);
      if (state_.node != before || options_.once) list_actions();
    }
    ended_ = result.ended;
    return result;
  }

private:
  void list_actions() {
    list_choices(*tree_, options_, state_.node, actions_);
    if (options_.unknown == UnknownActions::live) keep_actions();
    if (!options_.once) return;
    for (std::size_t i = 0; i < past_.size(); ++i)
      if (nodes_[i] == state_.node)
        std::erase_if(actions_, [&](const TreeChoice& one) { return *one.action == past_[i].action; });
  }
  /// Makes the choices independent of the tree, which other environments let grow meanwhile.
  void keep_actions() {
    offered_.clear();
    for (TreeChoice& one : actions_)
      one = {offered_.emplace_back(std::make_shared<const std::string>(*one.action)).get(), nullptr};
  }
  [[nodiscard]] TreeOutcome outcome_of(std::size_t choice) {
    const std::string& action = *actions_[choice].action;
    const bool grows = options_.unknown == UnknownActions::live;
    const TreeEdge* const edge =
        grows ? tree_->nodes[static_cast<std::size_t>(state_.node)].edge(action) : actions_[choice].edge;
    if (edge == nullptr) return unknown(action);
    if (options_.children == TreeChildren::first) return edge->outcomes.front();
    if (options_.children == TreeChildren::best) return best_outcome(*tree_, *edge);
    auto at = static_cast<int>(random_.uniform() * edge->count());
    for (const TreeOutcome& one : edge->outcomes) {
      at -= one.count;
      if (at < 0) return one;
    }
    return edge->outcomes.back();
  }
  /// By a copy of the key: the tree may move it while it grows.
  [[nodiscard]] TreeOutcome unknown(std::string action) {
    if (options_.unknown != UnknownActions::live || !options_.live) return {};
    const int node = state_.node;
    const TreeOutcome outcome = options_.live(*tree_, node, action);
    tree_->nodes[static_cast<std::size_t>(node)].edges.push_back({std::move(action), {outcome}});
    list_actions();
    return outcome;
  }

  KernelTree* tree_;
  TreeOptions options_;
  PhiloxEngine random_;
  TreeState state_{};
  std::vector<TreeChoice> actions_{};
  /// Keys of the actions on offer, where the tree may grow, and of those taken: a tree that grows moves its
  /// own. Shared, so that a copy of the environment points to texts that live as long as itself.
  std::vector<std::shared_ptr<const std::string>> offered_{}, keys_{};
  std::vector<PastStep> past_{};
  std::vector<int> nodes_{}; ///< on which they were taken
  bool ended_ = false;
};

} // namespace mtmc
