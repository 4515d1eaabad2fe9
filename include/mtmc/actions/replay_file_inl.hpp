#pragma once
/// Definitions of actions/replay_file.hpp.

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/task_parts.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// A step as its file says it.
struct WrittenStep {
  std::string optimization{};
  std::string region{};
  std::string kernel{};
  std::string message{};
  std::optional<std::string> parent{};
};
inline void visit_fields(JsonFields& visit, WrittenStep& step) {
  visit.required("optimization", step.optimization);
  visit.required("kernel", step.kernel);
  visit.optional("region", step.region);
  visit.optional("message", step.message);
  visit.optional("parent", step.parent);
  visit.no_others();
}

struct WrittenSequence {
  std::string task{};
  std::string language{};
  std::vector<WrittenStep> steps{};
};
inline void visit_fields(JsonFields& visit, WrittenSequence& sequence) {
  visit.optional("task", sequence.task);
  visit.required("language", sequence.language);
  visit.required("steps", sequence.steps);
  visit.no_others();
}

/// The sequence of one `steps.json`.
[[nodiscard]] inline ReplaySequence read_replay_folder(const std::string& folder, const std::string& path) {
  auto document = parse_json(read_task_part(path, "sequence of steps"), path);
  check_schema(document, path);
  if (document.is_object()) document.erase("schema");
  WrittenSequence written;
  Language language;
  try {
    read_value(document, written, std::string());
    language = language_named(written.language);
  } catch (const Error& error) {
    throw error.within(path);
  }

  std::map<std::string, Kernel> kernels;
  const auto kernel_of = [&](const std::string& file) -> const Kernel& {
    auto& kernel = kernels[file];
    if (kernel.source.empty())
      kernel = {language, normalize_text(read_task_part(folder + '/' + file, "kernel of a step"))};
    return kernel;
  };
  ReplaySequence sequence;
  std::string before;
  for (std::size_t i = 0; i < written.steps.size(); ++i) {
    auto& from = written.steps[i];
    const auto place = path + ", steps[" + std::to_string(i) + ']';
    const auto refuse = [&place](const std::string& what, std::string_view remedy) {
      throw Error(error_id::task_malformed, what, remedy, place);
    };
    if (from.optimization.empty())
      refuse("it names no optimization", "Name the type, \"tiling\" for instance");
    if (from.kernel.empty()) refuse("it names no kernel", "Name the file that the step leads to");
    const auto parent = from.parent.value_or(before);
    ReplayStep step;
    step.task = written.task;
    if (!parent.empty()) step.parent = kernel_of(parent).id();
    step.optimization = std::move(from.optimization);
    step.region = std::move(from.region);
    for (const auto& other : sequence.steps)
      if (other.parent == step.parent && other.optimization == step.optimization &&
          other.region == step.region)
        ++step.sample;
    step.draft.kernel = kernel_of(from.kernel);
    step.draft.message = std::move(from.message);
    if (step.draft.kernel->source.empty()) refuse("its kernel is an empty file", "Write the kernel");
    if (step.draft.kernel->id() == step.parent)
      refuse("it leads to the kernel that it starts from", "Correct `kernel` or `parent`");
    sequence.steps.push_back(std::move(step));
    before = from.kernel;
  }
  if (sequence.steps.empty())
    throw Error(error_id::task_malformed, "the sequence has no steps", "Add one to \"steps\"", path);
  return sequence;
}

} // namespace detail

MTMC_INLINE ReplaySequence load_replay_sequence(const std::string& folder) {
  namespace fs = std::filesystem;
  const auto file_in = [](const std::string& of) { return of + '/' + replay_file_name; };
  std::error_code failure;
  if (fs::exists(file_in(folder), failure)) return detail::read_replay_folder(folder, file_in(folder));
  std::vector<std::string> folders;
  for (fs::directory_iterator entry{folder, failure}, end; !failure && entry != end; entry.increment(failure))
    if (std::error_code ignored; fs::exists(file_in(entry->path().string()), ignored))
      folders.push_back(entry->path().string());
  if (folders.empty())
    throw Error(error_id::task_unreadable,
                failure ? "the folder cannot be listed: " + failure.message()
                        : "neither the folder nor a folder in it has a " + std::string(replay_file_name),
                "Name the folder of a sequence, or one that holds such folders", folder);
  std::sort(folders.begin(), folders.end());
  ReplaySequence all;
  for (const auto& one : folders) all.append(detail::read_replay_folder(one, file_in(one)));
  return all;
}

} // namespace mtmc
