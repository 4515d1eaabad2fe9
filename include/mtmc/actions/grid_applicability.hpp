#pragma once
/// Which optimisations may be offered for a region that is launched on a grid: what the facts of its accesses
/// say about the threads of a warp and of a block.

#include <mtmc/core/device.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::int64_t warp_threads = 32;

/// The region is executed by the threads of a launch.
[[nodiscard]] inline bool on_grid(const RegionFacts& facts) noexcept { return !facts.threads.empty(); }

/// An access to memory that all threads see, of which it is known how a warp makes it.
[[nodiscard]] bool is_global(const AccessFacts& access) noexcept;

/// Neighbouring threads of some access lie so far apart that a warp touches at least twice the sectors that
/// it needs.
[[nodiscard]] bool has_uncoalesced_access(const RegionFacts& facts);

/// A read of what other threads of the block read too, in the same iteration or in another one.
[[nodiscard]] bool is_shared_read(const AccessFacts& access) noexcept;
[[nodiscard]] bool has_shared_read(const RegionFacts& facts);

/// The access moves with some loop of the nest.
[[nodiscard]] bool moves(const AccessFacts& access);

/// Another axis of the launch than x would make a better order of neighbouring threads.
[[nodiscard]] bool axes_could_change(const RegionFacts& facts);

/// A thread touches all elements between itself and its neighbour (`q[2 * i]`, `q[2 * i + 1]`), 2 or 4 of
/// them: one wide access would do.
[[nodiscard]] bool has_neighbouring_elements(const RegionFacts& facts);

/// Some access to a tile takes several turns, because threads of a warp meet in one bank.
[[nodiscard]] bool has_bank_conflict(const RegionFacts& facts);

/// In each iteration the threads of a warp read one element together and neighbouring ones of another array,
/// as in a product whose results are numbered along one axis.
[[nodiscard]] bool has_broadcast_operand(const RegionFacts& facts);

/// All reads that move in the loop are of what other threads of the block read too: a tile serves them all.
[[nodiscard]] bool reads_are_shared(const RegionFacts& facts);

/// Threads read the same elements in the loop, or some as irregularly as in a convolution: tiles of its
/// results may share them.
[[nodiscard]] bool results_could_be_tiles(const RegionFacts& facts);

/// The threads of a block take the iterations of the loop in turn (`for (j = threadIdx.x; ...)`).
[[nodiscard]] bool shares_iterations(const LoopFacts& loop);

/// All loops have a constant number of iterations, and few: compilers write them out, whatever their order.
[[nodiscard]] bool is_written_out(const RegionFacts& facts);

/// A tile in on-chip memory pays where threads of a block read the same elements, or where an access jumps;
/// one that is there may have the wrong shape.
[[nodiscard]] bool grid_tiling_applies(const Region& region);

/// Loads in a loop whose addresses are known ahead can be on their way while the loop computes.
[[nodiscard]] bool grid_pipeline_applies(const Region& region);

/// Loops of a thread change places, threads are numbered along another axis, or the threads of a warp take
/// the place of loops that go along memory.
[[nodiscard]] bool grid_reordering_applies(const Region& region, const Structure& structure);

/// Loops are unrolled; of the threads each may do several elements, also where they work on tiles together.
[[nodiscard]] bool grid_unrolling_applies(const Region& region, const Structure& structure);

/// One access of 8 or 16 bytes does the work of several: of neighbouring threads, or of iterations of a loop.
[[nodiscard]] bool grid_vectorization_applies(const Region& region);

/// Loops that one thread runs alone are shared by the threads of a warp or a block.
[[nodiscard]] bool grid_parallelization_applies(const Region& region, const Structure& structure);

/// What a thread reads of an array in one loop it reads again in another one, and it is little enough to wait
/// for that in registers.
[[nodiscard]] bool grid_retention_applies(const Region& region, const Structure& structure);

/// A thread's only loop, each iteration of which needs the one before, goes through elements alone.
[[nodiscard]] bool grid_scanning_applies(const Region& region, const Structure& structure);

/// A long reduction of so few results that a block for each, or tiles of them, would leave multiprocessors
/// idle.
[[nodiscard]] bool grid_splitting_applies(const Region& region, const Device& device);

/// Blocks prepare something each, and there are many more of them than the device holds at once.
[[nodiscard]] bool grid_persistence_applies(const Region& region, const Device& device);

/// The last of several launches is one to four blocks that wait for all others and go through what those
/// left.
[[nodiscard]] bool grid_finishing_applies(const Region& region, const Structure& structure);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/actions/grid_applicability_inl.hpp>
#endif
