#pragma once
/// The five concepts a host can model, and one sentence for each thing that may be missing.
///
/// Write `static_assert(mtmc::check_policy<MyPolicy>());` under your own type: the compiler then says in one
/// sentence what to add.

#include <mtmc/core/action.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/core/structure.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Chooses what to do next.
template <class P>
concept Policy =
    requires(P& policy, const Observation& seen, std::span<const Action> legal, std::stop_token stop) {
      { policy.distribution(seen, legal, stop) } -> std::same_as<ActionDistribution>;
    };

/// An optional ability of a policy: it has actions of its own, offered in the place of those that the action
/// space finds legal (which it gets to see); none = it would stop. Called once a decision, before
/// `distribution`, whose legal actions then are what it proposed, and `stop`.
template <class P>
concept ProposesActions =
    requires(P& policy, const Observation& seen, std::span<const Action> legal, std::stop_token stop) {
      { policy.propose(seen, legal, stop) } -> std::same_as<std::vector<Action>>;
    };

/// Writes one step.
template <class C>
concept Coder = requires(C& coder, const CodingRequest& request, std::stop_token stop) {
  { coder.implement(request, stop) } -> std::same_as<Draft>;
};

/// An optional ability of a coder: it knows which optimisation types it writes, of kernels in which language.
/// Those it does not write are not offered to the policy, so that no step is lost on them.
template <class C>
concept KnowsWhatItWrites =
    requires(const C& coder, std::string_view optimization, const Language& language) {
      { coder.writes(optimization, language) } -> std::same_as<bool>;
    };

/// An optional ability of a coder: it knows beforehand which of the legal actions on a kernel it can carry
/// out, because trying costs it nothing. The others are not offered to the policy.
template <class C>
concept KnowsFeasibleActions = requires(C& coder, const CodingRequest& about, std::vector<Action> actions) {
  { coder.feasible_actions(about, std::move(actions)) } -> std::same_as<std::vector<Action>>;
};

/// Says where something could be done.
template <class F>
concept RegionFinder = requires(const F& finder, const Task& task, const Kernel& kernel) {
  { finder.find(task, kernel) } -> std::same_as<Structure>;
};

/// Gives a reference to its device, which stays valid as long as the part itself.
template <class T>
concept GivesDevice = requires(T& part) {
  { part.device() } -> std::convertible_to<const Device&>;
  requires std::is_lvalue_reference_v<decltype(part.device())>;
};

/// Says whether a candidate is right, and how fast.
///
/// `evaluate` answers with an `Evaluation`, of which a loop reads:
/// - `verdict`: has to be given; without it the run ends with `Error` (`mtmc.evaluator.005`).
/// - `seconds` (correct candidates): of one call. Shown, and, where there is no `speed_up`, compared with the
///   seconds that were given for the incumbent.
/// - `speed_up` (where the request has an incumbent): the ratio to it and its confidence interval. Without it
///   the ratio of the `seconds` counts, and reports and records show no interval. Without either the
///   candidate is never taken for faster.
/// - `comparison`: what that proves. Without it (`not_timed`) the interval decides or, where there is none,
///   the ratio alone.
/// - `diagnostics` and `rule` (candidates that are not correct): the first error is the reason in history and
///   report; all of them are what a coder repairs by.
/// - `sizes`: their `size`s are those that the result calls verified, their `incumbent_seconds` the times of
///   the start kernel beside the best one's.
/// - `resources` and `environment`: read by some policies and by the report (`environment_key`).
/// - `binary_hash`: shown by the report, and named in the launcher's head.
/// All else is kept in the journal as it is. Each answer stands alone: the same request may be asked again
/// with `Purpose::promote`, and only what is faster then, too, becomes the new best.
template <class E>
concept Evaluator =
    GivesDevice<E> && requires(E& evaluator, const EvaluationRequest& request, std::stop_token stop) {
      { evaluator.evaluate(request, stop) } -> std::same_as<Evaluation>;
    };

/// Deadlines are points of the steady clock, so that nested work can share one.
using Deadline = std::chrono::steady_clock::time_point;

/// What a backend's compiler is told.
struct CompileOptions {
  /// The launches, with the types of their arguments, that the program must be able to run (any size's plan).
  LaunchPlan plan;
  /// When the compiler is stopped.
  Deadline deadline = Deadline::max();
  /// Bytes the compiler may use; 0 = the backend's default.
  std::int64_t memory_limit = 0;
};

/// What a backend's compiler answers. Exactly one of: a program; `timed_out`; diagnostics with at least one
/// error.
template <class Program> struct CompileResult {
  /// The program, shared by everyone who runs it; null if there is none.
  std::shared_ptr<Program> program{};
  /// The deadline passed before there was a program.
  bool timed_out = false;
  /// What was built holds or uses something that a candidate must not; there is no program, and the
  /// diagnostics say what and what to do instead.
  bool refused = false;
  /// Errors and warnings, with places in the kernel's own text.
  std::vector<Diagnostic> diagnostics{};
  /// Registers, spills, code bytes, ...: what the compiler reports of the program.
  std::map<std::string, double> resources{};
  /// Wall-clock seconds.
  double seconds = 0;

  /// The program, for kernels of this library's own, which must compile. Throws `Error` (`mtmc.backend.001`)
  /// if there is none. `purpose` completes "the kernel that ...".
  [[nodiscard]] std::shared_ptr<Program> program_or_throw(std::string_view purpose) const {
    if (program) return program;
    const std::string reason =
        timed_out || diagnostics.empty() ? " in time" : ": " + diagnostics.front().message;
    throw Error(error_id::backend_compiler,
                "the kernel that " + std::string(purpose) + " cannot be compiled" + reason,
                "Check that the device's compiler is completely installed, and allow it more time");
  }
};

/// How a run ended.
enum class RunOutcome {
  finished,
  /// The launch itself was impossible (too large a block, missing entry, ...): nothing ran, the program is
  /// still usable.
  launch_failed,
  /// It ran past its deadline. The program cannot be used any more.
  timed_out,
  /// It crashed: signal, trap, illegal address. The program cannot be used any more.
  faulted,
  /// The device itself is lost.
  device_lost
};

namespace detail {
inline constexpr EnumName<RunOutcome> run_outcome_names[] = {
    {RunOutcome::finished, "finished"},       {RunOutcome::launch_failed, "launch_failed"},
    {RunOutcome::timed_out, "timed_out"},     {RunOutcome::faulted, "faulted"},
    {RunOutcome::device_lost, "device_lost"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<RunOutcome>> enum_names(RunOutcome) noexcept {
  return detail::run_outcome_names;
}

/// Outcome of one call, with a sentence where it is not `finished`.
struct RunStatus {
  RunOutcome outcome = RunOutcome::finished; ///< how the call ended
  std::string message{};                     ///< a sentence where it is not `finished`

  /// Whether the call ran to its end.
  [[nodiscard]] bool finished() const noexcept { return outcome == RunOutcome::finished; }
};

/// Outcome of a timed group, by a clock the candidate cannot reach.
struct TimedRun {
  /// How the group ended.
  RunStatus status{};
  /// Wall-clock seconds of the whole group from its first launch to its last completion.
  double seconds = 0;
};

/// What new hardware must offer to get the whole trust protocol from `KernelEvaluator`. All that is promised
/// here is tried by the conformance suite (evaluator/backend_conformance.hpp); the names of its checks stand
/// in parentheses.
///
/// **Device.** `device()` has a name, a kind and at least one compute unit (device.filled) and stays what it
/// is, measured ceilings aside (device.stable).
///
/// **Buffers.** `Buffer` is movable and frees its memory when it dies. Its `std::uint64_t handle() const` is
/// the value that the evaluator writes into `BoundBuffer::handle`: never 0, and another one for each buffer
/// that is alive, one of no bytes included (memory.handles). Handle and content survive a move
/// (memory.move). `upload` and `download` copy exactly the bytes asked for, at any offset, and are done when
/// they return (memory.round_trip). For bytes outside the buffer, and for none behind its end, they throw
/// std::out_of_range before anything is copied (memory.out_of_range).
///
/// **Screen.** `screen` looks at a kernel's text before anything is compiled: diagnostics with an error
/// refuse it. A backend with nothing to look for answers `{}`.
///
/// **Compiler.** `Program` is what `compile` makes. The answer is exactly one of a program, `timed_out`, and
/// diagnostics with an error; beside a program there is no error (compile.correct). An error names its line
/// in the kernel's own text (compile.wrong). An entry of the plan that the text lacks is an error, or
/// `launch_failed` when it is to run (compile.missing_entry). `compile` answers `timed_out` after its
/// deadline (compile.deadline) and when its caller asks to stop (compile.stop); a compiler that lives in this
/// process and cannot be interrupted is asked before and after. The same text may be compiled again; each
/// holder's program stays usable (compile.twice).
///
/// **Runs.** `run` calls all launches of a plan whose buffers are bound, in order, each after the one before
/// it has ended, and waits for the last (run.result, run.several_launches). One program runs with the plan of
/// any size. Kernels get the buffers themselves, neither cleared nor copied (run.writes_nothing), from
/// `BoundBuffer::offset` bytes behind the begin on; several arguments may lie in one buffer (run.offsets).
/// Only where an argument is `zeroed` its bytes are filled with zeros first, before that launch and after
/// those before it, in every call, as a part of what is timed (run.zeroed).
/// Scalars arrive in the parameter's own type and width: `LaunchArgument::real` of floating ones, `integer`
/// of others (run.scalars), also where a launch line has an expression, which is an i64
/// (run.converted_scalars). A buffer with handle 0 is not bound: `run` and `time` throw `Error`
/// (`mtmc.backend.002`) before anything runs, and the program stays usable (run.unbound). Programs do not
/// disturb each other, and outlive each other (run.two_programs).
///
/// **Deadlines and crashes.** A plan that is still running at its deadline ends as `timed_out`, soon after,
/// in `run` and in `time`, whose deadline is that of the whole group: whether it would end later
/// (run.deadline, time.deadline) or never (run.never_ends). A program that crashes ends as `faulted`, with a
/// sentence, or as `device_lost` (run.crashes). Unless the device is lost, fresh programs run as before.
///
/// **Times.** `time` runs every plan of a group, back to back (time.group), and reports the wall-clock
/// seconds, more than 0, from the first launch to the last completion, by a clock the candidate cannot reach
/// (time.warm, time.more_work). Results are those of `run`. With `cold` it evicts the buffers of the group
/// from all caches before, which does not count (time.cold, time.evicts); without, they stay where they are.
///
/// **Threads.** `compile` may be called from several threads at once, also while something runs, unless the
/// backend limits itself (`max_concurrency`); everything else by one thread at a time, not always the same
/// (run.concurrent). A backend that several processes may use at once keeps their timings apart itself
/// (`DeviceLock`), as it alone knows what disturbs them.
///
/// **Exceptions.** What a kernel is at fault for is a value; `Error` is for surroundings that are broken.
///
/// What a backend may offer beyond that stands in core/backend_abilities.hpp.
template <class B>
concept Backend =
    GivesDevice<B> &&
    requires(B& backend, const Kernel& kernel, const CompileOptions& options,
             std::span<const LaunchPlan> group, const LaunchPlan& plan, std::stop_token stop,
             typename B::Program& program, typename B::Buffer& buffer, std::size_t bytes,
             std::span<const std::byte> content, std::span<std::byte> target, Deadline deadline) {
      requires std::movable<typename B::Buffer>;
      { buffer.handle() } -> std::convertible_to<std::uint64_t>;
      { backend.screen(kernel) } -> std::same_as<std::vector<Diagnostic>>;
      { backend.compile(kernel, options, stop) } -> std::same_as<CompileResult<typename B::Program>>;
      { backend.allocate(bytes) } -> std::same_as<typename B::Buffer>;
      { backend.upload(buffer, bytes, content) };
      { backend.download(buffer, bytes, target) };
      { backend.run(program, plan, deadline) } -> std::same_as<RunStatus>;
      { backend.time(program, group, true, deadline) } -> std::same_as<TimedRun>;
    };

namespace detail {
template <class P>
concept HasDistribution = requires(P& policy, const Observation& seen, std::span<const Action> legal,
                                   std::stop_token stop) { policy.distribution(seen, legal, stop); };
template <class C>
concept HasImplement = requires(C& coder, const CodingRequest& request, std::stop_token stop) {
  coder.implement(request, stop);
};
template <class F>
concept HasFind =
    requires(const F& finder, const Task& task, const Kernel& kernel) { finder.find(task, kernel); };
template <class E>
concept HasEvaluate = requires(E& evaluator, const EvaluationRequest& request, std::stop_token stop) {
  evaluator.evaluate(request, stop);
};
template <class B>
concept HasProgram = requires { typename B::Program; };
template <class B>
concept HasBuffer = requires { typename B::Buffer; } && std::movable<typename B::Buffer>;
template <class B>
concept HasHandle = HasBuffer<B> && requires(typename B::Buffer& buffer) {
  { buffer.handle() } -> std::convertible_to<std::uint64_t>;
};
template <class B>
concept HasScreen = requires(B& backend, const Kernel& kernel) {
  { backend.screen(kernel) } -> std::same_as<std::vector<Diagnostic>>;
};
template <class B>
concept HasCompile = HasProgram<B> && requires(B& backend, const Kernel& kernel,
                                               const CompileOptions& options, std::stop_token stop) {
  { backend.compile(kernel, options, stop) } -> std::same_as<CompileResult<typename B::Program>>;
};
template <class B>
concept HasAllocate = HasBuffer<B> && requires(B& backend, std::size_t bytes) {
  { backend.allocate(bytes) } -> std::same_as<typename B::Buffer>;
};
template <class B>
concept HasUpload =
    HasBuffer<B> && requires(B& backend, typename B::Buffer& buffer, std::size_t offset,
                             std::span<const std::byte> content) { backend.upload(buffer, offset, content); };
template <class B>
concept HasDownload =
    HasBuffer<B> && requires(B& backend, typename B::Buffer& buffer, std::size_t offset,
                             std::span<std::byte> target) { backend.download(buffer, offset, target); };
template <class B>
concept HasRun = HasProgram<B> && requires(B& backend, typename B::Program& program, const LaunchPlan& plan,
                                           Deadline deadline) {
  { backend.run(program, plan, deadline) } -> std::same_as<RunStatus>;
};
template <class B>
concept HasTime = HasProgram<B> && requires(B& backend, typename B::Program& program,
                                            std::span<const LaunchPlan> group, Deadline deadline) {
  { backend.time(program, group, true, deadline) } -> std::same_as<TimedRun>;
};
} // namespace detail

/// True, or a compile error with a sentence that says what to add to `P`.
template <class P> consteval bool check_policy() {
  static_assert(detail::HasDistribution<P>,
                "mtmc: a policy needs `mtmc::ActionDistribution distribution(const mtmc::Observation&, "
                "std::span<const mtmc::Action>, std::stop_token)`");
  if constexpr (detail::HasDistribution<P>)
    static_assert(Policy<P>,
                  "mtmc: `distribution` of a policy must return `mtmc::ActionDistribution` by value");
  return Policy<P>;
}

/// True, or a compile error with a sentence that says what to add to `C`.
template <class C> consteval bool check_coder() {
  static_assert(detail::HasImplement<C>,
                "mtmc: a coder needs `mtmc::Draft implement(const mtmc::CodingRequest&, std::stop_token)`");
  if constexpr (detail::HasImplement<C>)
    static_assert(Coder<C>, "mtmc: `implement` of a coder must return `mtmc::Draft` by value");
  return Coder<C>;
}

/// True, or a compile error with a sentence that says what to add to `F`.
template <class F> consteval bool check_region_finder() {
  static_assert(
      detail::HasFind<F>,
      "mtmc: a region finder needs `mtmc::Structure find(const mtmc::Task&, const mtmc::Kernel&) const`");
  if constexpr (detail::HasFind<F>)
    static_assert(RegionFinder<F>, "mtmc: `find` of a region finder must return `mtmc::Structure` by value");
  return RegionFinder<F>;
}

/// True, or a compile error with a sentence that says what to add to `E`.
template <class E> consteval bool check_evaluator() {
  static_assert(GivesDevice<E>, "mtmc: an evaluator needs `const mtmc::Device& device()`");
  static_assert(detail::HasEvaluate<E>, "mtmc: an evaluator needs `mtmc::Evaluation evaluate(const "
                                        "mtmc::EvaluationRequest&, std::stop_token)`");
  if constexpr (GivesDevice<E> && detail::HasEvaluate<E>)
    static_assert(Evaluator<E>, "mtmc: `evaluate` of an evaluator must return `mtmc::Evaluation` by value");
  return Evaluator<E>;
}

/// True, or a compile error with a sentence that says what to add to `B`.
template <class B> consteval bool check_backend() {
  static_assert(GivesDevice<B>, "mtmc: a backend needs `const mtmc::Device& device()`");
  static_assert(detail::HasScreen<B>,
                "mtmc: a backend needs `std::vector<mtmc::Diagnostic> screen(const mtmc::Kernel&)` (it gives "
                "`{}` if there is nothing to look for)");
  static_assert(detail::HasProgram<B>, "mtmc: a backend needs a member type `Program`, what `compile` makes");
  static_assert(detail::HasBuffer<B>,
                "mtmc: a backend needs a movable member type `Buffer` that frees its memory");
  if constexpr (detail::HasBuffer<B>) {
    static_assert(detail::HasHandle<B>, "mtmc: a backend's `Buffer` needs `std::uint64_t handle() const`");
    static_assert(detail::HasAllocate<B>, "mtmc: a backend needs `Buffer allocate(std::size_t bytes)`");
    static_assert(detail::HasUpload<B>, "mtmc: a backend needs `void upload(Buffer&, std::size_t offset, "
                                        "std::span<const std::byte>)`");
    static_assert(detail::HasDownload<B>, "mtmc: a backend needs `void download(Buffer&, std::size_t offset, "
                                          "std::span<std::byte>)`");
  }
  if constexpr (detail::HasProgram<B>) {
    static_assert(detail::HasCompile<B>,
                  "mtmc: a backend needs `mtmc::CompileResult<Program> compile(const mtmc::Kernel&, const "
                  "mtmc::CompileOptions&, std::stop_token)`");
    static_assert(detail::HasRun<B>,
                  "mtmc: a backend needs `mtmc::RunStatus run(Program&, const mtmc::LaunchPlan&, "
                  "mtmc::Deadline)`");
    static_assert(
        detail::HasTime<B>,
        "mtmc: a backend needs `mtmc::TimedRun time(Program&, std::span<const mtmc::LaunchPlan> group, bool "
        "cold, mtmc::Deadline)`");
  }
  return Backend<B>;
}

// Optional abilities: found by these concepts, never demanded. Those of a backend:
// core/backend_abilities.hpp.

/// An evaluator that can get a task ready (compile and check the start kernel, calibrate) before the first
/// candidate. Throws `Error` where the task cannot be judged.
template <class E>
concept PreparesTask =
    requires(E& evaluator, const Task& task, std::stop_token stop) { evaluator.prepare(task, stop); };

/// An evaluator that says how many seconds one call of a task's own kernel may take while the task is
/// prepared.
template <class E>
concept LimitsStartKernel = requires(const E& evaluator) {
  { evaluator.start_seconds() } -> std::convertible_to<double>;
};

/// A part that names itself and its settings in one line; goes into cache keys and reports.
template <class T>
concept HasIdentity = requires(const T& part) {
  { part.identity() } -> std::convertible_to<std::string>;
};

/// A part that declares, as `static constexpr int max_concurrency`, how many of its calls may run at once.
template <class T>
concept HasMaxConcurrency = requires {
  { T::max_concurrency } -> std::convertible_to<int>;
};

/// A part that says so at run time (the type-erased twins do).
template <class T>
concept HasConcurrencyLimit = requires(const T& part) {
  { part.concurrency_limit() } -> std::convertible_to<int>;
};

/// What `concurrency_limit_of` answers for a part that declares nothing.
inline constexpr int unlimited_concurrency = 1 << 20;

/// How many calls of a part may run at once: its own declaration, or no limit.
template <class T> [[nodiscard]] int concurrency_limit_of([[maybe_unused]] const T& part) {
  if constexpr (HasConcurrencyLimit<T>)
    return part.concurrency_limit();
  else if constexpr (HasMaxConcurrency<T>)
    return T::max_concurrency;
  else
    return unlimited_concurrency;
}

/// Whether a coder may write steps of this type; true if it does not say.
template <class C>
[[nodiscard]] bool writes_of([[maybe_unused]] const C& coder, [[maybe_unused]] std::string_view optimization,
                             [[maybe_unused]] const Language& language) {
  if constexpr (KnowsWhatItWrites<C>)
    return coder.writes(optimization, language);
  else
    return true;
}

/// The actions that a coder can carry out on the kernel of `about.seen`, in their order (the action and the
/// sample of `about` mean nothing); all of them if it does not say. `stop` is always among them.
template <class C>
[[nodiscard]] std::vector<Action> feasible_actions_of([[maybe_unused]] C& coder,
                                                      [[maybe_unused]] const CodingRequest& about,
                                                      std::vector<Action> actions) {
  if constexpr (KnowsFeasibleActions<C>)
    return coder.feasible_actions(about, std::move(actions));
  else
    return actions;
}

/// The evaluator's limit for one call of a task's own kernel, in seconds; 0 if it does not say.
template <class E> [[nodiscard]] double start_seconds_of([[maybe_unused]] const E& evaluator) {
  if constexpr (LimitsStartKernel<E>)
    return evaluator.start_seconds();
  else
    return 0;
}

/// A part's identity, or nothing if it has none.
template <class T> [[nodiscard]] std::string identity_of([[maybe_unused]] const T& part) {
  if constexpr (HasIdentity<T>)
    return part.identity();
  else
    return {};
}

} // namespace mtmc
