#pragma once
/// A data set for training: trees of many tasks, and a card that says what they are and what they cannot
/// teach.
///
/// **The file.** JSON Lines, UTF-8: the card, then one tree a line. It holds no texts of kernels, only their
/// ids.

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/train/kernel_tree.hpp>
#include <mtmc/train/training_files.hpp>
#include <mtmc/train/trajectory.hpp>
#include <mtmc/version.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Version of the data set's form. It grows when a reader of the older one would misunderstand it.
inline constexpr int data_set_schema_version = 1;

/// What a data set is.
struct DataCard {
  int schema = data_set_schema_version;  ///< version of its form
  std::string version{};                 ///< of the library that made it
  std::vector<std::string> versions{};   ///< of those that wrote the journals
  std::vector<std::string> devices{};    ///< their names
  std::vector<std::string> evaluators{}; ///< what they say of themselves
  std::vector<std::string> coders{};     ///< what they say of themselves
  std::vector<std::string> policies{};   ///< of the searches
  std::int64_t tasks = 0;                ///< different ones
  std::int64_t trees = 0;                ///< of a task, a device and an evaluator each
  std::int64_t kernels = 0;              ///< different right kernels, those of each tree
  std::int64_t sequences = 0;            ///< different runs by their (kernel, action): trajectories
  std::int64_t runs = 0;                 ///< searches
  std::int64_t steps = 0;                ///< drafts of their steps
  std::int64_t evaluations = 0;          ///< made in them
  double hours = 0;                      ///< wall-clock time of the searches
  int features = 0;                      ///< version of the features (`feature_version`); 0 = it has none
  double coverage = 0;                 ///< part of the legal actions that was tried, of kernels searched from
  std::vector<std::string> excluded{}; ///< names of tasks that were left out on purpose
  std::string licence{};               ///< of the data
  /// What a policy cannot learn from it, a sentence each.
  std::vector<std::string> limits{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const DataCard&, const DataCard&) = default; ///< member by member
};

/// Trees and their card.
struct DataSet {
  DataCard card{};                 ///< what it is
  std::vector<KernelTree> trees{}; ///< in a fixed order

  friend bool operator==(const DataSet&, const DataSet&) = default; ///< member by member
};

/// What goes into a data set.
struct DataSetOptions {
  std::set<std::string> excluded_tasks{}; ///< names: those that policies are to be tried on
  /// SHA-256 of the `normalised_code` of start kernels, for tasks under other names.
  std::set<std::string> excluded_code{};
  std::string licence{}; ///< for the card
};

namespace detail {

inline void visit_fields(JsonFields& visit, DataCard& noun) {
  visit.required("schema", noun.schema);
  visit.optional("version", noun.version);
  visit.optional("versions", noun.versions);
  visit.optional("devices", noun.devices);
  visit.optional("evaluators", noun.evaluators);
  visit.optional("coders", noun.coders);
  visit.optional("policies", noun.policies);
  visit.optional("tasks", noun.tasks);
  visit.required("trees", noun.trees);
  visit.optional("kernels", noun.kernels);
  visit.optional("sequences", noun.sequences);
  visit.optional("runs", noun.runs);
  visit.optional("steps", noun.steps);
  visit.optional("evaluations", noun.evaluations);
  visit.optional("hours", noun.hours);
  visit.optional("features", noun.features);
  visit.optional("coverage", noun.coverage);
  visit.optional("excluded", noun.excluded);
  visit.optional("licence", noun.licence);
  visit.optional("limits", noun.limits);
  visit.unknown(noun.unknown);
}

/// The counts of a card, from its trees.
inline void count_trees(const std::vector<KernelTree>& trees, DataCard& card) {
  std::set<std::string> tasks, devices, evaluators;
  TreeCoverage coverage;
  card.kernels = 0;
  for (const KernelTree& tree : trees) {
    tasks.insert(tree.task_digest);
    devices.insert(tree.device);
    evaluators.insert(tree.evaluator);
    card.kernels += static_cast<std::int64_t>(tree.nodes.size());
    const TreeCoverage own = coverage_of(tree);
    coverage.legal += own.legal;
    coverage.recorded += own.recorded;
  }
  card.tasks = static_cast<std::int64_t>(tasks.size());
  card.trees = static_cast<std::int64_t>(trees.size());
  card.devices.assign(devices.begin(), devices.end());
  card.evaluators.assign(evaluators.begin(), evaluators.end());
  card.coverage = coverage.share();
}

/// What follows from the counts.
[[nodiscard]] inline std::vector<std::string> limits_of(const DataCard& card) {
  std::vector<std::string> limits;
  if (card.devices.size() == 1) limits.push_back("Only " + card.devices.front() + " was measured on");
  if (card.coverage < 1)
    limits.push_back("Of the legal actions " + std::to_string(static_cast<int>(100 * card.coverage)) +
                     " % were tried: what the others bring is not known");
  if (card.coders.size() == 1)
    limits.push_back("All steps were written by one coder; another may fail elsewhere");
  return limits;
}

} // namespace detail

/// Leaves out the trees of excluded tasks, and of tasks that have a start kernel in common with one, and
/// names them on the card. Throws `Error` (`mtmc.train.001`) where nothing is left.
[[nodiscard]] inline DataSet without_excluded(DataSet set, const DataSetOptions& options) {
  std::set<std::string> excluded(set.card.excluded.begin(), set.card.excluded.end());
  const auto groups = detail::task_groups(set.trees);
  std::set<std::string> out;
  for (std::size_t i = 0; i < set.trees.size(); ++i)
    if (const KernelTree& tree = set.trees[i];
        options.excluded_tasks.contains(tree.task) || options.excluded_code.contains(tree.code))
      out.insert(groups[i]);
  std::vector<KernelTree> kept;
  for (std::size_t i = 0; i < set.trees.size(); ++i)
    if (out.contains(groups[i]))
      excluded.insert(set.trees[i].task);
    else
      kept.push_back(std::move(set.trees[i]));
  set.trees = std::move(kept);
  if (set.trees.empty())
    throw Error(error_id::train_data, "the journals hold no run of a task that is not excluded",
                "Collect searches first, or exclude fewer tasks");
  set.card.excluded.assign(excluded.begin(), excluded.end());
  detail::count_trees(set.trees, set.card);
  set.card.limits = detail::limits_of(set.card);
  return set;
}

/// The data set of what was collected. Throws `Error` (`mtmc.train.001`) where nothing is left.
[[nodiscard]] inline DataSet make_data_set(const TreeCollector& collector,
                                           const DataSetOptions& options = {}) {
  DataSet set;
  set.trees = collector.trees();
  const TreeSources& sources = collector.sources();
  DataCard& card = set.card;
  card.version = version_string;
  card.features = feature_version;
  card.versions.assign(sources.versions.begin(), sources.versions.end());
  card.coders.assign(sources.coders.begin(), sources.coders.end());
  card.policies.assign(sources.policies.begin(), sources.policies.end());
  card.sequences = static_cast<std::int64_t>(sources.sequences);
  card.runs = static_cast<std::int64_t>(sources.runs);
  card.steps = static_cast<std::int64_t>(sources.steps);
  card.evaluations = static_cast<std::int64_t>(sources.evaluations);
  card.hours = sources.seconds / 3600;
  card.licence = options.licence;
  return without_excluded(std::move(set), options);
}

/// Writes a data set; the file is whole or not there. Throws `Error` where it cannot be written.
inline void write_data_set(const DataSet& set, const std::string& path) {
  std::string text = nlohmann::json(set.card).dump() + '\n';
  for (const KernelTree& tree : set.trees) text += nlohmann::json(tree).dump() + '\n';
  write_training_file(path, text);
}

namespace detail {

/// What makes a tree unfit to be played; empty for nothing.
[[nodiscard]] inline std::string fault_of(const KernelTree& tree) {
  if (tree.nodes.empty()) return "a tree has no kernel";
  const auto count = static_cast<int>(tree.nodes.size());
  if (tree.nodes.front().log2_speed_up != 0) return "the start kernel has a speed-up over itself";
  std::set<std::string_view> kernels;
  for (const TreeNode& node : tree.nodes) {
    const std::string of = " (kernel " + node.kernel.substr(0, 16) + ')';
    if (!kernels.insert(node.kernel).second) return "a kernel stands in its tree twice" + of;
    if (!std::isfinite(node.log2_speed_up) || !std::isfinite(node.deviation) || node.deviation < 0)
      return "a speed-up or its deviation is no number" + of;
    if (!are_finite(node.features) || !std::all_of(node.action_features.begin(), node.action_features.end(),
                                                   [](const auto& one) { return are_finite(one); }))
      return "a feature is no number" + of;
    std::set<std::string_view> actions;
    for (const TreeEdge& edge : node.edges) {
      if (!actions.insert(edge.action).second) return "an action was tried twice on one kernel" + of;
      if (edge.outcomes.empty()) return "an action has no outcome" + of;
      std::int64_t sum = 0;
      for (const TreeOutcome& outcome : edge.outcomes) {
        if (outcome.count < 1) return "an outcome was never seen" + of;
        sum += outcome.count;
        const bool leads = outcome.outcome == StepStage::correct;
        if (leads ? outcome.child < 0 || outcome.child >= count : outcome.child != -1)
          return "an outcome leads to no kernel of its tree, or a failure to one" + of;
      }
      if (sum > std::numeric_limits<int>::max()) return "an action was tried too often to count" + of;
    }
  }
  return {};
}

/// Features of version 1 with zeros where version 2 tells of modules in Python.
inline void take_as_version_2(DataSet& set) {
  const auto widen = [](std::vector<double>& features, std::size_t before, std::size_t now) {
    if (features.size() == before) features.resize(now, 0.0);
  };
  for (KernelTree& tree : set.trees)
    for (TreeNode& node : tree.nodes) {
      widen(node.features, kernel_feature_count_of_version_1(), kernel_feature_count());
      for (auto& features : node.action_features)
        widen(features, action_feature_count_of_version_1(), action_feature_count());
    }
  set.card.features = feature_version;
}

} // namespace detail

/// Reads one; features of version 1 become those of this one. Throws `Error` (`mtmc.train.001`) that names
/// the line where it is damaged, or cut short, or of a newer form.
[[nodiscard]] inline DataSet read_data_set(const std::string& path) {
  const std::string text = read_training_file(path);
  DataSet set;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string place = path + ", line " + std::to_string(++number);
    try {
      const nlohmann::json line = parse_json(std::string_view(text).substr(at, end - at), place);
      if (number == 1)
        set.card = line.get<DataCard>();
      else
        set.trees.push_back(line.get<KernelTree>());
    } catch (const Error& error) {
      throw Error(error_id::train_data, std::string("the data set is damaged: ") + error.what(),
                  "Make it anew from the journals", place);
    }
    if (set.card.schema < 1 || set.card.schema > data_set_schema_version)
      throw Error(error_id::train_data,
                  "the data set has form " + std::to_string(set.card.schema) + ", this library knows " +
                      std::to_string(data_set_schema_version),
                  "Use the version of the library that made it", place);
    if (const auto fault = number > 1 ? detail::fault_of(set.trees.back()) : std::string(); !fault.empty())
      throw Error(error_id::train_data, "the data set is damaged: " + fault, "Make it anew from the journals",
                  place);
    at = end + 1;
  }
  if (set.trees.empty() || set.card.trees != static_cast<std::int64_t>(set.trees.size()))
    throw Error(error_id::train_data,
                "the data set has " + std::to_string(set.trees.size()) + " trees, its card says " +
                    std::to_string(set.card.trees),
                "It was cut short: make it anew from the journals", path);
  if (set.card.features == 1) detail::take_as_version_2(set);
  return set;
}

/// Two data sets without a common task or start kernel: about `held_out` (in [0, 1]) of the tasks go to the
/// second. The same task goes the same way for the same seed, whatever other tasks there are, as long as
/// none of them has its code.
[[nodiscard]] inline std::pair<DataSet, DataSet> split_by_task(const DataSet& set, double held_out,
                                                               std::uint64_t seed) {
  std::pair<DataSet, DataSet> parts;
  parts.first.card = parts.second.card = set.card;
  const auto groups = detail::task_groups(set.trees);
  for (std::size_t i = 0; i < set.trees.size(); ++i) {
    const std::string digest = sha256_hex(std::to_string(seed) + groups[i]).substr(0, 13);
    const double place = static_cast<double>(std::stoull(digest, nullptr, 16)) / 0x1p52;
    (place < held_out ? parts.second : parts.first).trees.push_back(set.trees[i]);
  }
  detail::count_trees(parts.first.trees, parts.first.card);
  detail::count_trees(parts.second.trees, parts.second.card);
  return parts;
}

} // namespace mtmc
