#pragma once
// What mtmc-train leaves behind: weights with their card, and a report.

#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/train.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "train_arguments.hpp"
#include "train_methods.hpp"

namespace command_line {

inline void print(const mtmc::DataCard& card) {
  using mtmc::detail::counted;
  std::printf("%s, %s, %s, %s, %s, %.2f hours\n", counted(card.tasks, "task").c_str(),
              counted(card.trees, "tree").c_str(), counted(card.kernels, "kernel").c_str(),
              counted(card.sequences, "sequence").c_str(), counted(card.evaluations, "evaluation").c_str(),
              card.hours);
  for (const auto& limit : card.limits) std::printf("  %s.\n", limit.c_str());
}

/// The trials side by side.
class TrainReport {
public:
  /// `training`: the part of the data that is learnt from.
  TrainReport(const TrainArguments& arguments, const mtmc::DataSet& data, const mtmc::DataSet& training)
      : arguments_(arguments), data_(data), training_(training) {}

  void add(Trial trial) { trials_.push_back(std::move(trial)); }

  /// Writes `report.md`, and `weights.json` where something was learnt.
  void write() const {
    std::string text = "| method | training trees, greedy | held out, greedy | held out, drawn | seconds |\n"
                       "|---|---|---|---|---|\n";
    for (const auto& trial : trials_) text += line(trial);
    std::printf("\n%s", text.c_str());
    mtmc::write_training_file(
        arguments_.output + "/report.md",
        "Sums of returns as parts of the best returns, means over seeds, 95 % intervals "
        "by a bootstrap over tasks.\n\n" +
            text);
    if (const Trial* const best = shipped()) {
      const auto file = mtmc::write_policy_weights(weights(*best));
      mtmc::write_training_file(arguments_.output + "/weights.json", file);
      mtmc::write_training_file(arguments_.output + "/built_in_weights.hpp", as_header(file));
      std::printf("\nweights by %s: %s/weights.json\n", best->method.c_str(), arguments_.output.c_str());
      if (best->held_out.empty())
        std::printf(
            "No tree was held out: nothing tells what they are worth for other tasks. Collect more of "
            "them.\n");
    }
  }

private:
  /// The header of the library that its own weights stand in.
  static std::string as_header(const std::string& weights) {
    return "#pragma once\n/// The weights that come with the library: a file of mtmc-train as it is.\n\n"
           "#include <mtmc/requirements.hpp>\n\n#include <string_view>\n\n"
           "namespace mtmc::inline MTMC_ABI::detail {\n\n// clang-format off\n/// \\cond\n"
           "inline constexpr std::string_view built_in_weights = R\"weights(" +
           weights + ")weights\";\n/// \\endcond\n// clang-format on\n\n} // namespace mtmc::detail\n";
  }
  static std::string with_interval(const mtmc::ScoreInterval& one) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3f [%.3f, %.3f]", one.ratio, one.low, one.high);
    return text;
  }
  /// A single tree has no interval.
  static std::string told(const mtmc::ScoreInterval& one, std::size_t trees) {
    if (trees == 0) return "none held out";
    return trees == 1 ? with_interval(one).substr(0, 5) + " (one tree)" : with_interval(one);
  }
  static std::string line(const Trial& trial) {
    const auto training = mtmc::score_intervals(trial.training);
    const auto held_out = mtmc::score_intervals(trial.held_out);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f", trial.seconds);
    return "| " + trial.method + " | " + told(training.first, trial.training.size()) + " | " +
           told(held_out.first, trial.held_out.size()) + " | " +
           told(held_out.second, trial.held_out.size()) + " | " + seconds + " |\n";
  }

  [[nodiscard]] const Trial* shipped() const {
    const Trial* best = nullptr;
    for (const auto& trial : trials_) {
      if (trial.networks.empty() || trial.method == "clone" || // it stands without the rules beneath
          (!arguments_.ship.empty() && trial.method != arguments_.ship))
        continue;
      if (best == nullptr || mtmc::ratios_of(trial.held_out).greedy > mtmc::ratios_of(best->held_out).greedy)
        best = &trial;
    }
    return best;
  }
  [[nodiscard]] mtmc::PolicyWeights weights(const Trial& trial) const {
    const auto place = static_cast<std::size_t>(
        std::max_element(trial.of_seeds.begin(), trial.of_seeds.end()) - trial.of_seeds.begin());
    mtmc::PolicyWeights result{.network = trial.networks[place]};
    std::set<std::string> languages, devices, optimizations;
    for (const auto& tree : training_.trees) {
      // Trees do not tell the kind of their device. Of a language that runs on several nothing is claimed.
      const bool on_cpu = tree.language == mtmc::languages::cpp.name;
      const bool module = tree.language == mtmc::languages::pytorch.name &&
                          tree.evaluator.find(", cuda") != std::string::npos; // recorded plans on a GPU
      if (!on_cpu && !module && tree.language != mtmc::languages::cuda.name) continue;
      languages.insert(tree.language);
      if (module) languages.insert(std::string(mtmc::languages::triton.name)); // what a module becomes
      devices.insert(on_cpu ? "cpu" : "gpu");
      for (const auto& node : tree.nodes)
        for (const auto& edge : node.edges)
          optimizations.insert(edge.action.substr(0, edge.action.find('|')));
    }
    auto& card = result.card;
    card.name = arguments_.name;
    card.licence = arguments_.licence;
    card.features = mtmc::feature_version;
    card.languages.assign(languages.begin(), languages.end());
    card.devices.assign(devices.begin(), devices.end());
    card.optimizations.assign(optimizations.begin(), optimizations.end());
    card.prior_weight = arguments_.prior_weight;
    nlohmann::json training;
    training["method"] = trial.method;
    training["seed"] = place + 1;
    training["step_limits"] = arguments_.step_limits;
    training["minimum_gain"] = arguments_.minimum_gain;
    training["reward"] = arguments_.reward;
    training["data"] = nlohmann::json(data_.card);
    if (!trial.held_out.empty()) training["held_out_ratio"] = trial.of_seeds[place];
    card.training = training.dump();
    return result;
  }

  const TrainArguments& arguments_;
  const mtmc::DataSet& data_;
  const mtmc::DataSet& training_;
  std::vector<Trial> trials_{};
};

} // namespace command_line
