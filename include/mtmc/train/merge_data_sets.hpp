#pragma once
/// Several data sets as one: of shards that collected apart, or of machines that have no common journals.

#include <mtmc/train/data_set.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline bool is_same_tree(const KernelTree& a, const KernelTree& b) {
  return a.task_digest == b.task_digest && a.device_digest == b.device_digest && a.evaluator == b.evaluator;
}

/// Two measurements of one speed-up: the mean, weighted by how well each is known.
inline void join_times(const TreeNode& from, TreeNode& into) {
  constexpr double least = 1e-3;
  const double weight = std::pow(std::max(from.deviation, least), -2);
  const double own = std::pow(std::max(into.deviation, least), -2);
  into.log2_speed_up = (own * into.log2_speed_up + weight * from.log2_speed_up) / (own + weight);
  into.deviation = 1 / std::sqrt(own + weight);
}

inline void join_actions(const TreeNode& from, TreeNode& into) {
  if (into.features.empty()) into.features = from.features;
  into.action_features.resize(into.legal.size());
  for (std::size_t i = 0; i < from.legal.size(); ++i) {
    const auto known = std::find(into.legal.begin(), into.legal.end(), from.legal[i]);
    const auto place = static_cast<std::size_t>(known - into.legal.begin());
    if (known == into.legal.end()) {
      into.legal.push_back(from.legal[i]);
      into.action_features.emplace_back();
    }
    if (into.action_features[place].empty() && i < from.action_features.size())
      into.action_features[place] = from.action_features[i];
  }
  const bool none = std::all_of(into.action_features.begin(), into.action_features.end(),
                                [](const auto& one) { return one.empty(); });
  if (none) into.action_features.clear();
}

/// Adds an edge's outcomes; `numbers` are those of their nodes in the tree that `into` is of.
inline void join_outcomes(const TreeEdge& from, std::span<const int> numbers, TreeEdge& into) {
  for (TreeOutcome outcome : from.outcomes) {
    if (outcome.child >= 0) outcome.child = numbers[static_cast<std::size_t>(outcome.child)];
    const auto known = std::find_if(into.outcomes.begin(), into.outcomes.end(), [&](const TreeOutcome& one) {
      return one.outcome == outcome.outcome && one.child == outcome.child;
    });
    if (known == into.outcomes.end())
      into.outcomes.push_back(outcome);
    else
      known->count += outcome.count;
  }
}

inline void join_trees(const KernelTree& from, KernelTree& into) {
  std::vector<int> numbers;
  for (const TreeNode& node : from.nodes) {
    int number = into.find(node.kernel);
    if (number < 0) {
      number = static_cast<int>(into.nodes.size());
      into.nodes.push_back(node);
      into.nodes.back().edges.clear();
    } else {
      TreeNode& own = into.nodes[static_cast<std::size_t>(number)];
      if (number > 0) join_times(node, own);
      join_actions(node, own);
    }
    numbers.push_back(number);
  }
  for (std::size_t i = 0; i < from.nodes.size(); ++i)
    for (const TreeEdge& edge : from.nodes[i].edges) {
      auto& edges = into.nodes[static_cast<std::size_t>(numbers[i])].edges;
      auto own = std::find_if(edges.begin(), edges.end(),
                              [&](const TreeEdge& one) { return one.action == edge.action; });
      if (own == edges.end()) own = edges.insert(edges.end(), TreeEdge{edge.action});
      join_outcomes(edge, numbers, *own);
    }
}

inline void join_names(const std::vector<std::string>& from, std::vector<std::string>& into) {
  std::set<std::string> all(into.begin(), into.end());
  all.insert(from.begin(), from.end());
  into.assign(all.begin(), all.end());
}

} // namespace detail

/// One data set of several: trees of the same task, device and evaluator become one, whose times are means by
/// how well each is known. Counts of runs and sequences are sums: what two of them have in common counts
/// twice. Throws `Error` (`mtmc.train.001`) where they have features of different versions, or there is none.
[[nodiscard]] inline DataSet merge_data_sets(std::span<const DataSet> sets) {
  if (sets.empty()) throw Error(error_id::train_data, "there is no data set to merge", "Name one");
  DataSet merged = sets.front();
  for (const DataSet& set : sets.subspan(1)) {
    if (set.card.features != merged.card.features)
      throw Error(error_id::train_data,
                  "data sets have features of the versions " + std::to_string(merged.card.features) +
                      " and " + std::to_string(set.card.features),
                  "Make them anew from their journals");
    for (const KernelTree& tree : set.trees) {
      const auto own = std::find_if(merged.trees.begin(), merged.trees.end(),
                                    [&](const KernelTree& one) { return detail::is_same_tree(one, tree); });
      if (own == merged.trees.end())
        merged.trees.push_back(tree);
      else
        detail::join_trees(tree, *own);
    }
    DataCard& card = merged.card;
    detail::join_names(set.card.versions, card.versions);
    detail::join_names(set.card.coders, card.coders);
    detail::join_names(set.card.policies, card.policies);
    detail::join_names(set.card.excluded, card.excluded);
    card.sequences += set.card.sequences;
    card.runs += set.card.runs;
    card.steps += set.card.steps;
    card.evaluations += set.card.evaluations;
    card.hours += set.card.hours;
  }
  detail::count_trees(merged.trees, merged.card);
  merged.card.limits = detail::limits_of(merged.card);
  return merged;
}

} // namespace mtmc
