#pragma once
/// Definitions of evaluator/protocol/audit_vast.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/content/tolerance.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/audit_task.hpp>
#include <mtmc/evaluator/protocol/audit_vast.hpp>
#include <mtmc/evaluator/protocol/secret_sizes.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What one call at a size is expected to cost the task's own kernels, from what it costs at the main size.
class VastCosts {
public:
  explicit VastCosts(const PreparedTask& known) : known_(known) {
    const auto main = static_cast<std::size_t>(known.task.main_size() - known.task.sizes.data());
    seconds_of_step_ = known.seconds[main] / steps_at(known.task.sizes[main]);
  }

  /// As many steps as there are combinations of indices.
  [[nodiscard]] double seconds_at(const ProblemSize& size) const { return seconds_of_step_ * steps_at(size); }

  /// The layout there; none where it makes no sense.
  [[nodiscard]] std::optional<ProblemLayout> layout_at(const ProblemSize& size) const {
    try {
      return layout_of(known_.given, size);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  /// Elements of the largest buffer.
  [[nodiscard]] double elements_at(const ProblemSize& size) const {
    double most = 0;
    if (const auto layout = layout_at(size))
      for (const auto& buffer : layout->buffers) most = std::max(most, static_cast<double>(buffer.elements));
    return most;
  }

private:
  [[nodiscard]] static double steps_at(const ProblemSize& size) {
    double steps = 1;
    for (const auto& [name, value] : size.symbols) steps *= std::max(1.0, static_cast<double>(value));
    return steps;
  }

  const PreparedTask& known_;
  double seconds_of_step_ = 0;
};

/// How many numbers go into one element of each result at a size, at most: as many as at any size that was
/// measured, times as much as the size is larger, where that is not the same at all of them.
[[nodiscard]] inline std::vector<double> most_terms(const PreparedTask& known, const ProblemSize& size) {
  double growth = 1;
  for (const auto& [name, value] : size.symbols) {
    std::int64_t largest = 1;
    for (const auto& listed : known.given.sizes)
      if (const auto found = listed.symbols.find(name); found != listed.symbols.end())
        largest = std::max(largest, found->second);
    growth *= std::max(1.0, static_cast<double>(value) / static_cast<double>(largest));
  }
  std::vector<double> most(known.layouts.front().buffers.size(), 0);
  for (std::size_t i = 0; i < most.size(); ++i) {
    double least = known.terms.front()[i];
    for (std::size_t listed = 0; listed < known.listed; ++listed) {
      most[i] = std::max(most[i], known.terms[listed][i]);
      least = std::min(least, known.terms[listed][i]);
    }
    if (most[i] > least) most[i] *= growth;
  }
  return most;
}

/// No buffer is larger, scratch buffers included: the task's own kernels count in `int`, and where their
/// products of indices end a fault would cost a GPU's context (scores of an attention at 65,600 rows).
inline constexpr double most_elements = 0x1p27;

/// Bytes of all scratch buffers of a kernel at a size; infinite where its launches cannot be planned, or a
/// buffer would be too large.
[[nodiscard]] inline double scratch_at(Judge& judge, const Task& given, const Kernel& kernel,
                                       const ProblemSize& size) {
  try {
    const auto plan = plan_launches(kernel, given, size, judge.backend().device().compute_units);
    for (const auto& buffer : plan.scratch)
      if (static_cast<double>(buffer.bytes()) > most_elements * static_cast<double>(size_of(buffer.type)))
        return std::numeric_limits<double>::infinity();
    return scratch_bytes(plan);
  } catch (const Error&) {
    return std::numeric_limits<double>::infinity();
  }
}

/// The task at vast sizes.
[[nodiscard]] inline std::unique_ptr<PreparedTask> make_vast_task(EvaluationContext& context,
                                                                  double seconds) {
  auto& judge = context.judge;
  auto& known = context.task;
  auto vast = without_sizes(judge, known);
  const auto most_bytes = static_cast<double>(bytes_allowed(0, std::int64_t{1} << 28, judge.backend(), 16));
  const VastCosts costs(known);
  const auto is_wanted = [&](const ProblemSize& size) {
    const auto layout = costs.layout_at(size);
    return layout && costs.seconds_at(size) <= seconds && costs.elements_at(size) <= most_elements &&
           layout->bytes() + scratch_at(judge, known.given, known.reference->kernel, size) <= most_bytes &&
           layout->bytes() + scratch_at(judge, known.given, context.candidate->kernel, size) <= most_bytes;
  };
  const auto elements_at = [&](const ProblemSize& size) { return costs.elements_at(size); };
  const auto key = vast->book.key_of({0, Distribution::normal, false, 0});
  for (auto& size : draw_vast_sizes(known.given, key, elements_at, is_wanted)) {
    vast->layouts.push_back(layout_of(known.given, size));
    vast->seconds.push_back(costs.seconds_at(size));
    vast->terms.push_back(most_terms(known, size));
    vast->task.sizes.push_back(std::move(size));
  }
  vast->reference = at_other_sizes(*known.reference, judge.plans_of(vast->task, known.reference->kernel));
  vast->twin = twin_at_sizes_of(judge, known, *vast);
  return vast;
}

/// Checks at the sizes of such a task.
class VastChecks {
public:
  VastChecks(EvaluationContext& context, PreparedTask& vast, double seconds)
      : judge_(context.judge), vast_(vast), seconds_(seconds) {
    candidate_ = at_other_sizes(*context.candidate, judge_.plans_of(vast.task, context.candidate->kernel));
    if (const auto start = start_beside_reference(context.task))
      start_ = at_other_sizes(*start, judge_.plans_of(vast.task, start->kernel));
  }

  /// How many sizes were compared.
  [[nodiscard]] std::size_t compared() const noexcept { return compared_; }

  /// Gives all memory back.
  void make_room() {
    if (start_) start_->slots.clear();
    judge_.make_room(vast_, {candidate_.get()});
  }

  /// One call, on normal inputs.
  [[nodiscard]] std::optional<Refusal> check(std::size_t size) {
    const CaseId id{size, Distribution::normal, false, vast_.book.next_check(candidate_->id)};
    const auto inputs = vast_.shared_inputs(id);
    if (!is_borne(id, *inputs)) return std::nullopt;
    const double limit = judge_.launch_limit(vast_, size);
    auto outcome = judge_.call(vast_, *candidate_, size, *inputs, judge_.noise(), limit, Refill::all,
                               BufferGuard::red_zones, inputs);
    if (outcome.refusal && outcome.refusal->verdict == Verdict::launch_error) return std::nullopt;
    if (outcome.refusal) return std::move(outcome.refusal);
    ++compared_;
    ComparisonTally unused;
    return judge_.compare_with_reference(vast_, id, outcome.results, *inputs, Poison{}, unused);
  }

private:
  /// Whether the task's own kernels are right there.
  [[nodiscard]] bool is_borne(const CaseId& id, const CaseInputs& inputs) {
    auto own = judge_.call(vast_, *vast_.reference, id.size, inputs, Poison{}, 4 * seconds_);
    if (own.refusal) return false;
    vast_.seconds[id.size] = own.seconds;
    const auto known = judge_.keep_reference(vast_, id, own.results, &inputs);
    forget_reference(own.results);
    if (!is_known(id, *known)) return false;
    if (start_ == nullptr) return true;
    auto start = judge_.call(vast_, *start_, id.size, inputs, Poison{}, 4 * seconds_);
    ComparisonTally unused;
    return !start.refusal && !judge_.compare(vast_, id, start.results, *known, inputs, Poison{}, unused);
  }

  /// Whether what is right is known so well that nobody who is right is refused: sums of millions of numbers
  /// in f32 are not right, whoever adds them.
  [[nodiscard]] bool is_known(const CaseId& id, const ReferenceResult& known) const {
    constexpr double most_terms = 0x1p16;
    const auto& buffers = vast_.layouts[id.size].buffers;
    const auto measured = vast_.reference_errors.find({id.size, id.distribution});
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].is_written() || !is_floating(buffers[i].type)) continue;
      if (!vast_.exact.empty() && vast_.exact[i]) continue;
      const bool has_truth =
          known.has_truth(i) || (measured != vast_.reference_errors.end() && measured->second[i] > 0);
      if (!has_truth && vast_.terms[id.size][i] > most_terms) return false;
      if (vast_.tolerance(id, i, known).relative > largest_deliberate_tolerance) return false;
    }
    return true;
  }

  /// Where programs share an address space, the answer must not lie there while a candidate runs.
  void forget_reference(CallResults& results) {
    if (!isolates_programs(judge_.backend()))
      forget_results(judge_.backend(), results.slot(), results.layout());
  }

  Judge& judge_;
  PreparedTask& vast_;
  double seconds_;
  std::shared_ptr<Contestant> candidate_;
  std::shared_ptr<Contestant> start_;
  std::size_t compared_ = 0;
};

MTMC_INLINE std::optional<Refusal> check_vast_sizes(EvaluationContext& context, double seconds,
                                                    std::string& done) {
  const auto vast = make_vast_task(context, seconds / 4);
  VastChecks checks(context, *vast, seconds / 4);
  for (std::size_t size = 0; size < vast->layouts.size(); ++size) {
    std::optional<Refusal> refusal;
    // Memory for such buffers may be more than there is; everything else is checked without them.
    (void)shortage_in([&] { refusal = checks.check(size); });
    checks.make_room();
    if (refusal) return refusal;
  }
  if (checks.compared() > 0)
    done = std::to_string(checks.compared()) + (checks.compared() == 1 ? " vast size" : " vast sizes");
  return std::nullopt;
}

} // namespace mtmc::detail
