#pragma once
/// The JSON form of `KernelEvaluatorOptions`, as a worker is given it.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>

namespace mtmc::inline MTMC_ABI::detail {

/// Every field may be missing; the names are those of the members. `defences` have no JSON form, so that no
/// file can take one off.
inline void visit_fields(JsonFields& visit, KernelEvaluatorOptions& noun) {
  const KernelEvaluatorOptions defaults;
  visit.optional("confidence", noun.confidence, defaults.confidence);
  visit.optional("precision", noun.precision, defaults.precision);
  visit.optional("worthwhile_gain", noun.worthwhile_gain, defaults.worthwhile_gain);
  visit.optional("explore_seconds", noun.explore_seconds, defaults.explore_seconds);
  visit.optional("promote_seconds", noun.promote_seconds, defaults.promote_seconds);
  visit.optional("explore_overhead_seconds", noun.explore_overhead_seconds,
                 defaults.explore_overhead_seconds);
  visit.optional("audit_seconds", noun.audit_seconds, defaults.audit_seconds);
  visit.optional("refuse_uncovered_branches", noun.refuse_uncovered_branches,
                 defaults.refuse_uncovered_branches);
  visit.optional("explore_pairs", noun.explore_pairs, defaults.explore_pairs);
  visit.optional("promote_pairs", noun.promote_pairs, defaults.promote_pairs);
  visit.optional("shortest_timing", noun.shortest_timing, defaults.shortest_timing);
  visit.optional("largest_group", noun.max_group_size, defaults.max_group_size);
  visit.optional("group_bytes", noun.group_bytes, defaults.group_bytes);
  visit.optional("group_buffers", noun.group_buffers, defaults.group_buffers);
  visit.optional("cold", noun.cold, defaults.cold);
  visit.optional("compile_seconds", noun.compile_seconds, defaults.compile_seconds);
  visit.optional("launch_seconds", noun.launch_seconds, defaults.launch_seconds);
  visit.optional("launch_factor", noun.launch_factor, defaults.launch_factor);
  visit.optional("start_seconds", noun.start_seconds, defaults.start_seconds);
  visit.optional("evaluation_seconds", noun.evaluation_seconds, defaults.evaluation_seconds);
  visit.optional("red_zone_bytes", noun.red_zone_bytes, defaults.red_zone_bytes);
  visit.optional("reference_bytes", noun.reference_bytes, defaults.reference_bytes);
  visit.optional("scratch_bytes", noun.scratch_bytes, defaults.scratch_bytes);
  visit.optional("prepared_tasks", noun.prepared_tasks, defaults.prepared_tasks);
  visit.optional("kept_incumbents", noun.kept_incumbents, defaults.kept_incumbents);
  visit.optional("launch_times", noun.launch_times, defaults.launch_times);
  visit.optional("profile", noun.profile, defaults.profile);
  visit.optional("seed", noun.seed);
  visit.no_others();
}

} // namespace mtmc::detail
