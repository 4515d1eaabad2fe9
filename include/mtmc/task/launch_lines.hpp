#pragma once
/// The launch lines of a kernel's text (design, section 4): reading them and evaluating them for a size.
///
///     line    = marker ( scratch | launch )
///     scratch = "scratch" name ":" dtype "[" expr {"," expr} "]" [ "zero" ]
///     launch  = "launch" entry [ "<<<" dim "," dim [ "," expr ] [ "," cluster ] ">>>" ]
///               "(" [ arg {"," arg} ] ")"
///     dim     = expr | "(" expr {"," expr} ")"       arg = name | expr | map
///     cluster = "cluster(" expr {"," expr} ")"       map = "tensor_map(" name {"," expr} {"," option} ")"
///     option  = ( "swizzle" | "interleave" | "l2" | "nan_fill" ) "=" expr
///
/// `zero`: every call finds zeros there, which the device writes as a part of the call: for the counters and
/// sums of blocks that meet. Without it scratch memory holds anything.
///
/// `<<<grid, block, shared_bytes, cluster(2, 1)>>>` launches blocks in clusters (CUDA, from Hopper on): the
/// extents are those of the grid's axes, x first, and divide them; at most 8 blocks make a cluster.
///
/// `tensor_map(A, 64, 32, swizzle=128)` is a descriptor of the whole buffer A for the tensor memory
/// accelerator (CUDA, from Hopper on). The kernel takes it as `const __grid_constant__ CUtensorMap` (of
/// <cuda.h>). The expressions are the extents of the box that one copy moves, in elements, one for each of
/// the buffer's extents in the same order: outermost first, innermost last (the kernel gives coordinates
/// innermost first). What of a box lies outside the buffer is filled with zeros and not written. The rules
/// are the hardware's: one to five extents, each of the box 1 to 256; rows of the buffer (all extents but the
/// outermost) of a multiple of 16 bytes; the box's innermost extent a multiple of 16 bytes, and at most
/// `swizzle` bytes. Options, all 0 if they are missing:
///
/// - `swizzle`: 32, 64 or 128: chunks of 16 bytes within so many bytes of the box are permuted in shared
///   memory.
/// - `interleave`: 16 or 32: the innermost extent comes in slices of so many bytes; 32 needs `swizzle=32`.
/// - `l2`: 64, 128 or 256: so many bytes are brought to the second-level cache at once.
/// - `nan_fill`: 1: floating-point elements outside the buffer are NaN instead of zero.

#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A `scratch` line as written.
struct ScratchLine {
  std::string name;                 ///< as other lines name it
  DataType type = DataType::f32;    ///< type of an element
  std::vector<std::string> extents; ///< expressions, outermost first
  int line = 0;                     ///< 1-based line in the kernel's text
  bool zero = false;                ///< every call finds zeros there

  friend bool operator==(const ScratchLine&, const ScratchLine&) = default; ///< member by member
};

/// A `launch` line as written.
struct LaunchLine {
  /// Name of the function.
  std::string entry;
  /// Expressions of the grid and the block, x first; empty without `<<<...>>>`.
  std::vector<std::string> grid;
  /// Expressions of the block, x first.
  std::vector<std::string> block;
  /// Expression of the dynamic shared memory in bytes; empty = 0.
  std::string shared_bytes;
  /// Argument texts in order.
  std::vector<std::string> arguments;
  /// 1-based line in the kernel's text.
  int line = 0;
  /// Expressions of the cluster, x first; empty = none.
  std::vector<std::string> cluster{};

  friend bool operator==(const LaunchLine&, const LaunchLine&) = default; ///< member by member
};

/// All launch lines of one kernel, in the order of the text.
struct LaunchLines {
  std::vector<ScratchLine> scratch; ///< in the order of the text
  std::vector<LaunchLine> launches; ///< in the order of the text

  friend bool operator==(const LaunchLines&, const LaunchLines&) = default; ///< member by member
};

namespace detail {

[[nodiscard]] LaunchLine parse_launch_line(std::string_view text, std::string_view whole, int line);

} // namespace detail

/// Reads the launch lines of a kernel's text. A line whose first characters after blanks are the language's
/// marker is a launch line. Throws `Error` (`mtmc.launch.001`) with the line where one is malformed; a kernel
/// without any gives an empty list.
[[nodiscard]] LaunchLines parse_launch_lines(const Kernel& kernel);

namespace detail {

/// Evaluates an expression of a task or launch line; what goes wrong becomes an `Error` that names `place`.
[[nodiscard]] std::int64_t evaluate_at(std::string_view text, const Symbols& symbols, std::string_view place);

/// Bytes one buffer may have: half the address space, so that offsets and red zones cannot overflow.
inline constexpr std::int64_t largest_buffer_bytes = std::numeric_limits<std::int64_t>::max() / 4;

[[nodiscard]] std::vector<std::int64_t> evaluate_extents(const std::vector<std::string>& shape, DataType type,
                                                         const Symbols& symbols, const std::string& place);

/// Value of a floating scalar or bound: a finite decimal number, or else an integer expression.
[[nodiscard]] double evaluate_real(std::string_view text, const Symbols& symbols, std::string_view place);

} // namespace detail

/// Evaluates a kernel's launch lines for one size of a task. Besides the task's symbols, expressions may use
/// `compute_units`. Buffers are not bound yet. Throws `Error` (`mtmc.launch.001`, `mtmc.task.003`) with the
/// line.
[[nodiscard]] LaunchPlan plan_launches(const LaunchLines& lines, const Task& task, const ProblemSize& size,
                                       int compute_units);

/// Same, from the kernel's text.
[[nodiscard]] LaunchPlan plan_launches(const Kernel& kernel, const Task& task, const ProblemSize& size,
                                       int compute_units);

/// Least bytes one call moves: every input read and every output written once, or the task's own `bytes`.
[[nodiscard]] double least_bytes(const Task& task, const ProblemSize& size);

/// Floating-point operations of one call by the task's own expression; 0 if it has none.
[[nodiscard]] double stated_flops(const Task& task, const ProblemSize& size);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/task/launch_lines_inl.hpp>
#endif
