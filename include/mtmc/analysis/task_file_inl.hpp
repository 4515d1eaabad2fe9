#pragma once
/// Definitions of analysis/task_file.hpp.

#include <mtmc/analysis/complete_arguments.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/task_parts.hpp>
#include <mtmc/support/nearest_name.hpp>
#include <mtmc/task/validate_task.hpp>

#include <algorithm>
#include <array>
#include <dirent.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string(".") : std::string(path.substr(0, slash));
}

[[nodiscard]] inline std::string beside(const std::string& task_file, const std::string& path) {
  return path.starts_with('/') ? path : folder_of(task_file) + '/' + path;
}

/// Fields that are nearly those a task file has. Others are kept for whoever put them there.
inline void check_spelling(const Task& task) {
  const auto check = [](const UnknownFields& unknown, std::span<const std::string_view> known,
                        const std::string& place) {
    for (const auto& [name, text] : unknown.json)
      if (const auto near = nearest_name(name, known); !near.empty())
        throw Error(error_id::task_malformed, "unknown field \"" + name + '"',
                    "Did you mean \"" + std::string(near) + "\"?", place);
  };
  constexpr std::array<std::string_view, 13> of_task{
      "name",  "summary",   "language", "source",       "reference",      "sizes",    "flops",
      "bytes", "tolerance", "atomics",  "secret_sizes", "special_values", "arguments"};
  constexpr std::array<std::string_view, 7> of_argument{"name",  "role",   "dtype", "shape",
                                                        "value", "domain", "data"};
  check(task.unknown, of_task, "");
  for (const auto& argument : task.arguments)
    check(argument.unknown, of_argument, "argument " + argument.name);
  constexpr std::array<std::string_view, 1> of_size{"weight"};
  for (const auto& size : task.sizes)
    for (const auto& [symbol, value] : size.symbols)
      if (!nearest_name(symbol, of_size).empty() && !uses_symbol(task, symbol))
        throw Error(error_id::task_malformed, "no shape, value or formula uses the symbol \"" + symbol + '"',
                    "Did you mean \"weight\"?", "size " + to_string(size));
}

/// Reads one entry of "arguments": what the signature can tell may be missing.
[[nodiscard]] inline StatedArgument read_stated_argument(Json entry, const std::string& path) {
  if (!entry.is_object()) json_type_error({nullptr, &entry, nullptr, path}, "an object");
  StatedArgument stated;
  stated.has_role = entry.contains("role");
  stated.has_type = entry.contains("dtype");
  if (!stated.has_role) entry["role"] = "input";
  if (!stated.has_type) entry["dtype"] = "f32";
  read_value(entry, stated.argument, path);
  return stated;
}

} // namespace detail

MTMC_INLINE Task parse_task(std::string_view text, const std::string& path) {
  auto document = parse_json(text, path);
  check_schema(document, path);
  try {
    const detail::JsonCursor root{nullptr, &document};
    detail::JsonFields reader(root);
    std::string language_name, source, reference;
    const bool inline_kernel = document.contains("kernel");
    if (!inline_kernel) {
      reader.required("language", language_name);
      reader.required("source", source);
      if (document.contains("reference")) reader.required("reference", reference);
    }
    std::vector<StatedArgument> stated;
    if (const auto found = document.find("arguments"); found != document.end()) {
      if (!found->is_array()) detail::json_type_error({nullptr, &*found, nullptr, "arguments"}, "an array");
      for (std::size_t i = 0; i < found->size(); ++i)
        stated.push_back(detail::read_stated_argument((*found)[i], "arguments[" + std::to_string(i) + ']'));
    }
    for (const char* taken : {"schema", "language", "source", "arguments"}) document.erase(taken);
    if (!inline_kernel) {
      document.erase("reference");
      document["kernel"] = Kernel{detail::language_named(language_name), ""};
    }

    Task task;
    detail::read_value(document, task, std::string());
    if (!inline_kernel) {
      task.kernel.source = detail::read_task_part(detail::beside(path, source), "kernel's source");
      if (!reference.empty())
        task.reference = Kernel{task.kernel.language, detail::read_task_part(detail::beside(path, reference),
                                                                             "reference's source")};
    }
    for (auto& entry : stated)
      if (!entry.argument.data.empty()) entry.argument.data = detail::beside(path, entry.argument.data);
    complete_arguments(task, std::move(stated));
    detail::check_spelling(task);
    validate_task(task);
    return task;
  } catch (const Error& error) {
    if (error.place().find(path) != std::string::npos) throw;
    throw error.within(path);
  }
}

MTMC_INLINE Task load_task(const std::string& path) {
  return parse_task(detail::read_task_part(path, "task file"), path);
}

MTMC_INLINE Kernel load_kernel(const std::string& path, const Language& language) {
  Kernel kernel{language, detail::read_task_part(path, "kernel")};
  try {
    if (parse_launch_lines(kernel).launches.empty()) detail::add_launch_line(kernel, read_signatures(kernel));
  } catch (const Error&) { // malformed lines, several functions, or none: whoever judges it says so
    return kernel;
  }
  return kernel;
}

MTMC_INLINE std::vector<std::string> find_task_files(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0)
    throw Error(error_id::task_unreadable, "there is no such file or folder", "Check the path of the task",
                path);
  if (!S_ISDIR(facts.st_mode)) return {path};
  std::vector<std::string> files;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr)
    throw Error(error_id::task_unreadable, "the folder cannot be listed", "Check its permissions", path);
  while (const dirent* entry = ::readdir(folder)) { // NOLINT(concurrency-mt-unsafe): the stream is our own
    const std::string_view name = entry->d_name;
    if (name.ends_with(".json")) files.push_back(path + '/' + std::string(name));
  }
  ::closedir(folder);
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw Error(error_id::task_unreadable, "the folder holds no task file (*.json)",
                "Name a folder with tasks", path);
  return files;
}

} // namespace mtmc
