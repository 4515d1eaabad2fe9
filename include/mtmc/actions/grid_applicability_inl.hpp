#pragma once
/// Definitions of actions/grid_applicability.hpp.

#include <mtmc/actions/grid_applicability.hpp>
#include <mtmc/actions/repeated_reads.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// Its threads neither wait for each other nor exchange values, and all of it is understood.
[[nodiscard]] inline bool threads_are_independent(const RegionFacts& facts) noexcept {
  return !facts.opaque && facts.block_barriers == 0 && facts.warp_exchanges == 0;
}

MTMC_INLINE bool is_global(const AccessFacts& access) noexcept {
  return access.lanes && !access.lanes->shared_memory;
}

/// Neighbouring threads lie so far apart that a warp touches at least twice the sectors that it needs.
[[nodiscard]] inline bool is_uncoalesced(const AccessFacts& access) noexcept {
  return is_global(access) &&
         (access.lanes->pattern == LanePattern::strided || access.lanes->pattern == LanePattern::irregular) &&
         access.lanes->sectors >= 2 * std::max(1, access.lanes->least_sectors);
}

MTMC_INLINE bool has_uncoalesced_access(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), is_uncoalesced);
}

MTMC_INLINE bool is_shared_read(const AccessFacts& access) noexcept {
  return is_global(access) && !access.write && (access.lanes->sharers > 1 || access.lanes->window);
}

MTMC_INLINE bool has_shared_read(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), is_shared_read);
}

MTMC_INLINE bool moves(const AccessFacts& access) {
  return std::any_of(access.strides.begin(), access.strides.end(),
                     [](const auto& stride) { return !stride || *stride != 0; });
}

/// Some loop of the list moves the access by one element.
[[nodiscard]] inline bool goes_along_memory(const AccessFacts& access) {
  return std::any_of(access.strides.begin(), access.strides.end(),
                     [](const auto& stride) { return stride && std::abs(*stride) == 1; });
}

/// Some access jumps from thread to thread while the loop goes along memory: the threads of a warp could
/// share the iterations instead.
[[nodiscard]] inline bool lanes_could_follow_loop(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
    return is_uncoalesced(access) && goes_along_memory(access);
  });
}

/// Accesses that would be uncoalesced, or nearly so, if neighbouring threads lay along this axis.
[[nodiscard]] inline int jumps_along(const RegionFacts& facts, std::size_t axis) {
  int count = 0;
  for (const AccessFacts& access : facts.accesses)
    if (is_global(access) && axis < access.lanes->axes.size() &&
        (!access.lanes->axes[axis] || std::abs(*access.lanes->axes[axis]) > 1))
      ++count;
  return count;
}

MTMC_INLINE bool axes_could_change(const RegionFacts& facts) {
  for (std::size_t axis = 1; axis < facts.threads.size(); ++axis)
    if (jumps_along(facts, axis) < jumps_along(facts, 0)) return true;
  return false;
}

MTMC_INLINE bool has_neighbouring_elements(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& access) {
    if (!is_global(access) || !access.lanes->elements) return false;
    const std::int64_t elements = std::abs(*access.lanes->elements);
    return (elements == 2 || elements == 4) &&
           std::count_if(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& other) {
             return other.array == access.array && other.write == access.write && is_global(other) &&
                    other.lanes->elements == access.lanes->elements;
           }) == elements;
  });
}

/// All that threads write are neighbouring elements.
[[nodiscard]] inline bool writes_neighbours(const RegionFacts& facts) {
  bool any = false;
  for (const AccessFacts& access : facts.accesses) {
    if (!access.write || !is_global(access)) continue;
    if (access.lanes->pattern != LanePattern::coalesced) return false;
    any = true;
  }
  return any;
}

/// Three or more neighbouring elements of one array are read by each thread, as in a stencil.
[[nodiscard]] inline bool reads_a_neighbourhood(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& access) {
    return is_global(access) && !access.write && access.lanes->pattern == LanePattern::coalesced &&
           std::count_if(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& other) {
             return other.array == access.array && !other.write && is_global(other) &&
                    other.lanes->pattern == LanePattern::coalesced;
           }) >= 3;
  });
}

/// The loop of a thread is one whose iterations may be regrouped: independent, or a recognised reduction.
[[nodiscard]] inline bool regroupable(const RegionFacts& facts) {
  return !facts.loops.empty() && (facts.loops.front().parallel || facts.loops.front().reduction);
}

MTMC_INLINE bool shares_iterations(const LoopFacts& loop) {
  return loop.lower.find("threadIdx.") != std::string::npos;
}

/// Threads or blocks of the launch take the loop's iterations in turn.
[[nodiscard]] inline bool is_spread(const LoopFacts& loop) {
  return loop.lower.find("Idx.") != std::string::npos;
}
[[nodiscard]] inline bool is_spread(const RegionFacts& facts) {
  return !facts.loops.empty() && is_spread(facts.loops.front());
}

/// Some loop of the function brings tiles into on-chip memory.
[[nodiscard]] inline bool has_staged_loop(const Region& region, const Structure& structure) {
  const std::string function = region.path.substr(0, region.path.find('/'));
  return std::any_of(structure.regions.begin(), structure.regions.end(), [&](const Region& other) {
    return other.kind == RegionKind::loop && other.facts.staged && other.path.starts_with(function + '/');
  });
}

MTMC_INLINE bool has_bank_conflict(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(),
                     [](const AccessFacts& access) { return access.lanes && access.lanes->bank_ways > 1; });
}

MTMC_INLINE bool is_written_out(const RegionFacts& facts) {
  constexpr std::int64_t few = 32;
  return !facts.loops.empty() &&
         std::all_of(facts.loops.begin(), facts.loops.end(), [](const LoopFacts& loop) {
           const bool constant =
               !loop.upper.empty() && loop.upper.find_first_not_of("0123456789") == std::string::npos;
           return constant && loop.trip_count.value_or(few + 1) <= few;
         });
}

/// Some read that moves in the loop is made by a warp in this way.
[[nodiscard]] inline bool has_moving_read(const RegionFacts& facts, LanePattern pattern) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const AccessFacts& access) {
    return is_global(access) && !access.write && access.lanes->pattern == pattern && moves(access);
  });
}

/// Some reads move in the loop in a way that differs from thread to thread and is not understood, as where
/// the number of a thread is taken apart by division.
[[nodiscard]] inline bool has_irregular_reads(const RegionFacts& facts) {
  return has_moving_read(facts, LanePattern::irregular);
}

MTMC_INLINE bool has_broadcast_operand(const RegionFacts& facts) {
  return has_moving_read(facts, LanePattern::broadcast) && has_moving_read(facts, LanePattern::coalesced);
}

MTMC_INLINE bool grid_tiling_applies(const Region& region) {
  const RegionFacts& facts = region.facts;
  if (region.kind == RegionKind::thread_nest && !facts.opaque && has_bank_conflict(facts)) return true;
  if (!threads_are_independent(facts)) return false;
  if (region.kind == RegionKind::thread_nest)
    return (facts.threads_per_block() > 1 && reads_a_neighbourhood(facts)) ||
           (facts.loops.empty() && has_uncoalesced_access(facts) && !has_neighbouring_elements(facts));
  return region.kind == RegionKind::loop && regroupable(facts) && !is_written_out(facts) &&
         (lanes_could_follow_loop(facts) || has_irregular_reads(facts) || has_broadcast_operand(facts) ||
          std::any_of(facts.accesses.begin(), facts.accesses.end(),
                      [](const AccessFacts& access) { return is_shared_read(access) && moves(access); }));
}

MTMC_INLINE bool grid_pipeline_applies(const Region& region) {
  const RegionFacts& facts = region.facts;
  if (region.kind != RegionKind::loop || facts.opaque || facts.loops.empty()) return false;
  if (facts.loops.front().trip_count.value_or(2) < 2) return false;
  if (facts.staged) return facts.block_barriers != 1; // with one there are two buffers already
  return facts.loops.front().innermost && regroupable(facts) && facts.flops > 0 && !facts.indirect &&
         std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
           return is_global(access) && !access.write && moves(access);
         });
}

/// The loop is the only one that a thread runs through, inner ones apart: what is done to its iterations is
/// done to the thread's work as a whole.
[[nodiscard]] inline bool is_only_loop(const Region& region, const Structure& structure) {
  const std::size_t slash = region.path.find('/');
  if (slash == std::string::npos || region.path.find('/', slash + 1) != std::string::npos) return false;
  return std::none_of(structure.regions.begin(), structure.regions.end(), [&](const Region& other) {
    return other.kind == RegionKind::loop && other.path != region.path &&
           other.path.compare(0, slash + 1, region.path, 0, slash + 1) == 0 &&
           other.path.find('/', slash + 1) == std::string::npos;
  });
}

/// Enough iterations for the threads of a warp, in the loop or in the one that is all it does.
[[nodiscard]] inline bool is_long_enough(const RegionFacts& facts) {
  return std::any_of(facts.loops.begin(), facts.loops.end(), [](const LoopFacts& loop) {
    return (loop.parallel || loop.reduction) && loop.trip_count.value_or(warp_threads) >= warp_threads - 1;
  });
}

/// The same for all loops of a thread, of which there are several.
[[nodiscard]] inline bool all_nests_regroupable(const Region& region, const Structure& structure) {
  const auto loops = loops_in_turn(region, structure);
  return region.facts.loops.size() >= 2 && loops.size() == region.facts.loops.size() &&
         std::all_of(loops.begin(), loops.end(), [](const Region* loop) {
           return regroupable(loop->facts) && is_long_enough(loop->facts) && !is_spread(loop->facts);
         });
}

/// A thread runs through several loops, one after the other, and all of them may be shared by several
/// threads.
[[nodiscard]] inline bool all_loops_regroupable(const RegionFacts& facts) {
  return facts.loops.size() >= 2 &&
         std::all_of(facts.loops.begin(), facts.loops.end(), [](const LoopFacts& loop) {
           return (loop.parallel || loop.reduction) &&
                  loop.trip_count.value_or(warp_threads) >= warp_threads - 1 && !is_spread(loop);
         });
}

/// Threads numbered along one axis jump with every access, although each touches single elements: parts of
/// the number may be in the wrong order.
[[nodiscard]] inline bool number_could_change(const RegionFacts& facts) {
  const auto is_coalesced = [](const AccessFacts& access) {
    return is_global(access) && access.lanes->pattern == LanePattern::coalesced;
  };
  return facts.loops.empty() && facts.threads.size() == 1 && has_uncoalesced_access(facts) &&
         !has_neighbouring_elements(facts) &&
         std::none_of(facts.accesses.begin(), facts.accesses.end(), is_coalesced);
}

MTMC_INLINE bool grid_reordering_applies(const Region& region, const Structure& structure) {
  const RegionFacts& facts = region.facts;
  if (!threads_are_independent(facts)) return false;
  if (region.kind == RegionKind::thread_nest)
    return (facts.interchangeable && axes_could_change(facts)) || number_could_change(facts) ||
           (all_loops_regroupable(facts) && lanes_could_follow_loop(facts));
  if (region.kind != RegionKind::loop || is_written_out(facts)) return false;
  return (facts.loops.size() >= 2 && facts.interchangeable) ||
         (regroupable(facts) && facts.loops.size() == 1 && facts.loops.front().innermost &&
          lanes_could_follow_loop(facts) && is_only_loop(region, structure));
}

MTMC_INLINE bool grid_unrolling_applies(const Region& region, const Structure& structure) {
  const RegionFacts& facts = region.facts;
  if (facts.opaque) return false;
  if (region.kind == RegionKind::thread_nest)
    return facts.warp_exchanges == 0 && (facts.block_barriers == 0 || has_staged_loop(region, structure));
  if (region.kind != RegionKind::loop || facts.loops.empty()) return false;
  if (is_written_out(facts)) return false;
  const LoopFacts& outer = facts.loops.front();
  return outer.innermost || outer.parallel || (facts.loops.size() > 1 && facts.tileable);
}

/// The threads of a row take the iterations of these many of the loops in turn, and go along memory together.
[[nodiscard]] inline bool rows_could_be_vectors(const RegionFacts& facts, std::ptrdiff_t loops) {
  const auto shared = std::count_if(facts.loops.begin(), facts.loops.end(), [](const LoopFacts& loop) {
    return loop.innermost && (loop.parallel || loop.reduction) && loop.step % warp_threads == 0 &&
           shares_iterations(loop);
  });
  return shared >= loops &&
         std::any_of(facts.accesses.begin(), facts.accesses.end(), [&](const auto& access) {
           return is_global(access) && access.lanes->pattern == LanePattern::coalesced && moves(access);
         });
}

MTMC_INLINE bool grid_vectorization_applies(const Region& region) {
  const RegionFacts& facts = region.facts;
  if (facts.opaque) return false;
  if (!facts.indirect && region.kind == RegionKind::thread_nest && rows_could_be_vectors(facts, 2))
    return true;
  if (!facts.indirect && region.kind == RegionKind::loop && facts.loops.size() == 1 &&
      rows_could_be_vectors(facts, 1))
    return true;
  if (!threads_are_independent(facts)) return false;
  if (region.kind == RegionKind::thread_nest)
    return has_neighbouring_elements(facts) || (facts.loops.empty() && writes_neighbours(facts));
  if (facts.indirect || region.kind != RegionKind::loop || !facts.vectorizable || facts.loops.size() != 1)
    return false;
  bool along = false;
  for (const AccessFacts& access : facts.accesses) {
    if (!is_global(access)) continue;
    if (!goes_along_memory(access) && moves(access)) return false;
    along = along || moves(access);
  }
  return along;
}

/// Few blocks share the loop, iterations of which do not depend on each other: each could be a thread.
[[nodiscard]] inline bool few_blocks_share(const RegionFacts& facts, const LoopFacts& loop) {
  constexpr std::int64_t few_blocks = 64;
  constexpr std::int64_t several = 4; // iterations of a thread
  return loop.parallel && is_spread(loop) && facts.blocks() <= few_blocks &&
         loop.trip_count.value_or(several) >= several;
}

/// Iterations of the outermost loop and of the parallel loops perfectly nested in it.
[[nodiscard]] inline std::int64_t iterations_to_share(const RegionFacts& facts) {
  std::int64_t product = 1;
  for (const LoopFacts& loop : facts.loops) {
    if (product > 1 && !loop.parallel && !loop.reduction) break;
    product *= std::clamp<std::int64_t>(loop.trip_count.value_or(warp_threads), 1, std::int64_t{1} << 20);
    if (!loop.perfect || product >= std::int64_t{1} << 30) break;
  }
  return product;
}

/// Blocks of few threads, of part of a warp, or of so many that few blocks fit, and the threads of which
/// could as well be in others.
[[nodiscard]] inline bool has_odd_blocks(const RegionFacts& facts) {
  constexpr std::int64_t few_threads = 64;
  constexpr std::int64_t many_threads = 1024;
  const std::int64_t threads = facts.threads_per_block();
  return facts.loops.empty() && facts.blocks() > 1 && facts.shared_bytes == 0 &&
         (threads < few_threads || threads % warp_threads != 0 || threads >= many_threads) &&
         std::all_of(facts.threads.begin(), facts.threads.end(),
                     [](const ThreadAxis& axis) { return axis.constant && !axis.upper.empty(); });
}

MTMC_INLINE bool grid_parallelization_applies(const Region& region, const Structure& structure) {
  const RegionFacts& facts = region.facts;
  if (!threads_are_independent(facts)) return false;
  if (region.kind == RegionKind::thread_nest)
    return has_odd_blocks(facts) || all_loops_regroupable(facts) ||
           all_nests_regroupable(region, structure) ||
           (facts.loops.size() >= 2 &&
            std::all_of(facts.loops.begin(), facts.loops.end(),
                        [&](const LoopFacts& loop) { return few_blocks_share(facts, loop); }));
  if (region.kind != RegionKind::loop || !regroupable(facts) || !is_only_loop(region, structure))
    return false;
  return is_spread(facts) ? few_blocks_share(facts, facts.loops.front()) : is_long_enough(facts);
}

MTMC_INLINE bool grid_retention_applies(const Region& region, const Structure& structure) {
  static constexpr std::int64_t max_kept = 64; // registers are 255 at most
  if (region.kind != RegionKind::thread_nest || region.facts.opaque || region.facts.indirect) return false;
  const auto readers = repeated_readers(loops_in_turn(region, structure));
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [](const Region* loop) {
    return loop->facts.loops.front().trip_count.value_or(max_kept) <= max_kept;
  });
}

MTMC_INLINE bool grid_scanning_applies(const Region& region, const Structure& structure) {
  const std::size_t slash = region.path.find('/');
  if (!threads_are_independent(region.facts) || is_spread(region.facts) ||
      region.path.find('/', slash + 1) != std::string::npos)
    return false;
  // Other loops of the thread are shared by the threads that scan.
  return std::none_of(structure.regions.begin(), structure.regions.end(), [&](const Region& other) {
    return other.kind == RegionKind::loop && other.path != region.path &&
           other.path.compare(0, slash + 1, region.path, 0, slash + 1) == 0 &&
           other.path.find('/', slash + 1) == std::string::npos && !regroupable(other.facts);
  });
}

/// Neighbouring threads have neighbouring results, and read neighbouring elements for them.
[[nodiscard]] inline bool results_lie_along_memory(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
    return is_global(access) && !access.write && moves(access) && !goes_along_memory(access) &&
           access.lanes->pattern == LanePattern::coalesced;
  });
}

MTMC_INLINE bool reads_are_shared(const RegionFacts& facts) {
  bool any = false;
  for (const AccessFacts& access : facts.accesses) {
    if (!is_global(access) || access.write || !moves(access)) continue;
    if (!is_shared_read(access)) return false;
    any = true;
  }
  return any;
}

MTMC_INLINE bool results_could_be_tiles(const RegionFacts& facts) {
  return !facts.indirect && !is_spread(facts) &&
         (reads_are_shared(facts) || has_irregular_reads(facts) ||
          (has_broadcast_operand(facts) && !has_uncoalesced_access(facts)));
}

/// Tiles of 64 x 64 results leave a quarter of the multiprocessors idle, in a first or second round.
[[nodiscard]] inline bool tiles_leave_units_idle(const RegionFacts& facts, const Device& device) {
  constexpr std::int64_t edge = 64;
  std::int64_t tiles = 1;
  for (const ThreadAxis& axis : facts.threads) {
    const std::int64_t each = facts.threads.size() == 1 ? edge * edge : axis.axis == "z" ? 1 : edge;
    tiles *= (axis.trip_count + each - 1) / each;
  }
  const std::int64_t units = std::max(device.compute_units, 1);
  const std::int64_t rounds = (tiles + units - 1) / units;
  return rounds <= 2 && 4 * tiles < 3 * rounds * units;
}

MTMC_INLINE bool grid_splitting_applies(const Region& region, const Device& device) {
  const RegionFacts& facts = region.facts;
  constexpr std::int64_t long_reduction = 256; // of one thread
  constexpr std::int64_t few_blocks = 2;       // to a multiprocessor
  constexpr std::int64_t few_threads = 1024;   // to a multiprocessor
  constexpr std::int64_t longer = 2048; // what another launch takes is little beside so many iterations
  if (region.kind != RegionKind::loop || facts.opaque || facts.loops.empty()) return false;
  const LoopFacts& loop = facts.loops.front();
  if (!loop.reduction || loop.parallel || !loop.trip_count) return false;
  if (iterations_to_share(facts) < long_reduction) return false;
  const std::int64_t results = facts.blocks() * (is_spread(facts) ? 1 : facts.threads_per_block());
  const bool along = !is_spread(facts) && results_lie_along_memory(facts);
  const std::int64_t units = std::max(device.compute_units, 1);
  if (results_could_be_tiles(facts) && tiles_leave_units_idle(facts, device) &&
      (results < few_threads * units || iterations_to_share(facts) >= longer))
    return true;
  return results < (along ? few_threads : few_blocks) * units;
}

MTMC_INLINE bool grid_persistence_applies(const Region& region, const Device& device) {
  const RegionFacts& facts = region.facts;
  constexpr std::int64_t resident_threads = 2048; // of a multiprocessor
  constexpr std::int64_t many_waves = 4;
  if (region.kind != RegionKind::thread_nest || facts.opaque || facts.block_barriers == 0 ||
      facts.shared_bytes == 0)
    return false;
  const std::int64_t at_once = std::max(device.compute_units, 1) *
                               std::max<std::int64_t>(resident_threads / facts.threads_per_block(), 1);
  return facts.blocks() > many_waves * at_once;
}

MTMC_INLINE bool grid_finishing_applies(const Region& region, const Structure& structure) {
  if (region.kind != RegionKind::launch_sequence || region.facts.intermediates.empty()) return false;
  const Region *first = nullptr, *last = nullptr;
  for (const Region& one : structure.regions) {
    if (one.kind != RegionKind::launch) continue;
    if (one.first_line == region.first_line && on_grid(one.facts)) first = &one;
    if (one.last_line == region.last_line) last = &one;
  }
  constexpr std::int64_t few_blocks = 4;
  constexpr std::int64_t far_fewer = 8;
  return first != nullptr && last != nullptr && last->facts.blocks() <= few_blocks &&
         far_fewer * last->facts.blocks() <= first->facts.blocks();
}

} // namespace mtmc::detail
