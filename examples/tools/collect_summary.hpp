#pragma once
// What a collection holds.

#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/run_folder.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/train/trajectory.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "files_below.hpp"

namespace command_line {

/// The counts of a collection, or of a part of it.
struct CollectionSummary {
  std::size_t tasks = 0;      ///< with at least one run
  std::size_t runs = 0;       ///< begun
  std::size_t steps = 0;      ///< drafts of finished steps
  std::size_t judgements = 0; ///< kernels compiled, verified and timed
  std::size_t remembered = 0; ///< answers that needed no judgement
  std::size_t right = 0;      ///< different right kernels
  std::size_t sequences = 0;  ///< different runs by their (kernel, action)
  double hours = 0;           ///< of searching, over all processes
  std::vector<std::string> left_out{};

  /// Different kernels judged, a minute of searching.
  [[nodiscard]] double kernels_a_minute() const {
    return hours > 0 ? static_cast<double>(judgements) / (60 * hours) : 0;
  }
};

/// Adds a journal without its structures, which are most of its bytes and no part of a tree. Where something
/// is wrong with it, the collector says what.
inline void add_without_structures(mtmc::TreeCollector& collector, const std::string& path) {
  const std::string content = mtmc::detail::read_run_file(path);
  auto lines = mtmc::detail::complete_lines(content);
  std::erase_if(lines, [](std::string_view line) { return mtmc::detail::is_record(line, "structure"); });
  std::vector<mtmc::JournalRun> runs;
  try {
    runs = mtmc::detail::read_runs(lines, path, mtmc::KernelStore{mtmc::detail::parent_folder(path)});
  } catch (const mtmc::Error&) {
    collector.add_journal(path);
  }
  for (const auto& run : runs) collector.add(run);
}

/// Reads the journals and memories below some folders. Those that another process is writing may be read: an
/// unfinished last line counts as not there.
inline CollectionSummary summarize_collection(const std::vector<std::string>& folders) {
  CollectionSummary summary;
  mtmc::TreeCollector collector;
  for (const auto& folder : folders) {
    for (const auto& journal : files_below(folder, "journal.jsonl")) {
      try {
        add_without_structures(collector, journal);
      } catch (const mtmc::Error& error) {
        summary.left_out.emplace_back(error.what());
      }
    }
    for (const auto& memory : files_below(folder, "memory.jsonl")) {
      const std::string text = mtmc::read_file(memory);
      summary.judgements += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }
  }
  const auto& sources = collector.sources();
  std::set<std::string> tasks;
  for (const auto& tree : collector.trees()) {
    tasks.insert(tree.task);
    summary.right += tree.nodes.size();
  }
  summary.tasks = tasks.size();
  summary.runs = sources.runs;
  summary.steps = sources.steps;
  summary.remembered = sources.evaluations - std::min(sources.evaluations, summary.judgements);
  summary.sequences = sources.sequences;
  summary.hours = sources.seconds / 3600;
  summary.left_out.insert(summary.left_out.end(), sources.left_out.begin(), sources.left_out.end());
  return summary;
}

inline void print(const CollectionSummary& summary) {
  for (const auto& reason : summary.left_out) std::fprintf(stderr, "left out: %s\n", reason.c_str());
  std::printf("tasks               %zu\n"
              "runs                %zu\n"
              "steps               %zu\n"
              "judgements          %zu\n"
              "remembered answers  %zu\n"
              "right kernels       %zu\n"
              "sequences           %zu\n"
              "hours               %.3f\n"
              "kernels a minute    %.1f\n",
              summary.tasks, summary.runs, summary.steps, summary.judgements, summary.remembered,
              summary.right, summary.sequences, summary.hours, summary.kernels_a_minute());
}

} // namespace command_line
