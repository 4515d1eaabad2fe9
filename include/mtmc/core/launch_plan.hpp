#pragma once
/// A kernel's launch lines, evaluated for one problem size.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/task.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Memory that only the kernel itself uses, shared by the launches of one call. Its content is poisoned
/// before every call; where its line says `zero`, the first launch that it is passed to finds zeros
/// (`LaunchArgument::zeroed`).
struct ScratchBuffer {
  /// As its scratch line names it.
  std::string name;
  /// Type of an element.
  DataType type = DataType::f32;
  /// Extents for this size, each at least 1.
  std::vector<std::int64_t> extents{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// Bytes of the whole buffer.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    auto total = static_cast<std::int64_t>(size_of(type));
    for (const auto extent : extents) total *= extent;
    return total;
  }

  friend bool operator==(const ScratchBuffer&, const ScratchBuffer&) = default; ///< member by member
};

/// Where a buffer argument lies: filled in by the evaluator before a plan is run, opaque to everyone but the
/// backend.
struct BoundBuffer {
  /// What `Backend::Buffer::handle()` gave: a device pointer, a mapping's number, a `cl_mem`.
  std::uint64_t handle = 0;
  /// Bytes from the start of that allocation to the first element: a multiple of 4096 as the evaluator binds
  /// it, on backends with guard pages of 64, on those that run the judge's kernels of 256.
  std::int64_t offset = 0;
  /// Bytes of the content.
  std::int64_t bytes = 0;

  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const BoundBuffer&, const BoundBuffer&) = default; ///< member by member
};

/// One argument of a launch.
struct LaunchArgument {
  /// What is passed.
  enum class Kind { buffer, scalar, tensor_map };
  /// What is passed.
  Kind kind = Kind::buffer;
  /// Name of the buffer (argument of the task or scratch); the expression's text for a scalar.
  std::string name;
  /// Of an element, or of the scalar.
  DataType type = DataType::f32;
  /// Whether the kernel may write the buffer.
  bool writable = false;
  /// Value of an integer scalar. Expressions of launch lines are i64 whatever the kernel's parameter is: the
  /// backend converts to that, and a value that does not fit is `RunOutcome::launch_failed`.
  std::int64_t integer = 0;
  /// Value of a floating scalar.
  double real = 0;
  /// Extents of a buffer for this size, outermost first.
  std::vector<std::int64_t> extents{};
  /// Extents of a tensor map's box, evaluated: as many as the buffer has, outermost first.
  std::vector<std::int64_t> operands{};
  /// The memory of a buffer, once it has been allocated.
  BoundBuffer bound{};
  /// Whether the backend fills the buffer with zero bytes before this launch, in every call, as a part of
  /// what it times.
  bool zeroed = false;
  /// Named options of a tensor map, evaluated; see task/launch_lines.hpp.
  std::map<std::string, std::int64_t> options{};
  /// Bytes from the buffer's first element to what is passed. Launch lines pass whole buffers; recorded plans
  /// also pass parts.
  std::int64_t byte_offset = 0;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const LaunchArgument&, const LaunchArgument&) = default; ///< member by member
};

namespace detail {
inline constexpr EnumName<LaunchArgument::Kind> launch_argument_kind_names[] = {
    {LaunchArgument::Kind::buffer, "buffer"},
    {LaunchArgument::Kind::scalar, "scalar"},
    {LaunchArgument::Kind::tensor_map, "tensor_map"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<LaunchArgument::Kind>>
enum_names(LaunchArgument::Kind) noexcept {
  return detail::launch_argument_kind_names;
}

/// One launch of one entry function.
struct Launch {
  /// Name of the function.
  std::string entry;
  /// Blocks of the grid and threads of a block in x, y, z; all 1 without `<<<...>>>`.
  std::array<std::int64_t, 3> grid{1, 1, 1};
  /// Threads of a block in x, y, z.
  std::array<std::int64_t, 3> block{1, 1, 1};
  /// Dynamic shared memory in bytes (OpenCL: that of a `__local` pointer behind all arguments).
  std::int64_t shared_bytes = 0;
  /// In the order of the function's parameters.
  std::vector<LaunchArgument> arguments{};
  /// 1-based line of the launch line in the kernel's text.
  int line = 0;
  /// Blocks of a cluster in x, y, z; all 1 = the launch asks for none.
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Launch&, const Launch&) = default; ///< member by member
};

/// Everything needed to call a kernel for one size. Launches run in order.
struct LaunchPlan {
  ProblemSize size;                     ///< the size it is for
  std::vector<ScratchBuffer> scratch{}; ///< buffers of the scratch lines
  std::vector<Launch> launches{};       ///< in the order in which they run
  UnknownFields unknown{};              ///< fields of a newer form

  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default; ///< member by member
};

} // namespace mtmc
