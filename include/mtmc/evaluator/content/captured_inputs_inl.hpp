#pragma once
/// Definitions of evaluator/content/captured_inputs.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/evaluator/content/captured_inputs.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>
#include <mtmc/support/npy.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE const CapturedInput* find_captured(std::span<const CapturedInput> captured,
                                               const BufferLayout& buffer) noexcept {
  for (const auto& input : captured)
    if (input.argument == buffer.argument && input.shape == buffer.extents) return &input;
  return nullptr;
}

MTMC_INLINE bool has_captured(std::span<const CapturedInput> captured, const ProblemLayout& layout) noexcept {
  return std::any_of(layout.buffers.begin(), layout.buffers.end(),
                     [&](const BufferLayout& buffer) { return find_captured(captured, buffer) != nullptr; });
}

MTMC_INLINE bool may_replace_elements(const Task& task, std::span<const CapturedInput> captured,
                                      const BufferLayout& buffer) noexcept {
  if (is_floating(buffer.type)) return true;
  if (find_captured(captured, buffer) != nullptr) return task.arguments[buffer.argument].domain.has_value();
  return !task.generate;
}

MTMC_INLINE void vary_captured(std::span<std::byte> content, DataType type, std::uint64_t key,
                               std::uint64_t stream, const std::optional<ValueRange>& range) {
  if (!is_floating(type)) return;
  const double largest = type == DataType::f64    ? DBL_MAX
                         : type == DataType::f32  ? static_cast<double>(FLT_MAX)
                         : type == DataType::bf16 ? static_cast<double>(bfloat16_to_float(0x7f7f))
                                                  : static_cast<double>(half_to_float(0x7bff));
  const ValueRange within{std::max(range ? range->low : -largest, -largest),
                          std::min(range ? range->high : largest, largest)};
  const std::size_t width = size_of(type);
  const std::size_t count = content.size() / width;
  detail::RandomBlock random;
  for (std::size_t first = 0; first < count; first += detail::generation_block) {
    philox_fill(random, key, first / 4, stream);
    const std::size_t here = std::min(detail::generation_block, count - first);
    const auto block = content.subspan(first * width, here * width);
    detail::for_each_real(block, type, [&](std::size_t i, double value) {
      if (value == 0 || !std::isfinite(value)) return;
      const double between = (static_cast<double>(random[i]) + 0.5) * 0x1p-31 - 1;
      const double varied = std::clamp(value * (1 + between / 8), within.low, within.high);
      detail::store_real(type, varied, within, block.data() + i * width);
    });
  }
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE bool holds_elements_of(const NpyHeader& header, DataType type) noexcept {
  if (header.width != size_of(type)) return false;
  if (type == DataType::bf16) return header.kind == 'V' || header.kind == 'u';
  if (is_floating(type)) return header.kind == 'f';
  return header.kind == (is_signed(type) ? 'i' : 'u') || header.kind == 'b';
}

MTMC_INLINE std::string numpy_conversion(DataType type) {
  if (type == DataType::bf16) return "array.astype(ml_dtypes.bfloat16).view(numpy.uint16)";
  std::string name(to_string(type));
  name.replace(0, 1, is_floating(type) ? "float" : is_signed(type) ? "int" : "uint");
  return "array.astype(numpy." + name + ')';
}

/// "(3, 4)", "(3,)"
[[nodiscard]] inline std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// Throws `Error` unless the file has the argument's type, and at one size at least its shape.
inline void require_fitting(const NpyHeader& header, const Argument& argument, std::size_t place,
                            std::span<const ProblemLayout> layouts, const std::string& where) {
  if (!holds_elements_of(header, argument.type))
    throw Error(error_id::task_malformed,
                "the file holds elements of the type \"" + header.type + "\", the argument is " +
                    std::string(to_string(argument.type)),
                "Save " + numpy_conversion(argument.type) + ", or change the argument's type", where);
  constexpr std::size_t max_shown = 4;
  std::vector<std::string> shapes;
  for (const auto& layout : layouts)
    for (const auto& buffer : layout.buffers) {
      if (buffer.argument != place) continue;
      if (buffer.extents == header.shape) return;
      if (auto text = shape_text(buffer.extents) + " at " + to_string(layout.size); shapes.size() < max_shown)
        shapes.push_back(std::move(text));
    }
  std::string listed;
  for (const auto& shape : shapes) listed += (listed.empty() ? "" : ", ") + shape;
  throw Error(error_id::task_malformed,
              "the file's array has the shape " + shape_text(header.shape) +
                  ", which the argument has at no size: it is " + listed +
                  (layouts.size() > shapes.size() ? ", ..." : ""),
              "Add a size with that shape, or save an array of a shape that is asked for", where);
}

/// Throws `Error` that names the first element outside the argument's domain, at each size the content stands
/// in for.
inline void require_in_domain(const CapturedInput& input, const Argument& argument,
                              std::span<const ProblemLayout> layouts, const std::string& where) {
  for (const auto& layout : layouts)
    for (const auto& buffer : layout.buffers) {
      if (buffer.argument != input.argument || buffer.extents != input.shape) continue;
      const auto range = value_range(argument, layout.size);
      if (!range) return;
      for (std::int64_t i = 0; i < buffer.elements; ++i) {
        const double value = element_value(input.content, buffer.type, i);
        if (value >= range->low && value <= range->high) continue;
        throw Error(error_id::task_malformed,
                    element_name(buffer, i) + " is " + number(value) + " in the file, outside the domain [" +
                        number(range->low) + ", " + number(range->high) + "] at " + to_string(layout.size),
                    "Correct the file, or the argument's \"domain\"", where);
      }
    }
}

/// Whether `vary_captured` changes anything.
[[nodiscard]] inline bool can_vary(const CapturedInput& input, DataType type) {
  if (!is_floating(type)) return false;
  bool any = false;
  for_each_real(input.content, type,
                [&](std::size_t, double value) { any = any || (value != 0 && std::isfinite(value)); });
  return any;
}

/// Throws `Error` if the contents of a timed size would be the same in every run.
inline void require_fresh_timing(const Task& task, std::span<const CapturedInput> captured,
                                 std::span<const ProblemLayout> layouts) {
  std::vector<bool> varies(task.arguments.size(), true);
  for (const auto& input : captured)
    varies[input.argument] = can_vary(input, task.arguments[input.argument].type);
  for (std::size_t size = 0; size < layouts.size(); ++size) {
    if (!(task.sizes[size].weight > 0) || !has_captured(captured, layouts[size])) continue;
    const auto& buffers = layouts[size].buffers;
    const bool fresh = std::any_of(buffers.begin(), buffers.end(), [&](const BufferLayout& buffer) {
      return buffer.is_read() && (varies[buffer.argument] || find_captured(captured, buffer) == nullptr);
    });
    if (fresh) continue;
    throw Error(error_id::task_malformed,
                "every input is captured and none can vary, since integers and zeros stay as they are: each "
                "timed run would show the same contents, and a kernel that remembers its answers would pass",
                "Leave \"data\" out for one input; or give this size the weight 0 and time another one; or "
                "make the inputs from the captured ones in a generate hook, by its key",
                "task " + task.name + " at " + to_string(layouts[size].size));
  }
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::vector<CapturedInput> read_captured_inputs(const Task& task,
                                                            std::span<const ProblemLayout> layouts) {
  std::vector<CapturedInput> captured;
  for (std::size_t place = 0; place < task.arguments.size(); ++place) {
    const auto& argument = task.arguments[place];
    if (argument.data.empty()) continue;
    const auto where = "data of argument " + argument.name + " of task " + task.name + ", " + argument.data;
    try {
      const NpyFile file(argument.data);
      detail::require_fitting(file.header(), argument, place, layouts, where);
      captured.push_back({place, file.header().shape, file.read()});
    } catch (const NpyError& error) {
      throw Error(error_id::task_malformed,
                  std::string("the captured content cannot be used: ") + error.what(), error.remedy(), where);
    } catch (const std::system_error& error) {
      throw Error(error_id::task_unreadable, "cannot read the captured content: " + error.code().message(),
                  "Check that the path exists and may be read where the judge runs", where);
    }
    detail::require_in_domain(captured.back(), argument, layouts, where);
  }
  detail::require_fresh_timing(task, captured, layouts);
  return captured;
}

} // namespace mtmc
