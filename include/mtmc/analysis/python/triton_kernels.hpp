#pragma once
/// Triton kernels of a Python text: what they do to memory, in which loops, and where they are launched.

#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/core/enum_names.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a call of `triton.language` does.
enum class TritonOperationKind {
  load,       ///< from memory that all programs see, or through a block pointer or tensor descriptor
  store,      ///< to it
  atomic,     ///< reads and writes it as one step
  dot,        ///< a product of two tiles
  reduction,  ///< folds an axis of a tile: sum, max, argmax
  scan,       ///< partial results along an axis of a tile
  program_id, ///< which program this is, along an axis
  barrier     ///< the threads of a program wait for each other
};

namespace detail {
inline constexpr EnumName<TritonOperationKind> triton_operation_names[] = {
    {TritonOperationKind::load, "load"},
    {TritonOperationKind::store, "store"},
    {TritonOperationKind::atomic, "atomic"},
    {TritonOperationKind::dot, "dot"},
    {TritonOperationKind::reduction, "reduction"},
    {TritonOperationKind::scan, "scan"},
    {TritonOperationKind::program_id, "program_id"},
    {TritonOperationKind::barrier, "barrier"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<TritonOperationKind>>
enum_names(TritonOperationKind) noexcept {
  return detail::triton_operation_names;
}

/// One such call in a kernel.
struct TritonOperation {
  /// What it does.
  TritonOperationKind kind = TritonOperationKind::load;
  /// Its function: "load", "max".
  std::string name{};
  /// What it is given first, as text: the pointer of an access, the axis of a `program_id`.
  std::string operand{};
  /// A load, store or atomic with a mask.
  bool masked = false;
  /// The innermost loop around it, by its number in `TritonKernel::loops`.
  std::optional<std::size_t> loop{};
  /// The call.
  SourceRange range{};

  friend bool operator==(const TritonOperation&, const TritonOperation&) = default; ///< member by member
};

/// A loop of a kernel.
struct TritonLoop {
  /// What it counts with; empty for a `while`.
  std::string variable{};
  /// Arguments of `range`, `tl.range` or `tl.static_range` as text; what it goes through where that is
  /// something else, empty for a `while`.
  std::vector<std::string> bounds{};
  /// The loop around it, by number.
  std::optional<std::size_t> outer{};
  /// It is unrolled by the compiler (`static_range`).
  bool unrolled = false;
  /// All of it.
  SourceRange range{};

  friend bool operator==(const TritonLoop&, const TritonLoop&) = default; ///< member by member
};

/// A parameter of a kernel.
struct TritonParameter {
  std::string name{};          ///< its name
  bool constant = false;       ///< a `tl.constexpr`: each value is a program of its own
  std::string default_value{}; ///< as text, empty without one

  friend bool operator==(const TritonParameter&, const TritonParameter&) = default; ///< member by member
};

/// A function with `@triton.jit`: a kernel, or what kernels call.
struct TritonKernel {
  std::string name{};                        ///< of the function
  std::vector<TritonParameter> parameters{}; ///< in order
  bool autotuned = false;                    ///< with `@triton.autotune`
  bool heuristics = false;                   ///< with `@triton.heuristics`
  std::vector<TritonLoop> loops{};           ///< in the order in which they begin
  std::vector<TritonOperation> operations{}; ///< in the order of the text
  std::vector<std::string> calls{};          ///< functions of the same text that it calls, without duplicates
  SourceRange range{};                       ///< of the function, without its decorators

  friend bool operator==(const TritonKernel&, const TritonKernel&) = default; ///< member by member
};

/// A place where a kernel is launched: `kernel[grid](...)`.
struct TritonLaunch {
  std::string kernel{};                 ///< as the text names it
  std::string grid{};                   ///< as text
  std::vector<std::string> arguments{}; ///< those without a name, as text
  /// Those with a name, constants and `num_warps` among them: "BLOCK=1024".
  std::vector<std::string> named{};
  std::string function{}; ///< the function around it; empty: none
  SourceRange range{};    ///< the call

  friend bool operator==(const TritonLaunch&, const TritonLaunch&) = default; ///< member by member
};

/// All of it.
struct TritonText {
  std::vector<TritonKernel> kernels{};  ///< in the order of the text
  std::vector<TritonLaunch> launches{}; ///< in the order of the text

  friend bool operator==(const TritonText&, const TritonText&) = default; ///< member by member
};

/// What a text says, of a tree of `parse_python` of the same source. Works from names alone, in whatever way
/// `triton.language` was imported. Never throws for what a text may be.
[[nodiscard]] TritonText triton_text(const SyntaxNode& tree, std::string_view source);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/python/triton_kernels_inl.hpp>
#endif
