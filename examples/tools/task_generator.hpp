#pragma once
// Tasks to train on: naive kernels of many operators in many sizes, layouts and styles, drawn from a seed.

#include <mtmc/analysis/syntax/normalised_code.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/file_io.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

// GCC 12 takes temporaries of nested braced lists for uninitialised at -O1.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "generated/kinds.hpp"
#include "generated/source_writer.hpp"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace generated {

/// A task as two files: `name`.json and the source that it names.
struct GeneratedTask {
  std::string name;          ///< unique; tells language, seed, number and kind
  std::string kind;          ///< of the operator
  std::string file;          ///< text of the task file
  std::string source;        ///< text of the kernel
  std::string source_name{}; ///< of its file
};

/// What is drawn.
struct GeneratorOptions {
  mtmc::Language language = mtmc::languages::cpp; ///< `cpp` or `cuda`
  std::size_t count = 100;                        ///< number of tasks
  std::uint64_t seed = 1;                         ///< equal seeds, equal tasks; a larger count only adds
  std::vector<mtmc::Kernel>
      apart_from{}; ///< kernels that no task may equal but for names and layout of the text
};

/// JSON on one line, with a blank behind each comma and colon.
[[nodiscard]] inline std::string on_one_line(const nlohmann::ordered_json& value) {
  std::string text;
  bool quoted = false;
  for (const char c : value.dump()) {
    quoted ^= c == '"';
    text += c;
    if (!quoted && (c == ',' || c == ':')) text += ' ';
  }
  return text;
}

/// The arguments as a task file has them.
[[nodiscard]] inline std::vector<nlohmann::ordered_json> arguments_of(const Operator& made) {
  std::vector<nlohmann::ordered_json> arguments;
  for (const Buffer& buffer : made.buffers) {
    if (buffer.role == Role::scratch) continue;
    nlohmann::ordered_json argument{{"name", buffer.name}};
    if (buffer.role == Role::inout) argument["role"] = "inout";
    argument["shape"] = shape_of(made, buffer);
    if (!buffer.low.empty()) argument["domain"] = {buffer.low, buffer.high};
    arguments.push_back(std::move(argument));
  }
  for (const Scalar& scalar : made.scalars)
    arguments.push_back({{"name", scalar.name}, {"value", scalar.value}});
  return arguments;
}

/// The text of a task file, in plain names.
[[nodiscard]] inline std::string file_of(const Operator& made, const mtmc::Language& language,
                                         const std::string& name, const std::vector<mtmc::Symbols>& sizes) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string text = "{\n  \"name\": " + quoted(name) + ",\n  \"summary\": " + quoted(made.summary) +
                     ",\n  \"language\": " + quoted(language.name) +
                     ",\n  \"source\": " + quoted(name + language.file_extension()) +
                     ",\n  \"arguments\": [\n";
  const auto arguments = arguments_of(made);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    text += "    " + on_one_line(arguments[i]) + (i + 1 < arguments.size() ? ",\n" : "\n");
  text += "  ],\n  \"sizes\": [\n";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    nlohmann::ordered_json size;
    for (const Symbol& symbol : made.symbols) size[symbol.name] = sizes[i].at(symbol.name);
    if (i > 0) size["weight"] = 0;
    text += "    " + on_one_line(size) + (i + 1 < sizes.size() ? ",\n" : "\n");
  }
  text += "  ]";
  for (const auto& [field, formula] : {std::pair{"flops", made.flops}, std::pair{"bytes", made.bytes}})
    if (!formula.empty()) text += ",\n  " + quoted(field) + ": " + quoted(over_symbols(made, formula));
  return text + "\n}\n";
}

/// A task file's text with names replaced in its strings, but for the fields that are no expressions.
[[nodiscard]] inline Operator with_names(Operator made, const std::map<std::string, std::string>& names) {
  const auto rename = [&names](std::string& text) { text = renamed(text, names); };
  for (Symbol& symbol : made.symbols) rename(symbol.name);
  for (Buffer& buffer : made.buffers) {
    for (std::string* text : {&buffer.name, &buffer.low, &buffer.high}) rename(*text);
    for (std::string& extent : buffer.extents) rename(extent);
  }
  for (Scalar& scalar : made.scalars) rename(scalar.name);
  for (Derived& derived : made.derived) {
    rename(derived.name);
    rename(derived.expression);
  }
  for (Nest& nest : made.nests) {
    rename(nest.body);
    for (Axis& axis : nest.axes)
      for (std::string* text : {&axis.index, &axis.extent, &axis.first}) rename(*text);
  }
  for (std::string* text : {&made.helpers, &made.flops, &made.bytes, &made.cost}) rename(*text);
  return made;
}

/// One draw of the task with this number, distinct or not.
[[nodiscard]] inline GeneratedTask drawn_task(const GeneratorOptions& options, std::size_t number,
                                              std::size_t attempt) {
  Draw draw(options.language, options.seed,
            (number << 16) + (attempt << 1) + (options.language == mtmc::languages::cuda ? 1 : 0));
  const auto& families = all_families();
  Operator made = families[number % families.size()](draw);
  made = with_names(made, drawn_names(draw, all_texts(made)));
  std::vector<mtmc::Symbols> sizes{timed_size(draw, made)};
  for (int i = 0; i < 3; ++i) sizes.push_back(checked_size(draw, made, sizes.front(), i));
  char digits[16];
  std::snprintf(digits, sizeof digits, "%04zu", number);
  GeneratedTask task;
  task.kind = made.kind;
  task.name =
      "gen_" + options.language.name + '_' + std::to_string(options.seed) + '_' + digits + '_' + made.kind;
  task.source_name = task.name + options.language.file_extension();
  task.source = SourceWriter(draw, made, sizes.front()).write();
  task.file = file_of(made, options.language, task.name, sizes);
  return task;
}

/// The tasks: no two have equal sizes and code that is equal but for names and layout of the text.
[[nodiscard]] inline std::vector<GeneratedTask> generated_tasks(const GeneratorOptions& options) {
  std::set<std::string> foreign, seen;
  for (const auto& kernel : options.apart_from) foreign.insert(mtmc::normalised_code(kernel.source));
  std::vector<GeneratedTask> tasks;
  for (std::size_t number = 0; number < options.count; ++number)
    for (std::size_t attempt = 0;; ++attempt) {
      auto task = drawn_task(options, number, attempt);
      const auto code = mtmc::normalised_code(task.source);
      const auto sizes = task.file.substr(task.file.find("\"sizes\""));
      if (foreign.contains(code) || !seen.insert(code + sizes).second) continue;
      tasks.push_back(std::move(task));
      break;
    }
  return tasks;
}

/// Writes each task's two files into a folder, which is created where it is missing.
/// Throws std::system_error where that is not possible.
inline void write_tasks(const std::vector<GeneratedTask>& tasks, const std::string& folder) {
  mtmc::create_folders(folder);
  for (const auto& task : tasks) {
    mtmc::write_file_atomic(folder + '/' + task.name + ".json", task.file);
    mtmc::write_file_atomic(folder + '/' + task.source_name, task.source);
  }
}

} // namespace generated
