/// What becomes of language models' answers to prompts for modules (tests/bench/python_answers): taken out of
/// the answer, recorded, weights paired with the problem's, kernels lowered. No GPU is needed, so nothing is
/// said of results and times.
///
///   bench_python_candidates --problems KernelBench/level1 --problems KernelBench/level2 [--python P] [--save
///   FOLDER]
///
/// Without a checkout of the problems it has nothing to do.

#include <mtmc/backend/python.hpp>
#include <mtmc/coder/answer.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace mtmc;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What a call consists of: "2 launches of 1 kernel, 1 aten.addmm".
std::string told(const RecordedPlan& plan) {
  std::map<std::string, int> operators;
  int launches = 0;
  int fills = 0;
  for (const auto& step : plan.phases.forward) {
    launches += step.launch ? 1 : 0;
    fills += step.fill ? 1 : 0;
    if (step.operation) ++operators[step.operation->name];
  }
  auto text = std::to_string(launches) + " launches of " + std::to_string(plan.kernels.size()) + " kernels";
  if (fills > 0) text += ", " + std::to_string(fills) + " fills";
  for (const auto& [name, count] : operators) text += ", " + std::to_string(count) + ' ' + name;
  return text;
}

} // namespace

int main(int count, char** arguments) try {
  PythonOptions options;
  options.interpreter = std::string(MTMC_REPOSITORY) + "/build/python/bin/python";
  std::string answers = std::string(MTMC_REPOSITORY) + "/tests/bench/python_answers";
  std::string save;
  std::vector<std::string> folders;
  CLI::App app("Records what language models answered");
  app.add_option("--python", options.interpreter);
  app.add_option("--packages", options.package_folders);
  app.add_option("--problems", folders);
  app.add_option("--answers", answers);
  app.add_option("--save", save);
  CLI11_PARSE(app, count, arguments);
  if (!save.empty()) std::filesystem::create_directories(save);
  if (folders.empty() || ::access(options.interpreter.c_str(), X_OK) != 0) {
    std::puts("nothing to record: no problems (--problems), or no Python with torch and triton");
    return 77;
  }
  std::map<std::string, std::string> problems;
  for (const auto& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      problems[entry.path().stem().string()] = entry.path().string();
  const TritonRecorder recorder(options);
  const TritonCompiler compiler(options);
  int recorded = 0;
  int paired = 0;
  int lowered = 0;
  int all = 0;
  for (const auto& [name, path] : problems) {
    const auto file = answers + '/' + name + ".md";
    if (::access(file.c_str(), R_OK) != 0) continue;
    ++all;
    const auto text = read_file(path);
    const auto problem = recorder.record({.role = RecordingRequest::Role::problem, .text = text});
    const Kernel parent{languages::pytorch, text, {}};
    const auto answer = extract_kernel(read_file(file), {.language = languages::pytorch, .parent = &parent});
    if (!answer.kernel || !problem.plan) {
      std::printf("%s: no module in the answer: %s\n", name.c_str(), answer.message.c_str());
      continue;
    }
    if (!save.empty()) write_file_atomic(save + '/' + name + ".py", answer.kernel->source);
    RecordingRequest request;
    request.text = answer.kernel->source;
    request.constructor = problem.plan->constructor;
    request.inputs = problem.plan->inputs;
    const auto recording = recorder.record(request);
    if (!recording.plan) {
      Diagnostic why;
      why.message = "it takes too long";
      if (!recording.diagnostics.empty()) why = recording.diagnostics[0];
      std::printf("%s: line %d: %s\n", name.c_str(), why.line, first_line(why.message).c_str());
      continue;
    }
    ++recorded;
    const auto differs = check_paired_draws(*problem.plan, *recording.plan);
    if (differs)
      std::printf("%s: line %d: %s\n", name.c_str(), differs->line, first_line(differs->message).c_str());
    paired += differs ? 0 : 1;
    double seconds = recording.seconds;
    bool whole = true;
    for (const auto& kernel : recording.plan->kernels) {
      const auto lowering = compiler.lower(kernel, recording.plan->target);
      seconds += lowering.seconds;
      if (lowering.kernel) continue;
      whole = false;
      std::printf("%s: %s\n", name.c_str(),
                  lowering.diagnostics.empty() ? "it takes too long to compile"
                                               : first_line(lowering.diagnostics[0].message).c_str());
    }
    lowered += whole ? 1 : 0;
    std::string choices;
    for (const auto& choice : recording.plan->choices)
      choices += ", " + std::to_string(choice.configurations) + " configurations";
    if (whole && !differs)
      std::printf("%s: %s%s; %.2f s\n", name.c_str(), told(*recording.plan).c_str(), choices.c_str(),
                  seconds);
  }
  std::printf("%d answers: %d recorded, %d with the problem's weights, %d with all kernels lowered\n", all,
              recorded, paired, lowered);
} catch (const mtmc::Error& error) {
  std::puts(error.what());
  return 1;
}
