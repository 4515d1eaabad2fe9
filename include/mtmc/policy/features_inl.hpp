#pragma once
/// Definitions of policy/features.hpp.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/observation/launch_shares.hpp>
#include <mtmc/observation/tried_before.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/program_rules.hpp>
#include <mtmc/policy/region_traits.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/policy/situation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// The types that have a feature of their own; their order is part of the version.
inline constexpr std::array<std::string_view, 20> featured_types{"tiling",
                                                                 "fusion",
                                                                 "pipeline",
                                                                 "reordering",
                                                                 "unrolling",
                                                                 "vectorization",
                                                                 "parallelization",
                                                                 "retention",
                                                                 "online",
                                                                 "scanning",
                                                                 "splitting",
                                                                 "strength_reduction",
                                                                 "packing",
                                                                 "hoisting",
                                                                 "fission",
                                                                 "recomputation",
                                                                 "persistence",
                                                                 "finishing",
                                                                 "scalar_replacement",
                                                                 "rewriting"};

/// Takes features one by one: their values, or their names.
class FeatureSink {
public:
  explicit FeatureSink(std::vector<double>& values) : values_(&values) {}
  explicit FeatureSink(std::vector<std::string>& names) : names_(&names) {}

  void operator()(std::string_view name, double value) { (*this)({}, name, value); }
  void operator()(std::string_view name, bool value) { (*this)({}, name, value ? 1.0 : 0.0); }
  void operator()(std::string_view group, std::string_view name, bool value) {
    (*this)(group, name, value ? 1.0 : 0.0);
  }
  /// One of several of a kind: "loop" and "trips" are "loop trips". Put together only where names are taken.
  void operator()(std::string_view group, std::string_view name, double value) {
    if (names_ != nullptr) {
      std::string& whole = names_->emplace_back(group);
      if (!group.empty()) whole += ' ';
      whole += name;
    }
    if (values_ != nullptr) values_->push_back(std::isfinite(value) ? value : 0);
  }

private:
  std::vector<double>* values_ = nullptr;
  std::vector<std::string>* names_ = nullptr;
};

/// A count or a size on a scale on which doubling is a step; 1 at `most`.
[[nodiscard]] inline double log_scaled(double value, double most) {
  return value > 0 ? std::log2(1 + value) / std::log2(1 + most) : 0;
}

/// A probability on a scale from 0 (`least_probability` and less) to 1.
[[nodiscard]] inline double on_log_scale(double probability) {
  return 1 - log_probability(probability) / std::log(least_probability);
}

/// Part of a region's accesses that a property holds for.
template <class Property>
[[nodiscard]] double part_of_accesses(const RegionFacts& facts, const Property& property) {
  if (facts.accesses.empty()) return 0;
  return static_cast<double>(std::count_if(facts.accesses.begin(), facts.accesses.end(), property)) /
         static_cast<double>(facts.accesses.size());
}

[[nodiscard]] inline double part_in_lanes(const RegionFacts& facts, LanePattern pattern) {
  return part_of_accesses(facts, [pattern](const AccessFacts& access) {
    return access.lanes && !access.lanes->shared_memory && access.lanes->pattern == pattern;
  });
}

/// The largest of what a property says of accesses in lanes; 0 without any.
template <class Property>
[[nodiscard]] double most_in_lanes(const RegionFacts& facts, const Property& property) {
  double most = 0;
  for (const AccessFacts& access : facts.accesses)
    if (access.lanes) most = std::max(most, static_cast<double>(property(*access.lanes)));
  return most;
}

inline void put_loop(FeatureSink& put, std::string_view which, const LoopFacts& loop) {
  constexpr double longest = 1 << 24;
  put(which, "parallel", loop.parallel);
  put(which, "reduction", loop.reduction);
  put(which, "trips", log_scaled(static_cast<double>(loop.trip_count.value_or(0)), longest));
}

inline void put_loops(FeatureSink& put, const RegionFacts& facts) {
  const LoopFacts none{};
  put("loops", static_cast<double>(facts.loops.size()) / 4);
  put_loop(put, "outer loop", facts.loops.empty() ? none : facts.loops.front());
  put_loop(put, "inner loop", facts.loops.empty() ? none : facts.loops.back());
  put("perfect nest", facts.loops.size() > 1 && facts.loops.front().perfect);
  put("poor order", order_is_poor(facts));
  put("innermost sum", sum_is_innermost(facts));
  put("innermost short", innermost_is_short(facts));
  put("shares loads", shares_loads(facts));
  put("reuse", has_reuse(facts));
  put("strided",
      facts.loops.empty() || facts.accesses.empty()
          ? 0.0
          : strided_accesses(facts, facts.loops.size() - 1) / static_cast<double>(facts.accesses.size()));
}

inline void put_facts(FeatureSink& put, const RegionFacts& facts) {
  put("interchangeable", facts.interchangeable);
  put("tileable", facts.tileable);
  put("fusable", facts.fusable);
  put("vectorizable", facts.vectorizable);
  put("transcendental", facts.transcendental);
  put("branches", facts.branches);
  put("indirect", facts.indirect);
  put("opaque", facts.opaque);
  put("staged", facts.staged);
  put("reduces", !facts.reductions.empty());
  put("intermediates", static_cast<double>(facts.intermediates.size()) / 4);
  const auto directed = [&facts](std::string_view word) {
    return std::any_of(
        facts.directives.begin(), facts.directives.end(),
        [word](const std::string& directive) { return directive.find(word) != std::string::npos; });
  };
  put("has parallel", directed("parallel"));
  put("has simd", directed("simd"));
  constexpr double most_intensity = 4096;
  put("intensity", facts.bytes > 0 ? log_scaled(facts.flops / facts.bytes, most_intensity) : 0.0);
  put("element uses", log_scaled(facts.reuse - 1, most_intensity));
}

inline void put_lanes(FeatureSink& put, const RegionFacts& facts) {
  put("coalesced", part_in_lanes(facts, LanePattern::coalesced));
  put("broadcast", part_in_lanes(facts, LanePattern::broadcast));
  put("strided lanes", part_in_lanes(facts, LanePattern::strided));
  put("irregular lanes", part_in_lanes(facts, LanePattern::irregular));
  put("excess sectors", most_in_lanes(facts, [](const LaneFacts& lanes) {
        return lanes.least_sectors > 0
                   ? log_scaled(static_cast<double>(lanes.sectors) / lanes.least_sectors - 1, 32)
                   : 0.0;
      }));
  put("bank conflicts", most_in_lanes(facts, [](const LaneFacts& lanes) {
        return log_scaled(std::max(lanes.bank_ways - 1, 0), 32);
      }));
  put("sharers", most_in_lanes(facts, [](const LaneFacts& lanes) {
        return log_scaled(static_cast<double>(lanes.sharers - 1), 1024);
      }));
  put("window", most_in_lanes(facts, [](const LaneFacts& lanes) { return lanes.window ? 1 : 0; }));
  put("block threads", log_scaled(static_cast<double>(facts.threads_per_block() - 1), 1024));
  put("blocks", log_scaled(static_cast<double>(facts.blocks() - 1), 1 << 20));
  put("barriers", facts.block_barriers > 0);
  put("exchanges", facts.warp_exchanges > 0);
  put("shared memory", static_cast<double>(facts.shared_bytes) / (48 << 10));
  put("merges in threads", facts.fusion_scope == FusionScope::thread);
  put("merges in blocks", facts.fusion_scope == FusionScope::block);
}

/// What is known of an observation beside its regions.
struct FeatureContext {
  const Observation& seen;
  Situation situation;
  std::vector<LaunchShare> shares;
};

inline void put_share(FeatureSink& put, const Region& region, const FeatureContext& context) {
  const auto time = share_of_time(region, context.shares);
  put("share of work", region.path.empty() ? 0.0 : share_of_work(region, context.seen.structure));
  put("share of time", time.value_or(0));
  put("possible gain", possible_gain(region, context.shares, context.seen.device).value_or(0));
  double filled = 0;
  for (const std::size_t place : launches_of(region, context.shares))
    filled = std::max(filled, context.shares[place].filled);
  put("device filled", filled);
}

/// The first feature that tells of modules in Python, of a kernel and of an action: what version 1 did not
/// have.
inline constexpr std::string_view first_of_python = "python";

/// Of a module in Python: what the operators of a region compute, who computes them, and what a kernel calls.
inline void put_program(FeatureSink& put, const RegionFacts& facts) {
  const bool of_torch = of_library(facts), of_triton = is_marked(facts, "triton.jit");
  put(first_of_python, of_torch || of_triton);
  put("torch", of_torch);
  double operators = 0;
  for (const std::string_view kind : computing_classes) {
    const auto count = std::count(facts.directives.begin(), facts.directives.end(), kind);
    operators += static_cast<double>(count);
    put("computes", kind, count > 0);
  }
  put("operators", log_scaled(operators, 16));
  put("autotuned", is_marked(facts, "triton.autotune"));
  put("dot", makes_call(facts, "dot"));
  put("atomic", std::any_of(facts.calls.begin(), facts.calls.end(),
                            [](const std::string& name) { return name.starts_with("atomic"); }));
}

/// Everything that the kernel alone decides about an action. `probability` is the rules'.
inline void put_action(FeatureSink& put, const Action& action, const FeatureContext& context,
                       double probability) {
  put("stop", action.kind == Action::Kind::stop);
  put("rules", on_log_scale(probability));
  for (const std::string_view type : featured_types)
    put("type", type, action.kind == Action::Kind::optimize && action.optimization == type);
  const Region* const found = context.seen.structure.find_region(action.region);
  const Region none{};
  const Region& region = found != nullptr ? *found : none;
  for (const auto& [kind, name] : region_kind_names)
    put("region", name, found != nullptr && region.kind == kind);
  put("depth", static_cast<double>(std::count(region.path.begin(), region.path.end(), '/')) / 4);
  put("small", found != nullptr && is_small(region));
  put_loops(put, region.facts);
  put_facts(put, region.facts);
  put_lanes(put, region.facts);
  put_share(put, region, context);
  put_program(put, region.facts);
}

/// Of a module in Python: how much of it PyTorch's operators compute, and how much kernels in Triton.
inline void put_module(FeatureSink& put, const FeatureContext& context) {
  const auto count = [&context](const auto& marked) {
    const auto& regions = context.seen.structure.regions;
    return static_cast<double>(std::count_if(regions.begin(), regions.end(), [&](const Region& region) {
      return region.kind == RegionKind::launch && marked(region.facts);
    }));
  };
  const double of_torch = count([](const RegionFacts& facts) { return of_library(facts); });
  const double of_triton = count([](const RegionFacts& facts) { return is_marked(facts, "triton.jit"); });
  put(first_of_python, of_torch + of_triton > 0);
  put("torch operators", log_scaled(of_torch, 64));
  put("triton kernels", log_scaled(of_triton, 16));
  const auto& evaluation = context.seen.evaluation;
  put("library share", evaluation ? resource_of(*evaluation, "library_share") : 0.0);
}

/// Everything that belongs to the kernel as a whole. `stop` is the probability that the rules give it.
inline void put_kernel(FeatureSink& put, const FeatureContext& context, std::size_t legal, double stop) {
  const Structure& structure = context.seen.structure;
  const Device& device = context.seen.device;
  const Situation& situation = context.situation;
  const auto count = [&structure](RegionKind kind) {
    return static_cast<double>(std::count_if(structure.regions.begin(), structure.regions.end(),
                                             [kind](const Region& region) { return region.kind == kind; }));
  };
  put("rules stop", on_log_scale(stop));
  put("gpu", situation.gpu);
  put("compute units", log_scaled(device.compute_units, 256));
  put("vector bits", device.vector_bits / 512.0);
  put("reached", situation.reached);
  put("memory bound", situation.bottleneck == Bottleneck::memory);
  put("compute bound", situation.bottleneck == Bottleneck::compute);
  put("occupancy", situation.occupancy.value_or(0));
  put("registers", situation.registers / 255);
  put("spills", situation.spilled_bytes > 0);
  put("launches", count(RegionKind::launch) / 4);
  put("loops", log_scaled(count(RegionKind::loop), 64));
  put("loop sequences", log_scaled(count(RegionKind::loop_sequence), 16));
  put("legal actions", log_scaled(static_cast<double>(legal), 64));
  const double seconds = context.seen.evaluation ? context.seen.evaluation->seconds : 0;
  put("seconds", seconds > 0 ? 1 + std::log10(seconds) / 6 : 0.0); // 1 us is 0, 1 s is 1
  put("intensity", structure.bytes > 0 ? log_scaled(structure.flops / structure.bytes, 4096) : 0.0);
  const ProblemSize* const size = context.seen.task.main_size();
  const double bytes = size != nullptr ? least_bytes(context.seen.task, *size) : 0;
  put("beyond near cache",
      situation.private_cache_bytes > 0 ? log_scaled(bytes / situation.private_cache_bytes, 4096) : 0.0);
  put("beyond last cache",
      situation.last_cache_bytes > 0 ? log_scaled(bytes / situation.last_cache_bytes, 64) : 0.0);
  put("not understood", structure.opaque_statements > 0);
  put_module(put, context);
}

[[nodiscard]] inline std::string_view type_of_key(std::string_view key) noexcept {
  return key.substr(0, key.find('|'));
}

/// A step that made the kernel faster.
[[nodiscard]] inline bool gained(const PastStep& step) noexcept { return step.correct && step.log2_gain > 0; }

inline void put_way(FeatureSink& put, const PastFacts& past) {
  const PastStep* const last = past.steps.empty() ? nullptr : &past.steps.back();
  const PastStep* last_kept = nullptr;
  double speed_up = 0;
  int fruitless = 0;
  for (const PastStep& step : past.steps) {
    if (step.kept) {
      last_kept = &step;
      speed_up += step.log2_gain;
    }
    fruitless = gained(step) ? 0 : fruitless + 1;
  }
  put("steps taken", past.step / 8.0);
  put("steps left", (past.step_limit - past.step) / 8.0);
  put("speed-up so far", speed_up / 6);
  put("fruitless steps", fruitless / 4.0);
  put("last not compiled", last != nullptr && !last->compiled);
  put("last wrong", last != nullptr && last->compiled && !last->correct);
  put("last without gain", last != nullptr && last->correct && !gained(*last));
  put("last gain", last != nullptr && gained(*last) ? last->log2_gain / 3 : 0.0);
  for (const std::string_view type : featured_types)
    put("last kept", type, last_kept != nullptr && type_of_key(last_kept->action) == type);
  for (const std::string_view type : featured_types)
    put("kept", type,
        static_cast<double>(std::count_if(
            past.steps.begin(), past.steps.end(),
            [type](const PastStep& step) { return step.kept && type_of_key(step.action) == type; })) /
            2);
}

/// What the way says of an action.
inline void put_tried(FeatureSink& put, std::string_view key, const PastFacts& past) {
  const std::string_view type = type_of_key(key);
  const auto functions = functions_of(region_of_key(key));
  const auto about_the_same = [&functions](const PastStep& step) {
    const auto tried = functions_of(region_of_key(step.action));
    return std::find_first_of(tried.begin(), tried.end(), functions.begin(), functions.end()) != tried.end();
  };
  bool tried = false, kept = false;
  double of_type_kept = 0, of_type_fruitless = 0, best_of_type = 0, fruitless_here = 0;
  for (const PastStep& step : past.steps) {
    if (step.action == key) (step.kept ? kept : tried) = true;
    if (about_the_same(step)) fruitless_here = gained(step) ? 0 : fruitless_here + 1;
    if (type_of_key(step.action) != type) continue;
    (gained(step) ? of_type_kept : of_type_fruitless) += 1;
    best_of_type = std::max(best_of_type, step.correct ? step.log2_gain : 0);
  }
  put("tried in vain", tried);
  put("kept before", kept);
  put("type gained", of_type_kept / 2);
  put("type in vain", of_type_fruitless / 2);
  put("best of type", best_of_type / 3);
  put("region in vain", fruitless_here / 4);
  put("follows its type", !past.steps.empty() && type_of_key(past.steps.back().action) == type);
  put("follows its region", !past.steps.empty() && about_the_same(past.steps.back()));
}

/// The names that `write` gives its features for an empty observation.
template <class Write> [[nodiscard]] std::vector<std::string> feature_names(const Write& write) {
  std::vector<std::string> names;
  FeatureSink put(names);
  const Observation empty{};
  write(put, FeatureContext{empty, {}, {}});
  return names;
}

[[nodiscard]] inline const std::vector<std::string>& kernel_names() {
  static const auto names =
      feature_names([](FeatureSink& put, const FeatureContext& context) { put_kernel(put, context, 0, 1); });
  return names;
}
[[nodiscard]] inline const std::vector<std::string>& lone_action_names() {
  static const auto names = feature_names(
      [](FeatureSink& put, const FeatureContext& context) { put_action(put, Action{}, context, 1); });
  return names;
}

/// How many stand before those of modules in Python.
[[nodiscard]] inline std::size_t count_before_python(const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), first_of_python) - names.begin());
}

/// Place of the rules' probability among an action's features.
inline constexpr std::size_t place_of_rules = 1;

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE const std::vector<std::string>& state_feature_names() {
  static const auto names = [] {
    auto all = detail::kernel_names();
    detail::FeatureSink put(all);
    detail::put_way(put, {});
    return all;
  }();
  return names;
}
MTMC_INLINE const std::vector<std::string>& action_feature_names() {
  static const auto names = [] {
    auto all = detail::lone_action_names();
    detail::FeatureSink put(all);
    detail::put_tried(put, {}, {});
    return all;
  }();
  return names;
}
MTMC_INLINE std::size_t kernel_feature_count() { return detail::kernel_names().size(); }
MTMC_INLINE std::size_t action_feature_count() { return detail::lone_action_names().size(); }

MTMC_INLINE std::size_t kernel_feature_count_of_version_1() {
  return detail::count_before_python(detail::kernel_names());
}
MTMC_INLINE std::size_t action_feature_count_of_version_1() {
  return detail::count_before_python(detail::lone_action_names());
}

MTMC_INLINE std::vector<PastStep> past_of(std::span<const HistoryEntry> history) {
  std::vector<PastStep> past;
  for (const HistoryEntry& entry : history) {
    PastStep step{entry.action_key};
    step.correct = entry.verdict == Verdict::correct;
    step.compiled = entry.verdict && detail::was_compiled(*entry.verdict);
    if (step.correct && entry.speed_up && entry.speed_up->value > 0)
      step.log2_gain = std::log2(entry.speed_up->value);
    step.kept = entry.kept;
    past.push_back(step);
  }
  return past;
}

MTMC_INLINE KernelFeatures kernel_features(const Observation& seen, std::span<const Action> legal) {
  Observation without_past = seen;
  without_past.history.clear();
  const detail::FeatureContext context{without_past, assess(without_past), launch_shares(without_past)};
  const auto rules = RulesPolicy{}.distribution(without_past, legal, {}).probabilities;
  KernelFeatures features;
  double stop = 0;
  std::size_t actions = 0;
  detail::FeatureSink put(features.actions);
  for (std::size_t i = 0; i < legal.size(); ++i) {
    detail::put_action(put, legal[i], context, rules[i]);
    if (legal[i].kind == Action::Kind::stop) stop = rules[i];
    if (legal[i].kind == Action::Kind::optimize) ++actions;
  }
  detail::FeatureSink put_kernel(features.kernel);
  detail::put_kernel(put_kernel, context, actions, stop);
  return features;
}

MTMC_INLINE std::vector<double> stop_features(std::span<const double> kernel) {
  static const auto of_any_kernel = [] {
    std::vector<double> all;
    detail::FeatureSink put(all);
    const Observation empty{};
    detail::put_action(put, Action::stop(), {empty, {}, {}}, 1);
    return all;
  }();
  auto features = of_any_kernel;
  if (!kernel.empty()) features[detail::place_of_rules] = kernel.front();
  return features;
}

MTMC_INLINE void append_state(std::span<const double> kernel, const PastFacts& past,
                              std::vector<double>& state) {
  state.insert(state.end(), kernel.begin(), kernel.end());
  detail::FeatureSink put(state);
  detail::put_way(put, past);
}

MTMC_INLINE void append_action(std::span<const double> action, std::string_view key, const PastFacts& past,
                               std::vector<double>& actions) {
  actions.insert(actions.end(), action.begin(), action.end());
  detail::FeatureSink put(actions);
  detail::put_tried(put, key, past);
}

MTMC_INLINE double rules_score(std::span<const double> action) {
  return (1 - action[detail::place_of_rules]) * std::log(detail::least_probability);
}

} // namespace mtmc
