#pragma once
/// The best that can be done in a tree, exactly: values by backward induction. What learnt policies are held
/// against, and what they may be taught.

#include <mtmc/train/tree_rules.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// V* and Q* of a tree: the expected sum of (discounted) rewards under the best policy that knows the tree.
/// Values are computed when they are first asked for and kept. `UnknownActions::live` counts as `mask`.
class ExactValues {
public:
  /// The tree outlives the values and does not change. `discount` in (0, 1].
  ExactValues(const KernelTree& tree, TreeOptions options, double discount = 1)
      : tree_(&tree), options_(std::move(options)), discount_(discount) {
    if (options_.unknown == UnknownActions::live) options_.unknown = UnknownActions::mask;
  }

  /// V* of a state that is no end; 0 where nothing is on offer.
  [[nodiscard]] double value(const TreeState& state) {
    const Key key{state.node, state.best, state.reward.step, state.reward.compiled, state.reward.was_right};
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    const auto choices = values_of_choices(state);
    const double best = choices.empty() ? 0 : *std::max_element(choices.begin(), choices.end());
    values_[key] = best;
    return best;
  }

  /// Q* of each choice of a state, numbered as `TreeEnvironment` numbers them.
  [[nodiscard]] std::vector<double> values_of_choices(const TreeState& state) {
    std::vector<TreeChoice> choices;
    list_choices(*tree_, options_, state.node, choices);
    return values_of_choices(state, choices);
  }
  /// Q* of these actions, and of stopping where that is allowed.
  [[nodiscard]] std::vector<double> values_of_choices(const TreeState& state,
                                                      std::span<const TreeChoice> choices) {
    std::vector<double> values;
    for (const TreeChoice& choice : choices) values.push_back(value_of(state, choice));
    if (may_stop(state)) values.push_back(reward_at_end(options_.reward, state.reward));
    return values;
  }

private:
  using Key = std::array<int, 5>;

  [[nodiscard]] double value_of(const TreeState& state, const TreeChoice& choice) {
    if (choice.edge == nullptr) return value_behind(state, {});
    if (options_.children == TreeChildren::first) return value_behind(state, choice.edge->outcomes.front());
    if (options_.children == TreeChildren::best)
      return value_behind(state, best_outcome(*tree_, *choice.edge));
    double sum = 0;
    for (const TreeOutcome& one : choice.edge->outcomes) sum += one.count * value_behind(state, one);
    return sum / choice.edge->count();
  }
  [[nodiscard]] double value_behind(TreeState state, const TreeOutcome& outcome) {
    const TreeStep step = take_outcome(*tree_, options_, outcome, state);
    return step.reward + (step.ended ? 0 : discount_ * value(state));
  }

  const KernelTree* tree_;
  TreeOptions options_;
  double discount_;
  std::map<Key, double> values_{};
};

} // namespace mtmc
