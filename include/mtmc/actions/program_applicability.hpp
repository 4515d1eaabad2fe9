#pragma once
/// Which optimisations may be offered for kernels of programs that work on blocks (Triton), and for
/// statements of a module that a library executes (PyTorch): regions of `PythonRegionFinder`.

#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline bool is_marked(const RegionFacts& facts, std::string_view word) {
  return std::find(facts.directives.begin(), facts.directives.end(), word) != facts.directives.end();
}
[[nodiscard]] inline bool makes_call(const RegionFacts& facts, std::string_view name) {
  return std::find(facts.calls.begin(), facts.calls.end(), name) != facts.calls.end();
}

/// The region is part of a kernel whose programs work on blocks.
[[nodiscard]] inline bool of_programs(const RegionFacts& facts) { return is_marked(facts, "triton.jit"); }
/// The region is executed by a library.
[[nodiscard]] inline bool of_library(const RegionFacts& facts) { return is_marked(facts, "torch"); }
/// The language is Python.
[[nodiscard]] inline bool in_python(const RegionFacts& facts) {
  return of_programs(facts) || of_library(facts);
}

[[nodiscard]] inline bool has_load(const RegionFacts& facts) {
  return std::any_of(facts.accesses.begin(), facts.accesses.end(),
                     [](const AccessFacts& access) { return !access.write; });
}

/// A kernel that is launched, with what it does to memory: not a function that kernels call.
[[nodiscard]] inline bool is_program(const Region& region) {
  return region.kind == RegionKind::function && of_programs(region.facts) && !region.facts.writes.empty();
}

/// A loop of a kernel that brings data in each iteration, and is not written out by the compiler.
[[nodiscard]] inline bool is_loading_loop(const Region& region) {
  return region.kind == RegionKind::loop && of_programs(region.facts) && has_load(region.facts) &&
         !is_marked(region.facts, "static_range");
}

/// Neighbouring loops of a kernel of which a later one loads what an earlier one has loaded.
[[nodiscard]] inline bool has_repeated_load(const Region& region) {
  return region.kind == RegionKind::loop_sequence && of_programs(region.facts) &&
         !region.facts.intermediates.empty();
}

/// A statement whose operator is of one of these classes.
[[nodiscard]] inline bool is_library_operator(const Region& region,
                                              std::initializer_list<std::string_view> classes) {
  return region.kind == RegionKind::launch && of_library(region.facts) && !region.facts.opaque &&
         std::any_of(classes.begin(), classes.end(),
                     [&](auto name) { return is_marked(region.facts, name); });
}

/// Whether an optimisation of that id may be offered for a region in Python.
[[nodiscard]] inline bool applies_in_python(std::string_view optimization, const Region& region,
                                            const Structure& structure) {
  const auto& facts = region.facts;
  const bool outermost = std::count(region.path.begin(), region.path.end(), '/') == 1;
  if (optimization == "tiling")
    return is_program(region) ||
           is_library_operator(region, {"contraction", "convolution", "pointwise", "reduction",
                                        "normalization", "pooling", "gather"});
  if (optimization == "fusion") return region.kind == RegionKind::launch_sequence && facts.fusable;
  if (optimization == "pipeline") return is_loading_loop(region);
  if (optimization == "reordering")
    return (is_program(region) && makes_call(facts, "dot")) ||
           (region.kind == RegionKind::loop && of_programs(facts) && facts.loops.size() > 1) ||
           is_library_operator(region, {"contraction", "convolution", "normalization"});
  if (optimization == "retention" || optimization == "online") return has_repeated_load(region);
  if (optimization == "scanning") return is_library_operator(region, {"scan"});
  if (optimization == "splitting") return is_loading_loop(region) && outermost;
  if (optimization == "strength_reduction")
    return facts.transcendental && of_programs(facts) &&
           (region.kind == RegionKind::loop
                ? facts.loops.size() == 1
                : is_program(region) && std::none_of(structure.regions.begin(), structure.regions.end(),
                                                     [&](const Region& one) {
                                                       return one.kind == RegionKind::loop &&
                                                              one.path.starts_with(region.path + '/');
                                                     }));
  if (optimization == "recomputation")
    return region.kind == RegionKind::launch_sequence && facts.fusable && of_programs(facts);
  if (optimization == "persistence") return is_program(region) && makes_call(facts, "dot");
  if (optimization == "finishing")
    return region.kind == RegionKind::launch_sequence && of_programs(facts) && !facts.intermediates.empty();
  return false;
}

} // namespace mtmc::detail
