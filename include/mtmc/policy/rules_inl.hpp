#pragma once
/// Definitions of policy/rules.hpp.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/policy/gpu_rules.hpp>
#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/policy/situation.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Accesses that jump in memory when loop `index` of the nest advances.
[[nodiscard]] inline int strided_accesses(const RegionFacts& facts, std::size_t index) {
  int count = 0;
  for (const auto& access : facts.accesses)
    if (index < access.strides.size() &&
        (!access.strides[index] || *access.strides[index] < -1 || *access.strides[index] > 1))
      ++count;
  return count;
}

/// Whether another loop of the nest would make a better innermost loop than the present one.
[[nodiscard]] inline bool order_is_poor(const RegionFacts& facts) {
  if (facts.loops.size() < 2) return false;
  const int present = strided_accesses(facts, facts.loops.size() - 1);
  for (std::size_t i = 0; i + 1 < facts.loops.size(); ++i)
    if (strided_accesses(facts, i) < present) return true;
  return false;
}

/// Whether the innermost loop adds up while a loop around it has independent iterations that all move by at
/// most one element: those fill vectors without reassociating a sum.
[[nodiscard]] inline bool sum_is_innermost(const RegionFacts& facts) {
  if (facts.loops.size() < 2 || !facts.loops.back().reduction) return false;
  for (std::size_t i = 0; i + 1 < facts.loops.size(); ++i) {
    const LoopFacts& loop = facts.loops[i];
    constexpr std::int64_t few = 16;
    if (loop.parallel && loop.trip_count.value_or(few) >= few && strided_accesses(facts, i) == 0) return true;
  }
  return false;
}

/// Whether the innermost loop is known to end before a vector is full.
[[nodiscard]] inline bool innermost_is_short(const RegionFacts& facts) {
  constexpr std::int64_t vector = 8;
  return !facts.loops.empty() && facts.loops.back().trip_count.value_or(vector) < vector;
}

/// Whether the region is the outermost loop of its function: "gemm/i", not "gemm/i/j".
[[nodiscard]] inline bool is_outermost(const Region& region) {
  return std::count(region.path.begin(), region.path.end(), '/') == 1;
}

/// Whether iterations of the region's loop read the same elements in the loops inside: unrolled and jammed,
/// they share them.
[[nodiscard]] inline bool shares_loads(const RegionFacts& facts) {
  if (facts.loops.empty() || facts.loops.front().innermost) return false;
  return std::any_of(facts.accesses.begin(), facts.accesses.end(), [](const AccessFacts& access) {
    return !access.write && !access.strides.empty() && access.strides.front() == 0;
  });
}

[[nodiscard]] inline bool is_small(const Region& region) {
  return region.facts.flops + region.facts.bytes / 4 < parallel_work;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE const std::vector<Rule>& default_rules() {
  using detail::has_reuse;
  using detail::has_strided_access;
  using detail::innermost_is_short;
  using detail::is_outermost;
  using detail::is_small;
  using detail::order_is_poor;
  using detail::shares_loads;
  using detail::sum_is_innermost;
  static const std::vector<Rule> rules{
      // whole-kernel traffic first: what is never written need not be read
      {"fusion",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::launch_sequence && !r.facts.intermediates.empty();
       },
       0.95, "an intermediate goes through memory between launches"},
      {"fusion", [](const Region& r, const Situation&) { return !r.facts.intermediates.empty(); }, 0.80,
       "an intermediate goes through memory between loops"},
      {"fusion", [](const Region& r, const Situation&) { return r.kind == RegionKind::launch_sequence; },
       0.40, "fewer launches over the same data"},
      {"fusion", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.05,
       "the data is small against the work"},
      {"fusion", [](const Region&, const Situation&) { return true; }, 0.25, "one pass over the same data"},

      // locality: the order of the loops, then tiles
      {"reordering",
       [](const Region& r, const Situation&) { return order_is_poor(r.facts) && is_outermost(r); }, 0.90,
       "the innermost loop jumps through memory and another order does not"},
      {"reordering", [](const Region& r, const Situation&) { return order_is_poor(r.facts); }, 0.85,
       "the innermost loop jumps through memory and another order does not"},
      {"reordering",
       [](const Region& r, const Situation&) { return sum_is_innermost(r.facts) && is_outermost(r); }, 0.84,
       "the innermost loop adds up and a loop around it could fill vectors"},
      {"reordering", [](const Region&, const Situation&) { return true; }, 0.0, "the order is already right"},
      {"tiling",
       [](const Region& r, const Situation&) {
         return has_strided_access(r.facts) && !order_is_poor(r.facts);
       },
       0.82, "some access jumps in every order of the loops"},
      {"tiling",
       [](const Region& r, const Situation& s) {
         return has_reuse(r.facts) && s.bottleneck == Bottleneck::compute && is_outermost(r);
       },
       0.45, "elements are used again after they have left the near cache"},
      {"tiling", [](const Region& r, const Situation&) { return has_reuse(r.facts); }, 0.20,
       "elements are used again"},
      {"tiling", [](const Region&, const Situation&) { return true; }, 0.0, "no element is used again"},

      // parallel mapping
      {"parallelization", [](const Region& r, const Situation&) { return is_small(r); }, 0.0,
       "too little work to wake the other cores for"},
      {"parallelization",
       [](const Region& r, const Situation&) { return is_outermost(r) && r.facts.loops.front().parallel; },
       0.75, "independent iterations of the outermost loop"},
      {"parallelization", [](const Region& r, const Situation&) { return is_outermost(r); }, 0.50,
       "a reduction that can be split over the cores"},
      {"parallelization", [](const Region&, const Situation&) { return true; }, 0.04, "an inner loop"},

      // instruction level
      {"vectorization", [](const Region& r, const Situation&) { return innermost_is_short(r.facts); }, 0.0,
       "the loop ends before a vector is full"},
      {"vectorization",
       [](const Region& r, const Situation&) {
         return r.facts.transcendental || (!r.facts.loops.empty() && r.facts.loops.back().reduction);
       },
       0.60, "the compiler may not vectorise calls and reductions by itself"},
      {"vectorization", [](const Region& r, const Situation&) { return r.facts.branches; }, 0.30,
       "branches keep the compiler from vectorising"},
      {"vectorization", [](const Region&, const Situation&) { return true; }, 0.10,
       "the compiler vectorises such a loop by itself as a rule"},
      {"unrolling",
       [](const Region& r, const Situation& s) {
         return shares_loads(r.facts) && is_outermost(r) && s.bottleneck != Bottleneck::memory;
       },
       0.58, "several iterations of the outer loop can share what one loads"},
      {"unrolling",
       [](const Region& r, const Situation& s) {
         return shares_loads(r.facts) && s.bottleneck != Bottleneck::memory;
       },
       0.40, "several iterations can share what one loads"},
      {"unrolling", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::memory; },
       0.02, "memory is the limit, not instructions"},
      {"unrolling", [](const Region&, const Situation&) { return true; }, 0.06,
       "the compiler unrolls such a loop by itself as a rule"},
      {"pipeline", [](const Region&, const Situation&) { return true; }, 0.40,
       "loads and computation take turns"},
  };
  return rules;
}

MTMC_INLINE ActionDistribution RulesPolicy::distribution(const Observation& seen,
                                                         std::span<const Action> legal, std::stop_token) {
  const auto situation = assess(seen);
  ActionDistribution answer;
  double best = -1, sum = 0;
  std::string_view best_reason;
  for (const auto& action : legal) {
    const auto [weight, reason] = judge(action, seen, situation);
    answer.probabilities.push_back(weight);
    sum += weight;
    if (weight > best) {
      best = weight;
      best_reason = reason;
    }
  }
  const double share = 1.0 / static_cast<double>(legal.size()); // where everything is forbidden, `stop` too
  for (auto& probability : answer.probabilities) probability = sum > 0 ? probability / sum : share;
  answer.rationale = describe_choice(situation, best_reason);
  return answer;
}

MTMC_INLINE std::string RulesPolicy::identity() const {
  return "rules, " + std::to_string(rules_.size()) + " rows, " + std::to_string(gpu_rules_.size()) +
         " for GPUs";
}

MTMC_INLINE RulesPolicy::Judgement RulesPolicy::judge(const Action& action, const Observation& seen,
                                                      const Situation& situation) const {
  if (action.kind == Action::Kind::stop)
    return situation.reached >= options_.good_enough
               ? Judgement{10.0, "the bound of the device is nearly reached"}
               : Judgement{options_.stop_weight, "nothing promising is left"};
  if (action.kind == Action::Kind::free_text) return {options_.unknown_weight, "free text"};
  Judgement judgement{options_.unknown_weight, "no rule speaks of it"};
  if (const auto* region = seen.structure.find_region(action.region)) {
    if (share_of_work(*region, seen.structure) < options_.least_share)
      return {0, "the region does next to none of the work"};
    for (const auto& rule : situation.gpu ? gpu_rules_ : rules_) {
      if (rule.optimization != action.optimization || !rule.holds(*region, situation)) continue;
      judgement = {rule.weight, rule.reason};
      break;
    }
  }
  bool tried = false, kept = false;
  for (const auto& entry : seen.history) {
    if (entry.action_key != action.key()) continue;
    (entry.kept ? kept : tried) = true;
  }
  if (kept) judgement.weight *= options_.repeated_factor;
  if (tried) judgement.weight *= options_.tried_factor;
  return judgement;
}

MTMC_INLINE double RulesPolicy::share_of_work(const Region& region, const Structure& structure) {
  if (region.kind == RegionKind::launch || region.kind == RegionKind::launch_sequence) return 1;
  double share = -1;
  if (structure.flops > 0) share = std::max(share, region.facts.flops / structure.flops);
  if (structure.bytes > 0) share = std::max(share, region.facts.bytes / structure.bytes);
  return share < 0 ? 1 : std::min(share, 1.0);
}

MTMC_INLINE std::string RulesPolicy::describe_choice(const Situation& situation, std::string_view reason) {
  std::string text(reason);
  if (situation.bottleneck != Bottleneck::unknown) {
    char part[80];
    std::snprintf(part, sizeof part, "; %s-bound, %.0f %% of the bound reached",
                  std::string(to_string(situation.bottleneck)).c_str(), situation.reached * 100);
    text += part;
  }
  if (situation.spilled_bytes > 0) text += "; registers spill";
  if (situation.occupancy) {
    char part[80];
    std::snprintf(part, sizeof part, "; %.0f %% occupancy", *situation.occupancy * 100);
    text += part;
    if (situation.limiter != OccupancyLimiter::unknown)
      text += ", limited by " + std::string(to_string(situation.limiter));
  }
  return text;
}

} // namespace mtmc
