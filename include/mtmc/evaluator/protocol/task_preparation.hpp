#pragma once
/// What happens to a task before its first candidate: its own kernel is compiled, tried and measured, and the
/// task has to show that it can tell right from wrong.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/evaluator/protocol/influence.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/outside_reads.hpp>
#include <mtmc/evaluator/protocol/task_check.hpp>
#include <mtmc/task/validate_task.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Prepares a task with a judge. Throws `Error` where the task cannot be judged.
class TaskPreparation {
public:
  /// Both must outlive the preparation.
  TaskPreparation(Judge& judge, PreparedTask& prepared) : judge_(judge), prepared_(prepared) {}

  /// All steps, in their order. Leaves the task ready for candidates.
  void run() {
    lay_out();
    prepared_.reference = compile_own(task().reference ? *task().reference : task().kernel);
    run_reference();
    measure_amplification();
    measure_terms();
    if (task().reference) check_start_kernel();
    find_truth();
    measure_reference_errors();
    check_mutants();
  }

private:
  /// A call of up to this many seconds may be repeated for measurements.
  static constexpr double cheap_seconds = 20e-3;

  [[nodiscard]] const Task& task() const noexcept { return prepared_.task; }

  void lay_out() {
    validate_task(task());
    require_judgeable(task());
    for (const auto& size : task().sizes) prepared_.layouts.push_back(layout_of(task(), size));
    require_room(task(), prepared_.layouts, judge_.backend().device());
    prepared_.captured = read_captured_inputs(task(), prepared_.layouts);
    const auto sizes = task().sizes.size();
    const auto buffers = prepared_.layouts.front().buffers.size();
    prepared_.twin.reset();
    prepared_.reference_errors.clear();
    prepared_.seconds.assign(sizes, 0);
    prepared_.terms.assign(sizes, std::vector<double>(buffers, 1));
    std::array<double, all_distributions.size()> ones{};
    ones.fill(1);
    prepared_.amplification.assign(buffers, ones);
    prepared_.usual_scales.assign(buffers, {});
  }

  [[nodiscard]] std::shared_ptr<Contestant> compile_own(const Kernel& kernel) {
    const std::string which =
        task().reference && kernel == *task().reference ? "the reference" : "the start kernel";
    if (const auto refused = judge_.screen(kernel)) throw_not_allowed(which, refused->diagnostics);
    CompileResult<AnyBackend::Program> result;
    auto contestant = judge_.compile(prepared_, kernel, judge_.plans_of(task(), kernel), result);
    if (contestant->program) return contestant;
    if (result.timed_out)
      throw Error(error_id::task_start_kernel, which + " did not compile in time",
                  "Simplify it, or allow more time for compiling", "task " + task().name)
          .about("KernelEvaluatorOptions::compile_seconds");
    if (result.refused) throw_not_allowed(which, result.diagnostics);
    throw Error(error_id::task_start_kernel, which + " does not compile: " + list_errors(result.diagnostics),
                "Correct it; candidates can only be judged against a kernel that works",
                "task " + task().name);
  }

  [[noreturn]] void throw_not_allowed(const std::string& which,
                                      const std::vector<Diagnostic>& reasons) const {
    throw Error(error_id::task_start_kernel, which + " does what no kernel may: " + list_errors(reasons),
                "Correct it, or allow what it needs in the backend's options", "task " + task().name);
  }

  /// "line 3: ...; line 7: ..."
  [[nodiscard]] static std::string list_errors(const std::vector<Diagnostic>& diagnostics) {
    constexpr std::size_t longest = 2000;
    std::string text;
    for (const auto& diagnostic : diagnostics) {
      if (diagnostic.severity != Severity::error) continue;
      text += (text.empty() ? "" : "; ") +
              (diagnostic.line > 0 ? "line " + std::to_string(diagnostic.line) + ": " : std::string{}) +
              diagnostic.message;
      if (text.size() > longest) break;
    }
    return text;
  }

  /// Sizes, cheapest first.
  [[nodiscard]] std::vector<std::size_t> ascending() const {
    std::vector<std::size_t> order(task().sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return prepared_.layouts[a].bytes() < prepared_.layouts[b].bytes();
    });
    return order;
  }

  /// Tries the reference at every size: it must finish, keep to its buffers, and give the same bits twice.
  void run_reference() {
    bool first = true;
    for (const auto size : ascending()) {
      const CaseId id{size, Distribution::normal, false, 0};
      const auto inputs = prepared_.inputs(id);
      auto once = own_call(size, inputs, Poison{});
      prepared_.seconds[size] = once.seconds;
      const auto known = judge_.keep_reference(prepared_, id, once.results);
      if (first || once.seconds < 5 * cheap_seconds) {
        const auto twice = own_call(size, inputs, judge_.noise());
        prepared_.seconds[size] = std::min(once.seconds, twice.seconds);
        if (!task().atomics) require_same_bits(size, inputs, known->contents, twice.results);
        look_again(size, inputs);
      }
      first = false;
    }
  }

  /// A machine that is busy for a moment must not make a size look expensive, because such sizes are checked
  /// on fewer inputs: calls that could be cheap are timed some more.
  void look_again(std::size_t size, const CaseInputs& inputs) {
    constexpr int max_calls = 3;
    auto& seconds = prepared_.seconds[size];
    for (int i = 0; i < max_calls && !is_cheap(prepared_.cost(size)); ++i) {
      auto cheap = prepared_.cost(size);
      cheap.seconds = 0;
      if (!is_cheap(cheap)) return;
      seconds = std::min(seconds, own_call(size, inputs, Poison{}).seconds);
    }
  }

  [[nodiscard]] Judge::Call own_call(std::size_t size, const CaseInputs& inputs, const Poison& poison) {
    auto outcome =
        judge_.call(prepared_, *prepared_.reference, size, inputs, poison, judge_.options().start_seconds);
    if (outcome.refusal) Judge::throw_reference_error(task(), *outcome.refusal);
    return outcome;
  }

  void require_same_bits(std::size_t size, const CaseInputs& inputs, const KeptContents& once,
                         const CallResults& twice) {
    const auto& layout = prepared_.layouts[size];
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto different = judge_.difference(twice, once, i).count;
      if (different == 0) continue;
      const std::string which = task().reference ? "the reference" : "the start kernel";
      require_reads_inside(*prepared_.reference, which, size, inputs);
      throw Error(
          error_id::task_start_kernel,
          which + " is not reproducible: two runs on the same inputs differ in " + std::to_string(different) +
              " of " + std::to_string(layout.buffers[i].elements) + " elements of " + layout.buffers[i].name,
          "Write every element of every output and set accumulators before adding to them; if " +
              layout.buffers[i].name +
              " is changed in place, give it the role inout; if it is only read, declare its parameter "
              "const; "
              "if an integer input is an index, give it a domain such as [\"0\", \"N - 1\"]; if sums are "
              "combined in no fixed order on purpose, say \"atomics\": true",
          "task " + task().name + " at " + to_string(layout.size));
    }
  }

  /// Throws `Error` if the results of one of the task's own kernels depend on what lies outside of its
  /// buffers.
  void require_reads_inside(Contestant& kernel, const std::string& which, std::size_t size,
                            const CaseInputs& inputs) {
    OutsideReads reads(judge_, prepared_, kernel, size, inputs, judge_.options().start_seconds);
    const auto found = reads.find();
    if (!found) return;
    throw Error(
        error_id::task_start_kernel, which + ' ' + outside_read_text(*found),
        "Correct the shape or the index; if an integer input holds the indices, give it a domain such "
        "as [\"0\", \"N - 1\"]",
        "task " + task().name + " at " + to_string(prepared_.layouts[size].size));
  }

  /// The most expensive of the cheap sizes: large enough to be typical, small enough to be run often.
  [[nodiscard]] std::size_t measuring_size() const {
    const auto order = ascending();
    std::size_t best = order.front();
    for (const auto size : order)
      if (is_medium(prepared_.cost(size))) best = size;
    return best;
  }

  void measure_amplification() {
    const auto size = measuring_size();
    const auto& layout = prepared_.layouts[size];
    const bool cheap = prepared_.seconds[size] <= 5 * cheap_seconds;
    for (std::size_t d = 0; d < all_distributions.size(); ++d) {
      const auto distribution = all_distributions[d];
      if (!cheap && distribution != Distribution::normal && distribution != Distribution::large_offset)
        continue;
      const CaseId id{size, distribution, false, 0};
      auto inputs = prepared_.inputs(id);
      const auto plain = judge_.reference(prepared_, id, inputs);
      for (std::size_t i = 0; i < layout.buffers.size(); ++i) prepared_.usual_scales[i][d] = plain->scales[i];
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (layout.buffers[i].is_read())
          perturb_last_place(inputs.change(i), layout.buffers[i].type, prepared_.book.key_of(id) + i);
      const auto moved = own_call(size, inputs, Poison{});
      for (std::size_t i = 0; i < layout.buffers.size(); ++i)
        if (layout.buffers[i].is_written())
          prepared_.amplification[i][d] =
              measured_amplification(plain->contents[i], moved.results[i], layout.buffers[i].type);
    }
    if (cheap) return;
    for (auto& by_distribution : prepared_.amplification) {
      const double worst = *std::max_element(by_distribution.begin(), by_distribution.end());
      by_distribution.fill(worst);
    }
  }

  /// How many numbers go into one element of each output: one input element is changed, and the output
  /// elements that move are counted. At expensive sizes only the largest input is tried, and the share of the
  /// others is taken over from the measuring size.
  void measure_terms() {
    const auto typical = measuring_size();
    const auto whole = influence_of_inputs(typical, false);
    const auto part = influence_of_inputs(typical, true);
    for (std::size_t size = 0; size < task().sizes.size(); ++size) {
      const auto& layout = prepared_.layouts[size];
      const bool cheap = is_medium(prepared_.cost(size));
      auto terms = size == typical ? whole : influence_of_inputs(size, !cheap);
      for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
        const auto& buffer = layout.buffers[i];
        if (!buffer.is_written()) continue;
        if (!cheap && size != typical) terms[i] *= part[i] > 0 ? std::max(1.0, whole[i] / part[i]) : 1;
        // Nothing moved: taken for a function with plateaus, in which many numbers may meet.
        if (!(terms[i] > 0)) terms[i] = 1024;
        const double stated =
            stated_flops(task(), layout.size) / static_cast<double>(layout.result_elements());
        prepared_.terms[size][i] = std::max({1.0, terms[i], stated});
      }
    }
  }

  [[nodiscard]] std::vector<double> influence_of_inputs(std::size_t size, bool largest_only) {
    const auto& layout = prepared_.layouts[size];
    const CaseId id{size, Distribution::normal, false, 0};
    auto inputs = prepared_.inputs(id);
    const auto plain = judge_.reference(prepared_, id, inputs);
    const auto largest = largest_input(layout);
    std::vector<double> terms(layout.buffers.size(), 0);
    PhiloxEngine random(prepared_.book.key_of(id), 0x1f);
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read() || (largest_only && i != largest)) continue;
      if (!may_replace_elements(task(), prepared_.captured, buffer)) continue;
      const auto range = value_range(task().arguments[buffer.argument], layout.size);
      constexpr int attempts = 3;
      for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto place = random.below(static_cast<std::uint64_t>(buffer.elements));
        auto& content = inputs.change(i);
        const auto before = content;
        replace_element(content, buffer.type, static_cast<std::size_t>(place), range, attempt % 2 == 0);
        const auto moved = own_call(size, inputs, Poison{});
        content = before;
        const bool any = add_influence(layout, buffer, *plain, moved.results, terms);
        if (any) break;
      }
    }
    return terms;
  }

  bool add_influence(const ProblemLayout& layout, const BufferLayout& input, const ReferenceResult& plain,
                     const CallResults& moved, std::vector<double>& terms) {
    bool any = false;
    for (std::size_t o = 0; o < layout.buffers.size(); ++o) {
      const auto& output = layout.buffers[o];
      if (!output.is_written()) continue;
      const auto changed = judge_.difference(moved, plain.contents, o).count;
      any = any || changed > 0;
      terms[o] += static_cast<double>(changed) * static_cast<double>(input.elements) /
                  static_cast<double>(output.elements);
    }
    return any;
  }

  [[nodiscard]] static std::size_t largest_input(const ProblemLayout& layout) {
    std::size_t best = 0;
    std::int64_t most = -1;
    for (std::size_t i = 0; i < layout.buffers.size(); ++i)
      if (layout.buffers[i].is_read() && layout.buffers[i].elements > most) {
        most = layout.buffers[i].elements;
        best = i;
      }
    return best;
  }

  /// The start kernel has to agree with a separate reference at every size.
  void check_start_kernel() {
    auto start = compile_own(task().kernel);
    for (const auto size : ascending()) {
      const CaseId id{size, Distribution::normal, false, 0};
      const auto inputs = prepared_.inputs(id);
      const auto wanted = judge_.reference(prepared_, id, inputs);
      const auto poison = judge_.noise();
      auto outcome = judge_.call(prepared_, *start, size, inputs, poison, judge_.options().start_seconds);
      ComparisonTally tally;
      if (!outcome.refusal)
        outcome.refusal = judge_.compare(prepared_, id, outcome.results, *wanted, inputs, poison, tally);
      if (outcome.refusal) {
        if (outcome.refusal->rule == refusal_rule::reference ||
            outcome.refusal->rule == refusal_rule::precision)
          require_reads_inside(*start, "the start kernel", size, inputs);
        const auto& first = outcome.refusal->diagnostics.front();
        throw Error(error_id::task_start_kernel,
                    "the start kernel does not do what the reference does: " + first.message, first.remedy,
                    "task " + task().name);
      }
      prepared_.seconds[size] = std::max(prepared_.seconds[size], outcome.seconds);
    }
    prepared_.incumbents.push_back(std::move(start));
  }

  /// Compiles the reference in double precision and sees whether it confirms that it is the truth, in every
  /// case tried so far at the cheap sizes. From here on these cases are compared with it.
  void find_truth() {
    std::unique_ptr<DoubleTwin> twin;
    auto reason = reason_against_truth(task());
    if (reason.empty()) reason = compile_twin(twin);
    std::vector<std::pair<CaseId, std::shared_ptr<ReferenceResult>>> found;
    for (const auto size : ascending()) {
      if (!reason.empty() || !is_medium(prepared_.cost(size))) continue;
      for (const auto distribution : all_distributions) {
        const CaseId id{size, distribution, false, 0};
        const auto known = prepared_.book.find(id);
        if (!known) continue;
        const auto inputs = prepared_.inputs(id);
        auto with_truth = std::make_shared<ReferenceResult>(*known);
        if (!judge_.add_truth(prepared_, *twin, id, inputs, *with_truth) ||
            !start_kernel_agrees(id, inputs, *with_truth)) {
          reason = "the twin disagrees (" + std::string(to_string(distribution)) + " inputs)";
          break;
        }
        found.emplace_back(id, std::move(with_truth));
      }
    }
    if (reason.empty() && found.empty()) reason = "no cheap size";
    prepared_.truth = reason.empty() ? "f64" : "own precision: " + reason;
    if (!reason.empty()) return;
    prepared_.twin = std::move(twin);
    for (auto& [id, result] : found) prepared_.book.keep(id, std::move(result));
  }

  /// At sizes whose results are compared with those of the reference alone: by how much the reference itself
  /// is off, against its twin, so that no candidate has to share its rounding errors. A layer norm whose
  /// start kernel adds 65,536 terms one after the other was off by 1e-5 where a right candidate was off by
  /// 3e-8 (measured). Sizes at which one call takes more than `max_seconds`, or whose twin finds no memory,
  /// keep the tolerance of an honest reference.
  void measure_reference_errors() {
    constexpr double max_seconds = 2;
    if (prepared_.twin == nullptr) return;
    prepared_.reference_errors.assign(prepared_.layouts.size(),
                                      std::vector<double>(prepared_.layouts.front().buffers.size(), 0));
    for (const auto size : ascending()) {
      if (is_medium(prepared_.cost(size)) || prepared_.seconds[size] > max_seconds) continue;
      std::vector<double> worst(prepared_.layouts[size].buffers.size(), 0);
      const auto shortage = shortage_in([&] {
        for (const auto distribution : {Distribution::normal, Distribution::large_offset}) {
          const CaseId id{size, distribution, false, 0};
          const auto inputs = prepared_.inputs(id);
          const auto known = judge_.reference(prepared_, id, inputs);
          const auto errors = judge_.reference_errors(prepared_, *prepared_.twin, id, inputs, *known);
          for (std::size_t i = 0; i < worst.size(); ++i)
            if (errors[i]) worst[i] = std::max(worst[i], *errors[i]);
        }
      });
      if (shortage) {
        prepared_.twin->slots.clear();
        continue;
      }
      for (auto& error : worst)
        if (error > farthest_reference) error = 0;
      prepared_.reference_errors[size] = std::move(worst);
    }
  }

  /// Why there is no twin, or an empty answer.
  [[nodiscard]] std::string compile_twin(std::unique_ptr<DoubleTwin>& twin) {
    if (!has_ability(judge_.backend(), BackendAbility::in_double_precision))
      return "the backend writes no twins";
    const auto kernel = double_twin_by(judge_.backend(), prepared_.reference->kernel);
    if (!kernel) return "the kernel needs more than other types";
    auto made = std::make_unique<DoubleTwin>();
    const auto wide = in_double_precision(task());
    for (const auto& size : task().sizes) made->layouts.push_back(layout_of(wide, size));
    made->plans = judge_.plans_of(wide, *kernel);
    for (auto& plan : made->plans) round_scalars(task(), plan);
    CompileResult<AnyBackend::Program> result;
    made->program = judge_.compile(prepared_, *kernel, made->plans, result)->program;
    if (!made->program) return "the twin does not compile";
    twin = std::move(made);
    return {};
  }

  /// Where the start kernel is not the reference: whether it is right by the truth, too.
  [[nodiscard]] bool start_kernel_agrees(const CaseId& id, const CaseInputs& inputs,
                                         const ReferenceResult& wanted) {
    if (prepared_.incumbents.empty()) return true;
    const auto outcome = judge_.call(prepared_, *prepared_.incumbents.back(), id.size, inputs, Poison{},
                                     judge_.options().start_seconds);
    ComparisonTally unused;
    return !outcome.refusal &&
           !judge_.compare(prepared_, id, outcome.results, wanted, inputs, Poison{}, unused);
  }

  void check_mutants() {
    // Mutants are made element by element, in the slow way; cases of this many elements are enough.
    constexpr std::int64_t max_elements = 1 << 18;
    const auto typical = measuring_size();
    TaskCheck check(accepts_lower_precision());
    std::vector<bool> finite(prepared_.layouts.front().buffers.size(), false);
    for (const auto size : ascending())
      for (const auto distribution : all_distributions) {
        const CaseId id{size, distribution, false, 0};
        const auto known = prepared_.book.find(id);
        if (!known) continue;
        if (size != typical && prepared_.layouts[size].result_elements() > max_elements) continue;
        add_mutants(check, id, *known, finite);
      }
    for (std::size_t i = 0; i < finite.size(); ++i)
      if (prepared_.layouts.front().buffers[i].is_written() && !finite[i])
        throw Error(error_id::task_cannot_tell,
                    "every element of " + prepared_.layouts.front().buffers[i].name +
                        " is NaN or infinite whatever the inputs",
                    "Give the inputs a domain in which the kernel computes finite numbers",
                    "task " + task().name);
    check.demand_none(task());
  }

  void add_mutants(TaskCheck& check, const CaseId& id, const ReferenceResult& known,
                   std::vector<bool>& finite) {
    const auto& layout = prepared_.layouts[id.size];
    const auto inputs = prepared_.inputs(id);
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_written()) continue;
      for (std::int64_t place = 0; place < buffer.elements && !finite[i]; ++place)
        finite[i] = std::isfinite(detail::element_value(known.contents[i], buffer.type, place));
      const KnownResult result{&layout, i, known.contents[i], inputs.host(),
                               prepared_.tolerance(id, i, known)};
      check.add(result, [&](const std::vector<std::byte>& content) {
        return ResultComparison::is_right(prepared_, id, i, content, known);
      });
    }
  }

  [[nodiscard]] bool accepts_lower_precision() const {
    if (!judge_.defences().precision) return true;
    double least = 1;
    for (const auto& argument : task().arguments)
      if (argument.role != ArgumentRole::scalar && is_floating(argument.type))
        least = std::min(least, lower_epsilon(argument.type) / 4);
    return task().tolerance && *task().tolerance > least;
  }

  Judge& judge_;
  PreparedTask& prepared_;
};

} // namespace mtmc
