#pragma once
/// Definitions of evaluator/protocol/audit_task.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/check_plan.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/joint_runs.hpp>
#include <mtmc/evaluator/protocol/named_numbers.hpp>
#include <mtmc/evaluator/protocol/secret_sizes.hpp>
#include <mtmc/evaluator/protocol/size_trial.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
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

MTMC_INLINE bool is_beyond_listed(const Task& given, const ProblemSize& size) {
  return std::any_of(size.symbols.begin(), size.symbols.end(), [&](const auto& symbol) {
    return std::all_of(given.sizes.begin(), given.sizes.end(), [&](const ProblemSize& listed) {
      const auto known = listed.symbols.find(symbol.first);
      return known == listed.symbols.end() || known->second < symbol.second;
    });
  });
}

/// Whether a kernel's launches can be planned at a size.
[[nodiscard]] inline bool can_be_planned(Judge& judge, const Task& given, const Kernel& kernel,
                                         const ProblemSize& size, std::int64_t allowed_scratch) {
  try {
    const auto plan = plan_launches(kernel, given, size, judge.backend().device().compute_units);
    return !check_scratch(plan, allowed_scratch);
  } catch (const Error&) {
    return false;
  }
}

/// The sizes of an audit that are not listed, in the order in which they are wanted: by turns near ones,
/// round ones, such as all secret sizes are, such as have all symbols alike or two exchanged, and such as the
/// kernel's own numbers suggest; those that are long or larger than others last.
class AuditSizes {
public:
  /// `numbers`: the kernel's own, in ascending order. All must outlive it.
  AuditSizes(const Task& given, std::uint64_t key, std::span<const std::int64_t> numbers,
             std::function<double(const ProblemSize&)> bytes_at)
      : given_(given), key_(key), numbers_(numbers), bytes_at_(std::move(bytes_at)) {}

  /// Those of up to so many bytes.
  [[nodiscard]] std::vector<ProblemSize> up_to(double bytes) const {
    constexpr std::size_t wanted = 24, wanted_nearest = 80;
    const auto is_wanted = [&](const ProblemSize& size) { return bytes_at_(size) <= bytes; };
    return by_turns(std::array{draw_nearest_sizes(given_, given_.sizes, key_, wanted_nearest, is_wanted),
                               draw_round_sizes(given_, given_.sizes, key_, wanted, is_wanted),
                               draw_secret_sizes(given_, key_, wanted),
                               draw_alike_sizes(given_, key_, wanted, is_wanted),
                               exchanged_sizes(given_, is_wanted),
                               draw_sizes_at(given_, numbers_, key_, wanted_nearest, is_wanted)});
  }
  /// Those that are larger, but no larger than so many bytes.
  [[nodiscard]] std::vector<ProblemSize> beyond(double bytes, double most_bytes) const {
    constexpr std::size_t wanted = 16;
    const auto is_wanted = [&](const ProblemSize& size) {
      // As many steps as there are combinations of indices, at most.
      constexpr double most_steps = 0x1p24;
      double steps = 1;
      for (const auto& [name, value] : size.symbols) steps *= static_cast<double>(value);
      return steps <= most_steps && bytes_at_(size) <= most_bytes;
    };
    // Small numbers have had their turn.
    std::int64_t largest = 1;
    for (const auto& size : given_.sizes)
      for (const auto& [name, value] : size.symbols) largest = std::max(largest, value);
    const auto first = std::lower_bound(numbers_.begin(), numbers_.end(), largest);
    const auto large_numbers = numbers_.subspan(static_cast<std::size_t>(first - numbers_.begin()));
    return by_turns(std::array{
        draw_sizes_at(given_, large_numbers, ~key_, wanted,
                      [&](const ProblemSize& size) { return is_wanted(size) && bytes_at_(size) > bytes; }),
        draw_long_sizes(given_, key_, wanted, is_wanted)});
  }

private:
  const Task& given_;
  std::uint64_t key_;
  std::span<const std::int64_t> numbers_;
  std::function<double(const ProblemSize&)> bytes_at_;
};

/// Adds the sizes of an audit: small ones, those that are listed first; and from `PreparedTask::large` on
/// such as are larger.
inline void draw_audit_sizes(Judge& judge, const PreparedTask& known, PreparedTask& audit,
                             std::span<const std::int64_t> numbers,
                             const std::function<bool(const ProblemSize&)>& is_borne) {
  constexpr double small = 0x1p16, large = 0x1p24, all_middle = 0x1p23, all_large = 0x1p26;
  const double middle = std::max(0x1p19, max_row_bytes(runs_judge_kernels(judge.backend())));
  SizeTrial trial(judge, audit);
  const auto& given = known.given;
  const bool draws = known.layouts.size() > known.listed;
  const AuditSizes sizes(given, audit.book.key_of({0, Distribution::normal, false, 0}), numbers,
                         [&](const ProblemSize& size) { return trial.bytes_at(size); });
  std::set<Symbols> seen;
  std::vector<ProblemSize> larger;
  const auto add = [&](const ProblemSize& size) {
    trial.add(size, [](const SizeCost&) noexcept { return true; });
  };
  const auto consider = [&](const std::vector<ProblemSize>& some, double most_bytes, double most_of_all) {
    double all = 0;
    for (const auto& size : some) {
      const double bytes = trial.bytes_at(size);
      if (bytes > most_bytes || seen.contains(size.symbols) || !is_borne(size)) continue;
      if (bytes > small && all + bytes > most_of_all) continue;
      seen.insert(size.symbols);
      if (bytes > small) all += bytes;
      bytes > small ? larger.push_back(size) : add(size);
    }
  };
  consider(given.sizes, middle, all_middle);
  if (draws) consider(sizes.up_to(middle), middle, all_middle);
  if (draws) consider(sizes.beyond(middle, large), large, all_large);
  audit.large = audit.layouts.size();
  for (const auto& size : larger) add(size);
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
  audit.large = static_cast<std::size_t>(
      std::count_if(fit.begin(), fit.end(), [&](std::size_t size) { return size < audit.large; }));
  keep_places(audit.task.sizes, fit);
  keep_places(audit.layouts, fit);
  keep_places(audit.seconds, fit);
  keep_places(audit.terms, fit);
  audit.reference = at_other_sizes(*audit.reference, judge.plans_of(audit.task, audit.reference->kernel));
}

MTMC_INLINE std::unique_ptr<PreparedTask> without_sizes(Judge& judge, PreparedTask& known) {
  const auto key = known.book.key_of({known.layouts.size(), Distribution::structured, true, known.audits++});
  auto other = std::make_unique<PreparedTask>(known.given, key, judge.options(), judge.backend());
  other->anywhere_in_pages = true;
  other->task.sizes.clear();
  other->amplification = known.amplification;
  other->usual_scales = known.usual_scales;
  other->exponents = known.exponents;
  other->exact = known.exact;
  other->reference_epsilons = known.reference_epsilons;
  return other;
}

MTMC_INLINE std::unique_ptr<DoubleTwin> twin_at_sizes_of(Judge& judge, const PreparedTask& known,
                                                         const PreparedTask& other) {
  if (known.twin == nullptr) return nullptr;
  const auto kernel = double_twin_by(judge.backend(), known.reference->kernel);
  if (!kernel) return nullptr;
  auto twin = std::make_unique<DoubleTwin>();
  const auto wide = in_double_precision(other.task);
  for (const auto& size : other.task.sizes) twin->layouts.push_back(layout_of(wide, size));
  twin->plans = judge.plans_of(wide, *kernel);
  for (auto& plan : twin->plans) round_scalars(other.task, plan);
  twin->program = known.twin->program;
  return twin;
}

MTMC_INLINE std::shared_ptr<const Contestant> start_beside_reference(const PreparedTask& known) {
  if (!known.given.reference) return nullptr;
  const auto found =
      std::find_if(known.incumbents.begin(), known.incumbents.end(),
                   [&](const auto& incumbent) { return incumbent->kernel == known.given.kernel; });
  return found == known.incumbents.end() ? nullptr : *found;
}

/// Whether the task bears far inputs at all. A reference that cannot be given large numbers may be one that
/// makes indices of them.
[[nodiscard]] inline bool bears_far_inputs(const PreparedTask& known) {
  const auto borne = [&](Distribution distribution) {
    return known.exponents[static_cast<std::size_t>(distribution)] != 0;
  };
  return borne(Distribution::huge) || borne(Distribution::magnitudes);
}

/// Those that an input of f32 may hold without more ado.
[[nodiscard]] inline std::vector<double> ordinary(const NamedNumbers& named) {
  constexpr double least = 1e-30, most = 1e30;
  std::vector<double> numbers = named.reals;
  for (const auto integer : named.integers) numbers.push_back(static_cast<double>(integer));
  std::erase_if(numbers, [](double number) { return number < least || number > most; });
  return numbers;
}

MTMC_INLINE std::unique_ptr<PreparedTask>
make_audit_task(Judge& judge, PreparedTask& known, const Kernel& candidate, std::int64_t allowed_scratch) {
  auto audit = without_sizes(judge, known);
  const auto named = numbers_beyond(candidate.source, known.reference->kernel.source);
  draw_audit_sizes(judge, known, *audit, named.integers, [&](const ProblemSize& size) {
    return !is_beyond_listed(known.given, size) ||
           can_be_planned(judge, known.given, candidate, size, allowed_scratch);
  });
  if (audit->layouts.empty()) return audit;
  const auto sizes = audit->layouts.size();
  audit->seconds.assign(sizes, 0);
  audit->terms.assign(sizes, std::vector<double>(audit->layouts.front().buffers.size(), 0));
  audit->reference = at_other_sizes(*known.reference, judge.plans_of(audit->task, known.reference->kernel));
  const auto start = start_beside_reference(known);
  try_audit_sizes(judge, *audit, start.get());
  audit->in_rows = audit->layouts.size();
  audit->twin = twin_at_sizes_of(judge, known, *audit);
  audit->denormals = !runs_judge_kernels(judge.backend());
  audit->far = audit->twin != nullptr && bears_far_inputs(known);
  audit->numbers = ordinary(named);
  return audit;
}

} // namespace mtmc::detail
