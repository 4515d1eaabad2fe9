#pragma once
/// The trust protocol (design, section 5), written once for every backend.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/amounts.hpp>
#include <mtmc/evaluator/protocol/environment_record.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/outside_reads.hpp>
#include <mtmc/evaluator/protocol/plausibility.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/evaluator/protocol/task_preparation.hpp>
#include <mtmc/evaluator/timing/timing_conditions.hpp>
#include <mtmc/evaluator/timing/timing_stage.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/os_random.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What `KernelEvaluator` does, on any backend: see there.
class TrustProtocol {
public:
  TrustProtocol(AnyBackend backend, const KernelEvaluatorOptions& options)
      : state_(std::make_unique<State>(std::move(backend), options)) {}

  /// What candidates run on. A backend that can measure its ceilings (`measure_ceilings()`) does so when this
  /// is first asked for, because policies and the plausibility rule live on them.
  [[nodiscard]] const Device& device() {
    std::call_once(state_->measured, [this] { measure_ceilings_of(state_->backend); });
    return state_->backend.device();
  }

  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const noexcept { return state_->options.start_seconds; }

  /// For cache keys: protocol version, defences that are off, and what the backend says of itself.
  [[nodiscard]] std::string identity() const {
    auto text = "kernel_evaluator " + std::to_string(protocol_version);
    if (state_->options.defences != EvaluatorDefences{}) text += " without all of its defences";
    if (const auto of_backend = identity_of(state_->backend); !of_backend.empty()) text += ", " + of_backend;
    return text;
  }

  /// Gets a task ready: compiles, tries and measures its own kernel and makes sure that the task can tell
  /// right from wrong. Does nothing if it is ready.
  void prepare(const Task& task, std::stop_token stop) { (void)prepared(task, std::move(stop)); }

  /// Judges one candidate, from the first suspicion to the last figure.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    const auto start = std::chrono::steady_clock::now();
    const auto task = prepared(request.task, stop);
    Judge judge(state_->backend, state_->work, state_->options, state_->keys, stop);
    judge.when_short([this, own = task.get()] { release_others(own); });
    Evaluation evaluation;
    evaluation.environment = environment_record(device());
    evaluation.environment["truth"] = task->truth;
    for (const auto& layout : task->layouts) {
      evaluation.sizes.emplace_back();
      evaluation.sizes.back().size = layout.size;
    }

    std::shared_ptr<Contestant> candidate;
    auto refusal = judge.screen(request.candidate);
    if (!refusal) refusal = compile(judge, *task, request.candidate, candidate, evaluation);
    if (!refusal) {
      auto incumbent = request.incumbent ? incumbent_for(judge, *task, *request.incumbent) : nullptr;
      {
        const auto device = take_device();
        refusal = examine_in_memory(judge, *task, *candidate, incumbent.get(), request.purpose, evaluation);
        candidate->forget_groups(kept_scratch());
        if (incumbent) incumbent->forget_groups(kept_scratch());
      }
      if (!refusal && request.purpose == Purpose::promote) keep_incumbent(*task, candidate);
      retire(std::move(candidate));
      retire(std::move(incumbent));
    }
    evaluation.verdict = Verdict::correct;
    if (refusal) {
      evaluation.verdict = refusal->verdict;
      evaluation.rule = refusal->rule;
      evaluation.diagnostics.insert(evaluation.diagnostics.begin(), refusal->diagnostics.begin(),
                                    refusal->diagnostics.end());
      evaluation.seconds = 0;
      evaluation.speed_up.reset();
      evaluation.comparison = Comparison::not_timed;
    }
    evaluation.cost.total = seconds_since(start);
    return evaluation;
  }

private:
  struct State {
    State(AnyBackend b, const KernelEvaluatorOptions& o)
        : backend(std::move(b)), options(o), master_key(options.seed ? *options.seed : random_key_from_os()),
          keys(options.seed ? ~*options.seed : random_key_from_os()) {}

    AnyBackend backend;
    /// Used by whoever runs kernels.
    DeviceWork work{backend};
    const KernelEvaluatorOptions options;
    const std::uint64_t master_key;
    /// Of red zones and poisons.
    SecretKeys keys;
    std::once_flag measured;
    /// Held by whoever runs kernels.
    std::mutex device_lock;
    /// Held while the list of tasks is looked at.
    std::mutex tasks_lock;
    /// The task used last at the end.
    std::vector<std::shared_ptr<PreparedTask>> tasks;
    std::uint64_t tasks_seen = 0;
    /// Held by whoever compiles, if the backend can do only one thing at a time.
    std::mutex compile_lock;
  };
  using Program = AnyBackend::Program;

  /// The device to ourselves, with no jobs of whoever gave up before.
  [[nodiscard]] std::unique_lock<std::mutex> take_device() {
    std::unique_lock device(state_->device_lock);
    state_->work.forget();
    return device;
  }

  /// Step 2: launch lines and compiler.
  [[nodiscard]] std::optional<Refusal> compile(Judge& judge, PreparedTask& task, const Kernel& kernel,
                                               std::shared_ptr<Contestant>& candidate,
                                               Evaluation& evaluation) {
    std::vector<LaunchPlan> plans;
    try {
      const auto lines = parse_launch_lines(kernel);
      if (auto refusal = check_amounts(lines)) return refusal;
      plans = judge.plans_of(task.task, lines);
    } catch (const Error& error) {
      return launch_lines_refusal(error);
    }
    if (auto refusal = check_plans(task.task, plans, allowed_scratch())) return refusal;
    CompileResult<Program> result;
    const auto attempt = [&] { candidate = compile_program(judge, task, kernel, plans, result); };
    if (shortage_in(attempt)) {
      {
        const auto device = take_device();
        judge.make_room(task, {});
      }
      if (const auto shortage = shortage_in(attempt)) {
        const auto device = take_device();
        judge.make_room(task, {});
        return blame(task, plans, shortage);
      }
    }
    evaluation.cost.compile = result.seconds;
    evaluation.resources = std::move(result.resources);
    if (result.timed_out)
      return refusal(
          Verdict::compile_timeout, refusal_rule::compile_deadline,
          "the compiler did not finish within " + readable_seconds(state_->options.compile_seconds),
          "Write less code: unroll less, and avoid recursive templates and huge inlined functions");
    if (result.refused)
      return Refusal{Verdict::refused, std::string(refusal_rule::screen), std::move(result.diagnostics)};
    if (!candidate->program)
      return Refusal{Verdict::compile_error, std::string(refusal_rule::compiler),
                     std::move(result.diagnostics)};
    evaluation.diagnostics = std::move(result.diagnostics);
    for (auto& [name, value] : resources_of(state_->backend, *candidate->program))
      evaluation.resources[name] = value;
    return std::nullopt;
  }

  [[nodiscard]] std::shared_ptr<Contestant> compile_program(Judge& judge, const PreparedTask& task,
                                                            const Kernel& kernel,
                                                            const std::vector<LaunchPlan>& plans,
                                                            CompileResult<Program>& result) {
    std::unique_lock serial(state_->compile_lock, std::defer_lock);
    std::unique_lock device(state_->device_lock, std::defer_lock);
    if (concurrency_limit_of(state_->backend) <= 1) std::lock(serial, device);
    return judge.compile(task, kernel, plans, result);
  }

  /// Bytes of all scratch buffers that a candidate may have.
  [[nodiscard]] std::int64_t allowed_scratch() const {
    const auto memory = state_->backend.device().memory_bytes;
    if (state_->options.scratch_bytes > 0) return state_->options.scratch_bytes;
    return memory > 0 ? memory / 4 : std::int64_t{4} << 30;
  }

  /// Bytes of scratch memory a call that a kernel may hold on to when its evaluation is over.
  [[nodiscard]] double kept_scratch() const {
    constexpr double share = 64, least = 16 << 20;
    return std::max(static_cast<double>(state_->backend.device().memory_bytes) / share, least);
  }

  /// Frees the buffers of tasks other than `own` that nobody is preparing. With the device to ourselves.
  void release_others(const PreparedTask* own) {
    const std::scoped_lock tasks(state_->tasks_lock);
    for (const auto& task : state_->tasks) {
      if (task.get() == own) continue;
      const std::unique_lock lock(task->lock, std::try_to_lock);
      if (lock) task->release_buffers();
    }
  }

  /// The verdict on a candidate for whose calls something has run out, when all that could be has been given
  /// back. Throws it on where there is not even room for the task's own buffers, or where it is not memory.
  [[nodiscard]] Refusal blame(PreparedTask& task, const std::vector<LaunchPlan>& plans,
                              const std::exception_ptr& shortage) {
    const auto reason = reason_of(shortage);
    if (!reason.of_memory || !has_room(state_->backend, task, state_->options.red_zone_bytes))
      std::rethrow_exception(shortage);
    std::size_t most = 0;
    for (std::size_t i = 1; i < plans.size(); ++i)
      if (scratch_bytes(plans[i]) > scratch_bytes(plans[most])) most = i;
    return memory_refusal(plans[most], task.layouts[most].bytes(), allowed_scratch(), reason.message);
  }

  /// `examine`, and the profile if it is wanted; with a verdict where the candidate leaves too little memory.
  [[nodiscard]] std::optional<Refusal> examine_in_memory(Judge& judge, PreparedTask& task,
                                                         Contestant& candidate, Contestant* incumbent,
                                                         Purpose purpose, Evaluation& evaluation) {
    std::optional<Refusal> refusal;
    const auto shortage = shortage_in([&] {
      if (purpose == Purpose::promote) judge.start_afresh(candidate);
      refusal = examine(judge, task, candidate, incumbent, purpose, evaluation);
      if (!refusal && state_->options.profile) evaluation.profile = judge.profile(task, candidate);
    });
    if (!shortage) return refusal;
    judge.make_room(task, {&candidate, incumbent});
    return blame(task, candidate.plans, shortage);
  }

  /// Steps 3 to 6, with the device to ourselves.
  [[nodiscard]] std::optional<Refusal> examine(Judge& judge, PreparedTask& task, Contestant& candidate,
                                               Contestant* incumbent, Purpose purpose,
                                               Evaluation& evaluation) {
    const auto until = deadline_in(state_->options.evaluation_seconds);
    std::vector<double> seconds(task.layouts.size(), 0);
    auto start = std::chrono::steady_clock::now();
    auto refusal = check_results(judge, task, candidate, incumbent, until, seconds, evaluation);
    evaluation.cost.check = seconds_since(start);
    if (refusal) return refusal;

    start = std::chrono::steady_clock::now();
    TimingStage timing(judge, task, candidate, incumbent, seconds);
    const auto before = conditions_of(state_->backend);
    refusal = timing.run(purpose, until);
    auto met = conditions_between(before, conditions_of(state_->backend));
    record_times(task, timing, evaluation);
    for (const auto& times : timing.times())
      if (!refusal)
        refusal = check_plausibility(judge, task, times.size, evaluation.sizes[times.size].seconds);
    for (const auto& times : timing.times())
      add_times(met, times.incumbent.empty() ? times.candidate : times.incumbent);
    record_conditions(met, !refusal, evaluation);
    evaluation.cost.time = seconds_since(start);
    return refusal;
  }

  /// Step 3 and 4: the cheapest size first, then all sizes and distributions; two poisons, red zones, inputs
  /// unchanged, results within the tolerance.
  [[nodiscard]] std::optional<Refusal> check_results(Judge& judge, PreparedTask& task, Contestant& candidate,
                                                     Contestant* incumbent, Deadline until,
                                                     std::vector<double>& seconds, Evaluation& evaluation) {
    std::vector<SizeCost> costs;
    const auto& defences = state_->options.defences;
    for (std::size_t i = 0; i < task.layouts.size(); ++i) {
      costs.push_back(task.cost(i));
      costs.back().checked = defences.sizes || &task.task.sizes[i] == task.task.main_size();
    }
    const auto serial = task.book.next_check(candidate.id);
    // One or two elements may be a little wrong by chance, so that more have to confirm a lower precision. If
    // all larger results are right, it is something else that is wrong with the small ones.
    constexpr std::int64_t enough_elements = 16;
    std::optional<Refusal> unconfirmed;
    bool confirmed_right = false;
    for (const auto& check : plan_checks(costs, defences)) {
      if (std::chrono::steady_clock::now() > until)
        return refusal(Verdict::timeout, refusal_rule::evaluation_deadline,
                       "the time limit of the evaluation passed before all checks were done",
                       "Make the kernel faster; it is far slower than the kernel it started from");
      const CaseId id{check.size, check.distribution, false, serial};
      ComparisonTally tally;
      std::optional<Refusal> refusal;
      const auto attempt = [&] {
        tally = {};
        refusal = check_case(judge, task, candidate, id, check, seconds[check.size], tally);
        if (refusal) explain(judge, task, candidate, id, seconds[check.size], *refusal);
      };
      if (shortage_in(attempt)) {
        judge.make_room(task, {&candidate, incumbent});
        attempt();
      }
      add_tally(evaluation.sizes[check.size], tally);
      const bool confirms = task.layouts[check.size].result_elements() >= enough_elements;
      if (refusal && (confirms || refusal->verdict != Verdict::low_precision)) return refusal;
      if (refusal && !unconfirmed) unconfirmed = std::move(refusal);
      if (confirms) confirmed_right = true;
    }
    if (unconfirmed && confirmed_right) {
      unconfirmed->verdict = Verdict::wrong_result;
      unconfirmed->rule = refusal_rule::reference;
      unconfirmed->diagnostics.front().remedy =
          "Look at what the kernel does at this size; the results of larger ones are right";
    }
    return unconfirmed;
  }

  [[nodiscard]] std::optional<Refusal> check_case(Judge& judge, PreparedTask& task, Contestant& candidate,
                                                  const CaseId& id, const PlannedCheck& check,
                                                  double& seconds, ComparisonTally& tally) {
    const auto shared_inputs = task.shared_inputs(id);
    const auto& inputs = *shared_inputs;
    const double limit = judge.launch_limit(task, id.size);
    auto first = judge.call(task, candidate, id.size, inputs, Poison{}, limit, Refill::all,
                            BufferGuard::red_zones, shared_inputs);
    if (first.refusal) return first.refusal;
    seconds = first.seconds;
    // Where the start kernel is slow, a candidate may still be fast enough to be run again.
    constexpr double fast = 50e-3;
    const bool again = check.twice || seconds <= fast;
    // The second run may need the buffers.
    if (again) judge.keep(first.results);
    if (auto wrong = judge.compare_with_reference(task, id, first.results, inputs, Poison{}, tally))
      return wrong;
    if (!again) return std::nullopt;
    if (check.fresh_process) judge.start_afresh(candidate);
    const auto guard = judge.possible(check.guard);
    const auto poison = judge.noise();
    auto second =
        judge.call(task, candidate, id.size, inputs, poison, limit,
                   guard == BufferGuard::red_zones ? Refill::inout_only : Refill::all, guard, shared_inputs);
    if (second.refusal) return second.refusal;
    seconds = std::min(seconds, second.seconds);
    if (task.task.atomics || !judge.defences().same_bits)
      return judge.compare_with_reference(task, id, second.results, inputs, poison, tally);
    return compare_bits(judge, task.layouts[id.size], first.results.kept(), second.results);
  }

  [[nodiscard]] static std::optional<Refusal> compare_bits(Judge& judge, const ProblemLayout& layout,
                                                           const KeptContents& first,
                                                           const CallResults& second) {
    for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
      const auto& buffer = layout.buffers[i];
      const auto difference = judge.difference(second, first, i);
      if (!difference.first) continue;
      const auto place = *difference.first;
      const auto element = element_name(buffer, place) + " with " +
                           number(element_value(first[i], buffer.type, place)) + " and " +
                           number(element_value(second[i], buffer.type, place));
      return nondeterministic_refusal(element, difference.count, buffer.elements, layout.size);
    }
    return std::nullopt;
  }

  /// Where a candidate gave wrong results, or different ones, because it reads outside of a buffer: says so.
  /// Only for cheap calls, since it takes some more of them.
  void explain(Judge& judge, const PreparedTask& task, Contestant& candidate, const CaseId& id,
               double seconds, Refusal& refusal) {
    const bool may_read_outside =
        refusal.rule == refusal_rule::same_bits || refusal.rule == refusal_rule::reference ||
        refusal.rule == refusal_rule::precision || refusal.rule == refusal_rule::guard_pages;
    SizeCost cost = task.cost(id.size);
    cost.seconds = seconds;
    if (!may_read_outside || !is_medium(cost)) return;
    const auto inputs = task.inputs(id);
    OutsideReads reads(judge, task, candidate, id.size, inputs, judge.launch_limit(task, id.size));
    const auto found = reads.find();
    if (!found) return;
    auto explained = outside_read_refusal(*found, task.layouts[id.size].size);
    if (refusal.rule == refusal_rule::same_bits) {
      refusal = std::move(explained);
      return;
    }
    auto& first = refusal.diagnostics.front();
    first.message +=
        (first.message.ends_with('.') ? " T" : ". T") + explained.diagnostics.front().message.substr(1);
    first.remedy = explained.diagnostics.front().remedy;
  }

  static void add_tally(SizeEvaluation& size, const ComparisonTally& tally) {
    size.checked_elements += tally.checked;
    size.total_elements += tally.total;
    size.largest_error = std::max(size.largest_error, tally.largest_error);
  }

  [[nodiscard]] static SpeedUp speed_up_of(const MedianInterval& interval) {
    SpeedUp result;
    result.value = std::exp(interval.value);
    result.low = std::exp(interval.low);
    result.high = std::exp(interval.high);
    result.confidence = interval.confidence;
    return result;
  }

  /// Puts what the timing found into the evaluation.
  static void record_times(const PreparedTask& task, const TimingStage& timing, Evaluation& evaluation) {
    double weights = 0;
    for (const auto& times : timing.times()) {
      auto& size = evaluation.sizes[times.size];
      add_tally(size, timing.tally(times.size));
      size.samples = static_cast<int>(times.candidate.size());
      size.seconds = median(times.candidate);
      weights += times.weight;
      evaluation.seconds += times.weight * size.seconds;
      if (!timing.compared()) continue;
      size.incumbent_seconds = median(times.incumbent);
      const auto logarithms = times.logarithms();
      auto interval = median_interval(logarithms, timing.answer().error);
      interval.confidence = std::min(interval.confidence, timing.answer().interval.confidence);
      size.speed_up = speed_up_of(interval);
    }
    if (weights > 0) evaluation.seconds /= weights;
    if (timing.compared()) {
      evaluation.speed_up = speed_up_of(timing.answer().interval);
      evaluation.comparison = timing.answer().decision == TimingDecision::faster   ? Comparison::faster
                              : timing.answer().decision == TimingDecision::slower ? Comparison::slower
                                                                                   : Comparison::undecided;
    }
    if (timing.incumbent_failure().empty()) return;
    Diagnostic warning;
    warning.severity = Severity::warning;
    warning.message = "the incumbent failed while it was timed, so the candidate was not compared: " +
                      timing.incumbent_failure();
    warning.remedy = "Compare the candidate with another kernel; task " + task.task.name;
    evaluation.diagnostics.push_back(std::move(warning));
  }

  /// The compiled incumbent, kept from an earlier evaluation if possible.
  [[nodiscard]] std::shared_ptr<Contestant> incumbent_for(Judge& judge, PreparedTask& task,
                                                          const Kernel& kernel) {
    const auto id = kernel.id();
    {
      const std::scoped_lock lock(task.lock);
      if (task.reference->id == id) return task.reference;
      for (std::size_t i = 0; i < task.incumbents.size(); ++i)
        if (task.incumbents[i]->id == id) {
          std::rotate(task.incumbents.begin() + static_cast<std::ptrdiff_t>(i),
                      task.incumbents.begin() + static_cast<std::ptrdiff_t>(i) + 1, task.incumbents.end());
          return task.incumbents.back();
        }
    }
    CompileResult<Program> result;
    std::vector<LaunchPlan> plans;
    try {
      plans = judge.plans_of(task.task, kernel);
    } catch (const Error& error) {
      throw Error(error_id::evaluator_incumbent, "the incumbent's launch lines are wrong: " + error.message(),
                  error.remedy(), error.place());
    }
    auto incumbent = compile_program(judge, task, kernel, plans, result);
    if (!incumbent->program)
      throw Error(error_id::evaluator_incumbent,
                  result.timed_out || result.diagnostics.empty()
                      ? std::string("the incumbent did not compile in time")
                      : "the incumbent does not compile: " + result.diagnostics.front().message,
                  "Compare with a kernel that was found correct", "task " + task.task.name);
    keep_incumbent(task, incumbent);
    return incumbent;
  }

  void keep_incumbent(PreparedTask& task, std::shared_ptr<Contestant> incumbent) {
    std::vector<std::shared_ptr<Contestant>> dropped;
    {
      const std::scoped_lock lock(task.lock);
      auto& kept = task.incumbents;
      const auto most = std::max<std::size_t>(1, state_->options.kept_incumbents);
      const auto id = incumbent->id;
      kept.push_back(std::move(incumbent));
      for (std::size_t i = 0; i + 1 < kept.size();) {
        if (kept[i]->id != id && kept.size() <= most) {
          ++i;
          continue;
        }
        dropped.push_back(std::move(kept[i]));
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (auto& contestant : dropped) retire(std::move(contestant));
  }

  /// Frees programs and buffers while nobody else uses the device: freeing may disturb a timing.
  void retire(std::shared_ptr<Contestant> contestant) {
    const std::scoped_lock device(state_->device_lock);
    contestant.reset();
  }

  /// The task's entry in the list, new if it is not there.
  [[nodiscard]] std::shared_ptr<PreparedTask> entry_of(const Task& task) {
    const std::scoped_lock lock(state_->tasks_lock);
    auto& tasks = state_->tasks;
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const auto& known) {
      return known->task == task && bool(known->task.generate) == bool(task.generate) &&
             bool(known->task.compare) == bool(task.compare);
    });
    if (found != tasks.end()) {
      std::rotate(found, found + 1, tasks.end());
      return tasks.back();
    }
    const auto key =
        philox_key({static_cast<std::uint32_t>(state_->tasks_seen++), 0, 0, 0x7a5c}, state_->master_key);
    tasks.push_back(std::make_shared<PreparedTask>(task, key, state_->options, state_->backend));
    if (tasks.size() > std::max<std::size_t>(1, state_->options.prepared_tasks)) tasks.erase(tasks.begin());
    return tasks.back();
  }

  [[nodiscard]] std::shared_ptr<PreparedTask> prepared(const Task& task, std::stop_token stop) {
    auto entry = entry_of(task);
    const std::scoped_lock lock(entry->lock);
    if (entry->ready) return entry;
    const auto device = take_device();
    const auto attempt = [&] {
      // A preparation that failed half-way, or was cancelled, starts again from nothing.
      entry->layouts.clear();
      entry->incumbents.clear();
      Judge judge(state_->backend, state_->work, state_->options, state_->keys, stop);
      TaskPreparation(judge, *entry).run();
    };
    if (shortage_in(attempt)) {
      state_->work.forget();
      entry->release_buffers();
      release_others(entry.get());
      attempt();
    }
    entry->ready = true;
    return entry;
  }

  std::unique_ptr<State> state_;
};

} // namespace detail

} // namespace mtmc
