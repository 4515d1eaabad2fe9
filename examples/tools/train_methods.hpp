#pragma once
// The ways to a policy that mtmc-train compares, each tried in the same trees with the same seeds.

#include <mtmc/train.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "train_arguments.hpp"

namespace command_line {

/// What a method came to.
struct Trial {
  std::string method;
  std::vector<mtmc::TreeScore> training;     ///< means over seeds, tree by tree
  std::vector<mtmc::TreeScore> held_out;     ///< the same of trees it has not seen
  std::vector<mtmc::ActionNetwork> networks; ///< one a seed; none where nothing is learnt
  std::vector<double> of_seeds;              ///< greedy ratio in trees held out, one a seed
  double seconds = 0;                        ///< of a training
};

/// Trains and plays.
class Trials {
public:
  Trials(const TrainArguments& arguments, mtmc::DataSet& training, mtmc::DataSet& held_out)
      : arguments_(arguments), training_(training), held_out_(held_out), rules_(arguments.rules()),
        encode_(mtmc::feature_encoder(arguments.prior_weight)) {}

  Trial run(const std::string& method) {
    Trial trial;
    trial.method = method;
    const bool learns = method != "chance" && method != "rules";
    std::vector<std::vector<mtmc::TreeScore>> training, held_out;
    for (std::uint64_t seed = 1; seed <= (learns ? arguments_.seeds : 1); ++seed) {
      const auto begin = std::chrono::steady_clock::now();
      if (learns) trial.networks.push_back(train(method, seed));
      trial.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const auto policy = learns              ? mtmc::network_policy(trial.networks.back(), encode_)
                          : method == "rules" ? mtmc::prior_policy(mtmc::feature_encoder(1))
                                              : mtmc::uniform_policy();
      const mtmc::TreeScoreOptions played{.episodes = method == "chance" ? 200 : 30, .seed = seed};
      training.push_back(mtmc::score_trees(policy, training_.trees, rules_, played));
      held_out.push_back(mtmc::score_trees(policy, held_out_.trees, rules_, played));
      trial.of_seeds.push_back(mtmc::ratios_of(held_out.back()).greedy);
      std::printf("%s, seed %llu: %.3f of the best in %zu trees", method.c_str(),
                  static_cast<unsigned long long>(seed), mtmc::ratios_of(training.back()).greedy,
                  training.back().size());
      if (held_out.back().empty())
        std::printf(", no tree held out to try it on\n");
      else
        std::printf(", %.3f in %zu held out\n", trial.of_seeds.back(), held_out.back().size());
      std::fflush(stdout);
    }
    trial.seconds /= static_cast<double>(trial.of_seeds.size());
    trial.training = mtmc::mean_over_seeds(training);
    trial.held_out = mtmc::mean_over_seeds(held_out);
    return trial;
  }

private:
  [[nodiscard]] mtmc::ActionNetwork train(const std::string& method, std::uint64_t seed) {
    auto network = method.starts_with("given")
                       ? given().network
                       : mtmc::make_network(mtmc::feature_shape(arguments_.hidden), seed);
    auto metrics = metrics_of(method, seed);
    if (method == "clone") {
      const auto rules = mtmc::cloning_teacher(mtmc::prior_policy(mtmc::feature_encoder(1)));
      return imitate(std::move(network), mtmc::feature_encoder(0), rules, seed, metrics);
    }
    if (method.starts_with("soft"))
      network = imitate(std::move(network), encode_, mtmc::exact_teacher(rules_, arguments_.temperature),
                        seed, metrics);
    if (!method.ends_with("ppo")) return network;
    const bool started = method != "ppo";
    const mtmc::PpoOptions options{.steps = arguments_.steps,
                                   .discount = 1,
                                   .policy_rate = started ? 3e-4 : 1e-3,
                                   .value_updates = started ? 5U : 0U,
                                   .step_limits = arguments_.step_limits,
                                   .seed = seed};
    auto result = mtmc::require_trained(mtmc::train_ppo(std::move(network), training_.trees, rules_, encode_,
                                                        options, [&](const mtmc::PpoProgress& progress) {
                                                          metrics.append(progress);
                                                          return true;
                                                        }));
    curves_[method].push_back(std::move(result.progress));
    mtmc::write_training_file(arguments_.output + '/' + method + ".svg",
                              mtmc::learning_curve(curves_[method], {.title = method}));
    return std::move(result.network);
  }
  /// The weights that a training goes on from.
  [[nodiscard]] mtmc::PolicyWeights given() const {
    return arguments_.start.empty() ? mtmc::built_in_policy_weights()
                                    : mtmc::load_policy_weights(arguments_.start);
  }
  /// The metrics of a training, begun anew.
  [[nodiscard]] mtmc::MetricsFile metrics_of(const std::string& method, std::uint64_t seed) const {
    const auto path = arguments_.output + '/' + method + '-' + std::to_string(seed) + ".jsonl";
    std::filesystem::remove(path);
    return mtmc::MetricsFile{path};
  }
  [[nodiscard]] mtmc::ActionNetwork imitate(mtmc::ActionNetwork network, const mtmc::TreeEncoder& encode,
                                            const mtmc::TreeTeacher& teacher, std::uint64_t seed,
                                            mtmc::MetricsFile& metrics) {
    return mtmc::require_trained(mtmc::imitate(std::move(network), training_.trees, rules_, encode, teacher,
                                               {.states = 20000, .seed = seed},
                                               [&metrics](const mtmc::ImitationProgress& progress) {
                                                 metrics.append(progress);
                                                 return true;
                                               }))
        .network;
  }

  const TrainArguments& arguments_;
  mtmc::DataSet& training_;
  mtmc::DataSet& held_out_;
  mtmc::TreeOptions rules_;
  mtmc::TreeEncoder encode_;
  std::map<std::string, std::vector<std::vector<mtmc::PpoProgress>>> curves_{}; ///< by method, one a seed
};

} // namespace command_line
