#pragma once
/// The environment that policies learn in: recorded searches as trees, played without coder or compiler
/// (paper, section 4.2).

#include <mtmc/support/philox.hpp>
#include <mtmc/train/tree_rules.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One tree being played. Choices of a state are numbered: the actions on offer first, `stop` last where it
/// is allowed.
class TreeEnvironment {
public:
  /// The tree outlives the environment; it grows where `UnknownActions::live` is asked for. It must have a
  /// node.
  TreeEnvironment(KernelTree& tree, TreeOptions options)
      : tree_(&tree), options_(std::move(options)), random_(options_.seed) {
    reset();
  }

  /// Begins an episode on the start kernel.
  void reset() {
    state_ = {};
    list_choices(*tree_, options_, state_.node, actions_);
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

  /// Takes the choice of that number, below `choices()`.
  TreeStep step(std::size_t choice) {
    TreeStep result;
    if (choice >= actions_.size()) {
      result = {reward_at_end(options_.reward, state_.reward), StepStage::correct, true};
    } else {
      const int before = state_.node;
      result = take_outcome(*tree_, options_, outcome_of(choice), state_);
      if (state_.node != before) list_choices(*tree_, options_, state_.node, actions_);
    }
    ended_ = result.ended;
    return result;
  }

private:
  [[nodiscard]] TreeOutcome outcome_of(std::size_t choice) {
    const TreeEdge* const edge = actions_[choice].edge;
    if (edge == nullptr) return unknown(*actions_[choice].action);
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
    list_choices(*tree_, options_, node, actions_);
    return outcome;
  }

  KernelTree* tree_;
  TreeOptions options_;
  PhiloxEngine random_;
  TreeState state_{};
  std::vector<TreeChoice> actions_{};
  bool ended_ = false;
};

} // namespace mtmc
