#pragma once
/// What the signatures of a kernel's functions tell about a task's arguments.

#include <mtmc/analysis/stated_argument.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/nearest_name.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

/// A parameter as its function declares it.
struct SignatureParameter {
  std::string name;
  /// The element type of a pointer or array, the type of a scalar; nothing if it is not one of the library's
  /// data types.
  std::optional<DataType> type;
  bool pointer = false;
  /// What it points to may not be written.
  bool points_to_const = false;
};

/// A function a launch line may name.
struct Signature {
  std::string name;
  std::vector<SignatureParameter> parameters;
  int line = 0;
};

namespace detail {

/// Words of a type, without qualifiers and attributes: "const float* __restrict__" -> "float".
[[nodiscard]] inline std::string bare_type(std::string_view text) {
  constexpr std::string_view dropped[] = {"const",      "volatile", "restrict", "__restrict__",
                                          "__restrict", "struct",   "__global", "__constant",
                                          "__local",    "global",   "constant", "register"};
  std::string result;
  while (!(text = trim(text)).empty()) {
    std::size_t n = 0;
    while (n < text.size() && (is_name_character(text[n]) || text[n] == ':')) ++n;
    auto word = text.substr(0, n == 0 ? 1 : n);
    text.remove_prefix(word.size());
    if (n == 0) continue; // '*', '&' and other signs
    if (word.starts_with("std::")) word.remove_prefix(5);
    bool drop = false;
    for (const auto other : dropped) drop = drop || word == other;
    if (drop) continue;
    if (!result.empty()) result += ' ';
    result += word;
  }
  return result;
}

/// The data type of a C-family type name; nothing for what the library has no type for.
[[nodiscard]] inline std::optional<DataType> data_type_of(std::string_view type_text) {
  struct Known {
    std::string_view name;
    DataType type;
  };
  static constexpr Known known[] = {{"float", DataType::f32},
                                    {"double", DataType::f64},
                                    {"half", DataType::f16},
                                    {"__half", DataType::f16},
                                    {"_Float16", DataType::f16},
                                    {"__bf16", DataType::bf16},
                                    {"__nv_bfloat16", DataType::bf16},
                                    {"bfloat16", DataType::bf16},
                                    {"int", DataType::i32},
                                    {"signed", DataType::i32},
                                    {"signed int", DataType::i32},
                                    {"int32_t", DataType::i32},
                                    {"unsigned", DataType::u32},
                                    {"unsigned int", DataType::u32},
                                    {"uint", DataType::u32},
                                    {"uint32_t", DataType::u32},
                                    {"long", DataType::i64},
                                    {"long int", DataType::i64},
                                    {"long long", DataType::i64},
                                    {"long long int", DataType::i64},
                                    {"int64_t", DataType::i64},
                                    {"ptrdiff_t", DataType::i64},
                                    {"unsigned long", DataType::u64},
                                    {"unsigned long long", DataType::u64},
                                    {"uint64_t", DataType::u64},
                                    {"size_t", DataType::u64},
                                    {"short", DataType::i16},
                                    {"int16_t", DataType::i16},
                                    {"unsigned short", DataType::u16},
                                    {"uint16_t", DataType::u16},
                                    {"signed char", DataType::i8},
                                    {"char", DataType::i8},
                                    {"int8_t", DataType::i8},
                                    {"unsigned char", DataType::u8},
                                    {"uint8_t", DataType::u8},
                                    {"bool", DataType::u8}};
  const auto name = bare_type(type_text);
  for (const auto& entry : known)
    if (entry.name == name) return entry.type;
  return std::nullopt;
}

inline void collect_signatures(const SyntaxNode& node, std::vector<Signature>& found) {
  for (const auto& child : node.children) {
    if (child.kind == NodeKind::scope) collect_signatures(child, found);
    if (child.kind != NodeKind::function) continue;
    Signature signature{child.text, {}, child.range.first_line};
    for (const auto& parameter : parameters(child)) {
      const std::string_view text = parameter.type;
      const bool pointer = text.find('*') != std::string_view::npos || !extents(parameter).empty();
      const bool to_const = text.substr(0, text.find('*')).find("const") != std::string_view::npos;
      signature.parameters.push_back({parameter.text, data_type_of(text), pointer, pointer && to_const});
    }
    found.push_back(std::move(signature));
  }
}

} // namespace detail

/// The functions defined in C-family text, in order. Other languages give none.
[[nodiscard]] inline std::vector<Signature> read_signatures(const Kernel& kernel) {
  std::vector<Signature> found;
  if (kernel.language.syntax != Syntax::c_family) return found;
  detail::collect_signatures(parse(kernel.source, {.cuda_launches = kernel.language == languages::cuda}),
                             found);
  return found;
}

namespace detail {

/// Adds the launch line of a kernel for the CPU that has one function and no launch line: the function is
/// called with its own parameter names.
inline void add_launch_line(Kernel& kernel, const std::vector<Signature>& signatures) {
  const Signature* entry = nullptr;
  int candidates = 0;
  for (const auto& signature : signatures) {
    bool takes_buffer = false;
    for (const auto& parameter : signature.parameters) takes_buffer = takes_buffer || parameter.pointer;
    if (!takes_buffer) continue;
    ++candidates;
    entry = &signature;
  }
  if (kernel.language != languages::cpp || candidates != 1)
    throw Error(error_id::task_signature,
                "the kernel has no launch line, and it is not clear which function is meant",
                "Add a comment line `" + std::string(launch_marker(kernel.language)) +
                    " launch ENTRY(ARGUMENTS)` to the source");
  std::string line = std::string(launch_marker(kernel.language)) + " launch " + entry->name + '(';
  for (std::size_t i = 0; i < entry->parameters.size(); ++i)
    line.append(i == 0 ? "" : ", ").append(entry->parameters[i].name);
  if (!kernel.source.empty() && kernel.source.back() != '\n') kernel.source += '\n';
  kernel.source += line + ")\n";
}

/// Position of a launch argument's parameter in its entry's signature, or null.
[[nodiscard]] inline const SignatureParameter* parameter_of(const std::vector<Signature>& signatures,
                                                            const LaunchLine& launch, std::size_t index) {
  for (const auto& signature : signatures)
    if (signature.name == launch.entry && index < signature.parameters.size())
      return &signature.parameters[index];
  return nullptr;
}

/// An argument that is stated and that no launch line passes: probably misspelt.
[[noreturn]] inline void argument_not_passed(const Task& task, const std::string& name,
                                             const std::vector<std::string_view>& passed) {
  throw Error(error_id::task_signature, "no launch of the kernel passes \"" + name + '"',
              known_names(name, passed, "The launch lines pass "), "task " + task.name);
}

} // namespace detail

/// Completes a task's arguments from its kernel: every plain name among the launch lines' arguments that is
/// no scratch buffer becomes an argument, in order of first use; a pointer to const is an input, another
/// pointer an output, and anything else a scalar whose value is the symbol of the same name. What `stated`
/// says wins. A C++ kernel with exactly one function that takes a buffer gets its launch line added.
///
/// Throws `Error` (`mtmc.task.004`) where neither the statement nor the signature tells role and data type.
inline void complete_arguments(Task& task, std::vector<StatedArgument> stated) {
  auto signatures = read_signatures(task.kernel);
  auto lines = parse_launch_lines(task.kernel);
  if (lines.launches.empty() && !signatures.empty()) {
    detail::add_launch_line(task.kernel, signatures);
    lines = parse_launch_lines(task.kernel);
  }

  const auto find = [&stated](std::string_view name) -> StatedArgument* {
    for (auto& entry : stated)
      if (entry.argument.name == name) return &entry;
    return nullptr;
  };
  const auto is_scratch = [&lines](std::string_view name) {
    for (const auto& line : lines.scratch)
      if (line.name == name) return true;
    return false;
  };

  for (const auto& launch : lines.launches) {
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const auto& name = launch.arguments[i];
      if (!is_identifier(name) || is_scratch(name)) continue;
      const auto* parameter = detail::parameter_of(signatures, launch, i);
      auto* entry = find(name);
      if (entry == nullptr) {
        if (parameter == nullptr) continue; // a symbol, or the evaluator will say what is missing
        stated.push_back({});
        entry = &stated.back();
        entry->argument.name = name;
      }
      if (parameter == nullptr) continue;
      auto& argument = entry->argument;
      if (!entry->has_type && parameter->type) {
        argument.type = *parameter->type;
        entry->has_type = true;
      }
      if (!entry->has_role) {
        argument.role = !parameter->pointer          ? ArgumentRole::scalar
                        : parameter->points_to_const ? ArgumentRole::input
                                                     : ArgumentRole::output;
        // An input of one launch that another launch writes is an output, so an input may still be overruled.
        entry->has_role = argument.role != ArgumentRole::input;
      }
      if (argument.role == ArgumentRole::scalar && argument.value.empty()) argument.value = name;
    }
  }
  std::vector<std::string_view> passed;
  for (const auto& launch : lines.launches)
    for (const auto& name : launch.arguments)
      if (is_identifier(name)) passed.push_back(name);
  for (auto& entry : stated) {
    if (!entry.has_type && !passed.empty() &&
        std::find(passed.begin(), passed.end(), entry.argument.name) == passed.end())
      detail::argument_not_passed(task, entry.argument.name, passed);
    const bool known = entry.has_type && (entry.has_role || entry.argument.role == ArgumentRole::input);
    if (!known)
      throw Error(error_id::task_signature,
                  "the data type of \"" + entry.argument.name +
                      "\" cannot be read from the kernel's signature",
                  "State role and dtype of this argument, or name it in a launch line", "task " + task.name);
    task.arguments.push_back(std::move(entry.argument));
  }
}

} // namespace mtmc
