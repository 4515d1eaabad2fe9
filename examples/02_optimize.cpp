// mtmc-optimize: makes the kernels of task files faster, on this processor or a GPU, with or without language
// models, shows each step, and keeps a journal that a run resumes from or that is replayed.

#include <mtmc/core/json.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/loop/journal_replay.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "check_tasks.hpp"
#include "command_line.hpp"
#include "language_model.hpp"

namespace {

struct Arguments {
  std::vector<std::string> tasks;
  std::string policy = "rules";
  std::string coder = "transform";
  std::string replay;
  std::string space = "extended";
  std::string device;
  command_line::JudgeArguments judge;
  mtmc::LoopOptions loop{
      .max_steps = 12, .budget = {.patience = 4}, .repairs = 0}; // the transform coder cannot mend
  bool sample = false;
  bool json = false;
  bool list_actions = false;
  bool show_prompt = false;
  bool dry_run = false;
  bool check = false;
  bool quiet = false;
  command_line::LanguageModelArguments models;

  [[nodiscard]] bool asks_coder() const { return coder == "openai"; }
  /// Whether nothing is judged, so that the device need not be there.
  [[nodiscard]] bool only_plans() const { return only_shows() || list_actions || check; }
  /// Whether there is nothing to be sent, only to be shown.
  [[nodiscard]] bool only_shows() const { return show_prompt || dry_run; }
  [[nodiscard]] bool asks_policy() const {
    return policy == "chat" || policy == "served" || policy == "free-form";
  }
};

/// The policies that the paper's ablations (tables 6 and 7) put in the place of the learnt one.
const std::map<std::string, std::string> policy_of_ablation{{"random-policy", "random"},
                                                            {"chat-policy", "chat"},
                                                            {"free-form", "free-form"},
                                                            {"single-pass", "single-pass"}};

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("TASK", arguments.tasks, "task files (*.json), or folders of them")->required();
  auto* const policy =
      app.add_option("--policy", arguments.policy, "who chooses the next action")
          ->check(CLI::IsMember({"rules", "random", "chat", "served", "free-form", "single-pass"}))
          ->capture_default_str();
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
  app.add_option("--samples", arguments.loop.samples, "drafts per action")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repairs", arguments.loop.repairs,
                 "further drafts for one that failed; if not given 1 with --coder openai, else 0")
      ->check(CLI::NonNegativeNumber);
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
  command_line::add_judge_options(app, arguments.judge);
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
      ->check(command_line::known_device());
  app.add_flag("--quiet", arguments.quiet, "no progress");
  command_line::add_language_model_options(app, arguments.models);
}

/// The steps of a folder: the drafts of the runs in it, or else sequences that somebody wrote.
mtmc::ReplaySequence load_steps(const std::string& folder) {
  std::vector<std::string> journals;
  const auto note = [&journals](const std::string& run) {
    if (std::error_code ignored; std::filesystem::exists(mtmc::journal_path(run), ignored))
      journals.push_back(mtmc::journal_path(run));
  };
  note(folder);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{folder, ignored}) note(entry.path().string());
  if (journals.empty()) return mtmc::load_replay_sequence(folder);
  std::sort(journals.begin(), journals.end());
  mtmc::ReplaySequence sequence;
  for (const auto& journal : journals)
    for (const auto& recorded : mtmc::read_journal(journal)) sequence.append(mtmc::replay_of(recorded));
  return sequence;
}

/// Who chooses, who writes, and what there is to choose from.
struct Parts {
  mtmc::AnyPolicy policy;
  mtmc::AnyCoder coder;
  mtmc::ActionSpace space;
};

mtmc::AnyPolicy make_policy(const Arguments& arguments, const mtmc::ActionSpace& space,
                            command_line::LanguageModels& models) {
  // The served policy asks its server as soon as it is made.
  if (arguments.only_shows() && arguments.asks_policy()) return mtmc::RulesPolicy{};
  if (arguments.policy == "random") return mtmc::RandomPolicy{};
  if (arguments.policy == "chat") return mtmc::ChatPolicy{models.policy_client()};
  if (arguments.policy == "free-form") return mtmc::FreeFormPolicy{models.policy_client()};
  if (arguments.policy == "served") return models.served_policy();
  if (arguments.policy == "single-pass") return mtmc::SinglePassPolicy{space};
  return mtmc::RulesPolicy{};
}

Parts make_parts(const Arguments& arguments, command_line::LanguageModels& models) {
  if (!arguments.replay.empty()) {
    const auto sequence = load_steps(arguments.replay);
    return {mtmc::ReplayPolicy{sequence}, mtmc::ReplayCoder{sequence}, mtmc::action_space_of(sequence)};
  }
  auto space = arguments.space == "paper" ? mtmc::ActionSpace::paper() : mtmc::ActionSpace::extended();
  auto policy = make_policy(arguments, space, models);
  if (arguments.asks_coder()) return {std::move(policy), models.coder(), std::move(space)};
  return {std::move(policy), mtmc::TransformCoder{}, std::move(space)};
}

/// An evaluator for each language, made when it is first asked for.
class Evaluators {
public:
  explicit Evaluators(const Arguments& arguments) : arguments_(arguments) {}
  [[nodiscard]] mtmc::AnyEvaluator& of(const mtmc::Task& task) {
    const auto& language = task.kernel.language;
    auto& evaluator = evaluators_[language.name];
    if (!evaluator) evaluator = command_line::evaluator_for(language, arguments_.judge);
    return *evaluator;
  }
  /// What a task is planned for: the device that the user named, or the one that is there.
  [[nodiscard]] mtmc::Device device_of(const mtmc::Task& task) {
    const bool on_gpu = task.kernel.language == mtmc::languages::cuda;
    if (!arguments_.device.empty() && !on_gpu)
      throw mtmc::Error(mtmc::error_id::evaluator_unsupported,
                        "--device " + arguments_.device + " is a GPU, but the kernel is in " +
                            task.kernel.language.name + ", which runs on this processor",
                        "Leave --device out", "task " + task.name);
    if (!arguments_.device.empty()) return mtmc::find_device_preset(arguments_.device)->device;
    try {
      return of(task).device();
    } catch (const mtmc::Error& error) {
      if (!on_gpu) throw;
      throw mtmc::Error(error.id(), error.message(),
                        error.remedy() + "; or name the GPU to plan for, as in --device H100", error.place());
    }
  }

private:
  const Arguments& arguments_;
  std::map<std::string, std::optional<mtmc::AnyEvaluator>> evaluators_;
};

/// What a policy and a coder see before the first step.
mtmc::Observation observe_start(const mtmc::Task& task, const mtmc::Device& device, int steps) {
  mtmc::Observation seen{.task = task, .device = device, .kernel = task.kernel, .step_limit = steps};
  seen.structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  return seen;
}

/// The first request to the coder.
mtmc::CodingRequest first_request(const mtmc::Task& task, Evaluators& evaluators, const Arguments& arguments,
                                  Parts& parts) {
  const auto device = evaluators.device_of(task);
  mtmc::CodingRequest request;
  request.seen = observe_start(task, device, arguments.loop.max_steps);
  // The prompt tells the start kernel's speed.
  if (arguments.show_prompt && !arguments.models.options.prompt.plain && arguments.device.empty())
    request.seen.evaluation = evaluators.of(task).evaluate({.task = task, .candidate = task.kernel}, {});
  auto actions = parts.space.legal_actions(request.seen.structure, device);
  if (parts.policy.proposes_actions()) {
    actions = parts.policy.propose(request.seen, actions, {});
    actions.push_back(mtmc::Action::stop());
  }
  const auto distribution = parts.policy.distribution(request.seen, actions, {});
  const auto best = std::max_element(distribution.probabilities.begin(), distribution.probabilities.end());
  request.action = actions.at(static_cast<std::size_t>(best - distribution.probabilities.begin()));
  if (const auto* const type = parts.space.find(request.action.optimization)) {
    request.intent = type->intent;
    request.principle = type->principle_on(request.seen.structure.find_region(request.action.region));
  }
  return request;
}

/// One JSON object. Kernels, and prompts with them, may hold bytes that are no UTF-8.
std::string as_text(const nlohmann::json& summary, int indent = -1) {
  return summary.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The most that a run could take.
struct Estimate {
  double drafts = 0;
  double tokens = 0;
  double cost = 0;
};

/// "6 drafts: 1.2e+05 tokens, 0.3 of money"
void print_estimate(const Estimate& most) {
  std::printf("%.0f drafts: %.3g tokens", most.drafts, most.tokens);
  if (most.cost > 0) std::printf(", %.4g of money", most.cost);
}

/// What would be sent, and what it could cost.
Estimate show_first_request(const mtmc::CodingRequest& request, const mtmc::OpenAiCoder& coder,
                            const Arguments& arguments) {
  const auto prompt = coder.prompt(request).text();
  const auto usual = coder.most_of(request);
  const auto most = coder.most_of_draft(request);
  const int steps = arguments.policy == "single-pass" ? 1 : arguments.loop.max_steps;
  const double drafts = static_cast<double>(steps) * arguments.loop.samples * arguments.loop.beam *
                        (1 + arguments.loop.repairs);
  const Estimate estimate{drafts, drafts * static_cast<double>(most.tokens()), drafts * most.cost};
  if (arguments.json) {
    const nlohmann::json summary{{"task", request.seen.task.name},
                                 {"action", request.action.text()},
                                 {"prompt", prompt},
                                 {"most_tokens_a_draft", most.tokens()},
                                 {"most_cost_a_draft", most.cost},
                                 {"most_drafts", estimate.drafts},
                                 {"most_tokens", estimate.tokens},
                                 {"most_cost", estimate.cost}};
    std::printf("%s\n", as_text(summary).c_str());
    return estimate;
  }
  std::printf("%s", prompt.c_str());
  if (arguments.show_prompt) return estimate;
  std::printf("----- %s: %s -----\na request takes at most %lld tokens, %lld of them for the prompt",
              request.seen.task.name.c_str(), request.action.text().c_str(),
              static_cast<long long>(usual.tokens()), static_cast<long long>(usual.prompt_tokens));
  if (usual.cost > 0) std::printf(", and %.4g of money", usual.cost);
  std::printf("\nif all answers are cut and asked for again with more room, the run asks for at most ");
  print_estimate(estimate);
  std::printf("\nlater prompts also tell what was tried, and are that much longer%s\n\n",
              arguments.asks_policy() ? "; what the policy asks comes on top" : "");
  return estimate;
}

/// The legal actions of a task's start kernel, each with the probability that the policy gives it.
void list_actions(const mtmc::Task& task, const mtmc::Device& device, mtmc::AnyPolicy& policy,
                  const mtmc::ActionSpace& space, bool json) {
  const auto seen = observe_start(task, device, 1);
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
  const bool cuda = result.best.language == mtmc::languages::cuda;
  const auto kernel_path = result.folder + "/best." + (cuda ? "cu" : "cpp");
  mtmc::write_file_atomic(kernel_path, result.best.source);
  try {
    mtmc::write_file_atomic(result.folder + "/launcher." + (cuda ? "hpp" : "cpp"), result.launcher_source());
    if (!cuda) mtmc::write_file_atomic(result.folder + "/launcher.hpp", result.launcher_header());
  } catch (const mtmc::Error& error) { // not every kernel has one
    command_line::print_error(error);
  }
  summary["best"] = kernel_path;
  mtmc::write_file_atomic(result.folder + "/result.json", as_text(summary, 2) + '\n');
}

/// [low, high]; [1, 1] of the start kernel, null where the evaluator gave none.
nlohmann::json interval_of(const mtmc::SpeedUp& speed_up) {
  if (!(speed_up.confidence > 0)) return nullptr;
  return {speed_up.low, speed_up.high};
}

nlohmann::json summarize(const mtmc::Result& result) {
  auto sizes = nlohmann::json::array();
  for (const auto& size : result.verified_sizes()) sizes.push_back(mtmc::to_string(size));
  return {{"task", result.task.name},
          {"speedup", result.speed_up.value},
          {"interval", interval_of(result.speed_up)},
          {"verdict", to_string(result.evaluation.verdict)},
          {"best", result.best.id()},
          {"best_id", result.best.id()},
          {"source", result.best.source},
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

/// Whether the endpoint answered no draft at all; the run was too short to end with an error for it.
bool nobody_answered(const mtmc::Result& result) {
  const auto& steps = result.trajectory;
  return !result.error && !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const auto& step) {
    return step.draft.failure == mtmc::DraftFailure::endpoint;
  });
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
  const bool unanswered = nobody_answered(result);
  if (result.error || unanswered) code = command_line::surroundings_broken;
  if (arguments.json)
    std::printf("%s\n", as_text(summary).c_str());
  else if (!result.improved() && arguments.quiet && result.folder.empty())
    std::printf("%s: nothing faster than the start kernel was proven\n", result.task.name.c_str());
  else if (result.improved() && (result.folder.empty() || code == command_line::surroundings_broken))
    std::printf("\n%s\n", result.best.source.c_str());
  std::fflush(stdout);
  if (result.error) command_line::print_error(*result.error); // last, where it is seen
  if (unanswered)
    std::fprintf(stderr, "error: the endpoint answered no draft; the last time: %s\n",
                 result.trajectory.back().draft.message.c_str());
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

/// Ends a round of a batch: says what is to be carried where.
void close_round(mtmc::BatchTransport& batch, const std::string& folder) {
  for (const auto& problem : batch.problems()) std::fprintf(stderr, "warning: %s\n", problem.c_str());
  if (batch.waiting() == 0) return;
  batch.close_round();
  const auto waiting = batch.waiting();
  std::fprintf(
      stderr, waiting == 1 ? "%zu request waits for its answer:\n" : "%zu requests wait for their answers:\n",
      waiting);
  for (const auto& file : batch.files())
    std::fprintf(stderr, "  %s (%zu of %zu answered)\n", file.path.c_str(), file.answered, file.requests);
  std::fprintf(stderr,
               "have them answered (as a batch of OpenAI's, or by vllm run-batch), put the output into "
               "%s/answers, "
               "then type the same command with --resume\n",
               folder.c_str());
}

/// What every task would send first, and the most that all of them could take.
void show_first_requests(const std::vector<mtmc::Task>& tasks, Evaluators& evaluators,
                         const Arguments& arguments, Parts& parts, const mtmc::OpenAiCoder& coder) {
  Estimate sum;
  for (const auto& task : tasks) {
    const auto one = show_first_request(first_request(task, evaluators, arguments, parts), coder, arguments);
    sum = {sum.drafts + one.drafts, sum.tokens + one.tokens, sum.cost + one.cost};
  }
  if (tasks.size() < 2 || arguments.json || arguments.show_prompt) return;
  std::printf("all %zu tasks together: at most ", tasks.size());
  print_estimate(sum);
  std::printf("\n");
}

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

  command_line::LanguageModels models(arguments.models);
  auto parts = make_parts(arguments, models);
  for (const auto& model : models.without_price())
    std::fprintf(stderr, "warning: no price in %s fits %s: its tokens count as free\n",
                 arguments.models.prices.c_str(), model.c_str());
  Evaluators evaluators(arguments);
  if (arguments.only_shows()) {
    show_first_requests(tasks, evaluators, arguments, parts, models.coder());
    return code;
  }
  if (arguments.list_actions) {
    for (const auto& task : tasks)
      list_actions(task, evaluators.device_of(task), parts.policy, parts.space, arguments.json);
    return code;
  }

  // With --json, standard output belongs to the objects alone.
  mtmc::TerminalReport terminal{arguments.json ? stderr : stdout, {.errors = false}};
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
      mtmc::Loop loop{parts.policy, parts.coder, mtmc::AstRegionFinder{}, evaluators.of(task), options};
      results.push_back(loop.optimize(task, interrupt.token()));
      code = command_line::worse(code, report(results.back(), arguments));
    } catch (const mtmc::Error& error) {
      remember(error);
    }
  }
  if (results.size() > 1 && !arguments.json) print_table(results);
  if (models.batch()) close_round(*models.batch(), arguments.models.batch);
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
  if (const auto code = mtmc::run_as_worker(argc, argv, mtmc::cuda_worker())) return *code;
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
  if (!arguments.device.empty() && !arguments.only_plans()) {
    std::fprintf(stderr, "error: --device describes a GPU that need not be there, on which nothing can be "
                         "judged: it goes with --list-actions, --show-prompt, --dry-run or --check\n");
    return command_line::bad_usage_or_task;
  }
  // Models can mend what failed; the transform coder cannot.
  if (arguments.asks_coder() && app.count("--repairs") == 0) arguments.loop.repairs = 1;
  if (!arguments.models.batch.empty() && arguments.loop.output.empty()) {
    std::fprintf(stderr,
                 "error: --batch needs --output: a run that waits for answers goes on from its journal\n");
    return command_line::bad_usage_or_task;
  }
  if (!arguments.models.batch.empty() && arguments.asks_policy()) {
    std::fprintf(stderr, "error: --batch needs a policy that answers at once: --policy rules or random\n");
    return command_line::bad_usage_or_task;
  }
  const auto& models = arguments.models;
  if (!arguments.asks_coder() && !arguments.asks_policy() &&
      !(models.record.empty() && models.play.empty() && models.batch.empty())) {
    std::fprintf(stderr, "error: --record, --play and --batch need --coder openai, or a policy that asks a "
                         "model: others ask nothing\n");
    return command_line::bad_usage_or_task;
  }
  if (arguments.only_shows() && !arguments.asks_coder()) {
    std::fprintf(stderr, "error: --show-prompt and --dry-run need --coder openai: others send nothing\n");
    return command_line::bad_usage_or_task;
  }
  // The likeliest of equally likely actions would be the first of the list, whatever the seed.
  if (arguments.sample || arguments.policy == "random") arguments.loop.selection = mtmc::Selection::sample;
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
