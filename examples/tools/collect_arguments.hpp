#pragma once
// What mtmc-collect can be told.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/support/sha256.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "collect_policies.hpp"
#include "command_line.hpp"
#include "language_model.hpp"

namespace command_line {

/// A part of the tasks: every `count`-th, from number `index` on.
struct Shard {
  int index = 0;
  int count = 1;

  /// By a hash of the name, so that a task stays where it is whatever other tasks there are.
  [[nodiscard]] bool has(std::string_view task) const {
    const auto place = std::stoull(mtmc::sha256_hex(task).substr(0, 13), nullptr, 16);
    return place % static_cast<std::uint64_t>(count) == static_cast<std::uint64_t>(index);
  }
};

/// Limits for judging many kernels of which none is handed out: intervals of 2 to 3 % on a machine that is
/// left alone, no audits, and little patience with what hangs. Kernels are judged as for a promotion
/// (`mtmc::RememberingOptions::purpose`): a first look ends after three pairs where one kernel is much
/// faster.
inline mtmc::KernelEvaluatorOptions collecting_options() {
  mtmc::KernelEvaluatorOptions options;
  options.precision = 0.02;
  options.promote_seconds = 0.4;
  options.promote_pairs = 28;
  options.shortest_timing = 100e-6;
  options.audit_seconds = 0;
  options.prepared_tasks = 1; // one after the other: what is kept of each is hundreds of megabytes
  options.compile_seconds = 20;
  options.launch_seconds = 1;
  options.launch_factor = 10;
  options.start_seconds = 10;
  options.evaluation_seconds = 60;
  return options;
}

struct CollectArguments {
  std::vector<std::string> tasks;
  std::string output;
  std::vector<std::string> policies{"anew", "rules"};
  std::string weights;
  LanguageModelArguments models; ///< those of a served policy alone
  int seeds = 8;
  int seeds_of_round = 4;
  int steps = 8;
  int samples = 1;
  std::size_t largest_kernel = 24576;
  double seconds = 0;
  double minimum_gain = 0.5;
  Shard shard;
  std::string space = "extended";
  JudgeArguments judge{.options = collecting_options()};
  bool summary = false;
  bool quiet = false;

  /// What kernels of a language are judged with. Times of launches tell the rules where a GPU's time goes; on
  /// a processor nobody asks for them, and a kernel would be compiled twice for their sake.
  [[nodiscard]] JudgeArguments judge_of(const mtmc::Language& language) const {
    auto own = judge;
    own.options.launch_times = language == mtmc::languages::cuda;
    return own;
  }
  /// Whether one of the policies has been learnt.
  [[nodiscard]] bool asks_weights() const { return std::any_of(policies.begin(), policies.end(), is_learnt); }
  /// Whether one of the policies is served.
  [[nodiscard]] bool asks_served() const { return std::any_of(policies.begin(), policies.end(), is_served); }
  [[nodiscard]] mtmc::ActionSpace action_space() const {
    return space == "paper" ? mtmc::ActionSpace::paper() : mtmc::ActionSpace::extended();
  }
};

/// What in the arguments contradicts itself; empty if nothing does.
inline std::string contradiction_in(const CollectArguments& arguments) {
  if (arguments.tasks.empty() && !arguments.summary) return "name at least one task, or --summary";
  if (arguments.summary && !std::filesystem::is_directory(arguments.output))
    return "there is no folder of that name to sum up: " + arguments.output;
  if (arguments.asks_weights() && arguments.weights.empty()) return "a learnt policy needs --weights";
  if (arguments.asks_served() && arguments.models.policy.url.empty())
    return "a served policy needs --policy-endpoint, such as http://localhost:8000/v1, and --policy-model";
  return {};
}

/// "2/10" as the third of ten parts; says what is wrong with anything else.
inline std::string read_shard(const std::string& text, Shard& shard) {
  int index = 0, count = 0, used = 0;
  // Nine digits each: more may be no int, and sscanf does not say so.
  const bool read = std::sscanf(text.c_str(), "%9d/%9d%n", &index, &count, &used) == 2 &&
                    static_cast<std::size_t>(used) == text.size();
  if (!read || index < 0 || count < 1 || index >= count)
    return "a shard is NUMBER/COUNT, the first of four is 0/4: " + text;
  shard = {index, count};
  return {};
}

inline void add_options(CLI::App& app, CollectArguments& arguments) {
  app.add_option("TASK", arguments.tasks, "task files (*.json), or folders of them");
  app.add_option("--output", arguments.output,
                 "folder of the collection; what is there already is gone on with")
      ->required();
  std::vector<std::string> names;
  for (const auto& policy : collecting_policies) names.emplace_back(policy.name);
  app.add_option(
         "--policies", arguments.policies,
         "who chooses the actions, with commas between them; those that begin with best- take what they "
         "like best, for comparisons with --minimum-gain 1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--weights", arguments.weights,
                 "of learnt, best-learnt and best-types: a file of mtmc-train")
      ->check(readable_file());
  add_served_policy_options(app, arguments.models, "Served policy (--policies best-served)");
  app.add_option("--seeds", arguments.seeds, "runs of each task and policy")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seeds-of-round", arguments.seeds_of_round,
                 "of each task before the next one: a task is prepared each time that it comes up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", arguments.steps, "steps of a run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--samples", arguments.samples, "drafts of an action; 0 = as many as each asks for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--largest-kernel", arguments.largest_kernel,
                 "bytes of text; steps to longer kernels are declined")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds,
                 "end after so many seconds, with exit code 0; the same command goes on; 0 = no limit")
      ->check(number(0))
      ->capture_default_str();
  app.add_option("--shard", "only a part of the tasks: 0/4 is the first of four")
      ->each([&arguments](const std::string& text) {
        if (const auto wrong = read_shard(text, arguments.shard); !wrong.empty())
          throw CLI::ValidationError(wrong);
      });
  app.add_option("--minimum-gain", arguments.minimum_gain,
                 "least gain over its parent to go on from a kernel; policies that explore take 1 instead by "
                 "turns")
      ->check(number(0))
      ->capture_default_str();
  app.add_option("--space", arguments.space, "the optimisation types: the paper's four, or all")
      ->check(CLI::IsMember({"paper", "extended"}))
      ->capture_default_str();
  app.add_option("--threads", arguments.judge.threads, "threads that kernels may use; 0 = all cores");
  app.add_option("--compiler", arguments.judge.compiler, "compiler of the kernels")->capture_default_str();
  app.add_flag("--summary", arguments.summary, "only say what the folder holds");
  app.add_flag("--quiet", arguments.quiet, "no line for each run");
}

} // namespace command_line
