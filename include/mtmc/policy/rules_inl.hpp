#pragma once
/// Definitions of policy/rules.hpp.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/actions/program_applicability.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/observation/launch_shares.hpp>
#include <mtmc/observation/tried_before.hpp>
#include <mtmc/policy/gpu_rules.hpp>
#include <mtmc/policy/region_traits.hpp>
#include <mtmc/policy/rewriting_rules.hpp>
#include <mtmc/policy/rule.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/policy/situation.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  static const std::vector<Rule> rules = detail::behind_rewriting({
      // whole-kernel traffic first: what is never written need not be read
      {"fusion",
       [](const Region& r, const Situation&) {
         return r.kind == RegionKind::launch_sequence && r.facts.intermediates.size() > 1;
       },
       0.96, "several intermediates go through memory between launches"},
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

      // passes and recurrences
      {"online", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; }, 0.10,
       "the data is small against the work"},
      {"online", [](const Region&, const Situation&) { return true; }, 0.55,
       "memory gives the same data once for each of several sums"},
      {"scanning", [](const Region& r, const Situation&) { return is_small(r); }, 0.0,
       "too little work to wake the other cores for"},
      {"scanning", [](const Region& r, const Situation&) { return is_outermost(r); }, 0.60,
       "one core goes through a recurrence that all could share"},
      {"scanning", [](const Region&, const Situation&) { return true; }, 0.03,
       "the loops around it can keep all cores busy"},

      {"recomputation", [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::compute; },
       0.05, "the data is small against the work"},
      {"recomputation", [](const Region&, const Situation&) { return true; }, 0.45,
       "an intermediate goes through memory, and its reader could compute it"},
      {"packing", [](const Region& r, const Situation&) { return is_outermost(r) && !is_small(r); }, 0.52,
       "an operand is read with jumps, again and again"},
      {"packing", [](const Region&, const Situation&) { return true; }, 0.02,
       "a copy would be made again and again, or serve little work"},

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
      {"hoisting", [](const Region&, const Situation&) { return true; }, 0.55,
       "an inner loop calls dear functions for what it does not change"},
      {"scalar_replacement", [](const Region&, const Situation&) { return true; }, 0.57,
       "an element goes to memory and back in each iteration"},
      {"fission", [](const Region&, const Situation&) { return true; }, 0.35,
       "what must go in order keeps the rest from vectors"},
      {"strength_reduction",
       [](const Region&, const Situation& s) { return s.bottleneck == Bottleneck::memory; }, 0.05,
       "memory is the limit"},
      {"strength_reduction", [](const Region&, const Situation&) { return true; }, 0.50,
       "dear functions are called for every element"},
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
  });
  return rules;
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

/// How much an action is wanted, and why.
struct ActionJudgement {
  double weight = 0;
  std::string_view reason{};
  /// What the action can save at most, as a part of a call's time, where that is known.
  std::optional<double> gain{};
  /// The launch it is about, with the largest share; null where launches are not told apart.
  const LaunchShare* launch = nullptr;
  /// It was tried before, on this very region.
  bool tried = false;
  /// It is about a sequence of launches.
  bool merges = false;
  /// Nothing new would come of it: the same was tried on this very region. A run in Python that was fused is
  /// gone, so that its name means another one now.
  bool exhausted = false;
  /// The type gained nothing on something that has a part in common with this region.
  bool varies = false;
};

/// A table for each kind of device, and for Python.
struct RuleTables {
  const std::vector<Rule>& processors;
  const std::vector<Rule>& gpus;
  const std::vector<Rule>& programs;
};

/// Weighs the actions of one observation.
class ActionJudge {
public:
  ActionJudge(const RulesPolicyOptions& options, const RuleTables& tables, const Observation& seen)
      : options_(options), seen_(seen), situation_(assess(seen)),
        rules_(situation_.gpu ? tables.gpus : tables.processors), program_rules_(tables.programs),
        in_python_(std::any_of(seen.structure.regions.begin(), seen.structure.regions.end(),
                               [](const Region& region) { return in_python(region.facts); })) {
    // Tried on a CPU, too, and worse: gemm_bias_relu ended at 27x to 37x, by the table alone at 41x to 47x.
    if (situation_.gpu) shares_ = launch_shares(seen);
  }

  [[nodiscard]] std::vector<ActionJudgement> judge(std::span<const Action> legal) const {
    std::vector<ActionJudgement> all;
    for (const auto& action : legal) all.push_back(judge(action));
    weigh_gains(all);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (legal[i].kind == Action::Kind::stop)
        all[i] = in_python_ ? judge_stop_in_python(all, legal) : judge_stop(all);
    return all;
  }

  /// Why, in words and numbers.
  [[nodiscard]] std::string words(const ActionJudgement& best) const;

private:
  [[nodiscard]] ActionJudgement judge(const Action& action) const {
    if (action.kind == Action::Kind::stop) return {};
    ActionJudgement judgement{options_.unknown_weight, "no rule speaks of it"};
    if (action.kind == Action::Kind::free_text) judgement.reason = "free text";
    const auto* region =
        action.kind == Action::Kind::optimize ? seen_.structure.find_region(action.region) : nullptr;
    if (region != nullptr) judge_region(action, *region, judgement);
    weigh_history(action, region, judgement);
    return judgement;
  }

  void judge_region(const Action& action, const Region& region, ActionJudgement& judgement) const {
    auto situation = situation_;
    for (const auto place : launches_of(region, shares_))
      if (judgement.launch == nullptr || shares_[place].share > judgement.launch->share)
        judgement.launch = &shares_[place];
    const bool sequence = region.kind == RegionKind::launch_sequence;
    if (is_rewriting(action.key())) {
      judgement.launch = nullptr;
      if (!shares_.empty()) judgement.gain = 1 - situation_.reached;
    } else {
      if (judgement.launch != nullptr && !sequence) situation = situation_of(*judgement.launch, situation_);
      judgement.merges = sequence;
      // Of the values between the steps of a run in Python nobody knows how large they are.
      if (!sequence || !in_python(region.facts))
        judgement.gain = possible_gain(region, shares_, seen_.device);
    }
    const auto time = share_of_time(region, shares_);
    if (time && *time < options_.least_share) {
      judgement.weight = 0;
      judgement.reason = "the launch takes next to none of the time";
    } else if (!time && share_of_work(region, seen_.structure) < options_.least_share) {
      judgement.weight = 0;
      judgement.reason = "the region does next to none of the work";
    } else {
      for (const auto& rule : in_python(region.facts) ? program_rules_ : rules_) {
        if (rule.optimization != action.optimization || !rule.holds(region, situation)) continue;
        judgement.weight = rule.weight_on(region);
        judgement.reason = rule.reason;
        break;
      }
    }
  }

  [[nodiscard]] bool gained(const HistoryEntry& entry) const {
    return entry.verdict == Verdict::correct && entry.speed_up && entry.speed_up->low > 1 &&
           entry.speed_up->value >= 1 + options_.least_gain;
  }

  /// Whatever the kernel's launches are called by now.
  [[nodiscard]] static bool is_rewriting(std::string_view key) { return key.starts_with("rewriting|"); }

  void weigh_history(const Action& action, const Region* region, ActionJudgement& judgement) const {
    bool tried = false, kept = false, varied = false;
    int fruitless = 0;
    const bool merges = region != nullptr && region->kind == RegionKind::launch_sequence;
    const bool alone = shares_.size() > 1 && region != nullptr && !merges;
    const bool python = region != nullptr && in_python(region->facts);
    const auto members = python ? members_of_run : functions_of;
    const auto merged = merges ? members(region->path) : std::vector<std::string_view>{};
    const auto shares_a_member = [&](const HistoryEntry& entry) {
      const auto others = members(region_of_key(entry.action_key));
      return std::find_first_of(others.begin(), others.end(), merged.begin(), merged.end()) != others.end();
    };
    for (const auto& entry : seen_.history) {
      if (entry.action_key == action.key() || (is_rewriting(entry.action_key) && is_rewriting(action.key())))
        (entry.kept ? kept : tried) = true;
      const bool variation = !gained(entry) && entry.action_key != action.key() &&
                             entry.action_key.starts_with(action.optimization + '|');
      varied = varied || (merges && variation && !is_rewriting(action.key()) && shares_a_member(entry));
      if (judgement.launch == nullptr || !alone || !is_about(entry, {judgement.launch->entry})) continue;
      fruitless = gained(entry) ? 0 : fruitless + 1;
      varied = varied || variation;
    }
    judgement.tried = tried || kept;
    judgement.exhausted = tried || (kept && !(python && merges && action.optimization == "fusion"));
    judgement.varies = varied;
    if (kept) judgement.weight *= options_.repeated_factor;
    if (tried) judgement.weight *= options_.tried_factor;
    if (varied) judgement.weight *= options_.variation_factor;
    constexpr int enough_tries = 2;
    constexpr double left_alone = 0.1;
    if (fruitless >= enough_tries && elsewhere(*judgement.launch) >= worthwhile) {
      judgement.weight *= left_alone;
      judgement.reason = "the last tries on this launch gained nothing";
    }
  }

  /// A part of a call's time that is worth a step of its own.
  static constexpr double worthwhile = 0.05;

  /// The most that can be saved in one of the other launches.
  [[nodiscard]] double elsewhere(const LaunchShare& launch) const {
    double most = 0;
    for (const auto& other : shares_)
      if (&other != &launch) most = std::max(most, other.share * (1 - other.roofline.reached()));
    return most;
  }

  /// Actions count by what they can save, relative to the best of them. What merging launches saves is
  /// certain, where all else is a bound: it counts in full if it is worth a step.
  void weigh_gains(std::vector<ActionJudgement>& all) const {
    if (shares_.empty()) return;
    constexpr double least_factor = 0.05;
    double most = 0;
    for (const auto& one : all)
      if (one.weight > 0 && !one.merges) most = std::max(most, one.gain.value_or(0));
    most = std::max(most, least_factor);
    for (auto& one : all)
      if (one.gain)
        one.weight *= std::clamp(*one.gain / (one.merges ? options_.least_share : most), least_factor, 1.0);
  }

  [[nodiscard]] ActionJudgement judge_stop(const std::vector<ActionJudgement>& all) const {
    constexpr double certain = 10;
    if (situation_.reached >= options_.good_enough)
      return {certain, "the bound of the device is nearly reached"};
    ActionJudgement stop{options_.stop_weight, "nothing promising is left"};
    bool far = shares_.empty();
    for (const auto& one : all) {
      if (one.launch == nullptr || !(one.weight > 0)) continue;
      const bool open = one.launch->share >= options_.least_share &&
                        one.launch->roofline.reached() < options_.launch_good_enough;
      far = far || open || one.gain.value_or(1) >= 1 - options_.launch_good_enough;
      if (open && !one.tried) stop.weight = std::min(stop.weight, one.weight / 2);
    }
    // Measured on an H100: of 17 steps at 84 to 91 % of the bandwidth one gained, 4 %.
    if (!far) stop = {certain, "each launch is near its own bound"};
    return stop;
  }

  /// Steps at the end of the history that gained nothing; where nothing is timed, that were not kept.
  [[nodiscard]] int fruitless_steps() const {
    const auto last =
        std::find_if(seen_.history.rbegin(), seen_.history.rend(), [this](const HistoryEntry& entry) {
          return entry.speed_up ? gained(entry) : entry.kept;
        });
    return static_cast<int>(last - seen_.history.rbegin());
  }

  /// Where nothing tells how much there is to gain, what was tried has to.
  [[nodiscard]] ActionJudgement judge_stop_in_python(const std::vector<ActionJudgement>& all,
                                                     std::span<const Action> legal) const {
    constexpr double certain = 10;
    constexpr double worth_fusing = 0.5;
    if (situation_.reached >= options_.good_enough)
      return {certain, "the bound of the device is nearly reached"};
    bool promising = false, fusable = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& one = all[i];
      if (one.exhausted || !(one.weight > options_.stop_weight)) continue;
      promising = true;
      fusable = fusable || (legal[i].optimization == "fusion" && !one.varies && one.weight >= worth_fusing);
    }
    if (!promising && !seen_.history.empty()) return {certain, "all that is promising was tried"};
    if (!fusable && fruitless_steps() >= options_.fruitless_steps)
      return {certain, "the last steps gained nothing, and nothing is left to fuse"};
    return {options_.stop_weight, "nothing promising is left"};
  }

  const RulesPolicyOptions& options_;
  const Observation& seen_;
  Situation situation_;
  const std::vector<Rule>& rules_;
  const std::vector<Rule>& program_rules_;
  /// The kernel is a module in Python.
  bool in_python_;
  /// Empty where they are not known, and on a CPU.
  std::vector<LaunchShare> shares_;
};

inline std::string ActionJudge::words(const ActionJudgement& best) const {
  std::string text(best.reason);
  const auto add = [&](const char* format, auto... values) {
    char part[160];
    std::snprintf(part, sizeof part, format, values...);
    text += part;
  };
  const auto situation = best.launch != nullptr ? situation_of(*best.launch, situation_) : situation_;
  if (best.launch != nullptr && shares_.size() > 1)
    add("; %s takes %.0f %% of the time", best.launch->entry.c_str(), 100 * best.launch->share);
  if (situation.bottleneck != Bottleneck::unknown)
    add("; %s-bound, %.0f %% of the bound reached", std::string(to_string(situation.bottleneck)).c_str(),
        situation.reached * 100);
  if (best.gain && tells_apart(shares_)) add(", at most %.0f %% to gain", *best.gain * 100);
  if (situation.spilled_bytes > 0) text += "; registers spill";
  if (situation.occupancy) {
    add("; %.0f %% occupancy", *situation.occupancy * 100);
    if (situation.limiter != OccupancyLimiter::unknown)
      text += ", limited by " + std::string(to_string(situation.limiter));
  }
  return text;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ActionDistribution RulesPolicy::distribution(const Observation& seen,
                                                         std::span<const Action> legal, std::stop_token) {
  const detail::ActionJudge judge(options_, {rules_, gpu_rules_, program_rules_}, seen);
  const auto judgements = judge.judge(legal);
  ActionDistribution answer;
  double sum = 0;
  const detail::ActionJudgement* best = nullptr;
  for (const auto& judgement : judgements) {
    answer.probabilities.push_back(judgement.weight);
    sum += judgement.weight;
    if (best == nullptr || judgement.weight > best->weight) best = &judgement;
  }
  const double share = 1.0 / static_cast<double>(legal.size()); // where everything is forbidden, `stop` too
  for (auto& probability : answer.probabilities) probability = sum > 0 ? probability / sum : share;
  if (best != nullptr) answer.rationale = judge.words(*best);
  return answer;
}

MTMC_INLINE std::string RulesPolicy::identity() const {
  return "rules 8, " + std::to_string(rules_.size()) + " rows, " + std::to_string(gpu_rules_.size()) +
         " for GPUs, " + std::to_string(program_rules_.size()) + " for Python";
}

} // namespace mtmc
