#pragma once
/// What analysis knows of a kernel for a task: regions, their facts, and who feeds whom.

#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

/// What a region is made of.
enum class RegionKind {
  /// A whole entry function.
  function,
  /// A loop with everything in it.
  loop,
  /// Two or more loops that stand next to each other in one block.
  loop_sequence,
  /// One launch with its entry function.
  launch,
  /// Two or more consecutive launches.
  launch_sequence
};

namespace detail {
inline constexpr EnumName<RegionKind> region_kind_names[] = {
    {RegionKind::function, "function"},
    {RegionKind::loop, "loop"},
    {RegionKind::loop_sequence, "loop_sequence"},
    {RegionKind::launch, "launch"},
    {RegionKind::launch_sequence, "launch_sequence"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RegionKind>> enum_names(RegionKind) noexcept {
  return detail::region_kind_names;
}

/// One loop of a region's nest.
struct LoopFacts {
  /// Induction variable.
  std::string variable;
  /// Bounds as expressions of the kernel's text: lower included, upper excluded.
  std::string lower{};
  std::string upper{};
  std::int64_t step = 1;
  /// Iterations at the task's main size, where the bounds tell.
  std::optional<std::int64_t> trip_count{};
  /// Iterations may run in any order or at once: no dependence is carried but those of recognised reductions
  /// of scalars.
  bool parallel = false;
  /// All dependences it carries are those of recognised reductions.
  bool reduction = false;
  /// Nothing but the next loop of the list stands in its body.
  bool perfect = false;
  /// It contains no other loop.
  bool innermost = false;
  UnknownFields unknown{};

  friend bool operator==(const LoopFacts&, const LoopFacts&) = default;
};

/// One access to memory in a region.
struct AccessFacts {
  /// The array as the text names it.
  std::string array;
  /// The flattened subscript as text.
  std::string subscript;
  bool write = false;
  /// Element stride at the main size per loop of `RegionFacts::loops`; nothing where the subscript is not
  /// affine in it.
  std::vector<std::optional<std::int64_t>> strides{};
  UnknownFields unknown{};

  friend bool operator==(const AccessFacts&, const AccessFacts&) = default;
};

/// Kind of a dependence: read after write, write after read, write after write.
enum class DependenceKind { flow, anti, output };

namespace detail {
inline constexpr EnumName<DependenceKind> dependence_kind_names[] = {
    {DependenceKind::flow, "flow"},
    {DependenceKind::anti, "anti"},
    {DependenceKind::output, "output"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<DependenceKind>> enum_names(DependenceKind) noexcept {
  return detail::dependence_kind_names;
}

/// One dependence between two accesses of a region.
struct DependenceFacts {
  DependenceKind kind = DependenceKind::flow;
  /// Array or scalar it goes through.
  std::string variable;
  /// One character per loop of `RegionFacts::loops`: '<' carried forward, '=' same iteration, '>' backward,
  /// '*' unknown.
  std::string direction;
  /// Distance in iterations per loop, where it is constant.
  std::vector<std::optional<std::int64_t>> distance{};
  /// It is the dependence of a recognised reduction.
  bool reduction = false;
  UnknownFields unknown{};

  friend bool operator==(const DependenceFacts&, const DependenceFacts&) = default;
};

/// What is known of a region; predicates of optimisation types and policies decide by it.
struct RegionFacts {
  /// The nest, outermost first: for a loop region the loop itself and the loops nested in it one by one; for
  /// a sequence the outer loops of its members.
  std::vector<LoopFacts> loops{};
  std::vector<AccessFacts> accesses{};
  std::vector<DependenceFacts> dependences{};
  /// Arrays read and written, without duplicates.
  std::vector<std::string> reads{};
  std::vector<std::string> writes{};
  /// Buffers written by one member of a sequence and read by a later one.
  std::vector<std::string> intermediates{};
  /// Floating-point operations and bytes requested by one call at the main size; 0 = unknown.
  double flops = 0;
  double bytes = 0;
  /// How often an element is used on average, by the deepest nest.
  double reuse = 1;
  /// Some order of the loops other than the present one is legal.
  bool interchangeable = false;
  /// Two or more loops form a band that may be tiled.
  bool tileable = false;
  /// The members of a sequence may be merged.
  bool fusable = false;
  /// The innermost loop may be executed by vector instructions.
  bool vectorizable = false;
  /// Functions called, without duplicates; transcendental ones among them.
  std::vector<std::string> calls{};
  bool transcendental = false;
  bool branches = false;
  bool indirect = false;
  /// Something in it was not understood; facts are then a lower bound and nothing is claimed legal.
  bool opaque = false;
  /// Each iteration of the outer loop loads a tile into on-chip memory, waits for it, and computes on it.
  bool staged = false;
  /// Directives already present: "omp parallel for", "omp simd", ...
  std::vector<std::string> directives{};
  UnknownFields unknown{};

  friend bool operator==(const RegionFacts&, const RegionFacts&) = default;
};

/// A syntactically and semantically valid piece of a kernel.
struct Region {
  RegionKind kind = RegionKind::loop;
  /// As people and prompts name it: "the k loop of gemm".
  std::string label;
  /// 1-based, both included.
  int first_line = 0;
  int last_line = 0;
  /// Stable when lines shift: "gemm/i/j/k", "launch:bias+launch:relu".
  std::string path;
  RegionFacts facts{};
  UnknownFields unknown{};

  friend bool operator==(const Region&, const Region&) = default;
};

/// A launch (or loop) that writes what another reads.
struct DataFlowEdge {
  /// Region paths.
  std::string producer;
  std::string consumer;
  std::string buffer;
  UnknownFields unknown{};

  friend bool operator==(const DataFlowEdge&, const DataFlowEdge&) = default;
};

/// Everything analysis knows of one kernel for one task.
struct Structure {
  std::string kernel_id;
  std::vector<Region> regions{};
  std::vector<DataFlowEdge> edges{};
  /// Estimates for one call at the main size; 0 = unknown.
  double flops = 0;
  double bytes = 0;
  /// Statements that were not understood.
  int opaque_statements = 0;
  /// Remarks for people: what was not understood, and where.
  std::vector<Diagnostic> notes{};
  UnknownFields unknown{};

  /// The region of that path, or null.
  [[nodiscard]] const Region* find_region(std::string_view path) const noexcept {
    for (const auto& region : regions)
      if (region.path == path) return &region;
    return nullptr;
  }

  friend bool operator==(const Structure&, const Structure&) = default;
};

} // namespace mtmc
