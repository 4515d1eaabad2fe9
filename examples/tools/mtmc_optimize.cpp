// mtmc-optimize: makes the kernels of task files faster, on this processor or a GPU, with or without language
// models, shows each step, and keeps a journal that a run resumes from or that is replayed.

#include <mtmc/cuda_worker.hpp>
#include <mtmc/mtmc.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "check_tasks.hpp"
#include "command_line.hpp"
#include "dry_run.hpp"
#include "language_model.hpp"
#include "optimize_arguments.hpp"
#include "optimize_parts.hpp"
#include "optimize_results.hpp"
#include "python_tasks.hpp"

namespace {

using command_line::Arguments;

int run(const Arguments& arguments) {
  if (arguments.check) {
    const auto preset = mtmc::find_device_preset(arguments.device);
    return command_line::check_tasks(arguments.tasks, preset ? &preset->device : nullptr, arguments.json);
  }
  int code = command_line::done;
  const auto remember = [&code](const mtmc::Error& error) {
    command_line::print_error(error);
    code = command_line::worse(code, command_line::exit_code(error));
  };

  command_line::Evaluators evaluators(arguments);
  std::vector<mtmc::Task> tasks;
  for (const auto& path : arguments.tasks) {
    try {
      for (const auto& file : command_line::task_files(path)) {
        try {
          tasks.push_back(command_line::is_problem(file) ? evaluators.problem(file) : mtmc::load_task(file));
        } catch (const mtmc::Error& error) {
          remember(error);
        }
      }
    } catch (const mtmc::Error& error) {
      remember(error);
    }
  }
  if (tasks.empty()) return code;

  command_line::LanguageModels models(arguments.models);
  auto parts = command_line::make_parts(arguments, models);
  for (const auto& model : models.without_price())
    std::fprintf(stderr, "warning: no price in %s fits %s: its tokens count as free\n",
                 arguments.models.prices.c_str(), model.c_str());
  if (arguments.only_shows()) {
    command_line::show_first_requests(tasks, evaluators, arguments, parts, models.coder());
    return code;
  }
  if (arguments.list_actions) {
    for (const auto& task : tasks)
      command_line::list_actions(task, evaluators.device_of(task), parts.policy, parts.space, arguments.json);
    return code;
  }

  if (arguments.replay.empty() && !arguments.asks_coder() &&
      std::any_of(tasks.begin(), tasks.end(),
                  [](const mtmc::Task& task) { return task.kernel.language == mtmc::languages::pytorch; }))
    std::fprintf(
        stderr, "note: the offline coder changes kernels in Triton, and writes no first one for a problem in "
                "PyTorch: --coder openai asks a language model\n");

  // With --json, standard output belongs to the objects alone.
  mtmc::TerminalReport terminal{arguments.json ? stderr : stdout,
                                {.explain = arguments.explain, .errors = false}};
  auto options = arguments.loop;
  options.action_space = std::move(parts.space);
  if (!arguments.quiet) options.observer = terminal.observer();

  const command_line::StopOnInterrupt interrupt;
  std::vector<mtmc::Result> results;
  for (const auto& task : tasks) {
    if (interrupt.token().stop_requested()) {
      std::fprintf(stderr, "not begun: %s\n", task.name.c_str());
      code = command_line::worse(code, command_line::interrupted_by_user);
      continue;
    }
    try {
      options.samples = arguments.samples_for(task);
      options.seed = arguments.seed_for(task);
      mtmc::Loop loop{parts.policy, parts.coder, command_line::finder_for(task.kernel.language),
                      evaluators.of(task), options};
      results.push_back(loop.optimize(task, interrupt.token()));
      code = command_line::worse(code, command_line::report(results.back(), arguments));
    } catch (const mtmc::Error& error) {
      remember(error);
    }
  }
  if (results.size() > 1 && !arguments.json) command_line::print_table(results);
  if (models.batch()) command_line::close_round(*models.batch(), arguments.models.batch);
  if (models.replay() && models.replay()->left() > 0)
    std::fprintf(stderr, "note: %zu answers of %s were not asked for%s\n", models.replay()->left(),
                 arguments.models.play.c_str(),
                 arguments.models.options.prompt.plain
                     ? ""
                     : "; without --plain-prompt, then and now, questions are seldom the same twice");
  if (interrupt.token().stop_requested() && !options.output.empty())
    std::fprintf(stderr, "interrupted; the same command with --resume goes on\n");
  return code;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Makes the kernels of task files faster and proves it. Exit codes: 0 done, 2 bad usage or "
               "task, 3 broken surroundings, 75 waiting for answers, 130 interrupted.",
               "mtmc-optimize"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  command_line::add_options(app, arguments);
  return command_line::run_program(app, argc, argv, [&] {
    // Models can mend what failed; the transform coder cannot.
    if (arguments.asks_coder() && app.count("--repairs") == 0) arguments.loop.repairs = 1;
    if (const auto wrong = command_line::contradiction_in(arguments); !wrong.empty()) {
      std::fprintf(stderr, "error: %s\n", wrong.c_str());
      return command_line::bad_usage_or_task;
    }
    // The likeliest of equally likely actions would be the first of the list, whatever the seed.
    if (arguments.sample || arguments.policy == "random") arguments.loop.selection = mtmc::Selection::sample;
    return run(arguments);
  });
}
