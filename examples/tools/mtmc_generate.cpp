// mtmc-generate: writes tasks to train on, naive kernels of many operators in many styles.

#include <mtmc/analysis/task_file.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "task_generator.hpp"

namespace {

struct Arguments {
  std::string language = "cpp";
  std::size_t count = 100;
  std::uint64_t seed = 1;
  std::string output;
  std::vector<std::string> apart_from;
};

/// The kernels of all tasks that the paths mean.
std::vector<mtmc::Kernel> kernels_of(const std::vector<std::string>& paths) {
  std::vector<mtmc::Kernel> kernels;
  for (const auto& path : paths)
    for (const auto& file : mtmc::find_task_files(path)) kernels.push_back(mtmc::load_task(file).kernel);
  return kernels;
}

int run(const Arguments& arguments) {
  const auto language = arguments.language == "cuda" ? mtmc::languages::cuda : mtmc::languages::cpp;
  const auto tasks = generated::generated_tasks({.language = language,
                                                 .count = arguments.count,
                                                 .seed = arguments.seed,
                                                 .apart_from = kernels_of(arguments.apart_from)});
  generated::write_tasks(tasks, arguments.output);
  std::map<std::string, int> kinds;
  for (const auto& task : tasks) ++kinds[task.kind];
  std::printf("%zu tasks of %zu kinds of operators in %s\n", tasks.size(), kinds.size(),
              arguments.output.c_str());
  return command_line::done;
}

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Writes tasks to train on: naive kernels of many operators in many sizes, layouts and styles. "
               "Exit codes: "
               "0 done, 2 bad usage or task, 3 broken surroundings.",
               "mtmc-generate"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  app.add_option("--language", arguments.language, "of the kernels")
      ->check(CLI::IsMember({"cpp", "cuda"}))
      ->capture_default_str();
  app.add_option("--count", arguments.count, "number of tasks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "equal seeds give equal tasks; a larger count only adds to them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--output", arguments.output, "folder for the tasks, which is created")->required();
  app.add_option("--apart-from", arguments.apart_from,
                 "task files, or folders of them, whose kernels no task may equal but for its names");
  return command_line::run_program(app, argc, argv, [&arguments] { return run(arguments); });
}
