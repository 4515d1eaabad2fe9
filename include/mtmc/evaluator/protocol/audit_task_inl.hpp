#pragma once
/// Definitions of evaluator/protocol/audit_task.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/joint_runs.hpp>
#include <mtmc/evaluator/protocol/secret_sizes.hpp>
#include <mtmc/evaluator/protocol/size_trial.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::shared_ptr<Contestant> at_other_sizes(const Contestant& known,
                                                       std::vector<LaunchPlan> plans) {
  auto contestant = std::make_shared<Contestant>();
  contestant->kernel = known.kernel;
  contestant->id = known.id;
  contestant->plans = std::move(plans);
  contestant->program = known.program;
  contestant->binary_hash = known.binary_hash;
  return contestant;
}

/// Only the sizes whose places are kept.
template <class T> void keep_places(std::vector<T>& items, const std::vector<std::size_t>& places) {
  std::vector<T> kept;
  kept.reserve(places.size());
  for (const auto place : places) kept.push_back(std::move(items[place]));
  items = std::move(kept);
}

/// Sizes for an audit that are small enough: those listed first, then near ones, round ones and such as all
/// secret sizes are, by turns.
inline void draw_audit_sizes(Judge& judge, const PreparedTask& known, PreparedTask& audit) {
  // Of each kind; and of those that are larger than others, whose truth takes a while.
  constexpr std::size_t wanted = 48, max_large = 12;
  constexpr double large = 0x1p18;
  const double max_bytes = std::max(large, max_row_bytes(runs_judge_kernels(judge.backend())));
  SizeTrial trial(judge, audit);
  const auto is_small = [&](const ProblemSize& size) { return trial.bytes_at(size) <= max_bytes; };
  const auto& given = known.given;
  for (const auto& size : given.sizes)
    if (is_small(size)) trial.add(size, is_cheap_secret);
  const bool draws = known.layouts.size() > known.listed;
  if (!draws) return;
  const auto key = audit.book.key_of({0, Distribution::normal, false, 0});
  const std::array kinds{draw_nearest_sizes(given, given.sizes, key, wanted, is_small),
                         draw_round_sizes(given, given.sizes, key, wanted, is_small),
                         draw_secret_sizes(given, key, wanted)};
  std::set<Symbols> seen;
  std::size_t large_ones = 0;
  for (std::size_t i = 0; i < wanted; ++i)
    for (const auto& kind : kinds) {
      if (i >= kind.size() || !is_small(kind[i]) || !seen.insert(kind[i].symbols).second) continue;
      const bool is_large = trial.bytes_at(kind[i]) > large;
      if (is_large && large_ones == max_large) continue;
      large_ones += is_large ? 1 : 0;
      trial.add(kind[i], is_cheap_secret);
    }
}

/// The calls of one program on normal inputs, at all sizes.
class CallsAtAllSizes {
public:
  explicit CallsAtAllSizes(const PreparedTask& audit) {
    inputs_.reserve(audit.layouts.size()); // calls refer to them
    for (std::size_t size = 0; size < audit.layouts.size(); ++size) {
      inputs_.push_back(audit.inputs({size, Distribution::normal, false, 0}));
      calls_.push_back({size, &inputs_.back()});
    }
  }
  [[nodiscard]] const std::vector<JointCall>& calls() const noexcept { return calls_; }
  [[nodiscard]] const CaseInputs& inputs(std::size_t size) const noexcept { return inputs_[size]; }

private:
  std::vector<CaseInputs> inputs_;
  std::vector<JointCall> calls_;
};

/// Whether two calls at a size gave the same bits, or need not.
[[nodiscard]] inline bool are_alike(const PreparedTask& audit, std::size_t size, const KeptContents& once,
                                    const KeptContents& twice) {
  const auto& buffers = audit.layouts[size].buffers;
  for (std::size_t i = 0; i < buffers.size() && !audit.task.atomics; ++i)
    if (buffers[i].is_written() && once[i] != twice[i]) return false;
  return true;
}

/// The reference's results at a size, with their scales.
[[nodiscard]] inline ReferenceResult plain_result(const PreparedTask& audit, std::size_t size,
                                                  const KeptContents& contents) {
  ReferenceResult known;
  known.contents = contents;
  const auto& buffers = audit.layouts[size].buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    known.scales.push_back(buffers[i].is_written() ? output_scale(contents[i], buffers[i].type) : 0);
  return known;
}

/// How many numbers go into one element of each result, for each size: of each input some elements are
/// changed, one in each call, and the elements that move are counted.
inline void measure_audit_terms(Judge& judge, PreparedTask& audit, const CallsAtAllSizes& all,
                                const std::vector<std::optional<KeptContents>>& plain) {
  struct Change {
    std::size_t size, input;
  };
  const auto count = audit.layouts.front().buffers.size();
  std::vector<Change> changes;
  std::vector<CaseInputs> changed;
  PhiloxEngine random(audit.book.key_of({0, Distribution::normal, false, 1}), 0x1f);
  const auto change = [&](std::size_t size, std::size_t i, bool up) {
    const auto& buffer = audit.layouts[size].buffers[i];
    if (!plain[size] || !buffer.is_read() || !may_replace_elements(audit.task, audit.captured, buffer))
      return;
    const auto range = value_range(audit.task.arguments[buffer.argument], audit.layouts[size].size);
    const auto place = random.below(static_cast<std::uint64_t>(buffer.elements));
    changes.push_back({size, i});
    changed.push_back(all.inputs(size));
    replace_element(changed.back().change(i), buffer.type, static_cast<std::size_t>(place), range, up);
  };
  for (std::size_t i = 0; i < count; ++i)
    for (const bool up : {true, false})
      for (std::size_t size = 0; size < audit.layouts.size(); ++size) change(size, i, up);
  std::vector<JointCall> calls;
  for (std::size_t n = 0; n < changes.size(); ++n) calls.push_back({changes[n].size, &changed[n]});
  const auto reference = planned(judge, audit, *audit.reference);
  const auto moved = run_jointly(judge, reference, calls, Poison{});
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, double> shares;
  for (std::size_t n = 0; n < changes.size(); ++n) {
    const auto [size, input] = changes[n];
    const auto& buffers = audit.layouts[size].buffers;
    for (std::size_t o = 0; o < count && moved[n]; ++o) {
      if (!buffers[o].is_written()) continue;
      const auto different = count_different((*plain[size])[o], (*moved[n])[o], buffers[o].type);
      auto& share = shares[{size, o, input}];
      share = std::max(share, static_cast<double>(different) * static_cast<double>(buffers[input].elements) /
                                  static_cast<double>(buffers[o].elements));
    }
  }
  for (const auto& [place, share] : shares) audit.terms[std::get<0>(place)][std::get<1>(place)] += share;
  for (std::size_t size = 0; size < audit.layouts.size(); ++size) {
    const auto& layout = audit.layouts[size];
    for (std::size_t o = 0; o < count; ++o) {
      auto& terms = audit.terms[size][o];
      terms = layout.buffers[o].is_written() ? terms_of_result(audit.task, layout, terms) : 1;
    }
  }
}

/// Which sizes the task's own kernels bear: calls end well, on other poison with the same bits, and, where
/// start kernel and reference are two, both say the same.
[[nodiscard]] inline std::vector<std::size_t>
fit_sizes(Judge& judge, const PreparedTask& audit, const CallsAtAllSizes& all, Contestant* start,
          const std::vector<std::optional<KeptContents>>& plain) {
  const auto reference = planned(judge, audit, *audit.reference);
  const auto again = run_jointly(judge, reference, all.calls(), judge.noise());
  std::vector<std::optional<KeptContents>> of_start;
  if (start != nullptr)
    of_start = run_jointly(judge, planned(judge, audit, *start), all.calls(), judge.noise());
  std::vector<std::size_t> fit;
  for (std::size_t size = 0; size < audit.layouts.size(); ++size) {
    if (!plain[size] || !again[size] || !are_alike(audit, size, *plain[size], *again[size])) continue;
    if (start != nullptr) {
      if (!of_start[size]) continue;
      const auto known = plain_result(audit, size, *plain[size]);
      const auto& buffers = audit.layouts[size].buffers;
      bool right = true;
      for (std::size_t i = 0; i < buffers.size() && right; ++i)
        right = !buffers[i].is_written() ||
                ResultComparison::is_right(audit, {size, Distribution::normal, false, 0}, i,
                                           (*of_start[size])[i], known);
      if (!right) continue;
    }
    fit.push_back(size);
  }
  return fit;
}

/// Tries all sizes and keeps those that the task's own kernels bear.
inline void try_audit_sizes(Judge& judge, PreparedTask& audit, const Contestant* start) {
  const CallsAtAllSizes all(audit);
  const auto reference = planned(judge, audit, *audit.reference);
  const auto plain = run_jointly(judge, reference, all.calls(), Poison{});
  measure_audit_terms(judge, audit, all, plain);
  std::shared_ptr<Contestant> start_here;
  if (start != nullptr) start_here = at_other_sizes(*start, judge.plans_of(audit.task, start->kernel));
  const auto fit = fit_sizes(judge, audit, all, start_here.get(), plain);
  keep_places(audit.task.sizes, fit);
  keep_places(audit.layouts, fit);
  keep_places(audit.seconds, fit);
  keep_places(audit.terms, fit);
  audit.reference = at_other_sizes(*audit.reference, judge.plans_of(audit.task, audit.reference->kernel));
}

/// The truth at the sizes of an audit; none where the task has none.
[[nodiscard]] inline std::unique_ptr<DoubleTwin> twin_for_audit(Judge& judge, const PreparedTask& known,
                                                                const PreparedTask& audit) {
  if (known.twin == nullptr) return nullptr;
  const auto kernel = double_twin_by(judge.backend(), known.reference->kernel);
  if (!kernel) return nullptr;
  auto twin = std::make_unique<DoubleTwin>();
  const auto wide = in_double_precision(audit.task);
  for (const auto& size : audit.task.sizes) twin->layouts.push_back(layout_of(wide, size));
  twin->plans = judge.plans_of(wide, *kernel);
  for (auto& plan : twin->plans) round_scalars(audit.task, plan);
  twin->program = known.twin->program;
  return twin;
}

/// Whether the task bears far inputs at all. A reference that cannot be given large numbers may be one that
/// makes indices of them.
[[nodiscard]] inline bool bears_far_inputs(const PreparedTask& known) {
  const auto borne = [&](Distribution distribution) {
    return known.exponents[static_cast<std::size_t>(distribution)] != 0;
  };
  return borne(Distribution::huge) || borne(Distribution::magnitudes);
}

MTMC_INLINE std::unique_ptr<PreparedTask> make_audit_task(Judge& judge, PreparedTask& known) {
  const auto key = known.book.key_of({known.layouts.size(), Distribution::structured, true, 0});
  auto audit = std::make_unique<PreparedTask>(known.given, key, judge.options(), judge.backend());
  audit->task.sizes.clear();
  audit->amplification = known.amplification;
  audit->usual_scales = known.usual_scales;
  audit->exponents = known.exponents;
  audit->exact = known.exact;
  audit->reference_epsilons = known.reference_epsilons;
  draw_audit_sizes(judge, known, *audit);
  if (audit->layouts.empty()) return audit;
  const auto sizes = audit->layouts.size();
  audit->seconds.assign(sizes, 0);
  audit->terms.assign(sizes, std::vector<double>(audit->layouts.front().buffers.size(), 0));
  audit->reference = at_other_sizes(*known.reference, judge.plans_of(audit->task, known.reference->kernel));
  std::shared_ptr<const Contestant> start;
  if (known.given.reference)
    for (const auto& incumbent : known.incumbents)
      if (incumbent->kernel == known.given.kernel) start = incumbent;
  try_audit_sizes(judge, *audit, start.get());
  audit->large = audit->in_rows = audit->layouts.size();
  audit->twin = twin_for_audit(judge, known, *audit);
  audit->denormals = !runs_judge_kernels(judge.backend());
  audit->far = audit->twin != nullptr && bears_far_inputs(known);
  return audit;
}

} // namespace mtmc::detail
