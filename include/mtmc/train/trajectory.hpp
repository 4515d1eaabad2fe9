#pragma once
/// From journals of searches to the trees that training learns from.

#include <mtmc/analysis/syntax/normalised_code.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/train/kernel_tree.hpp>
#include <mtmc/train/remembering_evaluator.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What trees are made from.
struct TreeSources {
  std::size_t runs = 0;        ///< runs that were read
  std::size_t steps = 0;       ///< drafts of finished steps
  std::size_t evaluations = 0; ///< evaluations in their journals
  /// Different sequences of (kernel, action), each a run from its first step to its last: what counts as
  /// trajectories.
  std::size_t sequences = 0;
  double seconds = 0;               ///< wall-clock time of the runs
  std::set<std::string> coders{};   ///< what their coders say of themselves
  std::set<std::string> policies{}; ///< and their policies
  std::set<std::string> versions{}; ///< of the library that wrote them
  /// What was left out, and why: one sentence each.
  std::vector<std::string> left_out{};
};

/// Passes each run of a journal to `take(run)`. The journal is read line by line: a line that is damaged is
/// left out, and so is a run that makes no sense without it; `left_out` gets a sentence on each. Throws
/// `Error` (`mtmc.journal.002`) where there is no journal at all.
template <class Take>
void visit_runs(const std::string& path, const Take& take, std::vector<std::string>& left_out) {
  const std::string content = detail::read_run_file(path);
  std::map<std::string, std::vector<std::string_view>> lines;
  std::vector<std::string> order;
  int number = 0;
  for (const std::string_view line : detail::complete_lines(content)) {
    try {
      const std::string run = detail::parse_line(line, path, ++number).run;
      auto& own = lines[run];
      if (own.empty()) order.push_back(run);
      own.push_back(line);
    } catch (const Error& error) {
      left_out.push_back(error.what());
    }
  }
  const KernelStore store{detail::parent_folder(path)};
  for (const std::string& run : order) {
    try {
      for (const JournalRun& one : detail::read_runs(lines.at(run), path, store)) take(one);
    } catch (const Error& error) {
      left_out.push_back("run " + run + ": " + error.what());
    }
  }
}

/// Collects runs into trees, one for each task, device (with its compiler and driver) and evaluator. A run
/// that is added twice counts once.
class TreeCollector {
public:
  /// Adds the runs of a journal; `sources()` tells what was left out. Throws as `visit_runs`.
  void add_journal(const std::string& path);

  /// Adds one run. A draft that nobody judged (an endpoint that was down, a used-up budget) is left out.
  void add(const JournalRun& run);

  /// The trees, in the order in which their first runs were added.
  [[nodiscard]] const std::vector<KernelTree>& trees() const noexcept { return trees_; }
  /// What they were made from.
  [[nodiscard]] const TreeSources& sources() const noexcept { return sources_; }

private:
  /// What is known of the times of a tree's kernels: weighted sums of logarithms.
  struct Times {
    double weights = 0;
    double sum = 0;
  };
  using TimesByKernel = std::map<std::string, Times>;

  [[nodiscard]] std::size_t tree_of(const JournalRun& run);
  void take_times(const JournalRun& run, TimesByKernel& known);
  void take_sequence(const JournalRun& run, const KernelTree& tree);
  void take_steps(const JournalRun& run, KernelTree& tree, const TimesByKernel& known);
  static void take_features(const JournalRun& run, const DecisionRecord& decision, TreeNode& node);
  [[nodiscard]] static int node_of(KernelTree& tree, const std::string& kernel);
  static void count(TreeNode& node, const std::string& action, StepStage outcome, int child);

  std::vector<KernelTree> trees_{};
  std::vector<TimesByKernel> times_{}; ///< of each tree
  std::set<std::string> runs_{};
  std::set<std::string> sequences_{}; ///< hashes
  TreeSources sources_{};
};

namespace detail {

/// What an evaluation says of a step; nothing where it says nothing of the kernel.
[[nodiscard]] inline std::optional<StepStage> stage_of(const Evaluation& evaluation) {
  if (evaluation.verdict == Verdict::not_given) return std::nullopt;
  if (evaluation.verdict == Verdict::correct) return StepStage::correct;
  return was_compiled(evaluation.verdict) ? StepStage::wrong : StepStage::not_compiled;
}

/// Relative standard deviation of a measured speed-up, from its interval.
[[nodiscard]] inline double deviation_of(const SpeedUp& speed_up) {
  if (!(speed_up.low > 0) || !(speed_up.high >= speed_up.low)) return 0;
  const double half_width_in_deviations =
      speed_up.confidence >= 0.9 ? 1.96 : 1.15; // normal quantiles of 95, 75 %
  return std::log(speed_up.high / speed_up.low) / 2 / half_width_in_deviations;
}

/// Features to four digits behind the point: more is noise, and files are shorter.
[[nodiscard]] inline std::vector<double> shortened_features(std::span<const double> features) {
  constexpr double digits = 1e4;
  std::vector<double> rounded;
  for (const double one : features) rounded.push_back(std::round(one * digits) / digits);
  return rounded;
}

} // namespace detail

inline void TreeCollector::add_journal(const std::string& path) {
  visit_runs(path, [this](const JournalRun& run) { add(run); }, sources_.left_out);
}

inline void TreeCollector::add(const JournalRun& run) {
  if (!runs_.insert(run.id).second) return;
  ++sources_.runs;
  sources_.evaluations += run.evaluations.size();
  sources_.seconds += run.seconds;
  sources_.coders.insert(run.header.set_up.coder);
  sources_.policies.insert(run.header.set_up.policy);
  sources_.versions.insert(run.header.version);
  const std::size_t at = tree_of(run);
  take_times(run, times_[at]);
  take_steps(run, trees_[at], times_[at]);
  take_sequence(run, trees_[at]);
}

inline void TreeCollector::take_sequence(const JournalRun& run, const KernelTree& tree) {
  if (run.steps.empty()) return;
  std::string sequence = tree.task_digest + tree.device_digest + tree.evaluator;
  for (const StepRecord& step : run.steps) sequence += '\n' + step.parent + ' ' + step.action;
  sequences_.insert(sha256_hex(sequence));
  sources_.sequences = sequences_.size();
}

inline std::size_t TreeCollector::tree_of(const JournalRun& run) {
  const RunRecord& header = run.header;
  const std::string task = task_digest(header.task), device = device_digest(header.device);
  for (std::size_t i = 0; i < trees_.size(); ++i)
    if (trees_[i].task_digest == task && trees_[i].device_digest == device &&
        trees_[i].evaluator == header.set_up.evaluator)
      return i;
  KernelTree tree{header.task.name,
                  task,
                  header.device.name,
                  device,
                  header.set_up.evaluator,
                  std::string(header.task.kernel.language.name),
                  sha256_hex(normalised_code(header.task.kernel.source))};
  tree.nodes.push_back({header.task.kernel.id()});
  trees_.push_back(std::move(tree));
  times_.emplace_back();
  times_.back()[header.task.kernel.id()] = {1, 0};
  return trees_.size() - 1;
}

inline void TreeCollector::take_times(const JournalRun& run, TimesByKernel& known) {
  std::vector<std::pair<double, const EvaluationRecord*>> in_order;
  for (const auto& [key, record] : run.evaluations) {
    const auto time = run.evaluation_times.find(key);
    in_order.emplace_back(time == run.evaluation_times.end() ? 0 : time->second, &record);
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::string start = run.header.task.kernel.id();
  const bool repeats = run.header.set_up.evaluator.starts_with(remembering_identity);
  for (const auto& [time, record] : in_order) {
    const auto incumbent = known.find(record->incumbent);
    const auto& speed_up = record->evaluation.speed_up;
    if (record->kernel == start || incumbent == known.end() || !speed_up) continue;
    const double deviation_seen = detail::deviation_of(*speed_up);
    if (!(speed_up->value > 0) || !std::isfinite(speed_up->value) || !std::isfinite(deviation_seen)) {
      sources_.left_out.push_back("run " + run.id + ": a speed-up is no number");
      continue;
    }
    // The same measurement told again makes nothing more certain.
    if (repeats && known.contains(record->kernel)) continue;
    // What is measured to one per mille weighs no more than that: other errors are larger.
    constexpr double least_deviation = 1e-3;
    const double deviation = std::max(deviation_seen, least_deviation);
    const double weight = 1 / (deviation * deviation);
    const double base = incumbent->second.sum / incumbent->second.weights;
    Times& times = known[record->kernel];
    times.weights += weight;
    times.sum += weight * (base + std::log2(speed_up->value));
  }
}

inline void TreeCollector::take_steps(const JournalRun& run, KernelTree& tree, const TimesByKernel& known) {
  for (const DecisionRecord& decision : run.decisions) {
    if (!known.contains(decision.parent)) continue;
    TreeNode& node = tree.nodes[static_cast<std::size_t>(node_of(tree, decision.parent))];
    for (const Action& action : decision.legal) {
      if (action.kind != Action::Kind::optimize) continue;
      const std::string key = action.key();
      if (std::find(node.legal.begin(), node.legal.end(), key) == node.legal.end()) node.legal.push_back(key);
    }
    take_features(run, decision, node);
  }
  // Repairs follow the draft that they mend: the last of a chain is what the step came to.
  std::map<std::tuple<int, int, std::string, int>, const StepRecord*> chains;
  std::vector<const StepRecord*> steps;
  for (const StepRecord& step : run.steps) {
    const StepRecord*& last = chains[{step.step, step.parent_index, step.action, step.sample}];
    if (last == nullptr)
      steps.push_back(&step);
    else
      std::replace(steps.begin(), steps.end(), last, &step);
    last = &step;
  }
  for (const StepRecord* step : steps) {
    const auto draft = run.drafts.find({step->draft, step->sample, step->repair});
    if (draft == run.drafts.end() || !known.contains(step->parent)) continue;
    ++sources_.steps;
    StepStage outcome = StepStage::not_compiled;
    int child = -1;
    if (const auto judged = run.evaluations.find(step->evaluation); judged != run.evaluations.end()) {
      const auto seen = detail::stage_of(judged->second.evaluation);
      if (!seen) continue;
      outcome = *seen;
      if (outcome == StepStage::correct) {
        if (!known.contains(judged->second.kernel)) continue; // right, and not timed
        child = node_of(tree, judged->second.kernel);
      }
    } else if (!detail::is_answer(draft->second.draft)) {
      continue;
    }
    count(tree.nodes[static_cast<std::size_t>(node_of(tree, step->parent))], step->action, outcome, child);
  }
  for (TreeNode& node : tree.nodes) {
    const Times& times = known.at(node.kernel);
    node.log2_speed_up = times.sum / times.weights;
    node.deviation = &node == &tree.nodes.front() ? 0 : 1 / std::sqrt(times.weights);
  }
}

/// The first decision on a kernel offers all of its actions; later ones can only add what that one lacked.
inline void TreeCollector::take_features(const JournalRun& run, const DecisionRecord& decision,
                                         TreeNode& node) {
  if (node.action_features.size() == node.legal.size() || !run.structures.contains(decision.parent)) return;
  const KernelFeatures features = kernel_features(observation_of(run, decision), decision.legal);
  if (node.features.empty()) node.features = detail::shortened_features(features.kernel);
  const std::size_t width = action_feature_count();
  node.action_features.resize(node.legal.size());
  for (std::size_t i = 0; i < decision.legal.size(); ++i) {
    const auto place = std::find(node.legal.begin(), node.legal.end(), decision.legal[i].key());
    if (place == node.legal.end()) continue;
    auto& own = node.action_features[static_cast<std::size_t>(place - node.legal.begin())];
    if (own.empty()) own = detail::shortened_features(std::span(features.actions).subspan(i * width, width));
  }
}

inline int TreeCollector::node_of(KernelTree& tree, const std::string& kernel) {
  const int known = tree.find(kernel);
  if (known >= 0) return known;
  tree.nodes.push_back({kernel});
  return static_cast<int>(tree.nodes.size()) - 1;
}

inline void TreeCollector::count(TreeNode& node, const std::string& action, StepStage outcome, int child) {
  auto edge = std::find_if(node.edges.begin(), node.edges.end(),
                           [&](const TreeEdge& one) { return one.action == action; });
  if (edge == node.edges.end()) edge = node.edges.insert(edge, TreeEdge{action});
  const auto known = std::find_if(edge->outcomes.begin(), edge->outcomes.end(), [&](const TreeOutcome& one) {
    return one.outcome == outcome && one.child == child;
  });
  if (known == edge->outcomes.end())
    edge->outcomes.push_back({outcome, child});
  else
    ++known->count;
}

} // namespace mtmc
