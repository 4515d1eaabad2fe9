#pragma once
/// Whether a task is complete and free of contradictions, before anything is compiled.

#include <mtmc/core/launch_lines.hpp>

#include <set>
#include <string>

namespace mtmc {

namespace detail {

[[noreturn]] inline void task_error(const Task& task, std::string_view what, std::string_view remedy,
                                    std::string_view field) {
  throw Error(error_id::task_malformed, what, remedy,
              "task " + (task.name.empty() ? std::string("without a name") : task.name) +
                  (field.empty() ? "" : ", " + std::string(field)));
}

inline void validate_arguments(const Task& task) {
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
      task_error(task, "the buffer \"" + argument.name + "\" has no shape",
                 "Give it extents, for instance {\"M\", \"N\"}; a single element has {\"1\"}", field);
    if (scalar && !argument.shape.empty())
      task_error(task, "the scalar \"" + argument.name + "\" has a shape",
                 "Remove the shape, or give it another role", field);
    writes = writes || argument.role == ArgumentRole::output || argument.role == ArgumentRole::inout;
  }
  if (!writes)
    task_error(task, "no argument is an output, so nothing could be checked",
               "Give the role output or inout to what the kernel computes", "arguments");
}

inline void validate_size(const Task& task, const ProblemSize& size) {
  const auto field = "size " + to_string(size);
  if (!(size.weight >= 0))
    task_error(task, "a weight is negative or not a number", "Use 0 for sizes that are only checked", field);
  for (const auto& argument : task.arguments) {
    const auto place = "shape of " + argument.name + " at " + to_string(size);
    if (argument.role == ArgumentRole::scalar) {
      const auto& value = argument.value.empty() ? argument.name : argument.value;
      if (is_floating(argument.type))
        (void)evaluate_real(value, size.symbols, "value of " + argument.name);
      else
        (void)evaluate_at(value, size.symbols, "value of " + argument.name + " at " + to_string(size));
    } else {
      (void)evaluate_extents(argument.shape, argument.type, size.symbols, place);
    }
    if (argument.domain) {
      const double low = evaluate_real(argument.domain->low, size.symbols, "domain of " + argument.name);
      const double high = evaluate_real(argument.domain->high, size.symbols, "domain of " + argument.name);
      if (!(low <= high))
        task_error(task, "the domain of \"" + argument.name + "\" is empty",
                   "Its low end must not exceed its high end", field);
    }
  }
  (void)least_bytes(task, size);
  (void)stated_flops(task, size);
}

} // namespace detail

/// Checks names, roles, shapes, values, domains, sizes and launch lines of a task, every expression at every
/// size. Throws `Error` (`mtmc.task.002`, `mtmc.task.003`, `mtmc.launch.001`) with the field and the remedy.
inline void validate_task(const Task& task) {
  using detail::task_error;
  if (task.name.empty())
    task_error(task, "the task has no name", "Give it one: it names files and reports", {});
  if (trim(task.kernel.source).empty())
    task_error(task, "the kernel has no text", "Give the source of the kernel to start from", "kernel");
  if (task.arguments.empty())
    task_error(task, "there are no arguments", "List the kernel's buffers and scalars", "arguments");
  if (task.sizes.empty())
    task_error(task, "there are no sizes", "Give at least one size with a value for every symbol", "sizes");
  if (task.tolerance && !(*task.tolerance > 0))
    task_error(task, "the tolerance is not positive", "Leave it out, or give a relative error such as 1e-4",
               "tolerance");
  detail::validate_arguments(task);
  bool timed = false;
  for (const auto& size : task.sizes) {
    detail::validate_size(task, size);
    timed = timed || size.weight > 0;
  }
  if (!timed) task_error(task, "no size is timed", "Give at least one size a weight above 0", "sizes");
  for (const Kernel* kernel : {&task.kernel, task.reference ? &*task.reference : nullptr}) {
    if (kernel == nullptr) continue;
    const auto lines = parse_launch_lines(*kernel);
    for (const auto& size : task.sizes) (void)plan_launches(lines, task, size, 1);
  }
}

} // namespace mtmc
