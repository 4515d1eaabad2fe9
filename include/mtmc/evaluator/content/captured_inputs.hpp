#pragma once
/// Inputs whose content was captured from a real run: read from `Argument::data`, and made fresh for every
/// case.

#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
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

/// The content of one argument's file.
struct CapturedInput {
  /// Its place in `Task::arguments`.
  std::size_t argument = 0;
  /// It stands in for the argument at the sizes where this is its shape.
  std::vector<std::int64_t> shape;
  /// Elements of the argument's type, row-major.
  std::vector<std::byte> content;
};

/// The captured content of a buffer; null where its content is generated.
[[nodiscard]] const CapturedInput* find_captured(std::span<const CapturedInput> captured,
                                                 const BufferLayout& buffer) noexcept;

/// Whether any buffer has captured content at a size.
[[nodiscard]] bool has_captured(std::span<const CapturedInput> captured,
                                const ProblemLayout& layout) noexcept;

/// Whether the judge may put values of its own in place of some elements of an input, to see what depends on
/// them. Not for integers from a generate hook, nor for captured ones without a domain: whoever made them
/// alone knows which integers make sense.
[[nodiscard]] bool may_replace_elements(const Task& task, std::span<const CapturedInput> captured,
                                        const BufferLayout& buffer) noexcept;

/// Multiplies every floating-point element by 1 + u/8, u uniform in (-1, 1) from `key` and `stream`, so that
/// the content is new but still looks like what was captured. Zeros, NaN and infinities stay, and so do
/// integers, which are indices, masks or lengths; nothing becomes infinite or leaves `range`.
///
/// f32: 0.7 GB/s on one core of an AMD EPYC (plain x86-64 code, GCC 12.2 -O2).
void vary_captured(std::span<std::byte> content, DataType type, std::uint64_t key, std::uint64_t stream,
                   const std::optional<ValueRange>& range = std::nullopt);

namespace detail {

/// Whether a file's elements are those of the type. bfloat16, which NumPy does not know, comes as bytes or as
/// unsigned integers.
[[nodiscard]] bool holds_elements_of(const NpyHeader& header, DataType type) noexcept;

/// How to bring an array to the type before it is saved.
[[nodiscard]] std::string numpy_conversion(DataType type);

} // namespace detail

/// Reads the files of all arguments with `data`. Throws `Error`: `mtmc.task.001` if a file cannot be read;
/// `mtmc.task.002` if it is no `.npy` file, has another type than the argument, a shape the argument has at
/// none of the sizes, or a value outside its domain, or if a timed size would show the same contents each
/// time.
[[nodiscard]] std::vector<CapturedInput> read_captured_inputs(const Task& task,
                                                              std::span<const ProblemLayout> layouts);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/captured_inputs_inl.hpp>
#endif
