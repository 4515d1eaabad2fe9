#pragma once
// What mtmc-optimize can be told, and which of it contradicts itself.

#include <mtmc/loop/options.hpp>
#include <mtmc/support/sha256.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "language_model.hpp"
#include "python_tasks.hpp"

namespace command_line {

struct Arguments {
  std::vector<std::string> tasks;
  std::string policy;  ///< empty = the default
  std::string weights; ///< of the learnt policy; empty = those of the library
  std::string coder = "transform";
  std::string replay;
  std::string space = "extended";
  std::string device;
  JudgeArguments judge;
  mtmc::PyTorchEvaluatorOptions pytorch;
  mtmc::LoopOptions loop{
      .max_steps = 12, .budget = {.patience = 4}, .repairs = 0}; // the transform coder cannot mend
  std::optional<std::uint64_t> seed;
  bool sample = false;
  bool json = false;
  bool list_actions = false;
  bool show_prompt = false;
  bool dry_run = false;
  bool check = false;
  bool quiet = false;
  bool explain = false;
  LanguageModelArguments models;

  [[nodiscard]] bool asks_coder() const { return coder == "openai"; }
  /// Of a task's draws. Tasks of one command have lists of actions that resemble each other: with one seed
  /// ten modules drew the same place of theirs.
  [[nodiscard]] std::uint64_t seed_for(const mtmc::Task& task) const {
    constexpr std::size_t digits = 8;
    return seed.value_or(std::stoul(mtmc::sha256_hex(task.name).substr(0, digits), nullptr, 16));
  }
  /// Drafts per action. Those of the transform coder cost nothing, and an evaluation on a GPU a third of a
  /// second: there the parameters that it thinks best are tried beside two others.
  [[nodiscard]] int samples_for(const mtmc::Task& task) const {
    const bool offline_on_gpu =
        !asks_coder() && replay.empty() && task.kernel.language == mtmc::languages::cuda;
    return loop.samples == 0 && offline_on_gpu ? 3 : loop.samples;
  }
  /// Whether nothing is judged, so that the device need not be there.
  [[nodiscard]] bool only_plans() const { return only_shows() || list_actions || check; }
  /// Whether there is nothing to be sent, only to be shown.
  [[nodiscard]] bool only_shows() const { return show_prompt || dry_run; }
  [[nodiscard]] bool asks_policy() const {
    return policy == "chat" || policy == "served" || policy == "free-form";
  }
};

/// The policies that the paper's ablations (tables 6 and 7) put in the place of the learnt one.
inline const std::map<std::string, std::string> policy_of_ablation{{"random-policy", "random"},
                                                                   {"chat-policy", "chat"},
                                                                   {"free-form", "free-form"},
                                                                   {"single-pass", "single-pass"}};

inline void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("TASK", arguments.tasks,
                 "task files (*.json), problems in PyTorch (*.py), or folders of either")
      ->required();
  auto* const policy =
      app.add_option(
             "--policy", arguments.policy,
             "who chooses the next action; if not given learnt for C++ kernels by the transform coder, "
             "rules for all others")
          ->check(CLI::IsMember({"rules", "learnt", "random", "chat", "served", "free-form", "single-pass"}));
  app.add_option("--weights", arguments.weights, "of --policy learnt: a file of mtmc-train")
      ->check(readable_file());
  auto* const coder = app.add_option("--coder", arguments.coder, "who writes the step")
                          ->check(CLI::IsMember({"transform", "openai"}))
                          ->capture_default_str();
  app.add_option_function<std::string>(
         "--ablation",
         [&arguments](const std::string& name) { arguments.policy = policy_of_ablation.at(name); },
         "the paper's comparisons: another policy in the place of the usual one, or none")
      ->check(CLI::IsMember(policy_of_ablation))
      ->excludes(policy);
  auto* const space =
      app.add_option("--space", arguments.space, "the optimisation types: the paper's four, or all")
          ->check(CLI::IsMember({"paper", "extended"}))
          ->capture_default_str();
  app.add_option(
         "--replay", arguments.replay,
         "take steps and kernels from this folder: a sequence (steps.json), a run (journal.jsonl), or "
         "folders of them; --minimum-gain 0.9 goes on over steps that gain nothing")
      ->excludes(policy)
      ->excludes(coder)
      ->excludes(space);
  app.add_option("--steps", arguments.loop.max_steps, "largest number of steps")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--samples", arguments.loop.samples,
                 "drafts per action; 0 or not given: as many as each asks for, 3 for a rewriting, 3 by the "
                 "transform coder on a GPU, and 1 else")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repairs", arguments.loop.repairs,
                 "further drafts for one that failed; if not given 1 with --coder openai, else 0")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--beam", arguments.loop.beam, "kernels the search stands on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--sample", arguments.sample,
               "draw actions by their probability instead of taking the likeliest");
  app.add_option("--temperature", arguments.loop.temperature, "of --sample")->capture_default_str();
  app.add_option("--seed", arguments.seed,
                 "of all draws; without it each task has its own, made of its name");
  app.add_option("--minimum-gain", arguments.loop.minimum_gain,
                 "least gain over its parent to go on from a kernel")
      ->capture_default_str();
  app.add_option("--seconds", arguments.loop.budget.seconds,
                 "stop after so many seconds a task; 0 = no limit");
  app.add_option("--tokens", arguments.loop.budget.tokens, "stop after so many tokens a task; 0 = no limit");
  app.add_option("--cost", arguments.loop.budget.cost, "stop after so much money a task; 0 = no limit");
  app.add_option("--patience", arguments.loop.budget.patience,
                 "stop after so many steps without a new best; 0 = never")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_judge_options(app, arguments.judge);
  add_python_options(app, arguments.pytorch);
  auto* const output =
      app.add_option("--output", arguments.loop.output, "folder for journals, kernels and results");
  app.add_flag("--resume", arguments.loop.resume, "go on with the runs found in --output")->needs(output);
  app.add_flag("--durable", arguments.loop.durable,
               "every journalled line is on the disk before the run goes on");
  app.add_flag("--json", arguments.json, "one JSON object a task, as its last line on standard output");
  app.add_flag("--list-actions", arguments.list_actions,
               "show the legal actions of the start kernels and end");
  app.add_flag("--show-prompt", arguments.show_prompt,
               "print exactly what would be sent to the coder for the first step, and end");
  app.add_flag("--dry-run", arguments.dry_run,
               "print prompts, without the kernel's speed, and the most they could cost; nothing is sent or "
               "judged");
  app.add_flag("--check", arguments.check,
               "load and validate the tasks, launch lines of every size included, without any device or "
               "compiler: one line a task");
  app.add_option("--device", arguments.device,
                 "the GPU to plan for, which need not be there, such as H100; with --list-actions, "
                 "--show-prompt (without the kernel's speed), --dry-run and --check")
      ->check(known_device());
  app.add_flag("--quiet", arguments.quiet, "no progress");
  app.add_flag("--explain", arguments.explain,
               "before each step where the time goes, and why the policy chose as it did");
  add_language_model_options(app, arguments.models);
}

/// What in the arguments contradicts itself; empty if nothing does.
inline std::string contradiction_in(const Arguments& arguments) {
  const auto& models = arguments.models;
  const bool asks = arguments.asks_coder() || arguments.asks_policy();
  if (!arguments.device.empty() && !arguments.only_plans())
    return "--device describes a GPU that need not be there, on which nothing can be judged: it goes with "
           "--list-actions, --show-prompt, --dry-run or --check";
  if (!arguments.weights.empty() && arguments.policy != "learnt") return "--weights needs --policy learnt";
  if (!models.batch.empty() && arguments.loop.output.empty())
    return "--batch needs --output: a run that waits for answers goes on from its journal";
  if (!models.batch.empty() && arguments.asks_policy())
    return "--batch needs a policy that answers at once: --policy rules, learnt or random";
  if (!asks && !(models.record.empty() && models.play.empty() && models.batch.empty()))
    return "--record, --play and --batch need --coder openai, or a policy that asks a model: others ask "
           "nothing";
  if (arguments.only_shows() && !arguments.asks_coder())
    return "--show-prompt and --dry-run need --coder openai: others send nothing";
  return {};
}

} // namespace command_line
