#pragma once
/// The five concepts a host can model, and one sentence for each thing that may be missing.
///
/// Write `static_assert(mtmc::check_policy<MyPolicy>());` under your own type: the compiler then says in one
/// sentence what to add.

#include <mtmc/core/action.hpp>
#include <mtmc/core/conditions.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/enum_names.hpp>
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
#include <type_traits>
#include <vector>

namespace mtmc {

/// Chooses what to do next.
template <class P>
concept Policy = requires(P& policy, const Observation& seen, std::span<const Action> legal,
                          std::stop_token stop) {
  { policy.distribution(seen, legal, stop) } -> std::same_as<ActionDistribution>;
};

/// An optional ability of a policy: it has actions of its own, offered in the place of those that the action
/// space finds legal (which it gets to see); none = it would stop. Called once a decision, before
/// `distribution`, whose legal actions then are what it proposed, and `stop`.
template <class P>
concept ProposesActions = requires(P& policy, const Observation& seen, std::span<const Action> legal,
                                   std::stop_token stop) {
  { policy.propose(seen, legal, stop) } -> std::same_as<std::vector<Action>>;
};

/// Writes one step.
template <class C>
concept Coder = requires(C& coder, const CodingRequest& request, std::stop_token stop) {
  { coder.implement(request, stop) } -> std::same_as<Draft>;
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
template <class E>
concept Evaluator = GivesDevice<E> &&
    requires(E& evaluator, const EvaluationRequest& request, std::stop_token stop) {
  { evaluator.evaluate(request, stop) } -> std::same_as<Evaluation>;
};

/// Deadlines are points of the steady clock, so that nested work can share one.
using Deadline = std::chrono::steady_clock::time_point;

/// What a backend's compiler is told.
struct CompileOptions {
  /// The launches, with the types of their arguments, that the program must be able to run (any size's plan).
  LaunchPlan plan;
  Deadline deadline = Deadline::max();
  /// Bytes the compiler may use; 0 = the backend's default.
  std::int64_t memory_limit = 0;
};

/// What a backend's compiler answers. Exactly one of: a program; `timed_out`; diagnostics with at least one
/// error.
template <class Program> struct CompileResult {
  /// The program, shared by everyone who runs it; null if there is none.
  std::shared_ptr<Program> program{};
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
  RunOutcome outcome = RunOutcome::finished;
  std::string message{};

  [[nodiscard]] bool finished() const noexcept { return outcome == RunOutcome::finished; }
};

/// Outcome of a timed group, by a clock the candidate cannot reach.
struct TimedRun {
  RunStatus status{};
  /// Wall-clock seconds of the whole group from its first launch to its last completion.
  double seconds = 0;
};

/// What new hardware must offer to get the whole trust protocol from `KernelEvaluator`.
///
/// `Program` is what `compile` makes; `Buffer` is movable, frees its memory when it dies and has
/// `std::uint64_t handle() const`, the value that the evaluator writes into `BoundBuffer::handle`. `run`
/// calls all launches of a plan whose buffers are bound, in order, and waits. `time` does so for every plan
/// of a group, back to back, and reports seconds; with `cold` it evicts the buffers of the group from all
/// caches before. `upload` and `download` throw std::out_of_range for bytes outside the buffer.
///
/// `compile` answers `timed_out` after its deadline and when its caller asks to stop; a compiler that lives
/// in this process and cannot be interrupted is asked before and after. It may be called from several threads
/// at once, also while something runs, unless the backend limits itself (`max_concurrency`); `run` and `time`
/// are called by one thread at a time. A backend that several processes may use at once keeps their timings
/// apart itself (`DeviceLock`), as it alone knows what disturbs them.
///
/// A backend may also offer `screen(kernel)`, `resources(program)`, `guard_page_bytes()` (see
/// `HasGuardPages`), `choose_place()` (see `ChoosesPlace`), `conditions()` (see `ReportsConditions`),
/// `profile(program, plan)` (see `Profiles`), ways to save copies (see `ShowsBuffers` and
/// `TakesSharedUploads`), `fill(buffer, offset, bytes, value)`, and, with `runs_judge_kernels`, that the
/// judge makes, looks at and compares contents on the device itself (evaluator/device_kernel.hpp).
template <class B>
concept Backend = GivesDevice<B> &&
    requires(B& backend, const Kernel& kernel, const CompileOptions& options,
             std::span<const LaunchPlan> group, const LaunchPlan& plan, std::stop_token stop,
             typename B::Program& program, typename B::Buffer& buffer, std::size_t bytes,
             std::span<const std::byte> content, std::span<std::byte> target, Deadline deadline) {
  requires std::movable<typename B::Buffer>;
  { buffer.handle() } -> std::convertible_to<std::uint64_t>;
  { backend.compile(kernel, options, stop) } -> std::same_as<CompileResult<typename B::Program>>;
  { backend.allocate(bytes) } -> std::same_as<typename B::Buffer>;
  {backend.upload(buffer, bytes, content)};
  {backend.download(buffer, bytes, target)};
  { backend.run(program, plan, deadline) } -> std::same_as<RunStatus>;
  { backend.time(program, group, true, deadline) } -> std::same_as<TimedRun>;
};

namespace detail {
template <class P>
concept HasDistribution = requires(P& policy, const Observation& seen, std::span<const Action> legal,
                                   std::stop_token stop) {
  policy.distribution(seen, legal, stop);
};
template <class C>
concept HasImplement = requires(C& coder, const CodingRequest& request, std::stop_token stop) {
  coder.implement(request, stop);
};
template <class F>
concept HasFind = requires(const F& finder, const Task& task, const Kernel& kernel) {
  finder.find(task, kernel);
};
template <class E>
concept HasEvaluate = requires(E& evaluator, const EvaluationRequest& request, std::stop_token stop) {
  evaluator.evaluate(request, stop);
};
template <class B>
concept HasProgram = requires {
  typename B::Program;
};
template <class B>
concept HasBuffer = requires {
  typename B::Buffer;
}
&&std::movable<typename B::Buffer>;
template <class B>
concept HasHandle = HasBuffer<B> && requires(typename B::Buffer& buffer) {
  { buffer.handle() } -> std::convertible_to<std::uint64_t>;
};
template <class B>
concept HasCompile = HasProgram<B> &&
    requires(B& backend, const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
  { backend.compile(kernel, options, stop) } -> std::same_as<CompileResult<typename B::Program>>;
};
template <class B>
concept HasAllocate = HasBuffer<B> && requires(B& backend, std::size_t bytes) {
  { backend.allocate(bytes) } -> std::same_as<typename B::Buffer>;
};
template <class B>
concept HasUpload = HasBuffer<B> &&
    requires(B& backend, typename B::Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
  backend.upload(buffer, offset, content);
};
template <class B>
concept HasDownload = HasBuffer<B> &&
    requires(B& backend, typename B::Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
  backend.download(buffer, offset, target);
};
template <class B>
concept HasRun = HasProgram<B> &&
    requires(B& backend, typename B::Program& program, const LaunchPlan& plan, Deadline deadline) {
  { backend.run(program, plan, deadline) } -> std::same_as<RunStatus>;
};
template <class B>
concept HasTime = HasProgram<B> &&
    requires(B& backend, typename B::Program& program, std::span<const LaunchPlan> group, Deadline deadline) {
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

// Optional abilities: found by these concepts, never demanded.

/// An evaluator that can get a task ready (compile and check the start kernel, calibrate) before the first
/// candidate. Throws `Error` where the task cannot be judged.
template <class E>
concept PreparesTask = requires(E& evaluator, const Task& task, std::stop_token stop) {
  evaluator.prepare(task, stop);
};

/// An evaluator that says how many seconds one call of a task's own kernel may take while the task is
/// prepared.
template <class E>
concept LimitsStartKernel = requires(const E& evaluator) {
  { evaluator.start_seconds() } -> std::convertible_to<double>;
};

/// A backend around whose allocations there is no memory for programs: `guard_page_bytes()` is the size of
/// its pages, and a program that touches a byte before the first of an allocation, or after its last rounded
/// up to whole pages, ends its run `faulted`. The evaluator then lets some checks take place where a buffer
/// ends (or begins) at such a page.
template <class B>
concept HasGuardPages = requires(const B& backend) {
  { backend.guard_page_bytes() } -> std::convertible_to<std::size_t>;
};

/// A backend whose buffers the evaluator can look into without copying: `view(buffer, offset, bytes)` gives
/// what `download` would, or nothing where it must be copied. The bytes may change only while a program runs
/// to which the buffer is bound, and in the next call that is given the buffer. Throws std::out_of_range as
/// `download` does.
template <class B>
concept ShowsBuffers = requires(B& backend, typename B::Buffer& buffer, std::size_t bytes) {
  { backend.view(buffer, bytes, bytes) } -> std::same_as<std::span<const std::byte>>;
};

/// A backend that can take an upload without copying it at once: `upload(buffer, offset, content, owner)`
/// does what `upload` does, but may read `content` as late as in the next run of a plan that is bound to the
/// buffer. `owner` keeps `content` alive, and nobody changes it before that run has begun.
template <class B>
concept TakesSharedUploads = requires(B& backend, typename B::Buffer& buffer, std::size_t offset,
                                      std::span<const std::byte> content, std::shared_ptr<const void> owner) {
  backend.upload(buffer, offset, content, owner);
};

/// A backend on which times depend on where on the device a program runs: the timings from one call of
/// `choose_place()` to the next take place on the same part of it, so that they can be compared.
template <class B>
concept ChoosesPlace = requires(B& backend) {
  {backend.choose_place()};
};

/// A backend that reads counters of its device and host, from which the evaluator tells whether a timing was
/// disturbed. Called before and after a timing, never within; it should take a millisecond at most. Throws
/// nothing: what cannot be read is absent.
template <class B>
concept ReportsConditions = requires(B& backend) {
  { backend.conditions() } -> std::same_as<Conditions>;
};

/// A backend that tells where the time of a plan goes whose buffers are bound, by counters of a run or else
/// by what it knows of the program. May take seconds, and leaves the buffers as they are. Throws nothing for
/// what the surroundings lack: the profile says what is missing.
template <class B>
concept Profiles = requires(B& backend, typename B::Program& program, const LaunchPlan& plan) {
  { backend.profile(program, plan) } -> std::same_as<Profile>;
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

/// A backend that can write a kernel anew with every `float` made a `double`, in its text and its launch
/// lines, so that the same function is computed without f32's rounding errors. Integers and constants stay
/// what they are. Nothing where types alone do not do it: where the kernel looks at the bits of a float, say.
/// An evaluator may run such a twin of the task's own kernel to learn the true results; it uses them only
/// where the kernel itself confirms them, so a twin may turn out not to compile or to compute something else.
template <class B>
concept GivesDoubleTwin = requires(const B& backend, const Kernel& kernel) {
  { backend.in_double_precision(kernel) } -> std::same_as<std::optional<Kernel>>;
};

/// Bytes of the pages that a backend keeps away from programs around each of its allocations; 0 if it does
/// not.
template <class B> [[nodiscard]] std::size_t guard_page_bytes_of([[maybe_unused]] const B& backend) {
  if constexpr (HasGuardPages<B>)
    return backend.guard_page_bytes();
  else
    return 0;
}

/// How many calls of a part may run at once: its own declaration, or no limit.
template <class T> [[nodiscard]] int concurrency_limit_of([[maybe_unused]] const T& part) {
  if constexpr (HasConcurrencyLimit<T>)
    return part.concurrency_limit();
  else if constexpr (HasMaxConcurrency<T>)
    return T::max_concurrency;
  else
    return unlimited_concurrency;
}

/// A backend's counters, or a reading of nothing if it has none.
template <class B> [[nodiscard]] Conditions conditions_of([[maybe_unused]] B& backend) {
  if constexpr (ReportsConditions<B>)
    return backend.conditions();
  else
    return {};
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
