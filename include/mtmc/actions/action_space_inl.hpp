#pragma once
/// Definitions of actions/action_space.hpp.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/actions/grid_applicability.hpp>
#include <mtmc/actions/loop_applicability.hpp>
#include <mtmc/actions/program_applicability.hpp>
#include <mtmc/actions/program_principles.hpp>
#include <mtmc/actions/repeated_reads.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a region is a launch, and one of those that a sequence of launches is made of.
[[nodiscard]] inline bool is_launch_of(const Region& sequence, const Region& one) noexcept {
  return one.kind == RegionKind::launch && one.first_line >= sequence.first_line &&
         one.last_line <= sequence.last_line;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE const std::string& OptimizationType::principle_on(const Region* region) const noexcept {
  const bool python = region != nullptr && detail::in_python(region->facts);
  if (python && !program_principle.empty()) return program_principle;
  const bool grid = region != nullptr && detail::on_grid(region->facts);
  return grid && !grid_principle.empty() ? grid_principle : principle;
}

MTMC_INLINE const std::string& OptimizationType::principle_on(const Region* region,
                                                              const Structure& structure) const noexcept {
  if (region == nullptr || region->kind != RegionKind::launch_sequence || detail::in_python(region->facts))
    return principle_on(region);
  const auto member = std::find_if(structure.regions.begin(), structure.regions.end(),
                                   [&](const Region& one) { return detail::is_launch_of(*region, one); });
  return principle_on(member == structure.regions.end() ? region : &*member);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE bool has_reuse(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), is_used_again);
}

MTMC_INLINE bool has_strided_access(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
    return !access.strides.empty() && access.strides.back() && *access.strides.back() != 0 &&
           *access.strides.back() != 1;
  });
}

[[nodiscard]] inline bool has_directive(const RegionFacts& facts, std::string_view word) {
  return std::any_of(facts.directives.begin(), facts.directives.end(), [word](const std::string& directive) {
    return directive.find(word) != std::string::npos;
  });
}

/// Whether a loop around the region could occupy all compute units by itself.
[[nodiscard]] inline bool inside_parallel_loop(const Region& region, const Structure& structure,
                                               const Device& device) {
  return std::any_of(structure.regions.begin(), structure.regions.end(), [&](const Region& outer) {
    if (outer.kind != RegionKind::loop || outer.facts.loops.empty() ||
        outer.path.size() >= region.path.size() || region.path[outer.path.size()] != '/' ||
        !region.path.starts_with(outer.path))
      return false;
    const LoopFacts& loop = outer.facts.loops.front();
    return loop.parallel && (!loop.trip_count || *loop.trip_count >= device.compute_units);
  });
}

/// Whether the region is all that a call does: the only launch, or the sequence of all of them.
[[nodiscard]] inline bool is_whole_kernel(const Region& region, const Structure& structure) {
  const auto is_launch = [](const Region& one) { return one.kind == RegionKind::launch; };
  const auto launches = std::count_if(structure.regions.begin(), structure.regions.end(), is_launch);
  if (region.kind == RegionKind::launch) return launches == 1;
  if (region.kind != RegionKind::launch_sequence) return false;
  return std::all_of(structure.regions.begin(), structure.regions.end(),
                     [&](const Region& one) { return !is_launch(one) || is_launch_of(region, one); });
}

/// Neighbouring loops go over the same data, one reduction after the other, and nothing else comes of them.
[[nodiscard]] inline bool could_be_one_pass(const Region& region, const Structure& structure) {
  const auto& facts = region.facts;
  if (region.kind != RegionKind::loop_sequence || facts.opaque || facts.fusable || !facts.writes.empty())
    return false;
  const auto loops = loops_in_turn(region, structure);
  return loops.size() >= 2 && repeated_readers(loops).size() == loops.size() &&
         std::all_of(loops.begin(), loops.end(), [](const Region* loop) {
           const LoopFacts& outer = loop->facts.loops.front();
           return outer.reduction && !outer.parallel;
         });
}

/// Every iteration of the loop hands a value on to the next one and stores something.
[[nodiscard]] inline bool is_recurrence(const Region& region) {
  const auto& facts = region.facts;
  constexpr std::int64_t long_enough = 64;
  if (region.kind != RegionKind::loop || facts.opaque || facts.loops.size() != 1 || facts.writes.empty())
    return false;
  const LoopFacts& loop = facts.loops.front();
  return !loop.parallel && !loop.reduction && loop.trip_count.value_or(long_enough) >= long_enough &&
         std::any_of(
             facts.dependences.begin(), facts.dependences.end(), [](const DependenceFacts& dependence) {
               return dependence.kind == DependenceKind::flow && dependence.direction.starts_with('<');
             });
}

/// Some function called is a square root.
[[nodiscard]] inline bool takes_roots(const RegionFacts& facts) {
  return std::any_of(facts.calls.begin(), facts.calls.end(), [](const std::string& name) {
    return name == "sqrtf" || name == "sqrt" || name == "std::sqrt";
  });
}

/// The innermost work of a loop nest, or all that a thread does where it has no loop.
[[nodiscard]] inline bool is_innermost_work(const Region& region) {
  if (region.kind == RegionKind::thread_nest) return region.facts.loops.empty();
  return region.kind == RegionKind::loop && region.facts.loops.size() == 1 &&
         region.facts.loops.front().innermost;
}

/// The types as they are for loops and for grids.
[[nodiscard]] inline std::vector<OptimizationType> types_of_loops_and_grids() {
  return {
      {"tiling", "tiling", "Partition the iterations so that the data of one tile stays in fast memory.",
       "Strip-mine the loops that carry reuse and move the tile loops outwards; choose tiles that fit the "
       "nearest cache "
       "(or shared memory), and keep the remainder correct.",
       [](const Region& region, const Structure&, const Device&) {
         if (on_grid(region.facts)) return grid_tiling_applies(region);
         return region.kind == RegionKind::loop && region.facts.loops.size() >= 2 && region.facts.tileable &&
                !region.facts.opaque && (has_reuse(region.facts) || has_strided_access(region.facts));
       },
       "Let the threads of a block bring a tile into shared memory with neighbouring accesses, wait, compute "
       "on it "
       "from there, and wait again before the next one; pad its rows, or permute their columns by an "
       "exclusive or with the row "
       "(swizzling), where a column is read, and keep the last, incomplete tile correct."},
      {"fusion", "fusing", "Merge neighbouring operators so that intermediates need not go through memory.",
       "Merge the bodies over the common index space; keep the value in a register between producer and "
       "consumer and drop "
       "the buffer if nobody else reads it.",
       [](const Region& region, const Structure&, const Device&) {
         return (region.kind == RegionKind::loop_sequence || region.kind == RegionKind::launch_sequence) &&
                region.facts.fusable && !region.facts.opaque &&
                !(on_grid(region.facts) && region.kind == RegionKind::loop_sequence &&
                  is_written_out(region.facts));
       },
       "Do the work of the later launch where the earlier one makes its result: in the thread that makes the "
       "element, or, where whole rows are needed, in the block that holds the row, with a barrier between; "
       "then "
       "drop the buffer and its launch line if nobody else reads it."},
      {"pipeline", "pipelining", "Overlap the movement of the next data with the computation on the present.",
       "Load the tile of the next iteration (asynchronously or into a second buffer) before computing on the "
       "present one.",
       [](const Region& region, const Structure&, const Device&) {
         if (on_grid(region.facts)) return grid_pipeline_applies(region);
         return region.kind == RegionKind::loop && region.facts.staged && !region.facts.opaque;
       },
       "Bring the tile of the next iteration into a second buffer (asynchronous copies of 16 bytes, on newer "
       "devices "
       "bulk copies that a barrier in shared memory waits for, or loads into registers) before computing on "
       "the "
       "present one, with one barrier an iteration."},
      {"reordering", "reordering",
       "Change the order of loops so that neighbouring iterations touch neighbouring data.",
       "Interchange the loops so that the innermost one moves by one element through the arrays it touches, "
       "as far as the "
       "dependences allow.",
       [](const Region& region, const Structure& structure, const Device&) {
         if (on_grid(region.facts)) return grid_reordering_applies(region, structure);
         return region.kind == RegionKind::loop && region.facts.loops.size() >= 2 &&
                region.facts.interchangeable && !region.facts.opaque;
       },
       "Let neighbouring threads along x touch neighbouring elements: number the threads along the axis that "
       "goes "
       "along memory, or let the threads of a warp take the iterations of the loop that does, and adapt the "
       "launch "
       "line."},
      {"unrolling", "unrolling",
       "Do several iterations at once, to keep values in registers and give the processor "
       "independent work.",
       "Unroll an outer loop and jam the copies into the inner one (register blocking), or unroll the "
       "innermost loop with "
       "several accumulators.",
       [](const Region& region, const Structure& structure, const Device&) {
         if (on_grid(region.facts)) return grid_unrolling_applies(region, structure);
         // Innermost loops are unrolled; of a nest the outer loop is, and its copies are jammed together.
         if (region.kind != RegionKind::loop || region.facts.opaque || region.facts.loops.empty())
           return false;
         const LoopFacts& outer = region.facts.loops.front();
         return outer.innermost || outer.parallel || (region.facts.loops.size() > 1 && region.facts.tileable);
       },
       "Let each thread compute several results in registers, so that they share what it loads and keep more "
       "loads "
       "in flight; or unroll a loop with several accumulators. Adapt the launch line, and watch the "
       "registers."},
      {"vectorization", "vectorizing", "Let one instruction work on several neighbouring elements.",
       "Make the innermost loop unit-stride and free of carried dependences and say so to the compiler (`omp "
       "simd`, with "
       "the reduction clause where one is carried).",
       [](const Region& region, const Structure&, const Device& device) {
         if (on_grid(region.facts)) return grid_vectorization_applies(region);
         return region.kind == RegionKind::loop && device.kind == "cpu" && region.facts.vectorizable &&
                !region.facts.opaque && region.facts.loops.size() == 1 &&
                !has_directive(region.facts, "simd");
       },
       "Load and store 8 or 16 bytes at once (float2, float4) where they are neighbours and aligned, and "
       "keep a "
       "scalar path for the rest."},
      {"parallelization", "parallelizing", "Spread independent iterations over all compute units.",
       "Give every thread a contiguous share of the outermost loop without carried dependences; combine "
       "reductions from "
       "partial results in the order of the threads.",
       [](const Region& region, const Structure& structure, const Device& device) {
         if (on_grid(region.facts)) return grid_parallelization_applies(region, structure);
         return region.kind == RegionKind::loop && device.kind == "cpu" && device.compute_units > 1 &&
                !region.facts.opaque && !region.facts.loops.empty() &&
                (region.facts.loops.front().parallel || region.facts.loops.front().reduction) &&
                !has_directive(region.facts, "parallel") && !inside_parallel_loop(region, structure, device);
       },
       "Give a warp or a block to what one thread does now: its threads take neighbouring iterations in turn "
       "and "
       "combine partial results by shuffles or shared memory. Adapt the launch line."},
      {"retention", "keeping the values of",
       "Read what several passes need once, and keep it where the next pass finds it.",
       "Hold a block of the data that stays in the nearest cache through all passes before going on to the "
       "next.",
       [](const Region& region, const Structure& structure, const Device&) {
         return grid_retention_applies(region, structure);
       },
       "Let each thread keep its share in registers, in an array that only loops with a constant number of "
       "turns, all unrolled, index; or let the block keep the row in shared memory. Keep the way through "
       "memory for what does not fit."},
      {"online", "making one pass of",
       "Read the data once: carry what an earlier pass would have found, and correct what depends on it.",
       "Update all results in one loop; where a running maximum, mean or scale changes, rescale what was "
       "summed "
       "relative to the old one (online softmax, Welford). Combine partial results by the same rule.",
       [](const Region& region, const Structure& structure, const Device&) {
         return could_be_one_pass(region, structure);
       }},
      {"scanning", "scanning", "Spread a recurrence over many threads, because its operation is associative.",
       "Sum blocks in parallel, find what comes before each block, then go through each block again from "
       "there; "
       "keep the order of the operands where the operation is not commutative.",
       [](const Region& region, const Structure& structure, const Device&) {
         return is_recurrence(region) && (!on_grid(region.facts) || grid_scanning_applies(region, structure));
       },
       "Give a warp or a block a run of neighbouring elements: scan them in shared memory or by shuffles, "
       "carry "
       "the last sum to the next run; for few long rows let blocks sum first, scan the sums of the blocks in "
       "a "
       "second launch, and add them in a third."},
      {"splitting", "splitting", "Let more threads work on a long reduction than there are results.",
       "Divide the reduction into parts, one to a core, and combine the parts in their order.",
       [](const Region& region, const Structure&, const Device& device) {
         return on_grid(region.facts) && grid_splitting_applies(region, device);
       },
       "Let several blocks share one result: each reduces a part into scratch memory, and a second launch, "
       "or "
       "the last block to be done (a counter in zeroed scratch memory), combines the parts in their order."},
      {"strength_reduction", "reducing the strength of", "Let cheaper instructions compute the same.",
       "Replace powers, quotients and transcendental functions by products, roots or cheaper functions of "
       "the "
       "same value (identities, folded constants, reciprocals of what does not change), as exact as before.",
       [](const Region& region, const Structure&, const Device&) {
         return !region.facts.opaque && is_innermost_work(region) &&
                (region.facts.transcendental || (on_grid(region.facts) && takes_roots(region.facts)));
       },
       "Fold constants, use exp2 and log2 with scaled arguments, reciprocal roots, and identities that need "
       "one "
       "function instead of two; the precision of the result stays that of its type."},
      {"packing", "packing the data of", "Read an operand in the order of its use, from a copy made once.",
       "Copy the operand (or the panel that a tile needs) into scratch memory so that the innermost loops "
       "read "
       "neighbouring elements; copy in tiles, so that neither reading nor writing jumps through many pages. "
       "Not where "
       "each element is used only a few times.",
       [](const Region& region, const Structure&, const Device&) {
         return !on_grid(region.facts) && packing_applies(region);
       }},
      {"hoisting", "hoisting out of", "Compute once what an inner loop does not change.",
       "Move calls, quotients and subscripts whose operands the inner loop leaves alone in front of it; "
       "where that "
       "takes many values, keep them in a small array. Not where it costs registers that are already short.",
       [](const Region& region, const Structure&, const Device&) { return hoisting_applies(region); }},
      {"scalar_replacement", "replacing elements by scalars in",
       "Keep an element in a register while a loop works on it.",
       "Load the element into a scalar before the loop, work on the scalar, and store it behind the loop; "
       "the "
       "compiler may not, where other pointers could mean the same element.",
       [](const Region& region, const Structure&, const Device&) {
         return scalar_replacement_applies(region);
       }},
      {"fission", "distributing", "Let one loop do what must go in order, and another one what need not.",
       "Give the recurrence a loop of its own and let the rest follow in a loop that the compiler "
       "vectorises; work in "
       "blocks that stay in the nearest cache where both need the same data.",
       [](const Region& region, const Structure&, const Device& device) {
         return device.kind == "cpu" && !on_grid(region.facts) && fission_applies(region);
       }},
      {"recomputation", "recomputing what lies between",
       "Compute a value where it is needed, rather than store it and read it again.",
       "Let the second function compute the elements that it reads of the buffer from the first one's "
       "inputs, also "
       "those of neighbours; drop the buffer and its launch. Not where an element is needed often and is "
       "dear.",
       [](const Region& region, const Structure& structure, const Device&) {
         return recomputation_applies(region, structure);
       },
       "Let each thread compute the elements that it reads of the buffer from the first launch's inputs, its "
       "neighbours' too (or let the block compute them once, with a margin, into shared memory); drop the "
       "buffer and "
       "its launch. Not where an element is needed often and is dear."},
      {"persistence", "keeping alive the blocks of",
       "Start as many blocks as the device holds at once, and let each do the work of many.",
       "Launch a few blocks for each multiprocessor, prepare what all tiles share (tables, descriptors, "
       "weights) "
       "once, and go through the tiles with a stride of the grid; bring the next tile while one is worked "
       "on, and give "
       "the tail of the tiles out evenly (stream K where each is a long sum).",
       [](const Region& region, const Structure&, const Device& device) {
         return grid_persistence_applies(region, device);
       }},
      {"finishing", "finishing in one launch",
       "Let the last block to be done do what a small launch behind it does.",
       "Each block writes its part, fences (`__threadfence`), and counts itself in scratch memory that every "
       "call "
       "finds zeroed (`//@ scratch done: u32[1] zero`); the block that counts last goes through all parts, "
       "in their "
       "order, and the small launch and its line are gone.",
       [](const Region& region, const Structure& structure, const Device&) {
         return grid_finishing_applies(region, structure);
       }},
      {"rewriting", "rewriting",
       "Write the whole kernel anew, as an expert would for this task and this device.",
       "Choose the algorithm, the order of the loops, what is kept where and what is computed together by "
       "what the task needs at least: each input read once where it can be, each result written once, all "
       "cores and vectors busy. Functions and launch lines may be as many or as few as that takes.",
       [](const Region& region, const Structure& structure, const Device&) {
         return is_whole_kernel(region, structure);
       },
       "Choose launches, the work of blocks and threads, and what is kept in registers and shared memory by "
       "what the task needs at least: each input read once where it can be, each result written once, enough "
       "blocks to fill the device, no launch that one thread or a few blocks hold up. Functions, launch and "
       "scratch lines may be as many or as few as that takes.",
       3},
  };
}

MTMC_INLINE std::vector<OptimizationType> all_optimization_types() {
  auto types = types_of_loops_and_grids();
  for (auto& type : types) {
    type.program_principle = program_principle_of(type.id);
    if (type.id == "rewriting") continue; // is the same in all languages
    type.applies = [id = type.id, applies = std::move(type.applies)](
                       const Region& region, const Structure& structure, const Device& device) {
      return in_python(region.facts) ? applies_in_python(id, region, structure)
                                     : applies(region, structure, device);
    };
  }
  return types;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ActionSpace ActionSpace::paper() {
  auto types = detail::all_optimization_types();
  std::erase_if(types, [](const OptimizationType& type) {
    return type.id != "tiling" && type.id != "fusion" && type.id != "pipeline" && type.id != "reordering";
  });
  return {std::move(types)};
}

MTMC_INLINE const OptimizationType* ActionSpace::find(std::string_view id) const noexcept {
  for (const auto& type : types)
    if (type.id == id) return &type;
  return nullptr;
}

MTMC_INLINE std::vector<Action> ActionSpace::legal_actions(const Structure& structure,
                                                           const Device& device) const {
  std::vector<Action> actions;
  for (const auto& type : types)
    for (const auto& region : structure.regions)
      if (type.applies && type.applies(region, structure, device))
        actions.push_back({Action::Kind::optimize, type.id, type.verb, region.path, region.label,
                           region.first_line, region.last_line});
  std::stable_sort(actions.begin(), actions.end(),
                   [](const Action& a, const Action& b) { return a.key() < b.key(); });
  actions.push_back(Action::stop());
  return actions;
}

} // namespace mtmc
