// mtmc-optimize: makes the kernels of task files faster, shows each step, and keeps a journal that a run
// resumes from.

#include <mtmc/core/json.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "command_line.hpp"

namespace {

struct Arguments {
  std::vector<std::string> tasks;
  std::string policy = "rules";
  std::string coder = "transform";
  std::string space = "extended";
  std::string compiler = "c++";
  mtmc::LoopOptions loop{
      .max_steps = 12, .budget = {.patience = 4}, .repairs = 0}; // the transform coder cannot mend
  int threads = 0;
  bool sample = false;
  bool json = false;
  bool list_actions = false;
  bool quiet = false;
};

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("TASK", arguments.tasks, "task files (*.json), or folders of them")->required();
  app.add_option("--policy", arguments.policy, "who chooses the next action")
      ->check(CLI::IsMember({"rules", "random"}))
      ->capture_default_str();
  app.add_option("--coder", arguments.coder, "who writes the step")
      ->check(CLI::IsMember({"transform"}))
      ->capture_default_str();
  app.add_option("--space", arguments.space, "the optimisation types: the paper's four, or all")
      ->check(CLI::IsMember({"paper", "extended"}))
      ->capture_default_str();
  app.add_option("--steps", arguments.loop.max_steps, "largest number of steps")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--samples", arguments.loop.samples, "drafts per action")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repairs", arguments.loop.repairs, "further drafts for one that failed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--beam", arguments.loop.beam, "kernels the search stands on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--sample", arguments.sample,
               "draw actions by their probability instead of taking the likeliest");
  app.add_option("--temperature", arguments.loop.temperature, "of --sample")->capture_default_str();
  app.add_option("--seed", arguments.loop.seed, "of all draws")->capture_default_str();
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
  app.add_option("--threads", arguments.threads, "threads that kernels may use; 0 = all cores");
  app.add_option("--compiler", arguments.compiler, "compiler of the kernels")->capture_default_str();
  auto* const output =
      app.add_option("--output", arguments.loop.output, "folder for journals, kernels and results");
  app.add_flag("--resume", arguments.loop.resume, "go on with the runs found in --output")->needs(output);
  app.add_flag("--durable", arguments.loop.durable,
               "every journalled line is on the disk before the run goes on");
  app.add_flag("--json", arguments.json, "one JSON object a task, as its last line on standard output");
  app.add_flag("--list-actions", arguments.list_actions,
               "show the legal actions of the start kernels and end");
  app.add_flag("--quiet", arguments.quiet, "no progress");
}

mtmc::AnyPolicy make_policy(const Arguments& arguments) {
  if (arguments.policy == "random") return mtmc::RandomPolicy{};
  return mtmc::RulesPolicy{};
}

/// The legal actions of a task's start kernel, each with the probability that the policy gives it.
void list_actions(const mtmc::Task& task, const mtmc::Device& device, mtmc::AnyPolicy& policy,
                  const mtmc::ActionSpace& space, bool json) {
  mtmc::Observation seen{.task = task, .device = device, .kernel = task.kernel, .step_limit = 1};
  seen.structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  const auto legal = space.legal_actions(seen.structure, device);
  const auto distribution = policy.distribution(seen, legal, {});
  if (json) {
    auto actions = nlohmann::json::array();
    for (std::size_t i = 0; i < legal.size(); ++i)
      actions.push_back({{"key", legal[i].key()},
                         {"text", legal[i].text()},
                         {"probability", distribution.probabilities[i]}});
    std::printf("%s\n", nlohmann::json{{"task", task.name}, {"actions", actions}}.dump().c_str());
    return;
  }
  std::printf("%s: %zu legal actions\n", task.name.c_str(), legal.size());
  for (std::size_t i = 0; i < legal.size(); ++i)
    std::printf("  %5.1f %%  %-44s %s\n", 100 * distribution.probabilities[i], legal[i].key().c_str(),
                legal[i].text().c_str());
}

/// Writes what a person or build system takes away: the kernel, a launcher that needs no library, and the
/// numbers, which get the kernel's path. Nothing if no folder was asked for.
void write_result(const mtmc::Result& result, nlohmann::json& summary) {
  if (result.folder.empty()) return;
  const auto kernel_path =
      result.folder + "/best." + (result.best.language == mtmc::languages::cuda ? "cu" : "cpp");
  mtmc::write_file_atomic(kernel_path, result.best.source);
  if (result.best.language == mtmc::languages::cpp)
    mtmc::write_file_atomic(result.folder + "/launcher.cpp", result.launcher_source());
  summary["best"] = kernel_path;
  mtmc::write_file_atomic(result.folder + "/result.json", summary.dump(2) + '\n');
}

nlohmann::json summarize(const mtmc::Result& result) {
  auto sizes = nlohmann::json::array();
  for (const auto& size : result.verified_sizes()) sizes.push_back(mtmc::to_string(size));
  return {{"task", result.task.name},
          {"speedup", result.speed_up.value},
          {"interval", {result.speed_up.low, result.speed_up.high}},
          {"verdict", to_string(result.evaluation.verdict)},
          {"best", result.best.id()},
          {"best_id", result.best.id()},
          {"stop_reason", to_string(result.stop_reason)},
          {"steps", result.steps},
          {"seconds", result.seconds},
          {"tokens", result.usage.tokens()},
          {"cost", result.usage.cost},
          {"start_seconds", result.start_seconds()},
          {"best_seconds", result.evaluation.seconds},
          {"verified_sizes", sizes},
          {"measured", result.measured},
          {"error", result.error ? nlohmann::json(result.error->what()) : nlohmann::json()}};
}

int report(const mtmc::Result& result, const Arguments& arguments) {
  int code = command_line::done;
  if (result.stop_reason == mtmc::StopReason::waiting_for_answers) code = command_line::waiting_for_answers;
  if (result.stop_reason == mtmc::StopReason::cancelled) code = command_line::interrupted_by_user;
  auto summary = summarize(result);
  try {
    write_result(result, summary);
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "error: the result cannot be written: %s\n", error.what());
    code = command_line::surroundings_broken;
  }
  if (result.error) {
    command_line::print_error(*result.error);
    code = command_line::surroundings_broken;
  }
  if ((result.folder.empty() || code == command_line::surroundings_broken) && !arguments.json)
    std::printf("\n%s\n", result.best.source.c_str());
  if (arguments.json) std::printf("%s\n", summary.dump().c_str());
  std::fflush(stdout);
  return code;
}

/// What all tasks together came to, a line each.
void print_table(std::span<const mtmc::Result> results) {
  double logarithms = 0;
  std::size_t width = 0;
  for (const auto& result : results) {
    logarithms += std::log(result.speed_up.value);
    width = std::max(width, result.task.name.size());
  }
  std::printf("\n%zu tasks, geometric mean %.3gx\n\n", results.size(),
              std::exp(logarithms / static_cast<double>(results.size())));
  for (const auto& result : results)
    std::printf("  %-*s  %9s -> %-9s %s%s\n", static_cast<int>(width), result.task.name.c_str(),
                mtmc::seconds_text(result.start_seconds()).c_str(),
                mtmc::seconds_text(result.evaluation.seconds).c_str(),
                mtmc::speed_up_text(result.speed_up).c_str(),
                result.error ? "  ended by an error, see above" : "");
}

int run(const Arguments& arguments) {
  int code = command_line::done;
  const auto remember = [&code](const mtmc::Error& error) {
    command_line::print_error(error);
    code = command_line::worse(code, command_line::exit_code(error));
  };

  std::vector<mtmc::Task> tasks;
  for (const auto& path : arguments.tasks) {
    try {
      for (const auto& file : mtmc::find_task_files(path)) {
        try {
          tasks.push_back(mtmc::load_task(file));
        } catch (const mtmc::Error& error) {
          remember(error);
        }
      }
    } catch (const mtmc::Error& error) {
      remember(error);
    }
  }
  if (tasks.empty()) return code;

  auto policy = make_policy(arguments);
  mtmc::CpuEvaluator evaluator{{.compiler = arguments.compiler, .threads = arguments.threads}};
  if (arguments.list_actions) {
    for (const auto& task : tasks)
      list_actions(task, evaluator.device(), policy, arguments.loop.action_space, arguments.json);
    return code;
  }

  // With --json, standard output belongs to the objects alone.
  mtmc::TerminalReport terminal{arguments.json ? stderr : stdout};
  auto options = arguments.loop;
  if (!arguments.quiet) options.observer = terminal.observer();
  mtmc::Loop loop{std::move(policy), mtmc::TransformCoder{}, mtmc::AstRegionFinder{}, evaluator, options};

  const command_line::StopOnInterrupt interrupt;
  std::vector<mtmc::Result> results;
  for (const auto& task : tasks) {
    if (interrupt.token().stop_requested()) {
      std::fprintf(stderr, "not begun: %s\n", task.name.c_str());
      code = command_line::worse(code, command_line::interrupted_by_user);
      continue;
    }
    try {
      results.push_back(loop.optimize(task, interrupt.token()));
      code = command_line::worse(code, report(results.back(), arguments));
    } catch (const mtmc::Error& error) {
      remember(error);
    }
  }
  if (results.size() > 1 && !arguments.json) print_table(results);
  if (interrupt.token().stop_requested() && !options.output.empty())
    std::fprintf(stderr, "interrupted; the same command with --resume goes on\n");
  return code;
}

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Makes the kernels of task files faster and proves it. Exit codes: 0 done, 2 bad usage or "
               "task, 3 broken surroundings, 75 waiting for answers, 130 interrupted.",
               "mtmc-optimize"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? command_line::done : command_line::bad_usage_or_task;
  }
  if (arguments.space == "paper") arguments.loop.action_space = mtmc::ActionSpace::paper();
  if (arguments.sample) arguments.loop.selection = mtmc::Selection::sample;
  try {
    return run(arguments);
  } catch (const mtmc::Error& error) {
    command_line::print_error(error);
    return command_line::exit_code(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return command_line::surroundings_broken;
  }
}
