#pragma once
/// Definitions of task/validate_task.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>
#include <mtmc/task/validate_task.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

[[noreturn]] inline void task_error(const Task& task, std::string_view what, std::string_view remedy,
                                    std::string_view field) {
  throw Error(error_id::task_malformed, what, remedy,
              "task " + (task.name.empty() ? std::string("without a name") : task.name) +
                  (field.empty() ? "" : ", " + std::string(field)));
}

inline void validate_name(const Task& task) {
  if (trim(task.name).empty())
    task_error(task, "the task has no name", "Give it one: it names files and reports", "name");
  for (const char c : task.name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      throw Error(error_id::task_malformed, "the task's name has a control character in it",
                  "Keep it to one line of plain text", "name");
}

MTMC_INLINE void validate_text(const Kernel& kernel, const std::string& field) {
  if (kernel.language.name.empty())
    throw Error(error_id::task_malformed, "the language has no name", "Name one, for instance cpp or cuda",
                field);
  if (trim(kernel.source).empty())
    throw Error(error_id::task_malformed, "the kernel has no text",
                "Give the source of a kernel that computes the right result", field);
  auto malformed = find_malformed_utf8(kernel.source);
  if (const auto zero = kernel.source.find('\0'); zero < malformed) malformed = zero;
  if (malformed == std::string::npos) return;
  std::size_t line = 1;
  for (std::size_t i = 0; i < malformed; ++i) line += kernel.source[i] == '\n' ? 1 : 0;
  throw Error(error_id::task_malformed, "the kernel is not UTF-8 text",
              "Give source text, no binary file; convert other encodings, for instance with iconv",
              field + ", line " + std::to_string(line));
}

inline void validate_arguments(const Task& task) {
  if (task.arguments.empty())
    task_error(task, "there are no arguments", "List the kernel's buffers and scalars", "arguments");
  std::set<std::string_view> names;
  bool writes = false;
  for (const auto& argument : task.arguments) {
    const auto field = "argument " + argument.name;
    if (!is_identifier(argument.name))
      task_error(task, "\"" + argument.name + "\" cannot be an argument's name", "Use letters, digits and _",
                 "arguments");
    if (!names.insert(argument.name).second)
      task_error(task, "two arguments have the name \"" + argument.name + '"', "Rename one of them", field);
    const bool scalar = argument.role == ArgumentRole::scalar;
    if (!scalar && argument.shape.empty())
      task_error(
          task, "the buffer \"" + argument.name + "\" has no shape",
          "Give it its extents, outermost first, for instance \"M\", \"N\"; a single element has \"1\"",
          field);
    if (scalar && !argument.shape.empty())
      task_error(task, "the scalar \"" + argument.name + "\" has a shape",
                 "Remove the shape, or give it another role", field);
    if (!scalar && !argument.value.empty())
      task_error(task, "the buffer \"" + argument.name + "\" has a value",
                 "Remove the value, or give it the role scalar", field);
    if (!argument.data.empty() && (scalar || argument.role == ArgumentRole::output))
      task_error(task,
                 (scalar ? "the scalar \"" : "the output \"") + argument.name +
                     "\" has captured content, though it has none before a call",
                 scalar ? "Remove the data, and give it a value"
                        : "Remove the data, or give it the role inout",
                 field);
    writes = writes || argument.role == ArgumentRole::output || argument.role == ArgumentRole::inout;
  }
  if (!writes)
    task_error(task, "no argument is an output, so nothing could be checked",
               "Give the role output or inout to what the kernel computes", "arguments");
}

MTMC_INLINE bool uses_symbol(const Task& task, std::string_view symbol) {
  const auto uses = [symbol](std::string_view text) {
    try {
      for (const auto& name : expression_symbols(text))
        if (name == symbol) return true;
    } catch (const ExpressionError&) { // a decimal number, or reported where it is evaluated
    }
    return false;
  };
  bool used = uses(task.flops) || uses(task.bytes);
  for (const auto& argument : task.arguments) {
    for (const auto& extent : argument.shape) used = used || uses(extent);
    used = used || uses(argument.value.empty() ? argument.name : argument.value);
    if (argument.domain) used = used || uses(argument.domain->low) || uses(argument.domain->high);
  }
  return used;
}

/// A size's own fields, without what is evaluated with them.
inline void validate_symbols(const Task& task, const ProblemSize& size) {
  const auto field = "size " + to_string(size);
  if (!(size.weight >= 0) || !std::isfinite(size.weight))
    task_error(task, "a weight is negative or no finite number", "Use 0 for sizes that are only checked",
               field);
  for (const auto& [symbol, value] : size.symbols)
    if (!is_identifier(symbol) || symbol == "weight" || symbol == "schema" || symbol == "compute_units")
      task_error(task, "\"" + symbol + "\" cannot be a symbol's name",
                 "Use letters, digits and _, and no word that has a meaning in a size or launch line", field);
  for (const auto& [name, text] : size.unknown.json)
    if (uses_symbol(task, name))
      task_error(task, "the value of \"" + name + "\" is not an integer: " + text.substr(0, 40),
                 "Write the symbol's value as a plain integer, without quotes", field);
}

MTMC_INLINE bool holds(DataType type, std::int64_t value) noexcept {
  const auto bits = 8 * size_of(type);
  if (!is_signed(type)) return value >= 0 && (bits >= 63 || value >> bits == 0);
  return bits >= 64 || (value >> (bits - 1) == 0 || value >> (bits - 1) == -1);
}

MTMC_INLINE bool holds(DataType type, double value) noexcept {
  const double largest = type == DataType::f16 ? 65504 : type == DataType::f64 ? HUGE_VAL : 0x1.fffffep127;
  return std::abs(value) <= largest;
}

inline void validate_argument(const Task& task, const Argument& argument, const ProblemSize& size) {
  const auto at_size = " at " + to_string(size);
  if (argument.role == ArgumentRole::scalar) {
    const auto& value = argument.value.empty() ? argument.name : argument.value;
    const auto place = "value of " + argument.name + at_size;
    const bool fits = is_floating(argument.type)
                          ? holds(argument.type, evaluate_real(value, size.symbols, place))
                          : holds(argument.type, evaluate_at(value, size.symbols, place));
    if (!fits)
      task_error(task, "the value \"" + value + "\" does not fit " + std::string(to_string(argument.type)),
                 "Choose a smaller size, or a wider type in task and kernel", place);
  } else {
    (void)evaluate_extents(argument.shape, argument.type, size.symbols,
                           "shape of " + argument.name + at_size);
  }
  if (!argument.domain) return;
  const auto place = "domain of " + argument.name + at_size;
  if (!(evaluate_real(argument.domain->low, size.symbols, place) <=
        evaluate_real(argument.domain->high, size.symbols, place)))
    task_error(task, "the domain of \"" + argument.name + "\" is empty",
               "Its low end must not exceed its high end", place);
}

/// The launch lines of a kernel, at every size.
inline void validate_launches(const Task& task, const Kernel& kernel) {
  const auto lines = parse_launch_lines(kernel);
  LaunchPlan plan;
  for (const auto& size : task.sizes) plan = plan_launches(lines, task, size, 1);
  for (const auto& argument : task.arguments) {
    bool passed = argument.role == ArgumentRole::input || argument.role == ArgumentRole::scalar;
    for (const auto& launch : plan.launches)
      for (const auto& given : launch.arguments) passed = passed || given.name == argument.name;
    if (!passed)
      throw Error(error_id::launch_malformed,
                  "the output \"" + argument.name + "\" is passed to no launch, so it is never written",
                  "Pass it to a launch, or take it out of the task's arguments");
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void validate_task(const Task& task) {
  using detail::task_error;
  detail::validate_name(task);
  detail::validate_text(task.kernel, "kernel");
  if (task.reference) detail::validate_text(*task.reference, "reference");
  detail::validate_arguments(task);
  if (task.sizes.empty())
    task_error(task, "there are no sizes", "Give at least one size with a value for every symbol", "sizes");
  if (task.tolerance && !(*task.tolerance > 0 && *task.tolerance < 1))
    task_error(task, "the tolerance is not between 0 and 1",
               "Leave it out, or give an error relative to the output's scale, such as 1e-4", "tolerance");
  bool timed = false;
  for (const auto& size : task.sizes) {
    detail::validate_symbols(task, size);
    for (const auto& argument : task.arguments) detail::validate_argument(task, argument, size);
    if (least_bytes(task, size) < 0 || stated_flops(task, size) < 0)
      task_error(task, "the bytes or flops are negative", "Correct the expression",
                 "size " + to_string(size));
    timed = timed || size.weight > 0;
  }
  if (!timed) task_error(task, "no size is timed", "Give at least one size a weight above 0", "sizes");
  for (const bool of_reference : {false, true}) {
    if (of_reference && !task.reference) continue;
    try {
      detail::validate_launches(task, of_reference ? *task.reference : task.kernel);
    } catch (const Error& error) {
      throw error.within(of_reference ? "reference" : "kernel");
    }
  }
}

} // namespace mtmc
