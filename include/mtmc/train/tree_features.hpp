#pragma once
/// What a network sees of an environment: the features of its kernel and actions, as recorded, and those of
/// the episode.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_network.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/train/data_set.hpp>
#include <mtmc/train/tree_environment.hpp>
#include <mtmc/train/tree_policy.hpp>

#include <cstddef>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// The extents of a network that sees these features.
[[nodiscard]] inline NetworkShape feature_shape(std::size_t hidden = 32) {
  return {.state = state_feature_names().size(), .action = action_feature_names().size(), .hidden = hidden};
}

/// Writes features of the state and of each choice. With `prior_weight` above 0 the choices' priors are that
/// times the rules' scores: the network then learns what to add to the rules.
[[nodiscard]] inline TreeEncoder feature_encoder(double prior_weight = 0) {
  return [prior_weight](const TreeEnvironment& environment, EncodedState& encoded) {
    const TreeNode& node = environment.tree().nodes[static_cast<std::size_t>(environment.state().node)];
    const PastFacts past{environment.state().reward.step, environment.step_limit(), environment.past()};
    encoded.state.clear();
    encoded.actions.clear();
    encoded.priors.clear();
    append_state(node.features, past, encoded.state);
    const auto add = [&](std::span<const double> features, std::string_view key) {
      append_action(features, key, past, encoded.actions);
      encoded.priors.push_back(prior_weight * rules_score(features));
    };
    for (const TreeChoice& choice : environment.actions())
      add(node.features_of(*choice.action), *choice.action);
    if (environment.choices() > environment.actions().size()) add(stop_features(node.features), "stop");
  };
}

/// Leaves out of a data set what a network cannot see: kernels and actions without features of this version.
/// Throws `Error` (`mtmc.train.001`) where nothing is left.
inline void keep_featured(DataSet& set) {
  const auto unseen = [](const TreeNode& node) { return node.features.size() != kernel_feature_count(); };
  for (KernelTree& tree : set.trees)
    for (TreeNode& node : tree.nodes)
      std::erase_if(node.edges, [&](const TreeEdge& edge) {
        return unseen(node) || node.features_of(edge.action).size() != action_feature_count();
      });
  std::erase_if(set.trees, [](const KernelTree& tree) { return tree.nodes.front().edges.empty(); });
  detail::count_trees(set.trees, set.card);
  if (set.trees.empty() || set.card.features != feature_version)
    throw Error(error_id::train_data,
                "the data set has features of version " + std::to_string(set.card.features) +
                    ", this library knows " + std::to_string(feature_version),
                "Make the data set anew from the journals");
}

} // namespace mtmc
