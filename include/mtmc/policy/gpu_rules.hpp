#pragma once
/// The rules policy's table for GPUs: which optimisation first, by how warps access memory, what threads
/// share, and what the compiler and the roofline say.

#include <mtmc/actions/grid_applicability.hpp>
#include <mtmc/policy/rewriting_rules.hpp>
#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/situation.hpp>

#include <algorithm>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The launch has too few threads to hide latencies: fewer than half of what the multiprocessors can hold.
[[nodiscard]] inline bool leaves_units_idle(const Region& region, const Situation& situation) {
  constexpr double enough = 1024; // threads of a multiprocessor
  double threads = 1;
  for (const ThreadAxis& axis : region.facts.threads) threads *= static_cast<double>(axis.trip_count);
  return threads < enough * situation.compute_units;
}

/// The loop stands in another loop.
[[nodiscard]] inline bool is_inner(const Region& region) {
  return std::count(region.path.begin(), region.path.end(), '/') > 1;
}

/// Few threads fit onto a multiprocessor, and that is why.
[[nodiscard]] inline bool crowded_by(const Situation& situation, OccupancyLimiter limiter) {
  constexpr double low = 0.25;
  return situation.occupancy && *situation.occupancy <= low && situation.limiter == limiter;
}

} // namespace detail

/// The decision table of `RulesPolicy` for GPUs, top to bottom: the first row that holds for an action
/// decides. Sources: "whole-kernel traffic, then tiles where threads share data, then how warps access
/// memory, then pipelining and splitting reductions, then instruction level", which published rule-based
/// systems share, and their vetoes: no tile without named reuse, nothing that costs registers while they
/// spill.
[[nodiscard]] inline const std::vector<Rule>& default_gpu_rules() {
  using detail::crowded_by;
  using detail::has_bank_conflict;
  using detail::has_broadcast_operand;
  using detail::has_neighbouring_elements;
  using detail::has_shared_read;
  using detail::has_uncoalesced_access;
  using detail::is_inner;
  using detail::leaves_units_idle;
  using detail::reads_are_shared;
  using detail::results_could_be_tiles;
  using detail::shares_iterations;
  static const std::vector<Rule> rules = detail::behind_rewriting({
      // what is never written need not be read
      {"fusion",
       [](const Region& r, const Situation& s) {
         return r.facts.fusion_scope == FusionScope::thread && r.facts.intermediates.size() > 1 &&
                s.bottleneck != Bottleneck::compute;
       },
       0.96, "several intermediates go through memory, and only the thread that makes an element needs it"},
      {"fusion",
       [](const Region& r, const Situation& s) {
         return r.facts.fusion_scope == FusionScope::thread && s.bottleneck != Bottleneck::compute;
       },
       0.95, "an intermediate goes through memory, and only the thread that makes an element needs it"},
      {"fusion",
       [](const Region& r, const Situation&) { return r.facts.fusion_scope == FusionScope::thread; }, 0.93,
       "only the thread that makes an element of an intermediate needs it, as long as it makes no tile"},
      {"fusion",
       [](const Region& r, const Situation& s) {
         return r.facts.fusion_scope == FusionScope::block && s.bottleneck != Bottleneck::compute;
       },
       0.72, "an intermediate goes through memory, and a block could hold its rows"},
      {"fusion", [](const Region& r, const Situation&) { return r.facts.fusion_scope == FusionScope::block; },
       0.50, "a block could hold the rows of an intermediate"},
      {"fusion", [](const Region& r, const Situation&) { return !r.facts.intermediates.empty(); }, 0.45,
       "an intermediate goes through memory between loops"},
      {"fusion", [](const Region&, const Situation&) { return true; }, 0.30, "one pass over the same data"},

      // tiles, where threads of a block need the same data or no order of the threads fits
      {"tiling", [](const Region& r, const Situation&) { return has_bank_conflict(r.facts); }, 0.88,
       "threads of a warp meet in one bank of shared memory: rows of the tile should be padded"},
      {"tiling",
       [](const Region&, const Situation& s) { return crowded_by(s, OccupancyLimiter::shared_memory); }, 0.05,
       "shared memory leaves room for few threads already"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::loop && reads_are_shared(r.facts) && is_inner(r);
       },
       0.58, "the threads of a block read the same elements, but a loop around it moves on"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::loop && reads_are_shared(r.facts);
       },
       0.92, "the threads of a block read the same elements, each by itself"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::loop && has_shared_read(r.facts) && has_uncoalesced_access(r.facts) &&
                !is_inner(r);
       },
       0.87, "threads of a block read some elements together and jump to others: a tile brings both in order"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::loop && has_broadcast_operand(r.facts) &&
                !has_uncoalesced_access(r.facts) && !is_inner(r);
       },
       0.85, "each warp reads one element together in every iteration; other warps of a block read the same"},
      {"tiling", [](const Region& r, const Situation&) { return r.kind == RegionKind::thread_nest; }, 0.90,
       "some access jumps however the threads are numbered, or they read each other's neighbours"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return has_shared_read(r.facts) && !has_uncoalesced_access(r.facts);
       },
       0.60, "threads of a block read some elements together"},
      {"tiling", [](const Region&, const Situation&) { return true; }, 0.35,
       "neighbouring threads jump through memory; a tile could be read in its order"},

      // what is read once, and what one thread need not do alone
      {"retention", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.01,
       "registers spill already"},
      {"retention", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; },
       0.10, "memory is not the limit"},
      {"retention", [](const Region&, const Situation&) { return true; }, 0.86,
       "memory gives a thread the same elements several times, and registers could keep them"},
      {"online", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.10,
       "memory is not the limit"},
      {"online", [](const Region& r, const Situation&) { return has_uncoalesced_access(r.facts); }, 0.50,
       "the same elements are read several times, but neighbouring threads jump through memory"},
      {"online", [](const Region&, const Situation&) { return true; }, 0.83,
       "memory gives the same elements once for each of several sums"},
      {"scanning", [](const Region& r, const Situation& s) { return leaves_units_idle(r, s); }, 0.94,
       "one thread goes through a recurrence alone, and most of the device is idle"},
      {"scanning", [](const Region& r, const Situation&) { return has_uncoalesced_access(r.facts); }, 0.91,
       "one thread goes through a recurrence alone while its neighbours jump through memory"},
      {"scanning", [](const Region&, const Situation&) { return true; }, 0.30,
       "a block could go through a recurrence together"},
      {"splitting",
       [](const Region& r, const Situation&) { return results_could_be_tiles(r.facts) && !is_inner(r); },
       0.925, "each result is a long sum, and whole sums are too few tiles to fill the device"},
      {"splitting", [](const Region&, const Situation&) { return true; }, 0.89,
       "there are too few results to fill the device, and each is a long sum"},

      // launches that need not be
      {"finishing", [](const Region&, const Situation&) { return true; }, 0.76,
       "a small launch waits for all blocks of the one before; the last of them could do its work"},
      {"recomputation", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; },
       0.15, "memory is not the limit"},
      {"recomputation", [](const Region&, const Situation&) { return true; }, 0.71,
       "an intermediate goes through memory, and its reader could compute it"},
      {"persistence", [](const Region&, const Situation&) { return true; }, 0.32,
       "many times more blocks than fit at once prepare the same"},

      // neighbouring threads to neighbouring elements, and enough of them
      {"parallelization",
       [](const Region& r, const Situation&) {
         return has_uncoalesced_access(r.facts) && !reads_are_shared(r.facts);
       },
       0.91, "one thread goes along memory alone while its neighbours jump: a warp could go together"},
      {"parallelization",
       [](const Region& r, const Situation& s) {
         return leaves_units_idle(r, s) && !reads_are_shared(r.facts);
       },
       0.80, "there are too few threads to fill the device"},
      {"parallelization", [](const Region& r, const Situation& s) { return leaves_units_idle(r, s); }, 0.40,
       "there are too few threads to fill the device, but they share what they read"},
      {"parallelization", [](const Region&, const Situation&) { return true; }, 0.03,
       "there are threads enough"},
      {"reordering",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::thread_nest && detail::axes_could_change(r.facts);
       },
       0.93, "neighbouring threads jump through memory, and another axis of the launch goes along it"},
      {"reordering", [](const Region& r, const Situation&) { return reads_are_shared(r.facts); }, 0.10,
       "a tile serves the threads that read the same elements, and neighbours besides"},
      {"reordering", [](const Region& r, const Situation&) { return has_uncoalesced_access(r.facts); }, 0.70,
       "neighbouring threads jump through memory while a loop of each goes along it"},
      {"reordering", [](const Region&, const Situation&) { return true; }, 0.02,
       "neighbouring threads touch neighbouring elements already"},

      // loads on their way while the last tile is worked on
      {"pipeline", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.01,
       "registers spill already"},
      {"pipeline",
       [](const Region&, const Situation& s) { return crowded_by(s, OccupancyLimiter::shared_memory); }, 0.05,
       "shared memory leaves room for few threads already"},
      {"pipeline", [](const Region& r, const Situation&) { return r.facts.staged; }, 0.78,
       "bringing a tile in and computing on it take turns"},
      {"pipeline",
       [](const Region& r, const Situation& s) {
         return leaves_units_idle(r, s) && !has_uncoalesced_access(r.facts);
       },
       0.25, "few threads wait for each load"},
      {"pipeline", [](const Region&, const Situation&) { return true; }, 0.08,
       "other threads compute while one waits for its load"},

      // work of a thread, and wide accesses
      {"strength_reduction",
       [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.66,
       "dear functions are called for every element, and memory is not the limit"},
      {"strength_reduction", [](const Region&, const Situation&) { return true; }, 0.05,
       "the functions hide behind the loads"},
      {"hoisting", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.01,
       "registers spill already"},
      {"hoisting", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.60,
       "an inner loop calls dear functions for what it does not change"},
      {"hoisting", [](const Region&, const Situation&) { return true; }, 0.10,
       "the functions hide behind the loads"},
      {"scalar_replacement", [](const Region&, const Situation&) { return true; }, 0.65,
       "an element goes to memory and back in each iteration"},
      {"unrolling", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.0,
       "registers spill already"},
      {"unrolling",
       [](const Region&, const Situation& s) { return crowded_by(s, OccupancyLimiter::registers); }, 0.02,
       "registers leave room for few threads already"},
      {"unrolling",
       [](const Region& r, const Situation& s) {
         return r.kind == RegionKind::thread_nest && r.facts.block_barriers > 0 &&
                s.bottleneck != Bottleneck::memory;
       },
       0.85, "each thread makes one result of a tile: several would share what they read of it"},
      {"unrolling",
       [](const Region& r, const Situation& s) {
         return r.kind == RegionKind::thread_nest && has_shared_read(r.facts) && !r.facts.loops.empty() &&
                s.bottleneck != Bottleneck::memory;
       },
       0.62, "several results of one thread would share what it loads"},
      {"unrolling",
       [](const Region& r, const Situation& s) {
         return r.kind == RegionKind::thread_nest && leaves_units_idle(r, s);
       },
       0.02, "fewer threads would leave more of the device idle"},
      {"unrolling", [](const Region& r, const Situation&) { return r.kind == RegionKind::thread_nest; }, 0.20,
       "several elements a thread keep more loads in flight"},
      {"unrolling", [](const Region&, const Situation&) { return true; }, 0.06,
       "the compiler unrolls such a loop by itself as a rule"},
      {"vectorization",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::thread_nest && has_neighbouring_elements(r.facts);
       },
       0.75, "a thread's neighbouring elements are fetched one by one"},
      {"vectorization", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; },
       0.08, "memory is not the limit"},
      {"vectorization", [](const Region& r, const Situation&) { return r.kind == RegionKind::thread_nest; },
       0.55, "wider accesses move the same bytes with fewer requests"},
      {"vectorization", [](const Region& r, const Situation&) { return !r.facts.loops.empty() && shares_iterations(r.facts.loops.front()); }, 0.65,
       "threads that share a loop could fetch 16 bytes each at once"},
      {"vectorization", [](const Region& r, const Situation&) { return has_uncoalesced_access(r.facts); },
       0.40, "a thread that goes along memory alone could fetch 16 bytes at once"},
      {"vectorization", [](const Region&, const Situation&) { return true; }, 0.15,
       "wider accesses move the same bytes with fewer requests"},
  });
  return rules;
}

} // namespace mtmc
