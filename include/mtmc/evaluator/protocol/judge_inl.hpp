#pragma once
/// Definitions of evaluator/protocol/judge.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/content/slot_content.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
#include <mtmc/evaluator/protocol/shortage.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/stopwatch.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
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

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Judge::Judge(AnyBackend& backend, ContentWork& work, const KernelEvaluatorOptions& options,
                         SecretKeys& keys, std::stop_token stop)
    : backend_(backend), work_(work), options_(options), keys_(keys), stop_(std::move(stop)),
      comparison_(work) {}

MTMC_INLINE void Judge::heed_stop() const {
  if (stop_.stop_requested())
    throw Error(error_id::evaluator_cancelled, "the evaluation was cancelled",
                "Evaluate the candidate again when its answer is wanted");
}

MTMC_INLINE std::optional<Refusal> Judge::screen(const Kernel& kernel) {
  auto diagnostics = backend_.screen(kernel);
  for (const auto& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::error)
      return Refusal{Verdict::refused, std::string(refusal_rule::screen), std::move(diagnostics)};
  return std::nullopt;
}

MTMC_INLINE Slot& Judge::slot(const PreparedTask& prepared, Contestant& contestant, std::size_t size,
                              std::size_t place, BufferGuard guard) {
  const auto key = std::tuple(size, place, guard);
  auto found = contestant.slots.find(key);
  if (found != contestant.slots.end()) return found->second;
  const auto place_key = prepared.anywhere_in_pages ? keys_.next() | 1 : 0;
  auto made = make_slot(backend_, prepared.layouts[size], contestant.plans[size], options_.red_zone_bytes,
                        guard, place_key);
  return contestant.slots.emplace(key, std::move(made)).first->second;
}

MTMC_INLINE Slot* Judge::known_slot(Contestant& contestant, std::size_t size, std::size_t place) {
  const auto found = contestant.slots.find(std::tuple(size, place, BufferGuard::red_zones));
  return found == contestant.slots.end() ? nullptr : &found->second;
}

MTMC_INLINE void Judge::make_room(PreparedTask& prepared, std::initializer_list<Contestant*> contestants) {
  work_.forget();
  for (auto* const contestant : contestants) {
    if (contestant == nullptr) continue;
    contestant->slots.clear();
    // A process may hold memory of its own.
    if (isolates_programs(backend_) && contestant->program) retire_program(*contestant->program);
  }
  {
    const std::scoped_lock lock(prepared.lock);
    prepared.release_buffers();
  }
  if (ask_others_) ask_others_();
}

MTMC_INLINE BufferGuard Judge::possible(BufferGuard guard) const {
  return defences().guard_pages && guards_buffers(backend_) ? guard : BufferGuard::red_zones;
}

MTMC_INLINE void Judge::load(Slot& buffers, const ProblemLayout& layout, const CaseInputs& inputs,
                             const Poison& poison, Refill refill, const std::shared_ptr<const void>& owner) {
  begin_loading(buffers, layout, inputs, poison, refill, owner);
  finish_loading();
}

MTMC_INLINE void Judge::begin_loading(Slot& buffers, const ProblemLayout& layout, const CaseInputs& inputs,
                                      const Poison& poison, Refill refill,
                                      const std::shared_ptr<const void>& owner) {
  load_slot(work_, buffers, layout, inputs, poison, keys_.next(), defences(), refill, owner);
}

MTMC_INLINE void Judge::clear_red_zones(Slot& buffers) {
  if (!defences().red_zones) return;
  for (auto* guarded : {&buffers.buffers, &buffers.scratch})
    for (auto& buffer : *guarded) {
      work_.write_byte(zone_before(buffer), std::byte{0});
      work_.write_byte(zone_behind(buffer), std::byte{0});
    }
}

MTMC_INLINE void Judge::finish_loading() { work_.run(); }

MTMC_INLINE std::optional<Refusal> Judge::damage(Slot& buffers, const ProblemLayout& layout,
                                                 const CaseInputs* inputs) {
  const DamageLook look(work_, buffers, layout, inputs, defences());
  work_.run();
  return look.answer();
}

MTMC_INLINE void Judge::overwrite_residue(Contestant& contestant) {
  if (defences().residue) backend_.overwrite_residue(*contestant.program);
}

MTMC_INLINE std::optional<Refusal> Judge::changed_state(Contestant& contestant, const ProblemLayout& layout) {
  if (!defences().state) return std::nullopt;
  const auto variable = backend_.changed_state(*contestant.program);
  if (variable.empty()) return std::nullopt;
  return state_refusal(variable, layout.size);
}

MTMC_INLINE void Judge::keep(CallResults& results) {
  auto kept = work_.keep(results);
  work_.run();
  results.keep(std::move(kept));
}

MTMC_INLINE Judge::Difference Judge::difference(const CallResults& results, const KeptContents& kept,
                                                std::size_t i) {
  const auto& buffer = results.layout().buffers[i];
  if (!buffer.is_written() || buffer.elements == 0) return {};
  const auto number = work_.look_for_bits(results, i, kept);
  work_.run();
  const auto& found = work_.found(number);
  if (found.wrong == 0) return {};
  return {static_cast<std::int64_t>(found.wrong), static_cast<std::int64_t>(found.first_wrong)};
}

MTMC_INLINE std::optional<Refusal> Judge::look_at(const PreparedTask& prepared,
                                                  std::span<const FinishedCall> calls, const Poison& poison,
                                                  ComparisonTally& tally) {
  std::vector<DamageLook> damages;
  std::vector<CallResults> results;
  std::vector<ResultComparison::Queued> comparisons(calls.size());
  results.reserve(calls.size()); // the looks refer to them
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& call = calls[i];
    const auto& layout = prepared.layouts[call.id.size];
    auto damage_of = defences();
    damage_of.red_zones = damage_of.red_zones && call.has_red_zones;
    damages.emplace_back(work_, *call.slot, layout, call.changeless, damage_of);
    results.emplace_back(backend_, *call.slot, layout);
    if (call.wanted != nullptr)
      comparisons[i] = comparison_.queue(prepared, call.id, results.back(), *call.wanted);
  }
  work_.run();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto& call = calls[i];
    if (auto refusal = damages[i].answer()) return refusal;
    if (call.wanted == nullptr) continue;
    if (auto refusal = comparison_.answer(prepared, call.id, results[i], *call.wanted, *call.inputs,
                                          comparisons[i], poison, tally))
      return refusal;
  }
  return std::nullopt;
}

MTMC_INLINE void Judge::start_afresh(Contestant& contestant) {
  if (defences().fresh_process) retire_program(*contestant.program);
}

MTMC_INLINE bool Judge::can_reload() const {
  return defences().reload && has_ability(backend_, BackendAbility::reload);
}

MTMC_INLINE void Judge::reload(Contestant& contestant) {
  if (can_reload()) reload_program(*contestant.program);
}

MTMC_INLINE std::shared_ptr<Contestant> Judge::compile(const PreparedTask& prepared, const Kernel& kernel,
                                                       const std::vector<LaunchPlan>& plans,
                                                       CompileResult<AnyBackend::Program>& result) {
  heed_stop();
  auto contestant = std::make_shared<Contestant>();
  contestant->kernel = kernel;
  contestant->id = kernel.id();
  contestant->plans = plans;
  CompileOptions options;
  options.plan = contestant->plans[main_size(prepared.task)];
  options.deadline = detail::deadline_in(options_.compile_seconds);
  result = backend_.compile(kernel, options, stop_);
  heed_stop();
  contestant->program = result.program;
  if (contestant->program) contestant->binary_hash = binary_hash_of(backend_, *contestant->program);
  return contestant;
}

MTMC_INLINE std::shared_ptr<AnyBackend::Program> Judge::compile_probed(const PreparedTask& prepared,
                                                                       const Contestant& contestant) {
  heed_stop();
  CompileOptions options;
  options.plan = contestant.plans[main_size(prepared.task)];
  options.deadline = detail::deadline_in(options_.compile_seconds);
  auto result = compile_probed_by(backend_, contestant.kernel, options, stop_);
  heed_stop();
  return std::move(result.program);
}

MTMC_INLINE std::vector<LaunchPlan> Judge::plans_of(const Task& task, const Kernel& kernel) {
  return plans_of(task, parse_launch_lines(kernel));
}

MTMC_INLINE std::vector<LaunchPlan> Judge::plans_of(const Task& task, const LaunchLines& lines) {
  std::vector<LaunchPlan> plans;
  for (const auto& size : task.sizes)
    plans.push_back(plan_launches(lines, task, size, backend_.device().compute_units));
  return plans;
}

MTMC_INLINE Judge::Call Judge::call(const PreparedTask& prepared, Contestant& contestant, std::size_t size,
                                    const CaseInputs& inputs, const Poison& poison, double limit,
                                    Refill refill, BufferGuard guard,
                                    const std::shared_ptr<const void>& owner) {
  heed_stop();
  const auto& layout = prepared.layouts[size];
  auto& buffers = slot(prepared, contestant, size, 0, guard);
  load(buffers, layout, inputs, poison, refill, owner);
  overwrite_residue(contestant);
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
  outcome.refusal = changed_state(contestant, layout);
  if (!outcome.refusal) outcome.refusal = damage(buffers, layout, &inputs);
  if (!outcome.refusal) outcome.results = CallResults(backend_, buffers, layout);
  return outcome;
}

MTMC_INLINE std::optional<Refusal> Judge::call_another(const PreparedTask& prepared, Contestant& contestant,
                                                       const CaseId& id, double limit, BufferGuard guard) {
  CaseId another = id;
  another.serial = keys_.next();
  const bool normal = id.distribution != Distribution::normal && prepared.captured.empty();
  another.distribution = normal ? Distribution::normal : Distribution::heavy_tail;
  if (has_ability(backend_, BackendAbility::keep_state)) backend_.keep_state(*contestant.program, true);
  return call(prepared, contestant, id.size, prepared.inputs(another), noise(), limit, Refill::all, guard)
      .refusal;
}

MTMC_INLINE std::optional<CallResults> Judge::call_within(const PreparedTask& prepared,
                                                          Contestant& contestant, std::size_t size,
                                                          const CaseInputs& inputs, const Poison& poison,
                                                          std::span<const std::uint64_t> zone_keys,
                                                          double limit) {
  heed_stop();
  const auto& layout = prepared.layouts[size];
  auto& buffers = slot(prepared, contestant, size);
  load(buffers, layout, inputs, poison);
  for (auto* guarded : {&buffers.buffers, &buffers.scratch})
    for (auto& buffer : *guarded)
      write_zones(work_, buffer, zone_keys[2 * buffer.place], zone_keys[2 * buffer.place + 1]);
  finish_loading();
  overwrite_residue(contestant);
  if (!backend_.run(*contestant.program, buffers.plan, detail::deadline_in(limit)).finished())
    return std::nullopt;
  return CallResults(backend_, buffers, layout);
}

MTMC_INLINE std::optional<Profile> Judge::profile(const PreparedTask& prepared, Contestant& contestant) {
  if (!has_ability(backend_, BackendAbility::profile)) return std::nullopt;
  const auto size = main_size(prepared.task);
  auto& buffers = slot(prepared, contestant, size);
  const auto inputs = prepared.inputs({size, Distribution::normal, false, 0});
  load(buffers, prepared.layouts[size], inputs, Poison{});
  return profile_by(backend_, *contestant.program, buffers.plan);
}

MTMC_INLINE std::shared_ptr<const ReferenceResult> Judge::reference(PreparedTask& prepared, const CaseId& id,
                                                                    const CaseInputs& inputs) {
  if (auto known = prepared.book.find(id)) return known;
  auto outcome = call(prepared, *prepared.reference, id.size, inputs, Poison{}, options_.start_seconds);
  if (outcome.refusal) throw_reference_error(prepared.task, *outcome.refusal);
  auto kept = keep_reference(prepared, id, outcome.results, id.timed ? nullptr : &inputs);
  // Where programs share an address space, the answer must not lie there while a candidate runs.
  if (!isolates_programs(backend_))
    forget_results(backend_, outcome.results.slot(), prepared.layouts[id.size]);
  return kept;
}

MTMC_INLINE std::shared_ptr<const ReferenceResult>
Judge::certain_reference(PreparedTask& prepared, const CaseId& id, const CaseInputs& inputs) {
  if (!isolates_programs(backend_)) prepared.book.forget(id);
  return reference(prepared, id, inputs);
}

MTMC_INLINE std::shared_ptr<const ReferenceResult> Judge::keep_reference(PreparedTask& prepared,
                                                                         const CaseId& id,
                                                                         CallResults& results,
                                                                         const CaseInputs* inputs) {
  auto result = std::make_shared<ReferenceResult>();
  const auto scales = queue_scales(results);
  keep(results);
  result->scales = scales_of(results, scales);
  result->contents = results.kept();
  if (inputs != nullptr && prepared.twin != nullptr) {
    if (is_medium(prepared.cost(id.size)))
      (void)add_truth(prepared, *prepared.twin, id, *inputs, *result);
    else
      note_reference_errors(prepared, id, *inputs, *result);
  }
  prepared.book.keep(id, result);
  return result;
}

MTMC_INLINE std::optional<CallResults> Judge::call_twin(DoubleTwin& twin, const CaseId& id,
                                                        const CaseInputs& inputs) {
  heed_stop();
  const auto& wide = twin.layouts[id.size];
  auto& slot = slot_of(backend_, twin, id.size, options_.red_zone_bytes);
  load(slot, wide, inputs, Poison{});
  const auto status = backend_.run(*twin.program, slot.plan, detail::deadline_in(options_.start_seconds));
  if (!status.finished() || damage(slot, wide, nullptr)) return std::nullopt;
  return CallResults(backend_, slot, wide);
}

MTMC_INLINE std::vector<std::optional<double>> Judge::reference_errors(const PreparedTask& prepared,
                                                                       DoubleTwin& twin, const CaseId& id,
                                                                       const CaseInputs& inputs,
                                                                       const ReferenceResult& known) {
  std::vector<std::optional<double>> errors(prepared.layouts[id.size].buffers.size());
  if (const auto results = call_twin(twin, id, inputs))
    errors = errors_of_reference(prepared, id, *results, known, false);
  twin.slots.erase(id.size);
  return errors;
}

MTMC_INLINE void Judge::note_reference_errors(PreparedTask& prepared, const CaseId& id,
                                              const CaseInputs& inputs, const ReferenceResult& known) {
  constexpr double max_seconds = 2;
  if (prepared.seconds[id.size] > max_seconds) return;
  const auto [measured, is_new] = prepared.reference_errors.try_emplace(
      {id.size, id.distribution}, std::vector<double>(prepared.layouts[id.size].buffers.size(), 0));
  if (!is_new) return;
  auto& errors = measured->second;
  const auto shortage = shortage_in([&] {
    const auto found = reference_errors(prepared, *prepared.twin, id, inputs, known);
    for (std::size_t i = 0; i < errors.size(); ++i)
      if (found[i] && *found[i] <= farthest_reference(id.distribution)) errors[i] = *found[i];
  });
  if (shortage) prepared.twin->slots.clear();
}

MTMC_INLINE TwinAgreement Judge::add_truth(const PreparedTask& prepared, DoubleTwin& twin, const CaseId& id,
                                           const CaseInputs& inputs, ReferenceResult& known) {
  const auto& layout = prepared.layouts[id.size];
  auto called = call_twin(twin, id, inputs);
  if (!called) return TwinAgreement::none;
  auto& results = *called;
  const auto errors = errors_of_reference(prepared, id, results, known, true);
  keep(results);
  if (!isolates_programs(backend_)) forget_results(backend_, results.slot(), twin.layouts[id.size]);
  known.widenings.assign(layout.buffers.size(), 1);
  known.truths = results.kept();
  auto agreement = TwinAgreement::confirmed;
  for (std::size_t i = 0; i < layout.buffers.size(); ++i) {
    const double strict = prepared.tolerance(id, i, known, true).relative;
    const double usual = prepared.tolerance(id, i, known, false).relative;
    const double off = errors[i] ? *errors[i] * strict : 0;
    const bool believed = off <= farthest_reference(id.distribution) * usual;
    if (off > farthest_truth * usual)
      agreement = std::min(agreement, believed ? TwinAgreement::believed : TwinAgreement::none);
    if (errors[i] && believed)
      known.widenings[i] = widening_for(*errors[i]);
    else
      known.truths.drop(i);
  }
  return agreement;
}

MTMC_INLINE std::optional<Refusal> Judge::compare(const PreparedTask& prepared, const CaseId& id,
                                                  const CallResults& results, const ReferenceResult& wanted,
                                                  const CaseInputs& inputs, const Poison& poison,
                                                  ComparisonTally& tally) {
  const auto queued = comparison_.queue(prepared, id, results, wanted);
  work_.run();
  return comparison_.answer(prepared, id, results, wanted, inputs, queued, poison, tally);
}

MTMC_INLINE std::optional<Refusal>
Judge::compare_with_reference(PreparedTask& prepared, const CaseId& id, const CallResults& results,
                              const CaseInputs& inputs, const Poison& poison, ComparisonTally& tally) {
  const bool kept = prepared.book.find(id) != nullptr;
  const auto before = tally;
  auto wrong = compare(prepared, id, results, *reference(prepared, id, inputs), inputs, poison, tally);
  if (!wrong || !kept || isolates_programs(backend_)) return wrong;
  tally = before;
  const auto certain = certain_reference(prepared, id, inputs);
  wrong = compare(prepared, id, results, *certain, inputs, poison, tally);
  if (!wrong) {
    prepared.book.forget_all();
    prepared.book.keep(id, certain);
  }
  return wrong;
}

MTMC_INLINE double Judge::launch_limit(const PreparedTask& prepared, std::size_t size) const {
  return std::max(options_.launch_seconds, options_.launch_factor * prepared.seconds[size]);
}

MTMC_INLINE void Judge::throw_reference_error(const Task& task, const Refusal& refusal) {
  const auto& first = refusal.diagnostics.front();
  auto remedy = first.remedy;
  const bool slow = refusal.verdict == Verdict::timeout;
  if (slow) remedy += "; if it is only slow, choose smaller sizes, or allow more time for one call";
  if (refusal.verdict == Verdict::crashed || refusal.verdict == Verdict::out_of_bounds)
    remedy += "; or correct the shapes that the task declares, and give integer inputs that are indices a "
              "domain such as [\"0\", \"N - 1\"]";
  throw Error(error_id::task_start_kernel,
              std::string(task.reference ? "the reference" : "the start kernel") +
                  " failed: " + first.message,
              remedy, "task " + task.name)
      .about(slow ? "KernelEvaluatorOptions::start_seconds" : "");
}

MTMC_INLINE std::size_t Judge::main_size(const Task& task) {
  return static_cast<std::size_t>(task.main_size() - task.sizes.data());
}

MTMC_INLINE std::vector<std::optional<double>>
Judge::errors_of_reference(const PreparedTask& prepared, const CaseId& id, const CallResults& truth,
                           const ReferenceResult& known, bool against_truth) {
  const auto& buffers = prepared.layouts[id.size].buffers;
  std::vector<std::optional<double>> errors(buffers.size());
  std::vector<std::optional<std::size_t>> numbers(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].is_written() || buffers[i].type != DataType::f32) continue;
    numbers[i] = work_.compare(truth, i, known.contents, DataType::f32,
                               prepared.tolerance(id, i, known, against_truth));
  }
  work_.run();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (numbers[i]) errors[i] = work_.found(*numbers[i]).largest_error;
  return errors;
}

MTMC_INLINE bool Judge::has_scale(const BufferLayout& buffer) noexcept {
  return buffer.is_written() && is_floating(buffer.type);
}

MTMC_INLINE std::vector<std::size_t> Judge::queue_scales(const CallResults& results) {
  const auto& buffers = results.layout().buffers;
  std::vector<std::size_t> numbers(buffers.size(), 0);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (has_scale(buffers[i])) numbers[i] = work_.look_for_scale(results, i);
  return numbers;
}

MTMC_INLINE std::vector<double> Judge::scales_of(const CallResults& results,
                                                 std::span<const std::size_t> numbers) {
  const auto& buffers = results.layout().buffers;
  std::vector<double> scales(buffers.size(), 0);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (has_scale(buffers[i])) scales[i] = work_.found(numbers[i]).scale();
  return scales;
}

} // namespace mtmc
