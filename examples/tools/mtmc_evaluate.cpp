// mtmc-evaluate: judges kernel files that somebody wrote: right or wrong and why, and how fast against the
// start kernel.

#include <mtmc/core/json.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/observation/profile_grading.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include "command_line.hpp"
#include "python_tasks.hpp"

namespace {

struct Arguments {
  std::string task;
  std::vector<std::string> candidates;
  std::string incumbent;
  command_line::JudgeArguments judge;
  mtmc::PyTorchEvaluatorOptions pytorch;
  bool json = false;
  bool promote = false;
};

/// The first reason in one line; empty for a correct kernel.
std::string reason_of(const mtmc::Evaluation& evaluation) {
  if (evaluation.correct() || evaluation.diagnostics.empty()) return {};
  const auto& first = evaluation.diagnostics.front();
  std::string text = first.line > 0 ? "line " + std::to_string(first.line) + ": " : "";
  text += first.message;
  if (!first.remedy.empty()) text += ". " + first.remedy;
  return text;
}

void print_json(const std::string& path, const mtmc::Evaluation& evaluation) {
  nlohmann::json object = evaluation;
  object["candidate"] = path;
  object["reason"] = reason_of(evaluation);
  object["schema"] = mtmc::json_schema_version;
  if (!object.contains("sizes")) object["sizes"] = nlohmann::json::array();
  if (!object.contains("seconds")) object["seconds"] = 0;
  for (const char* hash : {"binary_hash", "incumbent_binary_hash"})
    if (!object.contains(hash)) object[hash] = nullptr;
  std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_text(const std::string& path, const mtmc::Evaluation& evaluation) {
  std::printf("%s: %s", path.c_str(), std::string(to_string(evaluation.verdict)).c_str());
  if (!evaluation.rule.empty()) std::printf(" (%s)", evaluation.rule.c_str());
  if (evaluation.seconds > 0) std::printf(", %s a call", mtmc::seconds_text(evaluation.seconds).c_str());
  if (evaluation.speed_up)
    std::printf(", %s (%.3g %% interval), %s", mtmc::speed_up_text(*evaluation.speed_up).c_str(),
                100 * evaluation.speed_up->confidence, std::string(to_string(evaluation.comparison)).c_str());
  std::printf("\n");
  for (const auto& diagnostic : evaluation.diagnostics) {
    std::printf("  %s", diagnostic.severity == mtmc::Severity::warning ? "warning: " : "");
    if (diagnostic.line > 0) std::printf("line %d: ", diagnostic.line);
    std::printf("%s\n", command_line::indented(diagnostic.message).c_str());
    if (!diagnostic.remedy.empty()) std::printf("    -> %s\n", diagnostic.remedy.c_str());
  }
  for (const auto& size : evaluation.sizes)
    std::printf("  %-32s %lld elements of results compared%s%s\n", mtmc::to_string(size.size).c_str(),
                static_cast<long long>(size.checked_elements),
                size.seconds > 0 ? (", " + mtmc::seconds_text(size.seconds)).c_str() : "",
                size.speed_up ? (", " + mtmc::speed_up_text(*size.speed_up)).c_str() : "");
  // What only a promotion has looked at.
  for (const char* key : {mtmc::environment_key::audit, mtmc::environment_key::branches})
    if (const auto said = evaluation.environment.find(key); said != evaluation.environment.end())
      std::printf("  %s: %s\n", key, said->second.c_str());
  if (const auto flaw = evaluation.environment.find(mtmc::environment_key::flaw);
      flaw != evaluation.environment.end())
    std::printf("  but the problem tells little: %s\n", flaw->second.c_str());
  if (!evaluation.binary_hash.empty()) std::printf("  binary: SHA-256 %s\n", evaluation.binary_hash.c_str());
}

/// What bounds a correct candidate, by the best evidence there is.
void print_profile(const mtmc::Task& task, const mtmc::Device& device, const mtmc::Evaluation& evaluation) {
  mtmc::Observation seen;
  seen.task = task;
  seen.device = device;
  seen.evaluation = evaluation;
  std::printf("  %s", describe(profile_of(seen)).c_str());
}

/// A task, and who judges it.
struct Judged {
  mtmc::Task task;
  mtmc::AnyEvaluator evaluator;
};

Judged judged_by(const Arguments& arguments) {
  if (!command_line::is_problem(arguments.task)) {
    auto task = mtmc::load_task(arguments.task);
    auto evaluator = command_line::evaluator_for(task.kernel.language, arguments.judge);
    return {std::move(task), std::move(evaluator)};
  }
  mtmc::PyTorchEvaluator evaluator(arguments.pytorch);
  auto task = command_line::problem(evaluator, arguments.task);
  return {std::move(task), std::move(evaluator)};
}

mtmc::Kernel kernel_from(const std::string& path, const mtmc::Task& task) {
  if (task.kernel.language == mtmc::languages::pytorch) return command_line::module_from(path);
  return mtmc::load_kernel(path, task.kernel.language);
}

int run(const Arguments& arguments) {
  auto [task, evaluator] = judged_by(arguments);
  std::fprintf(stderr,
               "preparing %s: what candidates are held against is built, checked and timed; a call of it may "
               "take %s at most\n",
               task.name.c_str(), mtmc::seconds_text(arguments.judge.options.start_seconds).c_str());
  const command_line::StopOnInterrupt interrupt;
  auto incumbent = task.kernel;
  if (!arguments.incumbent.empty()) incumbent = kernel_from(arguments.incumbent, task);

  int code = command_line::done;
  for (const auto& path : arguments.candidates) {
    mtmc::EvaluationRequest request{task, {task.kernel.language, ""}, incumbent};
    if (arguments.promote) request.purpose = mtmc::Purpose::promote;
    try {
      request.candidate = kernel_from(path, task);
    } catch (const mtmc::Error& error) {
      command_line::print_error(error);
      code = command_line::worse(code, command_line::bad_usage_or_task);
      continue;
    }
    const auto evaluation = evaluator.evaluate(request, interrupt.token());
    arguments.json ? print_json(path, evaluation) : print_text(path, evaluation);
    if (arguments.judge.options.profile && !arguments.json && evaluation.correct())
      print_profile(task, evaluator.device(), evaluation);
    std::fflush(stdout);
  }
  return code;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Judges kernels against a task. Exit codes: 0 judged (whatever the verdicts), 2 bad usage or "
               "task, 3 broken "
               "surroundings.",
               "mtmc-evaluate"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  app.add_option("TASK", arguments.task, "the task file, or a problem in PyTorch (*.py)")
      ->required()
      ->check(command_line::readable_file());
  app.add_option("CANDIDATE", arguments.candidates, "kernel files")
      ->required()
      ->check(command_line::readable_file());
  app.add_option("--incumbent", arguments.incumbent, "kernel file to time against instead of the task's own")
      ->check(command_line::readable_file());
  command_line::add_judge_options(app, arguments.judge);
  command_line::add_python_options(app, arguments.pytorch);
  app.add_flag("--promote", arguments.promote, "take all samples, in a fresh process");
  app.add_flag("--profile", arguments.judge.options.profile,
               "say what bounds correct candidates; on a GPU by its counters");
  app.add_flag("--json", arguments.json, "one JSON object a candidate");
  return command_line::run_program(app, argc, argv, [&arguments] { return run(arguments); });
}
