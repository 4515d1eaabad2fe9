#pragma once
/// What recorded searches know of a task on a device: kernels, the actions that were tried on them, and what
/// came of each. Paths that meet at one kernel meet at one node.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/train/reward.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One way in which an action ended, and how often.
struct TreeOutcome {
  StepStage outcome = StepStage::not_compiled; ///< what came of it
  /// Number of the node it led to; -1 where it led to none.
  int child = -1;
  /// How often that was seen; above 0.
  int count = 1;

  friend bool operator==(const TreeOutcome&, const TreeOutcome&) = default; ///< member by member
};

/// An action that was tried on a kernel.
struct TreeEdge {
  /// `Action::key()`.
  std::string action{};
  /// What came of it, each once, in the order in which it was first seen.
  std::vector<TreeOutcome> outcomes{};

  /// How often it was tried.
  [[nodiscard]] int count() const noexcept {
    int sum = 0;
    for (const TreeOutcome& one : outcomes) sum += one.count;
    return sum;
  }
  friend bool operator==(const TreeEdge&, const TreeEdge&) = default; ///< member by member
};

/// A right kernel.
struct TreeNode {
  /// `Kernel::id()`.
  std::string kernel{};
  /// Logarithm to base 2 of its speed-up over the start kernel, by pairs that were timed together.
  double log2_speed_up = 0;
  /// Relative standard deviation of that; 0 where it is not known.
  double deviation = 0;
  /// Keys of the actions that were on offer, `stop` left out; empty where nobody asked.
  std::vector<std::string> legal{};
  /// Features of the kernel (policy/features.hpp); empty where nobody asked.
  std::vector<double> features{};
  /// Features of each action of `legal`, in its order; empty where nobody asked.
  std::vector<std::vector<double>> action_features{};
  /// The actions that were tried, in the order in which they first were.
  std::vector<TreeEdge> edges{};

  /// The edge of an action, or null.
  [[nodiscard]] const TreeEdge* edge(std::string_view action) const noexcept {
    const auto found =
        std::find_if(edges.begin(), edges.end(), [&](const TreeEdge& one) { return one.action == action; });
    return found == edges.end() ? nullptr : &*found;
  }
  /// Features of an action; empty where they are not known.
  [[nodiscard]] std::span<const double> features_of(std::string_view action) const noexcept {
    const auto found = std::find(legal.begin(), legal.end(), action);
    const auto place = static_cast<std::size_t>(found - legal.begin());
    return place < action_features.size() ? std::span<const double>(action_features[place])
                                          : std::span<const double>{};
  }
  friend bool operator==(const TreeNode&, const TreeNode&) = default; ///< member by member
};

/// A task on a device, as one evaluator judges it. Times of other devices, compilers or evaluators are
/// another tree's.
struct KernelTree {
  std::string task{};          ///< the task's name
  std::string task_digest{};   ///< `task_digest()`
  std::string device{};        ///< the device's name
  std::string device_digest{}; ///< `device_digest()`
  std::string evaluator{};     ///< what the evaluator says of itself
  std::string language{};      ///< of the kernels: "cuda"
  std::string code{};          ///< SHA-256 of the start kernel's `normalised_code`; empty = not known
  /// The start kernel first.
  std::vector<TreeNode> nodes{};

  /// The number of the node of a kernel; -1 if there is none.
  [[nodiscard]] int find(std::string_view kernel) const noexcept {
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const TreeNode& one) { return one.kernel == kernel; });
    return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
  }
  friend bool operator==(const KernelTree&, const KernelTree&) = default; ///< member by member
};

/// How much of what could have been tried was tried.
struct TreeCoverage {
  std::size_t nodes = 0;    ///< kernels whose legal actions are known
  std::size_t legal = 0;    ///< legal actions of those
  std::size_t recorded = 0; ///< of them tried

  /// `recorded / legal`; 0 where nothing was legal.
  [[nodiscard]] double share() const noexcept {
    return legal == 0 ? 0 : static_cast<double>(recorded) / static_cast<double>(legal);
  }
};

/// The coverage of a tree.
[[nodiscard]] inline TreeCoverage coverage_of(const KernelTree& tree) {
  TreeCoverage coverage;
  for (const TreeNode& node : tree.nodes) {
    if (node.legal.empty()) continue;
    ++coverage.nodes;
    coverage.legal += node.legal.size();
    coverage.recorded += static_cast<std::size_t>(
        std::count_if(node.legal.begin(), node.legal.end(),
                      [&](const std::string& action) { return node.edge(action) != nullptr; }));
  }
  return coverage;
}

namespace detail {

/// Whether all of these are numbers.
[[nodiscard]] inline bool are_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double one) { return std::isfinite(one); });
}

/// For each tree the name of its task, or the first name, by the alphabet, of the tasks that it has a start
/// kernel in common with: the same code under another name is no other task.
[[nodiscard]] inline std::vector<std::string> task_groups(std::span<const KernelTree> trees) {
  std::map<std::string, std::string> first_of; // by task and by code
  for (bool changed = true; changed;) {
    changed = false;
    for (const KernelTree& tree : trees) {
      std::string& by_task = first_of.try_emplace("task " + tree.task, tree.task).first->second;
      if (tree.code.empty()) continue;
      std::string& by_code = first_of.try_emplace("code " + tree.code, by_task).first->second;
      changed = changed || by_task != by_code;
      by_task = by_code = std::min(by_task, by_code);
    }
  }
  std::vector<std::string> groups;
  for (const KernelTree& tree : trees) groups.push_back(first_of.at("task " + tree.task));
  return groups;
}

inline void visit_fields(JsonFields& visit, TreeOutcome& noun) {
  visit.required("outcome", noun.outcome);
  visit.optional("child", noun.child, -1);
  visit.optional("count", noun.count, 1);
}
inline void visit_fields(JsonFields& visit, TreeEdge& noun) {
  visit.required("action", noun.action);
  visit.required("outcomes", noun.outcomes);
}
inline void visit_fields(JsonFields& visit, TreeNode& noun) {
  visit.required("kernel", noun.kernel);
  visit.optional("log2_speed_up", noun.log2_speed_up);
  visit.optional("deviation", noun.deviation);
  visit.optional("legal", noun.legal);
  visit.optional("features", noun.features);
  visit.optional("action_features", noun.action_features);
  visit.optional("edges", noun.edges);
}
inline void visit_fields(JsonFields& visit, KernelTree& noun) {
  visit.required("task", noun.task);
  visit.required("task_digest", noun.task_digest);
  visit.required("device", noun.device);
  visit.required("device_digest", noun.device_digest);
  visit.optional("evaluator", noun.evaluator);
  visit.required("language", noun.language);
  visit.optional("code", noun.code);
  visit.required("nodes", noun.nodes);
}

} // namespace detail

} // namespace mtmc
