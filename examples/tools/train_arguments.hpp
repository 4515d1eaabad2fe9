#pragma once
// What mtmc-train can be told.

#include <mtmc/train/reward.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace command_line {

struct TrainArguments {
  std::vector<std::string> data;
  std::vector<std::string> exclude;
  std::string output;
  std::string name;
  std::string licence;
  std::string reward = "default";
  std::vector<std::string> methods{"chance", "rules", "clone", "soft", "ppo", "soft+ppo"};
  std::string start; ///< weights that `given` and `given+ppo` begin with; empty = those of the library
  std::string ship;  ///< the method whose weights are written; empty = the best in trees held out
  double held_out = 0.2;
  std::uint64_t split_seed = 1;
  std::uint64_t seeds = 5;
  std::size_t steps = 300000;
  std::size_t hidden = 32;
  std::vector<int> step_limits{8}; ///< trees are scored by the first, episodes of PPO have them by turns
  double minimum_gain = 1.02;
  double prior_weight = 1;
  double temperature = 0.1;
  bool data_only = false;
  bool export_texts = false;
  std::string card; ///< of the prompts in exported texts

  [[nodiscard]] mtmc::RewardOptions rewards() const {
    auto options = reward == "paper"       ? mtmc::RewardOptions::paper_literal()
                   : reward == "potential" ? mtmc::RewardOptions::potential()
                   : reward == "terminal"  ? mtmc::RewardOptions::terminal_only()
                                           : mtmc::RewardOptions{};
    options.step_limit = step_limits.front();
    return options;
  }
  /// How trees are played: as the loop does, which goes on from what is faster and tries nothing twice.
  [[nodiscard]] mtmc::TreeOptions rules() const {
    return {.minimum_gain = minimum_gain, .once = true, .reward = rewards()};
  }
};

/// Which data, which part of it is held out, and how trees are played.
inline void add_data_options(CLI::App& app, TrainArguments& arguments) {
  app.add_option("DATA", arguments.data, "folders of journals, and data sets (data.jsonl)")->required();
  app.add_option(
      "--exclude", arguments.exclude,
      "task files, or folders of them, whose searches are left out: what the policy is to be tried on");
  app.add_option("--held-out", arguments.held_out, "part of the tasks that is not trained on")
      ->check(number(0, 0.9))
      ->capture_default_str();
  app.add_option("--split-seed", arguments.split_seed, "which tasks those are")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(
         "--step-limit", arguments.step_limits,
         "steps of an episode, at most 1000; several (8,4): PPO has them by turns, all else the first")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--minimum-gain", arguments.minimum_gain,
                 "speed-up over its parent from which on an episode goes on from a kernel; 0 = always")
      ->check(number(0))
      ->capture_default_str();
  app.add_option("--reward", arguments.reward, "what is learnt")
      ->check(CLI::IsMember({"default", "paper", "potential", "terminal"}))
      ->capture_default_str();
  app.add_option("--temperature", arguments.temperature, "of soft labels, in units of the reward")
      ->check(number(1e-6))
      ->capture_default_str();
  app.add_option("--card", arguments.card,
                 "policy card by which prompts are made; if not given that of the paper");
}

inline void add_options(CLI::App& app, TrainArguments& arguments) {
  add_data_options(app, arguments);
  app.add_option("--output", arguments.output, "folder for data set, weights, metrics and report")
      ->required();
  app.add_option("--name", arguments.name, "of the policy, for its card");
  app.add_option("--licence", arguments.licence, "of data and weights, for their cards");
  app.add_option("--methods", arguments.methods, "what is tried, in this order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"chance", "rules", "clone", "soft", "ppo", "soft+ppo", "given", "given+ppo"}))
      ->capture_default_str();
  app.add_option(
         "--start", arguments.start,
         "weights that the methods given (as they are) and given+ppo begin with; if not given those of "
         "the library")
      ->check(CLI::ExistingFile);
  app.add_option("--ship", arguments.ship, "the method whose weights are written; if not given the best")
      ->check(CLI::IsMember({"clone", "soft", "ppo", "soft+ppo", "given", "given+ppo"}));
  app.add_option("--seeds", arguments.seeds, "trainings of each method")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", arguments.steps, "of PPO")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--hidden", arguments.hidden, "units of each layer")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--prior", arguments.prior_weight,
                 "weight of the rules' scores beneath the network; 0 = it stands alone")
      ->check(number(0, 1000))
      ->capture_default_str();
  app.add_flag(
      "--export-texts", arguments.export_texts,
      "write texts.jsonl, which mtmc-environment needs beside data.jsonl, and trees.jsonl, the trees with "
      "their prompts, for trainers that want files");
  app.add_flag("--data-only", arguments.data_only, "make the data set and its card, and end");
}

} // namespace command_line
