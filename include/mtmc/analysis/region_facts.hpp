#pragma once

#include <mtmc/analysis/threads/thread_grid.hpp>
#include <mtmc/analysis/threads/warp_access.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// \file
/// What predicates and policies want to know of a piece of a function, computed from its data flow.

namespace mtmc::inline MTMC_ABI {

/// How a function is called at the task's main size.
struct CallContext {
  /// Values of its integer parameters, by name.
  Symbols values{};
  /// What its pointer parameters are given: buffer by parameter name. Others keep their own name.
  std::map<std::string, std::string, std::less<>> buffers{};
  /// Number of elements of buffers, where known.
  std::map<std::string, double, std::less<>> elements{};
  /// The grid it is launched on; nothing where one thread does everything.
  std::optional<detail::LaunchGeometry> geometry{};
};

namespace detail {

/// What is the same for all pieces of a function when it is called at one size: how often its loops run, how
/// its accesses move, what its loops allow. Computed once.
class FunctionAtSize {
public:
  /// An access with what people and policies see of it.
  struct Movement {
    /// The subscript as text.
    std::string subscript;
    /// Elements by which it moves per iteration of the loops around it, outermost first.
    std::vector<std::optional<std::int64_t>> strides;
    /// How the threads of a warp make it, where there is a grid.
    std::optional<LaneFacts> lanes;
  };

  /// `context` must outlive it.
  FunctionAtSize(const FunctionAnalysis& function, const CallContext& context);
  /// The threads it runs in; null where there is no grid.
  [[nodiscard]] const ThreadGrid* grid() const noexcept { return grid_ ? &*grid_ : nullptr; }
  /// Iterations of the loop altogether, of all threads, not a number if a trip count around it is not known;
  /// the threads that do work for null.
  [[nodiscard]] double executions(const LoopInfo* loop) const;
  [[nodiscard]] std::optional<std::int64_t> trips(const LoopInfo& loop) const { return trips_[loop.index]; }
  /// Facts of the loop alone; `perfect` as if it were the innermost of its nest.
  [[nodiscard]] const LoopFacts& facts(const LoopInfo& loop) const { return facts_[loop.index]; }
  /// By position in `FunctionAnalysis::accesses`.
  [[nodiscard]] const Movement& movement(std::size_t access) const { return movements_[access]; }

private:
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  /// Iterations of the first thread in a loop over its share of an index range.
  [[nodiscard]] std::optional<std::int64_t> strided_trips(const LoopInfo& loop) const;

  [[nodiscard]] static std::string joined(const std::vector<Polynomial>& bounds, std::string_view function,
                                          std::int64_t shift);

  [[nodiscard]] LoopFacts loop_facts(const LoopInfo& loop) const;

  [[nodiscard]] Movement movement_of(const Access& access) const;

  /// Elements by which the access moves when the loop advances by one iteration.
  [[nodiscard]] std::optional<std::int64_t> stride(const Access& access, const LoopInfo& loop) const;

  /// The coefficient of the loop's variable, if nothing else in the subscript varies with the loop.
  [[nodiscard]] std::optional<std::int64_t> slope_of(const Polynomial& subscript, const LoopInfo& loop) const;

  const Symbols& values_;
  std::optional<ThreadGrid> grid_;
  std::vector<double> counts_;
  std::vector<std::optional<std::int64_t>> trips_;
  std::vector<LoopFacts> facts_;
  std::vector<Movement> movements_;
};

/// A piece of a function: a loop, several of them, or (no loops) the whole function.
struct Piece {
  const FunctionAnalysis* function = nullptr;
  std::vector<const LoopInfo*> members{};

  [[nodiscard]] bool holds(const LoopInfo* loop) const noexcept;
};

/// Computes the facts of one piece.
class FactsBuilder {
public:
  FactsBuilder(const Piece& piece, const CallContext& context, const FunctionAtSize& at_size)
      : piece_(piece), function_(*piece.function), context_(context), at_size_(at_size) {}

  [[nodiscard]] RegionFacts run();

private:
  void choose_loops();

  [[nodiscard]] LoopFacts loop_facts(const LoopInfo& loop) const;

  [[nodiscard]] std::string buffer_of(const Array& array) const;

  /// By how much the access moves with a loop of the list; a loop it does not stand in does not move it.
  [[nodiscard]] std::optional<std::int64_t> stride(const Access& access, std::size_t index,
                                                   const LoopInfo& loop) const;

  /// How many different elements the access touches in one run of the piece, by the loops that move it.
  [[nodiscard]] double elements_touched(const Access& access, std::size_t index) const;

  /// Adds the name if it is new; `known`: what the list has.
  using Names = std::unordered_set<std::string>;
  static void insert_once(std::vector<std::string>& list, const std::string& name, Names& known);

  /// Calls `use(index)` for each access of the piece.
  template <class Use> void for_accesses(const Use& use) const {
    if (piece_.members.empty())
      for (std::size_t i = 0; i < function_.accesses.size(); ++i) use(i);
    for (const LoopInfo* member : piece_.members)
      for (std::size_t i = member->accesses.first; i < member->accesses.last; ++i) use(i);
  }

  void add_accesses();

  /// Calls `use(loop)` for each loop of the piece, the inner ones too.
  template <class Use> void for_loops(const Use& use) const {
    if (piece_.members.empty())
      for (const LoopInfo& loop : function_.loops) use(loop);
    for (const LoopInfo* member : piece_.members)
      for (std::size_t i = member->index; i < member->last_inside; ++i) use(function_.loops[i]);
  }

  void add_work();

  void add_calls();

  /// Those of the piece and of the loops around it: what runs in parallel already need not be told again.
  void add_directives();

  void nest_facts();

  /// Scalars that the loops of the piece, inner ones too, reduce; only where there is a grid, since there a
  /// sum is what threads may share.
  void add_reductions();

  void add_threads(const ThreadGrid& grid);

  /// In each iteration memory that all threads see is copied to memory of the block, the threads wait, and
  /// what was copied is read.
  [[nodiscard]] bool stages_a_tile(const LoopInfo& loop) const;

  [[nodiscard]] static char symbol_of(Directions set) noexcept;

  void enter(DependenceFacts fact);

  void add_dependences();

  void add_scalar_dependences();

  /// Lists are for people and prompts; beyond this nobody reads on.
  static constexpr std::size_t max_accesses = 64;
  static constexpr std::size_t max_dependences = 64;

  const Piece& piece_;
  const FunctionAnalysis& function_;
  const CallContext& context_;
  const FunctionAtSize& at_size_;
  LoopNest nest_;
  std::vector<const LoopInfo*> loops_;
  RegionFacts facts_;
  /// What the lists of `facts_` have.
  struct {
    Names reads, writes, calls, directives, reductions;
  } known_;
};

} // namespace detail

/// The facts of a loop (one member), of several loops, or of a whole function (no member), when called like
/// that. `flops` and `bytes` are those of one call of the function.
[[nodiscard]] RegionFacts region_facts(const FunctionAnalysis& function, std::vector<const LoopInfo*> members,
                                       const CallContext& context, const detail::FunctionAtSize& at_size);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/region_facts_inl.hpp>
#endif
