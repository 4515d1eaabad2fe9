// mtmc-record: what a PyTorch module does when it is called, without GPU and without trust: see
// mtmc/backend/python/triton_recorder.hpp.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/python.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/version.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace {

struct RecordArguments {
  mtmc::PythonOptions python{};
  std::string problem;
  std::vector<std::string> candidates{};
  bool json = false;
  bool actions = false;
};

void print(const std::vector<mtmc::Diagnostic>& diagnostics) {
  for (const auto& diagnostic : diagnostics) {
    std::printf("  refused%s: %s\n",
                diagnostic.line > 0 ? (" in line " + std::to_string(diagnostic.line)).c_str() : "",
                command_line::indented(diagnostic.message).c_str());
    if (!diagnostic.remedy.empty()) std::printf("    %s\n", diagnostic.remedy.c_str());
  }
}

std::string text_of(const std::array<std::int64_t, 3>& grid) {
  std::string text = std::to_string(grid[0]);
  for (const std::size_t axis : {std::size_t{1}, std::size_t{2}})
    if (grid[1] * grid[2] > 1) text += " x " + std::to_string(grid[axis]);
  return text;
}

/// The steps of a call; neighbours that say the same are counted.
void print_call(const mtmc::RecordedPlan& plan) {
  std::string before;
  int count = 0;
  const auto flush = [&] {
    if (count > 0)
      std::printf("  %s%s\n", before.c_str(),
                  count > 1 ? (" (" + std::to_string(count) + " times)").c_str() : "");
  };
  for (const auto& step : plan.phases.forward) {
    std::string text = step.line > 0 ? "line " + std::to_string(step.line) + ": " : "";
    if (step.launch)
      text += "launches " + plan.kernels[static_cast<std::size_t>(step.launch->kernel)].name + ", " +
              text_of(step.launch->grid) + " programs";
    if (step.fill) text += "fills a tensor";
    if (step.operation) text += step.operation->name;
    if (text != before) {
      flush();
      before = text;
      count = 0;
    }
    ++count;
  }
  flush();
}

class Recorder {
public:
  explicit Recorder(const RecordArguments& arguments)
      : arguments_(arguments), recorder_(arguments.python), compiler_(arguments.python) {}

  int run() {
    mtmc::RecordingRequest request;
    request.role = mtmc::RecordingRequest::Role::problem;
    request.text = mtmc::read_file(arguments_.problem);
    const auto problem = recorder_.record(request);
    show(arguments_.problem, problem, nullptr, request.text);
    if (!problem.plan) return command_line::bad_usage_or_task;
    for (const auto& file : arguments_.candidates) {
      mtmc::RecordingRequest candidate;
      candidate.text = mtmc::read_file(file);
      candidate.constructor = problem.plan->constructor;
      candidate.inputs = problem.plan->inputs;
      show(file, recorder_.record(candidate), &*problem.plan, candidate.text);
    }
    return refused_ ? command_line::bad_usage_or_task : command_line::done;
  }

private:
  void show(const std::string& file, const mtmc::Recording& recording, const mtmc::RecordedPlan* problem,
            const std::string& text) {
    auto diagnostics = recording.diagnostics;
    if (recording.timed_out)
      diagnostics.push_back(
          {.message = "a call takes too long", .remedy = "Give it more time: --record-seconds"});
    if (recording.plan && problem != nullptr)
      for (const auto& differs : {mtmc::check_paired_draws(*problem, *recording.plan),
                                  mtmc::check_same_results(*problem, *recording.plan)})
        if (differs) diagnostics.push_back(*differs);
    std::vector<std::pair<mtmc::RecordedKernel, mtmc::Lowering>> kernels;
    if (recording.plan)
      for (const auto& kernel : recording.plan->kernels) {
        kernels.emplace_back(kernel, compiler_.lower(kernel, recording.plan->target));
        const auto& said = kernels.back().second.diagnostics;
        diagnostics.insert(diagnostics.end(), said.begin(), said.end());
      }
    refused_ = refused_ || !diagnostics.empty();
    if (arguments_.json) {
      nlohmann::json out{{"file", file},
                         {"role", problem == nullptr ? "problem" : "candidate"},
                         {"accepted", diagnostics.empty()},
                         {"seconds", recording.seconds},
                         {"diagnostics", diagnostics},
                         {"plan", nullptr},
                         {"lowered", nlohmann::json::array()}};
      if (recording.plan) out["plan"] = *recording.plan;
      for (const auto& [kernel, lowering] : kernels) {
        nlohmann::json one{{"kernel", kernel.name},
                           {"id", kernel.id()},
                           {"seconds", lowering.seconds},
                           {"ok", lowering.kernel != nullptr}};
        if (lowering.kernel)
          one.update({{"threads", lowering.kernel->threads},
                      {"shared_bytes", lowering.kernel->shared_bytes},
                      {"code_bytes", lowering.kernel->cubin.size()}});
        out["lowered"].push_back(std::move(one));
      }
      if (arguments_.actions && problem == nullptr && recording.plan)
        for (const auto& action : actions_of(task_of(file, text, *recording.plan)))
          out["actions"].push_back(action);
      std::cout << out.dump() << '\n';
      return;
    }
    std::printf("%s: %s, %s in %.2f s\n", file.c_str(), problem == nullptr ? "problem" : "candidate",
                !recording.plan        ? "not recorded"
                : !diagnostics.empty() ? "refused"
                : problem == nullptr   ? "recorded"
                                       : "recorded; weights and results are the problem's;",
                recording.seconds);
    print(diagnostics);
    if (!recording.plan) return;
    if (problem == nullptr) {
      const auto task = task_of(file, text, *recording.plan);
      for (const auto& argument : task.arguments) print_argument(argument, *recording.plan);
    }
    print_call(*recording.plan);
    for (const auto& choice : recording.plan->choices)
      std::printf("  %s chooses from %d configurations; recorded is number %d\n", choice.kernel.c_str(),
                  choice.configurations, choice.chosen);
    for (const auto& [kernel, lowering] : kernels)
      if (lowering.kernel)
        std::printf("  kernel %s: %lld threads, %lld bytes of shared memory, %zu bytes of code for sm_%d, "
                    "lowered in %.2f s\n",
                    kernel.name.c_str(), static_cast<long long>(lowering.kernel->threads),
                    static_cast<long long>(lowering.kernel->shared_bytes), lowering.kernel->cubin.size(),
                    recording.plan->target.capability, lowering.seconds);
    if (arguments_.actions && problem == nullptr)
      for (const auto& action : actions_of(task_of(file, text, *recording.plan)))
        std::printf("  action: %s\n", action.c_str());
  }

  static mtmc::Task task_of(const std::string& file, const std::string& text,
                            const mtmc::RecordedPlan& plan) {
    std::vector<std::string> names;
    for (const auto& graph : mtmc::forward_graphs(mtmc::parse_python(text)))
      if (graph.module == "Model") names = graph.inputs;
    return mtmc::problem_task(std::filesystem::path(file).stem().string(), text, plan, names);
  }

  /// "weight linear.bias: f32[32]"
  static void print_argument(const mtmc::Argument& argument, const mtmc::RecordedPlan& plan) {
    const bool weight =
        std::any_of(plan.weights.begin(), plan.weights.end(),
                    [&](const mtmc::RecordedWeight& one) { return one.name == argument.name; });
    std::string shape = argument.value;
    for (const auto& extent : argument.shape) shape += (shape.empty() ? "" : ", ") + extent;
    const auto range =
        argument.domain ? " in [" + argument.domain->low + ", " + argument.domain->high + ']' : std::string();
    std::printf("  %s %s: %s[%s]%s\n", weight ? "weight" : std::string(to_string(argument.role)).c_str(),
                argument.name.c_str(), std::string(to_string(argument.type)).c_str(), shape.c_str(),
                range.c_str());
  }

  /// What a policy may do, without the action that ends a search.
  static std::vector<std::string> actions_of(const mtmc::Task& task) {
    mtmc::Device device;
    device.kind = "gpu";
    const auto structure = mtmc::PythonRegionFinder{}.find(task, task.kernel);
    std::vector<std::string> texts;
    for (const auto& action : mtmc::ActionSpace::extended().legal_actions(structure, device))
      if (action.kind == mtmc::Action::Kind::optimize) texts.push_back(action.text());
    return texts;
  }

  const RecordArguments& arguments_;
  mtmc::TritonRecorder recorder_;
  mtmc::TritonCompiler compiler_;
  bool refused_ = false;
};

} // namespace

int main(int argc, char** argv) {
  RecordArguments arguments;
  double seconds = 20;
  CLI::App app{"Records what a PyTorch module does when it is called: launches of Triton kernels, which are "
               "lowered, and "
               "operators that remain. Needs Python with torch and triton, and no GPU; the modules get "
               "neither network nor "
               "files. Exit codes: 0 done, 2 bad usage or something was refused, 3 broken surroundings.",
               "mtmc-record"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  app.add_option("PROBLEM", arguments.problem,
                 "defines Model, get_inputs() and get_init_inputs(), as KernelBench's problems do")
      ->required()
      ->check(command_line::readable_file());
  app.add_option("CANDIDATE", arguments.candidates, "define ModelNew")->check(command_line::readable_file());
  app.add_option("--python", arguments.python.interpreter,
                 "the interpreter, of a virtual environment the one in it")
      ->capture_default_str();
  app.add_option("--packages", arguments.python.package_folders,
                 "folders with packages that come before the interpreter's own")
      ->check(command_line::readable_file(true));
  app.add_option("--record-seconds", seconds, "for one call")
      ->check(command_line::number(0.1, 3600))
      ->capture_default_str();
  app.add_flag("--actions", arguments.actions, "what a policy may do to the problem");
  app.add_flag("--json", arguments.json, "an object a file, with the whole plan");
  return command_line::run_program(app, argc, argv, [&] {
    arguments.python.record_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
    return Recorder(arguments).run();
  });
}
