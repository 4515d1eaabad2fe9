#pragma once
/// Definitions of analysis/complete_arguments.hpp.

#include <mtmc/analysis/argument_contradictions.hpp>
#include <mtmc/analysis/complete_arguments.hpp>
#include <mtmc/analysis/signature.hpp>
#include <mtmc/analysis/stated_argument.hpp>
#include <mtmc/analysis/syntax/unfinished.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/nearest_name.hpp>
#include <mtmc/task/launch_lines.hpp>
#include <mtmc/task/validate_task.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE void add_launch_line(Kernel& kernel, const std::vector<Signature>& signatures) {
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

/// The parameter of its entry that a launch's argument goes to, or null.
[[nodiscard]] inline const SignatureParameter* parameter_of(const std::vector<Signature>& signatures,
                                                            const LaunchLine& launch, std::size_t index) {
  for (const auto& signature : signatures)
    if (signature.name == launch.entry && index < signature.parameters.size())
      return &signature.parameters[index];
  return nullptr;
}

/// The names that launch lines pass: buffers, scalars, and symbols in expressions.
inline void add_passed_names(const LaunchLines& lines, std::vector<std::string>& names) {
  constexpr std::string_view map = "tensor_map(";
  for (const auto& launch : lines.launches)
    for (std::string_view text : launch.arguments) {
      if (text.starts_with(map)) {
        text.remove_prefix(map.size());
        names.push_back(take_identifier(text));
        continue;
      }
      try {
        for (auto& name : expression_symbols(text)) names.push_back(std::move(name));
      } catch (const ExpressionError&) { // reported where it is evaluated
      }
    }
}

/// Throws `Error` for an argument that is stated and that no launch line passes: probably misspelt.
inline void require_passed(const Task& task, const std::vector<StatedArgument>& stated,
                           const std::vector<std::string>& passed) {
  if (passed.empty()) return;
  const std::vector<std::string_view> known(passed.begin(), passed.end());
  for (const auto& entry : stated)
    if (const auto& name = entry.argument.name; std::find(known.begin(), known.end(), name) == known.end())
      throw Error(error_id::task_signature, "no launch of the kernel passes \"" + name + '"',
                  known_names(name, known, "The launch lines pass "),
                  "task " + task.name + ", argument " + name);
}

/// Throws `Error` for a kernel of which no function could be read: the text ends too early, or has none.
[[noreturn]] inline void no_function_found(const Task& task, const std::string& entry,
                                           const std::vector<Signature>& signatures) {
  const auto place = "task " + task.name + ", kernel";
  if (const auto unfinished = find_unfinished(task.kernel.source); !unfinished.empty())
    throw Error(error_id::task_signature, "the kernel's text cannot be parsed: " + unfinished,
                "Complete the text", place);
  if (signatures.empty())
    throw Error(error_id::task_signature, "the kernel's text defines no function",
                "Give the source of a kernel that computes the right result", place);
  std::vector<std::string_view> known;
  for (const auto& signature : signatures) known.push_back(signature.name);
  throw Error(error_id::task_signature,
              "a launch line names `" + entry + "`, which the kernel's text does not define",
              known_names(entry, known, "It defines ") +
                  ". Where a macro defines the function, state role and dtype of every argument",
              place);
}

/// Throws `Error` for an argument whose data type neither the statement nor a signature tells.
[[noreturn]] inline void type_not_told(const Task& task, const std::string& name, const LaunchLines& lines,
                                       const std::vector<Signature>& signatures) {
  for (const auto& launch : lines.launches) {
    const auto found = std::find(launch.arguments.begin(), launch.arguments.end(), name);
    if (found == launch.arguments.end()) continue;
    const auto* const signature = find_signature(signatures, launch.entry);
    if (signature == nullptr) no_function_found(task, launch.entry, signatures);
    const auto index = static_cast<std::size_t>(found - launch.arguments.begin());
    if (index >= signature->parameters.size()) continue;
    const auto& parameter = signature->parameters[index];
    throw Error(error_id::task_signature,
                "the data type of \"" + name + "\" cannot be read from `" + parameter.declaration +
                    "` in line " + std::to_string(parameter.line) + " of the kernel",
                "State role and dtype of this argument", "task " + task.name + ", argument " + name);
  }
  throw Error(error_id::task_signature,
              "the data type of \"" + name + "\" cannot be read from the kernel's signature",
              "State role and dtype of this argument, or name it in a launch line", "task " + task.name);
}

/// Takes over what a parameter tells about an argument and nobody has stated.
inline void complete_argument(StatedArgument& entry, const SignatureParameter& parameter) {
  auto& argument = entry.argument;
  if (!entry.has_type && parameter.type) {
    argument.type = *parameter.type;
    entry.has_type = true;
  }
  if (!entry.has_role) {
    argument.role = !parameter.pointer          ? ArgumentRole::scalar
                    : parameter.points_to_const ? ArgumentRole::input
                                                : ArgumentRole::output;
    // An input of one launch that another launch writes is an output, so an input may still be overruled.
    entry.has_role = argument.role != ArgumentRole::input;
  }
  if (argument.role == ArgumentRole::scalar && argument.value.empty()) argument.value = argument.name;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void complete_arguments(Task& task, std::vector<StatedArgument> stated) {
  detail::validate_text(task.kernel, "kernel");
  const auto signatures = read_signatures(task.kernel);
  auto lines = parse_launch_lines(task.kernel);
  if (lines.launches.empty() && task.kernel.language.syntax == Syntax::c_family) {
    if (signatures.empty()) detail::no_function_found(task, {}, signatures);
    detail::add_launch_line(task.kernel, signatures);
    lines = parse_launch_lines(task.kernel);
  }
  std::vector<std::string> passed;
  detail::add_passed_names(lines, passed);
  std::vector<ReadKernel> kernels{{"kernel", signatures, lines}};
  std::vector<Signature> reference_signatures;
  LaunchLines reference_lines;
  if (task.reference) {
    reference_signatures = read_signatures(*task.reference);
    try {
      reference_lines = parse_launch_lines(*task.reference);
    } catch (const Error& error) {
      throw error.within("reference");
    }
    detail::add_passed_names(reference_lines, passed);
    kernels.push_back({"reference", reference_signatures, reference_lines});
  }
  detail::require_passed(task, stated, passed);
  refuse_contradictions(stated, kernels);

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
      const auto* const parameter = detail::parameter_of(signatures, launch, i);
      if (parameter == nullptr) continue; // a symbol, or the evaluator will say what is missing
      auto* entry = find(name);
      if (entry == nullptr) {
        stated.push_back({});
        entry = &stated.back();
        entry->argument.name = name;
      }
      detail::complete_argument(*entry, *parameter);
    }
  }
  for (auto& entry : stated) {
    const bool known = entry.has_type && (entry.has_role || entry.argument.role == ArgumentRole::input);
    if (!known) detail::type_not_told(task, entry.argument.name, lines, signatures);
    task.arguments.push_back(std::move(entry.argument));
  }
}

} // namespace mtmc
