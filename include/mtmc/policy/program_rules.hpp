#pragma once
/// The rules policy's table for PyTorch modules and Triton kernels: what is computed together first, then how
/// each kernel does it.

#include <mtmc/actions/program_applicability.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/situation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Classes of operators that compute something.
inline constexpr std::array<std::string_view, 10> computing_classes{
    "contraction", "convolution", "pointwise", "reduction", "normalization",
    "pooling",     "scan",        "gather",    "random",    "library"};

[[nodiscard]] inline bool is_computing_class(std::string_view word) {
  return std::find(computing_classes.begin(), computing_classes.end(), word) != computing_classes.end();
}

/// Sums of products are among what the region computes.
[[nodiscard]] inline bool has_product(const Region& region) {
  return is_marked(region.facts, "contraction") || makes_call(region.facts, "dot");
}

[[nodiscard]] inline bool has_convolution(const Region& region) {
  return is_marked(region.facts, "convolution");
}

/// Of the members of a run a product is the first that computes.
[[nodiscard]] inline bool begins_with_product(const Region& region) {
  const auto& marks = region.facts.directives;
  const auto first =
      std::find_if(marks.begin(), marks.end(), [](const auto& mark) { return is_computing_class(mark); });
  return first != marks.end() && *first == "contraction";
}

/// Some result needs statistics of the whole batch.
[[nodiscard]] inline bool needs_whole_batch(const Region& region) {
  const auto& calls = region.facts.calls;
  return std::any_of(calls.begin(), calls.end(), [](std::string_view name) {
    return name.starts_with("BatchNorm") || name == "SyncBatchNorm" || name == "batch_norm";
  });
}

/// A statement of several operators, each of which is a launch.
[[nodiscard]] inline bool has_several_operators(const Region& region) {
  const auto& marks = region.facts.directives;
  return region.kind == RegionKind::launch && of_library(region.facts) &&
         std::count_if(marks.begin(), marks.end(),
                       [](const auto& mark) { return is_computing_class(mark); }) > 1;
}

/// The launches of a kernel try several block sizes already.
[[nodiscard]] inline bool is_autotuned(const Region& region) {
  return is_marked(region.facts, "triton.autotune");
}

/// How far the call is from its bound is known, and it is far.
[[nodiscard]] inline bool is_known_to_be_far(const Situation& situation) {
  return situation.bottleneck != Bottleneck::unknown && situation.headroom == Headroom::high;
}

/// More steps than one answer can do well.
[[nodiscard]] inline bool is_long_run(const Region& region) {
  constexpr std::size_t many = 8;
  return region.facts.intermediates.size() > many;
}

} // namespace detail

/// The decision table of `RulesPolicy` for regions in Python, top to bottom: the first row that holds for an
/// action decides. Facts there say nothing of sizes, and often there is no roofline, so the rows go by kinds
/// of work: a start far from its bound is written anew; then what is computed together, longest runs first;
/// products with what follows them; several passes as one; then blocks, pipelining, order of programs,
/// persistence. What library and compiler are good at comes last: single pointwise statements, convolutions,
/// and products in f32.
[[nodiscard]] inline const std::vector<Rule>& default_program_rules() {
  using detail::begins_with_product;
  using detail::has_convolution;
  using detail::has_product;
  using detail::has_several_operators;
  using detail::is_autotuned;
  using detail::is_known_to_be_far;
  using detail::is_long_run;
  using detail::is_marked;
  using detail::needs_whole_batch;
  using detail::of_library;
  using detail::of_programs;
  static const std::vector<Rule> rules{
      // all at once: behind fusion, as single steps say what is wrong where they fail, but for a start that
      // is far off
      {"rewriting",
       [](const Region& r, const Situation& s) { return is_long_run(r) && s.headroom == Headroom::high; },
       0.10, "too much for one answer"},
      // Measured on an H100: of a run that torch does alone, one answer brings 19x and 29x where fusing its
      // pointwise end brings 1.0x and 1.5x, since what is left of the library keeps its own layout.
      {"rewriting",
       [](const Region& r, const Situation& s) {
         return is_known_to_be_far(s) && r.kind == RegionKind::launch_sequence && of_library(r.facts) &&
                !of_programs(r.facts);
       },
       0.99, "torch does all of these steps, and the call is far from what the task needs at least", 0.04},
      {"rewriting",
       [](const Region& r, const Situation& s) {
         return is_known_to_be_far(s) && r.kind == RegionKind::launch_sequence;
       },
       0.86, "several launches, and the call is far from what the task needs at least"},
      {"rewriting", [](const Region&, const Situation& s) { return is_known_to_be_far(s); }, 0.65,
       "the call is far from what the task needs at least"},
      {"rewriting", [](const Region&, const Situation& s) { return s.headroom == Headroom::low; }, 0.01,
       "little is left of which a new text could take a part"},
      {"rewriting", [](const Region&, const Situation& s) { return s.headroom == Headroom::middle; }, 0.20,
       "some is left, and single steps may find it"},
      {"rewriting",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::launch_sequence && !r.facts.fusable;
       },
       0.55, "several launches that no single step makes one"},
      {"rewriting",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::launch_sequence && has_convolution(r);
       },
       0.15, "the library's convolution is hard to beat, even with what follows it done on the way"},
      {"rewriting", [](const Region& r, const Situation&) { return r.kind == RegionKind::launch_sequence; },
       0.35, "several launches, which fusing makes one as well"},
      {"rewriting", [](const Region& r, const Situation&) { return has_convolution(r); }, 0.04,
       "the library's convolution is hard to beat"},
      {"rewriting", [](const Region& r, const Situation&) { return has_product(r); }, 0.15,
       "a product can hardly be computed in another way"},
      {"rewriting", [](const Region&, const Situation&) { return true; }, 0.25,
       "another way to compute it may be better, which single steps do not find"},

      // what is never written need not be read
      {"fusion", [](const Region& r, const Situation&) { return has_convolution(r); }, 0.22,
       "the library's convolution is hard to beat, even with what follows it done on the way", 0.04},
      {"fusion", [](const Region& r, const Situation&) { return needs_whole_batch(r) && has_product(r); },
       0.50, "the statistics of a batch wait for all of a product", 0.04},
      {"fusion", [](const Region& r, const Situation&) { return needs_whole_batch(r); }, 0.66,
       "the statistics of a batch take a pass of their own, which could do the work before them", 0.04},
      // Measured on an H200: of five such fusions none gained, 0.51x to 1.00x.
      {"fusion",
       [](const Region& r, const Situation& s) {
         return has_product(r) && of_library(r.facts) && s.single_precision;
       },
       0.35, "the library's product in f32 is faster than a kernel's, which has no matrix units for it",
       0.04},
      {"fusion", [](const Region& r, const Situation&) { return begins_with_product(r); }, 0.88,
       "a product goes through memory before what follows works on it", 0.04},
      {"fusion", [](const Region& r, const Situation&) { return has_product(r); }, 0.60,
       "the operand of a product could be computed where it is loaded", 0.04},
      {"fusion", [](const Region& r, const Situation&) { return r.facts.intermediates.size() > 1; }, 0.94,
       "several intermediates go through memory between steps that one launch could do", 0.04},
      {"fusion", [](const Region&, const Situation&) { return true; }, 0.94,
       "an intermediate goes through memory between steps that one launch could do"},
      {"recomputation",
       [](const Region& r, const Situation&) { return has_product(r) || has_convolution(r); }, 0.05,
       "sums of products are too dear to be computed again"},
      {"recomputation", [](const Region&, const Situation&) { return true; }, 0.32,
       "an intermediate goes through memory, and its reader could compute it"},
      {"finishing", [](const Region& r, const Situation&) { return of_library(r.facts); }, 0.02,
       "the library's launches do not count who is done"},
      {"finishing", [](const Region& r, const Situation&) { return r.facts.fusable; }, 0.12,
       "fusing spares the launch as well"},
      {"finishing", [](const Region&, const Situation&) { return true; }, 0.28,
       "a small launch waits for all programs of the one before; the last of them could do its work"},

      // statements of a module: a kernel in place of the library's
      {"scanning", [](const Region& r, const Situation&) { return has_several_operators(r); }, 0.87,
       "a scan and the operators around it each go through memory"},
      {"scanning", [](const Region&, const Situation&) { return true; }, 0.75,
       "the library's scan takes several passes, which a program that carries its sum does in one"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "scan"); }, 0.20,
       "what is left of a scan's statement waits for the scan"},
      {"tiling",
       [](const Region& r, const Situation&) { return has_several_operators(r) && has_convolution(r); }, 0.12,
       "the library's convolution is hard to beat, even with what follows it done on the way"},
      {"tiling", [](const Region& r, const Situation&) { return has_several_operators(r) && has_product(r); },
       0.62, "a product goes through memory before the rest of its statement works on it"},
      {"tiling", [](const Region& r, const Situation&) { return has_several_operators(r); }, 0.86,
       "each operator of the statement goes through memory, and one kernel could do them all"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "normalization"); }, 0.72,
       "several passes over the same data, which a program could keep"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "reduction"); }, 0.45,
       "a block for its axis may suit a reduction better than what the library does for all"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "pooling"); }, 0.30,
       "windows of neighbouring results share what they read"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "gather"); }, 0.20,
       "it moves data and computes nothing"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "pointwise"); }, 0.05,
       "a single pass over memory already"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "convolution"); }, 0.05,
       "the library's convolution is hard to beat"},
      {"tiling",
       [](const Region& r, const Situation& s) {
         return is_marked(r.facts, "contraction") && s.bottleneck == Bottleneck::memory;
       },
       0.35, "memory is the limit of this product, for which the library's blocks may be wrong"},
      {"tiling", [](const Region& r, const Situation&) { return is_marked(r.facts, "contraction"); }, 0.18,
       "the library's product is hard to beat as long as it is as exact"},
      {"reordering", [](const Region& r, const Situation&) { return is_marked(r.facts, "normalization"); },
       0.10, "programs along the axis in memory read it in order, but so does the library"},
      {"reordering", [](const Region& r, const Situation&) { return is_marked(r.facts, "contraction"); },
       0.08, "the library orders its blocks well"},
      {"reordering", [](const Region& r, const Situation&) { return is_marked(r.facts, "convolution"); },
       0.04, "the library orders its blocks well"},

      // kernels: passes over the same data, then blocks and what goes on between them
      {"online", [](const Region& r, const Situation&) { return has_product(r); }, 0.82,
       "products for several passes over the same data, which one pass with running results needs once"},
      {"online", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.12,
       "memory is not the limit"},
      {"online", [](const Region&, const Situation&) { return true; }, 0.74,
       "memory gives the same data once for each of several passes"},
      {"retention", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.01,
       "registers spill already"},
      {"retention", [](const Region& r, const Situation&) { return has_product(r); }, 0.25,
       "products need the registers"},
      {"retention", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; },
       0.10, "memory is not the limit"},
      {"retention", [](const Region&, const Situation&) { return true; }, 0.78,
       "memory gives a program the same data several times, and a block of it could stay in registers"},
      {"tiling", [](const Region& r, const Situation&) { return is_autotuned(r) && has_product(r); }, 0.45,
       "several block sizes of a product are tried already"},
      {"tiling", [](const Region& r, const Situation&) { return is_autotuned(r); }, 0.10,
       "several block sizes are tried already"},
      {"tiling", [](const Region& r, const Situation&) { return has_product(r); }, 0.80,
       "blocks decide how often a product reads its operands"},
      {"tiling", [](const Region&, const Situation&) { return true; }, 0.40,
       "blocks decide how many loads are under way"},
      {"pipeline", [](const Region&, const Situation& s) { return s.spilled_bytes > 0; }, 0.02,
       "registers spill already"},
      {"pipeline", [](const Region& r, const Situation&) { return has_product(r); }, 0.70,
       "bringing blocks in and multiplying them take turns"},
      {"pipeline", [](const Region&, const Situation&) { return true; }, 0.24,
       "other programs compute while one waits for its loads"},
      {"reordering",
       [](const Region& r, const Situation&) { return r.kind == RegionKind::function && has_product(r); },
       0.60, "programs that run together could share blocks of a product's operands in the cache"},
      {"reordering", [](const Region&, const Situation&) { return true; }, 0.22,
       "another order of the loops may keep what is loaded once"},
      {"persistence", [](const Region&, const Situation&) { return true; }, 0.50,
       "the loads of a program's next block could overlap the end of this one"},
      {"strength_reduction",
       [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::memory; }, 0.05,
       "the functions hide behind the loads"},
      {"strength_reduction", [](const Region& r, const Situation&) { return has_product(r); }, 0.36,
       "dear functions keep matrix units waiting"},
      {"strength_reduction", [](const Region&, const Situation&) { return true; }, 0.30,
       "dear functions are called for every element"},
      {"splitting", [](const Region& r, const Situation&) { return has_product(r); }, 0.18,
       "if there are few results, more programs could share a long sum"},
      {"splitting", [](const Region&, const Situation&) { return true; }, 0.14,
       "if there are few programs, more could share a long loop"},
  };
  return rules;
}

} // namespace mtmc
