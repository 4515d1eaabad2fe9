#pragma once
// What mtmc-train and mtmc-environment learn from: journals and data sets, with their texts.

#include <mtmc/mtmc.hpp>
#include <mtmc/train.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files_below.hpp"
#include "train_arguments.hpp"

namespace command_line {

/// Trees, and what is known of their kernels' texts.
struct TrainData {
  mtmc::DataSet set;
  mtmc::KernelTexts texts;
};

/// The journals in those folders. Of a run that stands in several the first is taken, so a longer copy comes
/// before one that was made while the run went on.
inline std::vector<std::string> journals_of(const std::vector<std::string>& folders) {
  std::vector<std::string> journals;
  for (const auto& path : folders)
    for (const auto& journal : files_below(path, "journal.jsonl")) journals.push_back(journal);
  std::stable_sort(journals.begin(), journals.end(), [](const auto& a, const auto& b) {
    return std::filesystem::file_size(a) > std::filesystem::file_size(b);
  });
  return journals;
}

/// The data sets among what was named, each once; of folders those without a journal, since a data set beside
/// journals is most often made of them.
inline std::vector<std::string> data_sets_of(const TrainArguments& arguments) {
  std::vector<std::string> paths;
  std::set<std::filesystem::path> seen;
  const auto add = [&](const std::string& path) {
    if (seen.insert(std::filesystem::weakly_canonical(path)).second) paths.push_back(path);
  };
  for (const auto& path : arguments.data)
    if (!std::filesystem::is_directory(path))
      add(path);
    else if (files_below(path, "journal.jsonl").empty())
      for (const auto& file : files_below(path, "data.jsonl")) add(file);
  return paths;
}

/// Reads journals and data sets; texts of the latter are looked for beside them, in texts.jsonl.
inline TrainData load_data(const TrainArguments& arguments) {
  TrainData data;
  mtmc::TreeCollector collector;
  for (const auto& path : arguments.data)
    if (!std::filesystem::exists(path))
      throw mtmc::Error(mtmc::error_id::train_data, "there is no such file or folder",
                        "Name folders of journals, or data sets", path);
  std::vector<std::string> left_out;
  const auto add = [&](const mtmc::JournalRun& run) {
    collector.add(run);
    if (arguments.export_texts) data.texts.add(run);
  };
  for (const auto& journal : journals_of(arguments.data)) mtmc::visit_runs(journal, add, left_out);
  for (const auto& sentence : left_out) std::fprintf(stderr, "left out: %s\n", sentence.c_str());
  mtmc::DataSetOptions options;
  for (const auto& path : arguments.exclude)
    for (const auto& file : mtmc::find_task_files(path)) {
      const auto task = mtmc::load_task(file);
      options.excluded_tasks.insert(task.name);
      options.excluded_code.insert(mtmc::sha256_hex(mtmc::normalised_code(task.kernel.source)));
    }
  std::vector<mtmc::DataSet> sets;
  if (!collector.trees().empty())
    sets.push_back(mtmc::make_data_set(collector, {.licence = arguments.licence}));
  for (const auto& path : data_sets_of(arguments)) {
    auto set = mtmc::read_data_set(path);
    if (std::find(sets.begin(), sets.end(), set) != sets.end()) {
      std::fprintf(stderr, "left out: %s is the same as another\n", path.c_str());
      continue;
    }
    sets.push_back(std::move(set));
    const auto beside = (std::filesystem::path{path}.parent_path() / "texts.jsonl").string();
    if (arguments.export_texts && std::filesystem::exists(beside))
      data.texts.add_lines(mtmc::read_training_file(beside), beside);
  }
  if (sets.empty())
    throw mtmc::Error(mtmc::error_id::train_data, "there is neither a journal nor a data set",
                      "Name folders of mtmc-collect or of mtmc-optimize --output, or data.jsonl files",
                      arguments.data.front());
  // All of them at once: a task may have its start kernel in common with one of another set.
  data.set = mtmc::without_excluded(mtmc::merge_data_sets(sets), options);
  return data;
}

/// The card that prompts are made by.
inline mtmc::PolicyCard card_of(const TrainArguments& arguments) {
  return arguments.card.empty() ? mtmc::paper_policy_card() : mtmc::load_policy_card(arguments.card);
}

} // namespace command_line
