#pragma once
/// A task's buffers for one size: what is allocated, filled and compared.

#include <mtmc/core/device.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One buffer argument for one size.
struct BufferLayout {
  /// The argument's name.
  std::string name;
  /// Its place in `Task::arguments`.
  std::size_t argument = 0;
  ArgumentRole role = ArgumentRole::input; ///< what the kernel does with it
  DataType type = DataType::f32;           ///< type of the elements
  std::vector<std::int64_t> extents;       ///< outermost first
  std::int64_t elements = 0;               ///< product of the extents
  std::size_t bytes = 0;                   ///< size of all elements

  /// Whether it has content before a call.
  [[nodiscard]] bool is_read() const noexcept { return role != ArgumentRole::output; }
  /// Whether its content after a call is a result.
  [[nodiscard]] bool is_written() const noexcept { return role != ArgumentRole::input; }
};

/// All buffer arguments for one size, in the order of the task's arguments.
struct ProblemLayout {
  ProblemSize size;                  ///< the size
  std::vector<BufferLayout> buffers; ///< in the order of the task's arguments

  /// Bytes with content before a call.
  [[nodiscard]] double input_bytes() const noexcept {
    double total = 0;
    for (const auto& buffer : buffers)
      if (buffer.is_read()) total += static_cast<double>(buffer.bytes);
    return total;
  }
  /// Bytes of all buffers.
  [[nodiscard]] double bytes() const noexcept {
    double total = 0;
    for (const auto& buffer : buffers) total += static_cast<double>(buffer.bytes);
    return total;
  }
  /// Elements of all results.
  [[nodiscard]] std::int64_t result_elements() const noexcept {
    std::int64_t total = 0;
    for (const auto& buffer : buffers)
      if (buffer.is_written()) total += buffer.elements;
    return total;
  }
};

/// The buffers of a task for one size. Throws `Error` (`mtmc.task.003`) if a shape cannot be evaluated.
[[nodiscard]] inline ProblemLayout layout_of(const Task& task, const ProblemSize& size) {
  ProblemLayout layout;
  layout.size = size;
  for (std::size_t i = 0; i < task.arguments.size(); ++i) {
    const auto& argument = task.arguments[i];
    if (argument.role == ArgumentRole::scalar) continue;
    BufferLayout buffer;
    buffer.name = argument.name;
    buffer.argument = i;
    buffer.role = argument.role;
    buffer.type = argument.type;
    buffer.extents = detail::evaluate_extents(argument.shape, argument.type, size.symbols,
                                              "shape of " + argument.name + " at " + to_string(size));
    buffer.elements = 1;
    for (const auto extent : buffer.extents) buffer.elements *= extent;
    buffer.bytes = static_cast<std::size_t>(buffer.elements) * size_of(buffer.type);
    layout.buffers.push_back(std::move(buffer));
  }
  return layout;
}

namespace detail {
[[nodiscard]] inline std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}
} // namespace detail

/// Throws `Error` (`mtmc.backend.002`) if the device has no room for the buffers of candidate, incumbent and
/// reference, each of which has its own, at one of the sizes.
inline void require_room(const Task& task, std::span<const ProblemLayout> layouts, const Device& device) {
  const auto memory = static_cast<double>(device.memory_bytes);
  for (const auto& layout : layouts)
    if (memory > 0 && 3 * layout.bytes() > memory)
      throw Error(error_id::backend_memory,
                  "the buffers of three kernels need " + readable_bytes(3 * layout.bytes()) +
                      ", the device has " + readable_bytes(memory),
                  "Choose smaller sizes", "task " + task.name + " at " + to_string(layout.size));
}

/// What `validate_task` cannot know: throws `Error` (`mtmc.task.002`) for a domain without values of the
/// argument's type.
inline void require_judgeable(const Task& task) {
  for (const auto& argument : task.arguments)
    for (const auto& size : task.sizes) (void)value_range(argument, size);
}

} // namespace mtmc
