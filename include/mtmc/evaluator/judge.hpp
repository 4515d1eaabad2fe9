#pragma once
/// The hands of the trust protocol: compile, call, look at everything a call may have touched, compare.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/evaluator/captured_inputs.hpp>
#include <mtmc/evaluator/case_book.hpp>
#include <mtmc/evaluator/check_plan.hpp>
#include <mtmc/evaluator/comparison.hpp>
#include <mtmc/evaluator/device_slot.hpp>
#include <mtmc/evaluator/double_truth.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/secret_keys.hpp>
#include <mtmc/evaluator/slot.hpp>
#include <mtmc/evaluator/tolerance.hpp>
#include <mtmc/evaluator/wrong_result.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc {

/// Whether a backend runs every program in an address space of its own, in which it sees nothing but the
/// buffers of its own plans: said by `static constexpr bool isolates_programs = true`. Without that, results
/// of the reference and the incumbent are wiped before a candidate runs.
template <class B>
inline constexpr bool isolates_programs = [] {
  if constexpr (requires { B::isolates_programs; })
    return static_cast<bool>(B::isolates_programs);
  else
    return false;
}();

/// A compiled kernel with its plans and its own buffers, which no other kernel is ever given.
template <class B> struct Contestant {
  Kernel kernel;
  std::string id;
  /// One for each size of the task.
  std::vector<LaunchPlan> plans;
  /// By size, place in a timed group, and what lies next to the buffers. Outlive the program, which may have
  /// them mapped.
  std::map<std::tuple<std::size_t, std::size_t, BufferGuard>, Slot<B>> slots;
  std::shared_ptr<typename B::Program> program;

  /// Frees all buffers of timed groups but the first call's: whoever is kept for later keeps few.
  void forget_groups() {
    std::erase_if(slots, [](const auto& entry) { return std::get<1>(entry.first) > 0; });
  }
};

/// Everything that is known of a task once it is prepared, shared by all candidates.
template <class B> struct PreparedTask {
  PreparedTask(const Task& of, std::uint64_t key, const KernelEvaluatorOptions& options)
      : task(of), book(key, options.reference_bytes, options.locks.fresh_inputs),
        precise(options.locks.precision) {}

  Task task;
  /// Contents that are not generated, read once.
  std::vector<CapturedInput> captured;
  /// One for each size, as are all the following.
  std::vector<ProblemLayout> layouts;
  /// Seconds of one call of the start kernel or the reference, whichever is slower.
  std::vector<double> seconds;
  /// How many numbers are combined into one element of each buffer (1 for inputs).
  std::vector<std::vector<double>> terms;
  /// For each buffer, how much each distribution amplifies a rounding error.
  std::vector<std::array<double, all_distributions.size()>> amplification;
  CaseBook book;
  /// Whether errors are judged by what honest rounding makes them; else all of 1 % are allowed.
  const bool precise;
  /// The kernel that defines what is right.
  std::shared_ptr<Contestant<B>> reference;
  /// The reference in double precision, if its results are the truth about this task; else null.
  std::unique_ptr<DoubleTwin<B>> twin;
  /// What the twin is or why there is none, as `environment["truth"]` has it.
  std::string truth = "own precision";
  /// Compiled incumbents, the one used last at the end.
  std::vector<std::shared_ptr<Contestant<B>>> incumbents;
  /// Held while the task is being prepared, and while `incumbents` is changed.
  std::mutex lock;
  bool ready = false;

  /// What the checks of a size cost. Timed runs do not show captured content as it is, so they replace no
  /// check.
  [[nodiscard]] SizeCost cost(std::size_t size) const {
    return {seconds[size], layouts[size].bytes(),
            task.sizes[size].weight > 0 && !has_captured(captured, layouts[size])};
  }

  /// What is allowed of one buffer's errors in one case, given what is known of its results. A widened
  /// tolerance still refuses the next lower precision.
  [[nodiscard]] Tolerance tolerance(const CaseId& id, std::size_t buffer,
                                    const ReferenceResult& known) const {
    const auto type = layouts[id.size].buffers[buffer].type;
    const Conditioning conditioning{terms[id.size][buffer],
                                    amplification[buffer][static_cast<std::size_t>(id.distribution)]};
    const bool given = task.tolerance.has_value() && is_floating(type);
    constexpr double coarse = 1e-2;
    const double relative = given                           ? *task.tolerance
                            : precise || !is_floating(type) ? relative_tolerance(type, conditioning)
                                                            : coarse;
    const double widened =
        std::max(relative, std::min(relative * known.widening(buffer), lower_epsilon(type) / 4));
    return {widened, known.scales[buffer], lower_precision_factor(type, widened, conditioning)};
  }

  /// Distribution of one argument in a case: its own, but of the inputs of a case that is mostly zero every
  /// other one is normal, in turn over the sizes and evaluations, or most products would be zero.
  [[nodiscard]] static Distribution distribution_of(const CaseId& id, std::size_t argument) noexcept {
    const bool dense =
        id.distribution == Distribution::mostly_zero && (id.size + id.serial + argument) % 2 == 1;
    return dense ? Distribution::normal : id.distribution;
  }

  /// Contents of a case, made anew from its key. Captured content is shown as it is in checks on normal
  /// inputs, and varied in all other cases.
  [[nodiscard]] CaseInputs inputs(const CaseId& id) const {
    CaseInputs contents;
    make_inputs(id, contents);
    return contents;
  }
  /// The same for several owners. Where memory of contents is left that nobody owns any more, it is used
  /// again, because touching new memory takes longer than filling it.
  [[nodiscard]] std::shared_ptr<const CaseInputs> shared_inputs(const CaseId& id) {
    auto& known = spare_inputs_[id.size];
    auto free =
        std::find_if(known.begin(), known.end(), [](const auto& item) { return item.use_count() == 1; });
    std::shared_ptr<CaseInputs> contents;
    if (free != known.end()) {
      contents = *free;
    } else {
      contents = std::make_shared<CaseInputs>();
      const auto bytes = layouts[id.size].input_bytes();
      if (spare_bytes_ + bytes <= most_spare_bytes) {
        spare_bytes_ += bytes;
        known.push_back(contents);
      }
    }
    make_inputs(id, *contents);
    return contents;
  }

private:
  /// A task's inputs at its largest size, usually.
  static constexpr double most_spare_bytes = 0x1p26;

  void make_inputs(const CaseId& id, CaseInputs& contents) const {
    const auto& layout = layouts[id.size];
    contents.clear(layout.buffers.size());
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_read()) continue;
      const auto& argument = task.arguments[buffer.argument];
      if (const auto* known = find_captured(captured, buffer)) {
        auto& content = contents.write(i, buffer.bytes);
        content = known->content;
        if (id.timed || id.distribution != Distribution::normal)
          vary_captured(content, buffer.type, book.key_of(id), buffer.argument,
                        value_range(argument, layout.size));
      } else if (task.generate) {
        generate_by_hook(task, argument, layout.size, book.key_of(id), buffer.argument,
                         contents.write(i, buffer.bytes));
      } else {
        contents.leave_to(i, {buffer.type, buffer.elements, distribution_of(id, buffer.argument),
                              book.key_of(id), buffer.argument, value_range(argument, layout.size)});
      }
    }
  }

  std::map<std::size_t, std::vector<std::shared_ptr<CaseInputs>>> spare_inputs_;
  double spare_bytes_ = 0;
};

/// What a comparison with the reference adds up to.
struct ComparisonTally {
  std::int64_t checked = 0;
  std::int64_t total = 0;
  double largest_error = 0;
};

namespace detail {
[[nodiscard]] inline Deadline deadline_in(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}
} // namespace detail

/// Does, for one evaluation or preparation, what the protocol asks for on a backend. Not thread-safe; its
/// caller sees to it that only one judge at a time uses the device.
template <class B> class Judge {
public:
  Judge(B& backend, DeviceWork<B>& work, const KernelEvaluatorOptions& options, SecretKeys& keys,
        std::stop_token stop)
      : backend_(backend), work_(work), options_(options), keys_(keys), stop_(std::move(stop)) {}

  [[nodiscard]] B& backend() noexcept { return backend_; }
  [[nodiscard]] const KernelEvaluatorOptions& options() const noexcept { return options_; }
  [[nodiscard]] const EvaluatorLocks& locks() const noexcept { return options_.locks; }

  /// Random bytes that no earlier buffer held.
  [[nodiscard]] Poison noise() noexcept { return {keys_.next()}; }

  /// Throws `Error` (`mtmc.evaluator.003`) if the caller has asked to stop.
  void heed_stop() const {
    if (stop_.stop_requested())
      throw Error(error_id::evaluator_cancelled, "the evaluation was cancelled",
                  "Evaluate the candidate again when its answer is wanted");
  }

  /// Step 1 of the protocol: what the backend's screen says of a text.
  [[nodiscard]] std::optional<Refusal> screen(const Kernel& kernel) {
    if constexpr (requires { backend_.screen(kernel); }) {
      std::vector<Diagnostic> diagnostics = backend_.screen(kernel);
      for (const auto& diagnostic : diagnostics)
        if (diagnostic.severity == Severity::error)
          return Refusal{Verdict::refused, std::string(refusal_rule::screen), std::move(diagnostics)};
    }
    return std::nullopt;
  }

  /// The buffers a contestant uses at a size, allocated when first needed.
  [[nodiscard]] Slot<B>& slot(const PreparedTask<B>& prepared, Contestant<B>& contestant, std::size_t size,
                              std::size_t place = 0, BufferGuard guard = BufferGuard::red_zones) {
    const auto key = std::tuple(size, place, guard);
    auto found = contestant.slots.find(key);
    if (found == contestant.slots.end())
      found = contestant.slots
                  .emplace(key, make_slot(backend_, prepared.layouts[size], contestant.plans[size],
                                          options_.red_zone_bytes, guard))
                  .first;
    return found->second;
  }

  /// A guard as the backend and the locks have it.
  [[nodiscard]] BufferGuard possible(BufferGuard guard) const {
    return locks().guard_pages && guard_page_bytes_of(backend_) > 0 ? guard : BufferGuard::red_zones;
  }

  /// Readies a slot for a call, which may come once `finish_loading` has been called. `owner`, if there is
  /// one, keeps the inputs until then.
  void load(Slot<B>& buffers, const ProblemLayout& layout, const CaseInputs& inputs, const Poison& poison,
            Refill refill = Refill::all, const std::shared_ptr<const void>& owner = {}) {
    if constexpr (runs_judge_kernels<B>)
      queue_loading(backend_, work_, buffers, layout, inputs, poison, keys_.next(), locks(), refill);
    else
      load_slot(backend_, buffers, layout, inputs, poison, keys_.next(), locks(), refill, owner);
  }
  /// Does what `load` has put off.
  void finish_loading() {
    if constexpr (runs_judge_kernels<B>) work_.run();
  }

  /// Writes of a call where none are allowed; those to inputs only where `inputs` are given.
  [[nodiscard]] std::optional<Refusal> damage(Slot<B>& buffers, const ProblemLayout& layout,
                                              const CaseInputs* inputs) {
    if constexpr (runs_judge_kernels<B>) {
      DamageLook<B> look(work_, buffers, layout, inputs, locks());
      work_.run();
      return look.answer(backend_);
    } else {
      return find_damage(backend_, buffers, layout, inputs, locks());
    }
  }

  /// Makes the results of a call independent of its buffers.
  void keep(CallResults<B>& results) {
    if constexpr (runs_judge_kernels<B>) {
      auto kept = queue_keeping(backend_, work_, results.slot(), results.layout(), keys_);
      work_.run();
      results.keep(std::move(kept));
    } else {
      results.keep(KeptContents(results.take()));
    }
  }

  /// Elements of two results of one buffer that have other bits.
  struct Difference {
    std::int64_t count = 0;
    /// Place of the first; nothing where there is none.
    std::optional<std::int64_t> first{};
  };
  [[nodiscard]] Difference difference(const CallResults<B>& results, const KeptContents& kept,
                                      std::size_t i) {
    const auto& buffer = results.layout().buffers[i];
    if (!buffer.is_written() || buffer.elements == 0) return {};
    if constexpr (runs_judge_kernels<B>)
      if (const auto* masked = kept.on_device(i); masked != nullptr && results.kept().size() == 0) {
        const auto number = work_.look_for_bits(results.slot().address(i), buffer.type, buffer.elements,
                                                masked->address, masked->key);
        work_.run();
        const auto& found = work_.found(number);
        if (found.wrong == 0) return {};
        return {static_cast<std::int64_t>(found.wrong), static_cast<std::int64_t>(found.first_wrong)};
      }
    const auto here = results[i];
    const auto count = count_different(here, kept[i], buffer.type);
    if (count == 0) return {};
    return {count, first_different(here, kept[i], buffer.type)};
  }

  /// Ends the process of a program, for backends whose programs keep one (`Program::retire()`), so that its
  /// next call takes place in a fresh one. For others a new compilation is a new program.
  void start_afresh(Contestant<B>& contestant) {
    if constexpr (requires { contestant.program->retire(); })
      if (locks().fresh_process) contestant.program->retire();
  }

  /// Compiles a kernel and plans its launches for all sizes. Throws `Error` of the launch lines; a kernel
  /// that does not compile comes back without a program, and `result` says why.
  [[nodiscard]] std::shared_ptr<Contestant<B>> compile(const PreparedTask<B>& prepared, const Kernel& kernel,
                                                       const std::vector<LaunchPlan>& plans,
                                                       CompileResult<typename B::Program>& result) {
    heed_stop();
    auto contestant = std::make_shared<Contestant<B>>();
    contestant->kernel = kernel;
    contestant->id = kernel.id();
    contestant->plans = plans;
    CompileOptions options;
    options.plan = contestant->plans[main_size(prepared.task)];
    options.deadline = detail::deadline_in(options_.compile_seconds);
    result = backend_.compile(kernel, options, stop_);
    heed_stop();
    contestant->program = result.program;
    return contestant;
  }

  /// Launch plans of a kernel for all sizes of a task. Throws `Error` of the launch lines.
  [[nodiscard]] std::vector<LaunchPlan> plans_of(const Task& task, const Kernel& kernel) {
    const auto lines = parse_launch_lines(kernel);
    std::vector<LaunchPlan> plans;
    for (const auto& size : task.sizes)
      plans.push_back(plan_launches(lines, task, size, backend_.device().compute_units));
    return plans;
  }

  /// Outcome of one call.
  struct Call {
    std::optional<Refusal> refusal{};
    CallResults<B> results{};
    double seconds = 0;
  };

  /// One call on given inputs, from the loading to a look at everything it may have touched. A crash next to
  /// a guard page is taken for an access outside of the buffers, so be sure that the kernel runs without.
  [[nodiscard]] Call call(const PreparedTask<B>& prepared, Contestant<B>& contestant, std::size_t size,
                          const CaseInputs& inputs, const Poison& poison, double limit,
                          Refill refill = Refill::all, BufferGuard guard = BufferGuard::red_zones,
                          const std::shared_ptr<const void>& owner = {}) {
    heed_stop();
    const auto& layout = prepared.layouts[size];
    auto& buffers = slot(prepared, contestant, size, 0, guard);
    load(buffers, layout, inputs, poison, refill, owner);
    finish_loading();
    Call outcome;
    const auto start = std::chrono::steady_clock::now();
    const auto status = backend_.run(*contestant.program, buffers.plan, detail::deadline_in(limit));
    outcome.seconds = seconds_since(start);
    if (!status.finished()) {
      outcome.refusal = guard != BufferGuard::red_zones && status.outcome == RunOutcome::faulted
                            ? guard_page_refusal(guard, layout.size)
                            : run_refusal(status, layout.size, limit);
      return outcome;
    }
    outcome.refusal = damage(buffers, layout, &inputs);
    if (!outcome.refusal) outcome.results = CallResults<B>(backend_, buffers, layout);
    return outcome;
  }

  /// The reference's results for a case: computed once, then shared by all candidates. Throws `Error`
  /// (`mtmc.task.005`) if the reference fails.
  [[nodiscard]] std::shared_ptr<const ReferenceResult> reference(PreparedTask<B>& prepared, const CaseId& id,
                                                                 const CaseInputs& inputs) {
    if (auto known = prepared.book.find(id)) return known;
    auto outcome = call(prepared, *prepared.reference, id.size, inputs, Poison{}, options_.start_seconds);
    if (outcome.refusal) throw_reference_error(prepared.task, *outcome.refusal);
    auto kept = keep_reference(prepared, id, outcome.results, id.timed ? nullptr : &inputs);
    // Where programs share an address space, the answer must not lie there while a candidate runs.
    if constexpr (!isolates_programs<B>)
      forget_results(backend_, outcome.results.slot(), prepared.layouts[id.size]);
    return kept;
  }

  /// Takes over results of the reference, not yet kept. With `inputs` the truth is added where the task has
  /// one and the size is cheap.
  std::shared_ptr<const ReferenceResult> keep_reference(PreparedTask<B>& prepared, const CaseId& id,
                                                        CallResults<B>& results,
                                                        const CaseInputs* inputs = nullptr) {
    auto result = std::make_shared<ReferenceResult>();
    result->scales = scales_of(results);
    keep(results);
    result->contents = results.kept();
    if (inputs != nullptr && prepared.twin != nullptr && is_medium(prepared.cost(id.size)))
      (void)add_truth(prepared, *prepared.twin, id, *inputs, *result);
    prepared.book.keep(id, result);
    return result;
  }

  /// Adds the truth about all f32 results of a case, where those of the reference are near enough to confirm
  /// it. False if they are not for one, or if the twin fails: then it computes something else.
  bool add_truth(const PreparedTask<B>& prepared, DoubleTwin<B>& twin, const CaseId& id,
                 const CaseInputs& inputs, ReferenceResult& known) {
    heed_stop();
    const auto& layout = prepared.layouts[id.size];
    auto results =
        run_double_twin(backend_, twin, layout, id.size, inputs.host(), keys_.next(), options_.red_zone_bytes,
                        locks(), detail::deadline_in(options_.start_seconds));
    if (!results) return false;
    if constexpr (!isolates_programs<B>)
      forget_results(backend_, twin.slots.at(id.size), twin.layouts[id.size]);
    known.truths.assign(layout.buffers.size(), {});
    known.widenings.assign(layout.buffers.size(), 1);
    bool confirmed = true;
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_written() || buffer.type != DataType::f32) continue;
      const auto found = compare_output(known.contents[i], buffer.type, (*results)[i], DataType::f64,
                                        prepared.tolerance(id, i, known));
      if (!(found.largest_error <= farthest_truth)) {
        confirmed = false;
        continue;
      }
      known.truths[i] = std::move((*results)[i]);
      known.widenings[i] = widening_for(found.largest_error);
    }
    return confirmed;
  }

  /// Compares all results with the reference's. `inputs` and `poison` are for the explanation.
  [[nodiscard]] std::optional<Refusal> compare(const PreparedTask<B>& prepared, const CaseId& id,
                                               const CallResults<B>& results, const ReferenceResult& wanted,
                                               const CaseInputs& inputs, const Poison& poison,
                                               ComparisonTally& tally) {
    const auto& layout = prepared.layouts[id.size];
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      if (!buffer.is_written()) continue;
      if (auto refusal = compare_buffer(prepared, id, i, results, wanted, inputs, poison, tally))
        return refusal;
    }
    return std::nullopt;
  }

  /// Whether one result passes the comparison that candidates face.
  [[nodiscard]] bool is_right(const PreparedTask<B>& prepared, const CaseId& id, std::size_t buffer,
                              const std::vector<std::byte>& content, const ReferenceResult& wanted) {
    const auto& layout = prepared.layouts[id.size];
    if (prepared.task.compare)
      return ask_hook(prepared.task, layout.buffers[buffer], layout.size, content, wanted.contents[buffer])
          .empty();
    const auto type = layout.buffers[buffer].type;
    const auto right = wanted.wanted(buffer, type);
    return compare_output(content, type, right.content, right.type, prepared.tolerance(id, buffer, wanted))
        .right();
  }

  /// Seconds that one call of a candidate may take at a size.
  [[nodiscard]] double launch_limit(const PreparedTask<B>& prepared, std::size_t size) const {
    return std::max(options_.launch_seconds, options_.launch_factor * prepared.seconds[size]);
  }

  /// Reports a failure of the task's own kernel.
  [[noreturn]] static void throw_reference_error(const Task& task, const Refusal& refusal) {
    const auto& first = refusal.diagnostics.front();
    throw Error(error_id::task_start_kernel,
                std::string(task.reference ? "the reference" : "the start kernel") +
                    " failed: " + first.message,
                first.remedy, "task " + task.name);
  }

private:
  [[nodiscard]] static std::size_t main_size(const Task& task) {
    return static_cast<std::size_t>(task.main_size() - task.sizes.data());
  }

  [[nodiscard]] std::optional<Refusal> compare_buffer(const PreparedTask<B>& prepared, const CaseId& id,
                                                      std::size_t i, const CallResults<B>& results,
                                                      const ReferenceResult& wanted, const CaseInputs& inputs,
                                                      const Poison& poison, ComparisonTally& tally) {
    const auto& layout = prepared.layouts[id.size];
    const auto& buffer = layout.buffers[i];
    const auto place =
        " (at " + to_string(layout.size) + ", " + std::string(to_string(id.distribution)) + " inputs)";
    tally.total += buffer.elements;
    if (prepared.task.compare) {
      const auto answer = ask_hook(prepared.task, buffer, layout.size, results[i], wanted.contents[i]);
      tally.checked += buffer.elements;
      if (answer.empty()) return std::nullopt;
      return refusal(Verdict::wrong_result, refusal_rule::reference, buffer.name + ": " + answer + place,
                     "Compare with the original kernel");
    }
    const auto tolerance = prepared.tolerance(id, i, wanted);
    const auto found = compare_results(buffer, i, results, wanted, tolerance);
    tally.checked += found.checked;
    tally.largest_error = std::max(tally.largest_error, found.largest_error);
    if (found.right()) return std::nullopt;
    const auto words = describe_wrong_result(layout, i, results[i], wanted.wanted(i, buffer.type),
                                             inputs.host(), tolerance, found, poison);
    if (looks_like_lower_precision(found, tolerance))
      return refusal(Verdict::low_precision, refusal_rule::precision,
                     words.message + place +
                         ". Errors of this size are typical of arithmetic in a lower precision, or of a few "
                         "terms left out",
                     "Compute and accumulate in " + std::string(to_string(buffer.type)) +
                         " or better, without fast-math approximations");
    return refusal(Verdict::wrong_result, refusal_rule::reference, words.message + place, words.remedy);
  }

  [[nodiscard]] ComparisonResult compare_results(const BufferLayout& buffer, std::size_t i,
                                                 const CallResults<B>& results, const ReferenceResult& wanted,
                                                 const Tolerance& tolerance) {
    if constexpr (runs_judge_kernels<B>)
      if (const auto* masked = wanted.contents.on_device(i); masked != nullptr && !wanted.has_truth(i)) {
        const auto number = work_.compare(results.slot().address(i), buffer.type, buffer.elements,
                                          masked->address, masked->key, tolerance);
        work_.run();
        return work_.comparison(number, buffer.elements);
      }
    const auto right = wanted.wanted(i, buffer.type);
    return compare_output(results[i], buffer.type, right.content, right.type, tolerance);
  }

  /// `output_scale` of all results of a call.
  [[nodiscard]] std::vector<double> scales_of(const CallResults<B>& results) {
    const auto& buffers = results.layout().buffers;
    std::vector<double> scales(buffers.size(), 0);
    const auto has_scale = [&](std::size_t i) {
      return buffers[i].is_written() && is_floating(buffers[i].type);
    };
    if constexpr (runs_judge_kernels<B>) {
      std::vector<std::size_t> numbers(buffers.size());
      for (std::size_t i = 0; i < buffers.size(); ++i)
        if (has_scale(i))
          numbers[i] = work_.add_magnitudes(results.slot().address(i), buffers[i].type, buffers[i].elements);
      work_.run();
      for (std::size_t i = 0; i < buffers.size(); ++i)
        if (has_scale(i)) scales[i] = work_.scale(numbers[i]);
    } else {
      for (std::size_t i = 0; i < buffers.size(); ++i)
        if (has_scale(i)) scales[i] = output_scale(results[i], buffers[i].type);
    }
    return scales;
  }

  [[nodiscard]] static std::string ask_hook(const Task& task, const BufferLayout& buffer,
                                            const ProblemSize& size, std::span<const std::byte> got,
                                            std::span<const std::byte> wanted) {
    try {
      return task.compare(task.arguments[buffer.argument], size, got, wanted);
    } catch (const std::exception& error) {
      throw Error(error_id::evaluator_hook, std::string("the task's compare hook threw: ") + error.what(),
                  "Correct the hook, or leave it out to get the built-in comparison",
                  "argument " + buffer.name + " at " + to_string(size));
    }
  }

  B& backend_;
  DeviceWork<B>& work_;
  const KernelEvaluatorOptions& options_;
  SecretKeys& keys_;
  std::stop_token stop_;
};

} // namespace mtmc
