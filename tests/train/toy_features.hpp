#pragma once
/// Features by which a network can learn trees by heart.

#include <mtmc/train/tree_policy.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace toy {

/// Features of trees whose every kernel and every action of it is known by name.
class ByName {
public:
  explicit ByName(const std::vector<mtmc::KernelTree>& trees) {
    for (const mtmc::KernelTree& tree : trees)
      for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        nodes_.emplace(name(tree, i), nodes_.size());
        for (const mtmc::TreeEdge& edge : tree.nodes[i].edges)
          actions_.emplace(name(tree, i) + edge.action, actions_.size());
      }
  }
  [[nodiscard]] mtmc::NetworkShape shape() const { return {nodes_.size() + 2, actions_.size() + 1, 32}; }
  void operator()(const mtmc::TreeEnvironment& environment, mtmc::EncodedState& encoded) const {
    const mtmc::TreeState& state = environment.state();
    const std::string here = name(environment.tree(), static_cast<std::size_t>(state.node));
    encoded.state.assign(nodes_.size() + 2, 0);
    encoded.state[nodes_.at(here)] = 1;
    encoded.state[nodes_.size()] = state.reward.step / 8.0;
    encoded.state[nodes_.size() + 1] = state.reward.best - state.reward.previous;
    const std::size_t each = actions_.size() + 1;
    encoded.actions.assign(environment.choices() * each, 0);
    for (std::size_t k = 0; k < environment.choices(); ++k) {
      const bool stop = k == environment.actions().size();
      encoded.actions[k * each + (stop ? each - 1 : actions_.at(here + *environment.actions()[k].action))] =
          1;
    }
  }

private:
  [[nodiscard]] static std::string name(const mtmc::KernelTree& tree, std::size_t node) {
    return tree.task + ' ' + tree.nodes[node].kernel + ' ';
  }
  std::map<std::string, std::size_t> nodes_{}, actions_{};
};

} // namespace toy
