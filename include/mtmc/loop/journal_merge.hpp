#pragma once
/// Many journals into one, for training.

#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Calls `visit(run, line)` for each line of a journal, as it stands there.
template <class Visit> void for_each_journal_line(const std::string& path, Visit&& visit) {
  const auto content = read_run_file(path);
  int number = 0;
  for (const auto line : complete_lines(content)) visit(parse_line(line, path, ++number).run, line);
}

/// Copies the texts beside a journal. Their names are their content, so nothing is ever overwritten by
/// something else.
inline void copy_texts(const std::string& from, const std::string& to, std::string_view folder) {
  const auto source = from + '/' + std::string(folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries{::opendir(source.c_str()), ::closedir};
  if (entries == nullptr) return;
  const auto target = to + '/' + std::string(folder);
  make_run_folder(target);
  while (const auto* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name.front() == '.') continue;
    const auto text = read_run_file(source + '/' + name);
    // A dying writer may have left one shorter than it should be: the longest is the whole one.
    if (file_size(target + '/' + name) < static_cast<std::int64_t>(text.size()))
      write_run_file(target + '/' + name, text, false);
  }
}

} // namespace detail

/// What `merge_journals` found.
struct MergedJournals {
  /// Runs in the merged journal.
  int runs = 0;
  /// Runs that stood in several of the journals: the longest of each was taken.
  int duplicates = 0;
};

/// Puts journals together: every run once, its lines unchanged and in order, with the texts of all. Where a
/// run stands in several journals, as when one is an earlier copy of another, the longest is taken.
/// `output` is the path of the new journal and must not exist.
/// Throws `Error` (`mtmc.journal.001`, `mtmc.journal.002`), also if two journals tell a run differently.
inline MergedJournals merge_journals(std::span<const std::string> journals, const std::string& output) {
  if (detail::file_size(output) >= 0)
    throw Error(error_id::journal_write, "the merged journal exists already",
                "Remove it or choose another path", output);
  // First which journal holds the most of a run, by the hashes of its lines: whole journals may be large.
  struct Source {
    std::size_t journal = 0;
    std::vector<std::uint64_t> lines{};
  };
  std::map<std::string, Source> longest;
  MergedJournals merged;
  for (std::size_t i = 0; i < journals.size(); ++i) {
    std::map<std::string, Source> here;
    detail::for_each_journal_line(journals[i], [&](const std::string& run, std::string_view line) {
      std::uint64_t hash = 0;
      Sha256 digest;
      digest.update(line);
      const auto bytes = digest.digest();
      std::memcpy(&hash, bytes.data(), sizeof hash);
      auto& source = here[run];
      source.journal = i;
      source.lines.push_back(hash);
    });
    for (auto& [run, source] : here) {
      const auto [place, fresh] = longest.emplace(run, source);
      if (fresh) continue;
      ++merged.duplicates;
      auto& known = place->second;
      const auto& shorter = known.lines.size() < source.lines.size() ? known.lines : source.lines;
      const auto& longer = known.lines.size() < source.lines.size() ? source.lines : known.lines;
      if (!std::equal(shorter.begin(), shorter.end(), longer.begin()))
        throw Error(error_id::journal_read,
                    "the run " + run + " continues differently in " + journals[known.journal],
                    "Leave one of the two out", journals[i]);
      if (&longer == &source.lines) known = source;
    }
  }
  merged.runs = static_cast<int>(longest.size());

  const auto folder_of = [](const std::string& path) { return detail::parent_folder(path); };
  JournalFile target{output};
  for (std::size_t i = 0; i < journals.size(); ++i) {
    for (const char* texts : {"kernels", "texts"})
      detail::copy_texts(folder_of(journals[i]), folder_of(output), texts);
    detail::for_each_journal_line(journals[i], [&](const std::string& run, std::string_view line) {
      if (longest.at(run).journal == i) target.append(line);
    });
  }
  return merged;
}

} // namespace mtmc
