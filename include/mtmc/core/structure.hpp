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

namespace mtmc::inline MTMC_ABI {

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
  launch_sequence,
  /// The body of an entry function as all threads of its launch execute it: a nest of parallel loops.
  thread_nest,
  /// A statement outside all loops of a thread that writes to memory all threads see.
  store
};

namespace detail {
inline constexpr EnumName<RegionKind> region_kind_names[] = {
    {RegionKind::function, "function"},
    {RegionKind::loop, "loop"},
    {RegionKind::loop_sequence, "loop_sequence"},
    {RegionKind::launch, "launch"},
    {RegionKind::launch_sequence, "launch_sequence"},
    {RegionKind::thread_nest, "thread_nest"},
    {RegionKind::store, "store"},
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
  /// Upper bound, excluded.
  std::string upper{};
  /// What the variable moves by in an iteration.
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
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const LoopFacts&, const LoopFacts&) = default; ///< member by member
};

/// One axis of a launch on a grid: a parallel loop over the threads of all blocks.
struct ThreadAxis {
  /// "x", "y" or "z". The 32 threads of a warp are neighbours along x first.
  std::string axis;
  /// What the text calls the index: "j" for `int j = blockIdx.x * blockDim.x + threadIdx.x`; otherwise the
  /// indices it uses: "blockIdx.x", "threadIdx.x" or "blockIdx.x, threadIdx.x".
  std::string variable;
  /// Bound that a guard puts on the index (`if (j < N)`), excluded; empty without one.
  std::string upper{};
  /// Blocks, and threads of a block, at the main size.
  std::int64_t blocks = 1;
  /// Threads of a block along the axis.
  std::int64_t threads = 1;
  /// The launch line gives the threads of a block as a number.
  bool constant = false;
  /// Index values that do work at the main size.
  std::int64_t trip_count = 1;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ThreadAxis&, const ThreadAxis&) = default; ///< member by member
};

/// How the addresses of neighbouring threads lie to each other in one access.
enum class LanePattern {
  /// Neighbouring elements (or the same distance 1 backwards).
  coalesced,
  /// The same element.
  broadcast,
  /// A constant distance of more than one element.
  strided,
  /// Different distances, or a subscript that is not understood.
  irregular
};

namespace detail {
inline constexpr EnumName<LanePattern> lane_pattern_names[] = {
    {LanePattern::coalesced, "coalesced"},
    {LanePattern::broadcast, "broadcast"},
    {LanePattern::strided, "strided"},
    {LanePattern::irregular, "irregular"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<LanePattern>> enum_names(LanePattern) noexcept {
  return detail::lane_pattern_names;
}

/// One access as a warp of 32 threads makes it, at the main size.
struct LaneFacts {
  /// In on-chip memory of the block (`__shared__`), not in memory that all threads see.
  bool shared_memory = false;
  /// How the threads of a warp spread over memory.
  LanePattern pattern = LanePattern::irregular;
  /// Elements from a thread to its neighbour along the first axis with several threads in a block, as text
  /// ("K") and at the main size.
  std::string stride{};
  /// The same as a number at the main size.
  std::optional<std::int64_t> elements{};
  /// Elements from a thread to the next one along each axis of `RegionFacts::threads`, at the main size.
  std::vector<std::optional<std::int64_t>> axes{};
  /// 32-byte sectors that one request of a warp touches, and the fewest that its distinct bytes fit into.
  /// 0 = not known, or shared memory.
  int sectors = 0;
  /// Fewest sectors that its distinct bytes fit into.
  int least_sectors = 0;
  /// Turns that one request to shared memory takes because of bank conflicts, 1 = none; 0 = not known, or
  /// not shared memory.
  int bank_ways = 0;
  /// Axes along which all threads of a block touch the same element ("x", "xy"), and how many threads that
  /// makes; 1 = each thread its own.
  std::string same_along{};
  /// Threads of a block that touch one element.
  std::int64_t sharers = 1;
  /// Threads of a block touch the elements of their neighbours in other iterations of a loop (a window).
  bool window = false;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const LaneFacts&, const LaneFacts&) = default; ///< member by member
};

/// One access to memory in a region.
struct AccessFacts {
  /// The array as the text names it.
  std::string array;
  /// The flattened subscript as text.
  std::string subscript;
  /// A write; else a read.
  bool write = false;
  /// Element stride at the main size per loop of `RegionFacts::loops`; nothing where the subscript is not
  /// affine in it.
  std::vector<std::optional<std::int64_t>> strides{};
  /// Where the region is launched on a grid.
  std::optional<LaneFacts> lanes{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const AccessFacts&, const AccessFacts&) = default; ///< member by member
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
  /// Flow, anti or output.
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
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const DependenceFacts&, const DependenceFacts&) = default; ///< member by member
};

/// Through what the members of a sequence of launches could hand on their values if they were one kernel.
enum class FusionScope {
  /// Not known to be possible on a grid.
  none,
  /// A register: the thread that makes an element is the only one that needs it.
  thread,
  /// On-chip memory and a barrier: each row is made and used by threads that one block can hold.
  block
};

namespace detail {
inline constexpr EnumName<FusionScope> fusion_scope_names[] = {
    {FusionScope::none, "none"},
    {FusionScope::thread, "thread"},
    {FusionScope::block, "block"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<FusionScope>> enum_names(FusionScope) noexcept {
  return detail::fusion_scope_names;
}

/// What is known of a region; predicates of optimisation types and policies decide by it.
struct RegionFacts {
  /// The nest, outermost first: for a loop region the loop itself and the loops nested in it one by one; for
  /// a sequence the outer loops of its members.
  std::vector<LoopFacts> loops{};
  /// Accesses of arrays.
  std::vector<AccessFacts> accesses{};
  /// Dependences between them.
  std::vector<DependenceFacts> dependences{};
  /// Arrays read and written, without duplicates.
  std::vector<std::string> reads{};
  /// Arrays written, without duplicates.
  std::vector<std::string> writes{};
  /// Buffers written by one member of a sequence and read by a later one.
  std::vector<std::string> intermediates{};
  /// Floating-point operations and bytes requested by one call at the main size; 0 = unknown.
  double flops = 0;
  /// Bytes requested by one call at the main size; 0 = unknown.
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
  /// One of the functions called is transcendental.
  bool transcendental = false;
  /// A branch decides about work.
  bool branches = false;
  /// A subscript depends on the content of an array.
  bool indirect = false;
  /// Something in it was not understood; facts are then a lower bound and nothing is claimed legal.
  bool opaque = false;
  /// Each iteration of the outer loop loads a tile into on-chip memory, waits for it, and computes on it.
  bool staged = false;
  /// Directives already present: "omp parallel for", "omp simd", ...
  std::vector<std::string> directives{};
  /// Scalars that its loops reduce, with the operation: "sum +", "largest max".
  std::vector<std::string> reductions{};
  /// Axes of the launch, x first; empty where there is no grid, as on a CPU. `loops` are then those of one
  /// thread, and `flops`, `bytes` and `reuse` count all threads and memory that all of them see.
  std::vector<ThreadAxis> threads{};
  /// Places where the threads of a block, or of a warp, wait for each other or exchange values.
  int block_barriers = 0;
  /// Places where the threads of a warp exchange values.
  int warp_exchanges = 0;
  /// On-chip memory a block declares and is launched with, in bytes.
  std::int64_t shared_bytes = 0;
  /// How the members of a launch sequence may be merged.
  FusionScope fusion_scope = FusionScope::none;
  UnknownFields unknown{}; ///< fields of a newer form

  /// Threads of a block, and blocks of the launch, at the main size; 1 without a grid.
  [[nodiscard]] std::int64_t threads_per_block() const noexcept {
    std::int64_t product = 1;
    for (const auto& axis : threads) product *= axis.threads;
    return product;
  }
  /// Blocks of the launch at the main size; 1 without a grid.
  [[nodiscard]] std::int64_t blocks() const noexcept {
    std::int64_t product = 1;
    for (const auto& axis : threads) product *= axis.blocks;
    return product;
  }

  friend bool operator==(const RegionFacts&, const RegionFacts&) = default; ///< member by member
};

/// A syntactically and semantically valid piece of a kernel.
struct Region {
  /// What it is.
  RegionKind kind = RegionKind::loop;
  /// As people and prompts name it: "the k loop of gemm".
  std::string label;
  /// 1-based, both included.
  int first_line = 0;
  /// 1-based last line, included.
  int last_line = 0;
  /// Stable when lines shift: "gemm/i/j/k", "launch:bias+launch:relu".
  std::string path;
  RegionFacts facts{};     ///< what is known of it
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Region&, const Region&) = default; ///< member by member
};

/// A launch (or loop) that writes what another reads.
struct DataFlowEdge {
  /// Region paths.
  std::string producer;
  std::string consumer;    ///< path of the region that reads
  std::string buffer;      ///< the buffer between them
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const DataFlowEdge&, const DataFlowEdge&) = default; ///< member by member
};

/// Everything analysis knows of one kernel for one task.
struct Structure {
  /// Id of the kernel it describes.
  std::string kernel_id;
  /// Regions in the order of the text.
  std::vector<Region> regions{};
  /// Which region reads what another writes.
  std::vector<DataFlowEdge> edges{};
  /// Estimates for one call at the main size; 0 = unknown.
  double flops = 0;
  /// Bytes requested by one call; 0 = unknown.
  double bytes = 0;
  /// Statements that were not understood.
  int opaque_statements = 0;
  /// Remarks for people: what was not understood, and where.
  std::vector<Diagnostic> notes{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// The region of that path, or null.
  [[nodiscard]] const Region* find_region(std::string_view path) const noexcept {
    for (const auto& region : regions)
      if (region.path == path) return &region;
    return nullptr;
  }

  friend bool operator==(const Structure&, const Structure&) = default; ///< member by member
};

} // namespace mtmc
