// mtmc-train: from journals of searches, or data sets of them, to a policy: its weights, how good it is in
// searches of tasks it has not seen, and what it was held against.

#include <mtmc/mtmc.hpp>
#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/train.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "train_arguments.hpp"
#include "train_methods.hpp"
#include "train_report.hpp"

namespace {

using command_line::TrainArguments;

/// All journals below the paths, each once, in a fixed order.
std::vector<std::string> journals_below(const std::vector<std::string>& paths) {
  std::set<std::string> journals;
  for (const auto& path : paths) {
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{path})
      if (entry.path().filename() == "journal.jsonl") journals.insert(entry.path().string());
  }
  return {journals.begin(), journals.end()};
}

mtmc::DataSet load_data(const TrainArguments& arguments) {
  mtmc::TreeCollector collector;
  for (const auto& path : journals_below(arguments.data)) collector.add_journal(path);
  for (const auto& sentence : collector.sources().left_out)
    std::fprintf(stderr, "left out: %s\n", sentence.c_str());
  mtmc::DataSetOptions options{.licence = arguments.licence};
  for (const auto& path : arguments.exclude)
    for (const auto& file : mtmc::find_task_files(path)) {
      const auto task = mtmc::load_task(file);
      options.excluded_tasks.insert(task.name);
      options.excluded_code.insert(mtmc::sha256_hex(mtmc::normalised_code(task.kernel.source)));
    }
  std::vector<mtmc::DataSet> sets;
  if (!collector.trees().empty()) sets.push_back(mtmc::make_data_set(collector, options));
  for (const auto& path : arguments.data)
    if (!std::filesystem::is_directory(path))
      sets.push_back(mtmc::without_excluded(mtmc::read_data_set(path), options));
  auto set = mtmc::merge_data_sets(sets);
  mtmc::keep_featured(set);
  return set;
}

int run(const TrainArguments& arguments) {
  mtmc::create_folders(arguments.output);
  auto set = load_data(arguments);
  mtmc::write_data_set(set, arguments.output + "/data.jsonl");
  command_line::print(set.card);
  if (arguments.data_only) return command_line::done;

  auto [training, held_out] = mtmc::split_by_task(set, arguments.held_out, arguments.split_seed);
  command_line::Trials trials{arguments, training, held_out};
  command_line::TrainReport report{arguments, set};
  for (const auto& method : arguments.methods) report.add(trials.run(method));
  report.write();
  return command_line::done;
}

} // namespace

int main(int argc, char** argv) {
  TrainArguments arguments;
  CLI::App app{"Trains a policy from recorded searches (mtmc-collect, mtmc-optimize --output). Exit codes: 0 "
               "done, 2 bad usage or data, 3 broken surroundings.",
               "mtmc-train"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  command_line::add_options(app, arguments);
  return command_line::run_program(app, argc, argv, [&arguments] { return run(arguments); });
}
