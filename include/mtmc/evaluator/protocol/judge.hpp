#pragma once
/// The hands of the trust protocol: compile, call, look at everything a call may have touched, compare.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/evaluator/content/call_results.hpp>
#include <mtmc/evaluator/content/content_work.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/result_comparison.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/content/slot_content.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
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

/// A call that has ended, and what is to be looked at.
struct FinishedCall {
  /// Which inputs it had.
  CaseId id;
  /// Where it ran.
  Slot* slot = nullptr;
  /// Contents before the call, for the explanation of what is wrong.
  const CaseInputs* inputs = nullptr;
  /// The same, if it is to be seen that no input has changed; else null.
  const CaseInputs* changeless = nullptr;
  /// What the results are compared with; null = they are not.
  const ReferenceResult* wanted = nullptr;
  /// Whether its red zones hold what `load` wrote; else they are not looked at.
  bool has_red_zones = true;
};

/// Does, for one evaluation or preparation, what the protocol asks for on a backend. Not thread-safe; its
/// caller sees to it that only one judge at a time uses the device.
class Judge {
public:
  /// Uses what it is given, which must outlive it.
  Judge(AnyBackend& backend, ContentWork& work, const KernelEvaluatorOptions& options, SecretKeys& keys,
        std::stop_token stop);

  /// What kernels run on.
  [[nodiscard]] AnyBackend& backend() noexcept { return backend_; }
  /// As the evaluator has them.
  [[nodiscard]] const KernelEvaluatorOptions& options() const noexcept { return options_; }
  /// Those that are on.
  [[nodiscard]] const EvaluatorDefences& defences() const noexcept { return options_.defences; }

  /// Random bytes that no earlier buffer held.
  [[nodiscard]] Poison noise() noexcept { return {keys_.next()}; }
  /// True half of the time, by chance.
  [[nodiscard]] bool coin() noexcept { return (keys_.next() & 1) != 0; }
  /// Like `noise`, but zeros every third time by chance, as fresh memory holds them.
  [[nodiscard]] Poison noise_or_zeros() noexcept {
    const auto key = keys_.next();
    return key % 3 == 0 ? Poison::zeros() : Poison{key};
  }

  /// Throws `Error` (`mtmc.evaluator.003`) if the caller has asked to stop.
  void heed_stop() const;

  /// Step 1 of the protocol: what the backend's screen says of a text.
  [[nodiscard]] std::optional<Refusal> screen(const Kernel& kernel);

  /// The buffers a contestant uses at a size, allocated when first needed.
  [[nodiscard]] Slot& slot(const PreparedTask& prepared, Contestant& contestant, std::size_t size,
                           std::size_t place = 0, BufferGuard guard = BufferGuard::red_zones);

  /// Buffers that a contestant has already; null if it has none of that kind.
  [[nodiscard]] static Slot* known_slot(Contestant& contestant, std::size_t size, std::size_t place);

  /// Who else has buffers to spare, asked by `make_room`.
  void when_short(std::function<void()> ask_others) { ask_others_ = std::move(ask_others); }

  /// Gives back all memory that can be had again: of these contestants (null ones count for nothing), of
  /// everything that is kept of the task, and of others. No slot, result or queued job from before may be
  /// used any more.
  void make_room(PreparedTask& prepared, std::initializer_list<Contestant*> contestants);

  /// A guard as the backend and the defences have it.
  [[nodiscard]] BufferGuard possible(BufferGuard guard) const;

  /// Readies a slot for a call. `owner`, if there is one, keeps the inputs.
  void load(Slot& buffers, const ProblemLayout& layout, const CaseInputs& inputs, const Poison& poison,
            Refill refill = Refill::all, const std::shared_ptr<const void>& owner = {});
  /// The same for several slots, whose calls may come once `finish_loading` has been called. The inputs must
  /// live until then.
  void begin_loading(Slot& buffers, const ProblemLayout& layout, const CaseInputs& inputs,
                     const Poison& poison, Refill refill = Refill::all,
                     const std::shared_ptr<const void>& owner = {});
  /// Zeros in the red zones of a slot that is being loaded, as fresh memory has them next to a buffer.
  void clear_red_zones(Slot& buffers);
  /// Does what `begin_loading` has put off.
  void finish_loading();

  /// To be called before a run or a timed group, so that it finds nothing that earlier ones left.
  void overwrite_residue(Contestant& contestant);
  /// What the program has changed of its own memory, asked after a run.
  [[nodiscard]] std::optional<Refusal> changed_state(Contestant& contestant, const ProblemLayout& layout);

  /// A call on other inputs of the case's size, whose results nobody looks at; the next call of the program
  /// follows it in the same process, until `keep_state` is taken back on backends that have it.
  [[nodiscard]] std::optional<Refusal> call_another(const PreparedTask& prepared, Contestant& contestant,
                                                    const CaseId& id, double limit, BufferGuard guard);
  /// Writes of a call where none are allowed; those to inputs only where `inputs` are given.
  [[nodiscard]] std::optional<Refusal> damage(Slot& buffers, const ProblemLayout& layout,
                                              const CaseInputs* inputs);

  /// Makes the results of a call independent of its buffers.
  void keep(CallResults& results);

  /// Elements of two results of one buffer that have other bits.
  struct Difference {
    /// How many.
    std::int64_t count = 0;
    /// Place of the first; nothing where there is none.
    std::optional<std::int64_t> first{};
  };
  /// Compares result `i` bit by bit with what was kept of it.
  [[nodiscard]] Difference difference(const CallResults& results, const KeptContents& kept, std::size_t i);

  /// Looks at finished calls of one size, the first one's damage and results first, and stops at what is
  /// wrong.
  [[nodiscard]] std::optional<Refusal> look_at(const PreparedTask& prepared,
                                               std::span<const FinishedCall> calls, const Poison& poison,
                                               ComparisonTally& tally);

  /// Ends the process of a program, for backends whose programs keep one (`Program::retire()`), so that its
  /// next call takes place in a fresh one. For others a new compilation is a new program.
  void start_afresh(Contestant& contestant);

  /// Whether `reload` does anything.
  [[nodiscard]] bool can_reload() const;
  /// Loads a program anew, for backends that can (`Program::reload()`).
  void reload(Contestant& contestant);

  /// Compiles a kernel and plans its launches for all sizes. Throws `Error` of the launch lines; a kernel
  /// that does not compile comes back without a program, and `result` says why.
  [[nodiscard]] std::shared_ptr<Contestant> compile(const PreparedTask& prepared, const Kernel& kernel,
                                                    const std::vector<LaunchPlan>& plans,
                                                    CompileResult<AnyBackend::Program>& result);

  /// Compiles it once more so that calls show which ways its branches go; null where that is not possible.
  [[nodiscard]] std::shared_ptr<AnyBackend::Program> compile_probed(const PreparedTask& prepared,
                                                                    const Contestant& contestant);

  /// Launch plans of a kernel for all sizes of a task. Throws `Error` of the launch lines.
  [[nodiscard]] std::vector<LaunchPlan> plans_of(const Task& task, const Kernel& kernel);
  /// The same of lines that have been read.
  [[nodiscard]] std::vector<LaunchPlan> plans_of(const Task& task, const LaunchLines& lines);

  /// Outcome of one call.
  struct Call {
    /// What is wrong with the call; nothing if it can be looked at.
    std::optional<Refusal> refusal{};
    /// What it wrote, if it ended well.
    CallResults results{};
    /// From its start to its end, on the host's clock.
    double seconds = 0;
  };

  /// One call on given inputs, from the loading to a look at everything it may have touched. A crash next to
  /// a guard page is taken for an access outside of the buffers, so be sure that the kernel runs without.
  [[nodiscard]] Call call(const PreparedTask& prepared, Contestant& contestant, std::size_t size,
                          const CaseInputs& inputs, const Poison& poison, double limit,
                          Refill refill = Refill::all, BufferGuard guard = BufferGuard::red_zones,
                          const std::shared_ptr<const void>& owner = {});

  /// One call with given bytes round its buffers: those of `zone_keys[2 * i]` before buffer i (arguments
  /// first, then scratch buffers), those of the next key behind it. Nothing if it did not finish. Nobody
  /// looks at what it wrote where.
  [[nodiscard]] std::optional<CallResults> call_within(const PreparedTask& prepared, Contestant& contestant,
                                                       std::size_t size, const CaseInputs& inputs,
                                                       const Poison& poison,
                                                       std::span<const std::uint64_t> zone_keys,
                                                       double limit);

  /// Where a contestant's time goes at the main size; nothing if the backend does not tell.
  [[nodiscard]] std::optional<Profile> profile(const PreparedTask& prepared, Contestant& contestant);

  /// The reference's results for a case: computed once, then shared by all candidates. Throws `Error`
  /// (`mtmc.task.005`) if the reference fails.
  [[nodiscard]] std::shared_ptr<const ReferenceResult> reference(PreparedTask& prepared, const CaseId& id,
                                                                 const CaseInputs& inputs);

  /// The same, but where programs share an address space computed anew: a kernel that ran since may have
  /// written where the kept results lie.
  [[nodiscard]] std::shared_ptr<const ReferenceResult>
  certain_reference(PreparedTask& prepared, const CaseId& id, const CaseInputs& inputs);

  /// Takes over results of the reference, not yet kept. With `inputs` the truth is added where the task has
  /// one and the size is cheap; at other sizes the reference's own errors are measured, once for each
  /// distribution.
  std::shared_ptr<const ReferenceResult> keep_reference(PreparedTask& prepared, const CaseId& id,
                                                        CallResults& results,
                                                        const CaseInputs* inputs = nullptr);

  /// Adds the truth about all f32 results of a case, where those of the reference are near enough to believe
  /// it, and says how near the farthest is.
  TwinAgreement add_truth(const PreparedTask& prepared, DoubleTwin& twin, const CaseId& id,
                          const CaseInputs& inputs, ReferenceResult& known);

  /// Measures by how many tolerances the reference is off by the task's twin in a case whose results are
  /// compared with those of the reference alone, so that no candidate has to share its rounding errors. A
  /// layer norm whose start kernel adds 65,536 terms one after the other was off by 1e-5 where a right
  /// candidate was off by 3e-8; on inputs of far magnitudes one of 4 million results in which two large terms
  /// cancel is off by thousands of epsilons (measured). Where one call takes more than 2 s, or the twin finds
  /// no memory, the tolerance of an honest reference remains.
  void note_reference_errors(PreparedTask& prepared, const CaseId& id, const CaseInputs& inputs,
                             const ReferenceResult& known);

  /// By how many tolerances the reference is off by its twin in a case, by buffer: nothing for what is no f32
  /// result, and for all if the twin fails. Frees the twin's buffers.
  [[nodiscard]] std::vector<std::optional<double>> reference_errors(const PreparedTask& prepared,
                                                                    DoubleTwin& twin, const CaseId& id,
                                                                    const CaseInputs& inputs,
                                                                    const ReferenceResult& known);

  /// Compares all results with the reference's. `inputs` and `poison` are for the explanation.
  [[nodiscard]] std::optional<Refusal> compare(const PreparedTask& prepared, const CaseId& id,
                                               const CallResults& results, const ReferenceResult& wanted,
                                               const CaseInputs& inputs, const Poison& poison,
                                               ComparisonTally& tally);

  /// Compares all results, which must not lie in the reference's slot, with the reference's for a case. What
  /// is wrong by a result that was kept while other kernels ran is compared once more with a certain one; if
  /// it is right by that, nothing that was kept is trusted any more.
  [[nodiscard]] std::optional<Refusal> compare_with_reference(PreparedTask& prepared, const CaseId& id,
                                                              const CallResults& results,
                                                              const CaseInputs& inputs, const Poison& poison,
                                                              ComparisonTally& tally);

  /// Seconds that one call of a candidate may take at a size.
  [[nodiscard]] double launch_limit(const PreparedTask& prepared, std::size_t size) const;

  /// Reports a failure of the task's own kernel, which the task itself may be to blame for.
  [[noreturn]] static void throw_reference_error(const Task& task, const Refusal& refusal);

private:
  [[nodiscard]] static std::size_t main_size(const Task& task);

  /// Results of the twin in a case, not yet kept; nothing if it fails.
  [[nodiscard]] std::optional<CallResults> call_twin(DoubleTwin& twin, const CaseId& id,
                                                     const CaseInputs& inputs);

  /// By how many tolerances, those against the truth or the usual ones, the reference is off by the twin's
  /// results, which are not yet kept; nothing for buffers that are no f32 results.
  [[nodiscard]] std::vector<std::optional<double>>
  errors_of_reference(const PreparedTask& prepared, const CaseId& id, const CallResults& truth,
                      const ReferenceResult& known, bool against_truth);

  [[nodiscard]] static bool has_scale(const BufferLayout& buffer) noexcept;
  /// `output_scale` of all results that have one, in two parts: the numbers of the looks, by buffer, and what
  /// they found.
  [[nodiscard]] std::vector<std::size_t> queue_scales(const CallResults& results);
  [[nodiscard]] std::vector<double> scales_of(const CallResults& results,
                                              std::span<const std::size_t> numbers);

  AnyBackend& backend_;
  ContentWork& work_;
  const KernelEvaluatorOptions& options_;
  SecretKeys& keys_;
  std::stop_token stop_;
  std::function<void()> ask_others_;
  ResultComparison comparison_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/judge_inl.hpp>
#endif
