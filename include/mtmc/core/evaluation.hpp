#pragma once
/// What an evaluator is asked and what it answers.

#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/profile.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Why an evaluation is asked for.
enum class Purpose {
  /// One candidate among many: stop as soon as the answer is clear.
  explore,
  /// A new best: a second look in a fresh process with fresh keys, all samples.
  promote
};

namespace detail {
inline constexpr EnumName<Purpose> purpose_names[] = {
    {Purpose::explore, "explore"},
    {Purpose::promote, "promote"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Purpose>> enum_names(Purpose) noexcept {
  return detail::purpose_names;
}

/// One question to an evaluator.
struct EvaluationRequest {
  /// What is to be computed.
  Task task;
  /// The kernel that is judged.
  Kernel candidate;
  /// The best so far, which the candidate is timed against; without one only absolute times are taken.
  std::optional<Kernel> incumbent{};
  Purpose purpose = Purpose::explore; ///< a first look, or the confirmation of a new best
  UnknownFields unknown{};            ///< fields of a newer form

  friend bool operator==(const EvaluationRequest&, const EvaluationRequest&) = default; ///< member by member
};

/// Judgement of a candidate. The list is closed.
enum class Verdict {
  /// Nobody has judged yet. Never an answer: see `validate_evaluation`.
  not_given,
  correct,
  compile_error,
  compile_timeout,
  /// The screen refused the text or the built artefact.
  refused,
  launch_error,
  crashed,
  timeout,
  wrong_result,
  out_of_bounds,
  input_modified,
  nondeterministic,
  low_precision,
  /// Faster than the device can possibly be.
  implausible
};

namespace detail {
inline constexpr EnumName<Verdict> verdict_names[] = {
    {Verdict::not_given, "not_given"},
    {Verdict::correct, "correct"},
    {Verdict::compile_error, "compile_error"},
    {Verdict::compile_timeout, "compile_timeout"},
    {Verdict::refused, "refused"},
    {Verdict::launch_error, "launch_error"},
    {Verdict::crashed, "crashed"},
    {Verdict::timeout, "timeout"},
    {Verdict::wrong_result, "wrong_result"},
    {Verdict::out_of_bounds, "out_of_bounds"},
    {Verdict::input_modified, "input_modified"},
    {Verdict::nondeterministic, "nondeterministic"},
    {Verdict::low_precision, "low_precision"},
    {Verdict::implausible, "implausible"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Verdict>> enum_names(Verdict) noexcept {
  return detail::verdict_names;
}

/// How a correct candidate compares with the incumbent, by the confidence interval.
enum class Comparison { not_timed, faster, slower, undecided };

namespace detail {
inline constexpr EnumName<Comparison> comparison_names[] = {
    {Comparison::not_timed, "not_timed"},
    {Comparison::faster, "faster"},
    {Comparison::slower, "slower"},
    {Comparison::undecided, "undecided"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<Comparison>> enum_names(Comparison) noexcept {
  return detail::comparison_names;
}

/// Ratio old time / new time with its confidence interval, where one is known.
struct SpeedUp {
  /// The ratio; above 1 = faster.
  double value = 1;
  /// Lower end of the interval.
  double low = 1;
  /// Upper end of the interval.
  double high = 1;
  /// Probability with which the interval covers the true ratio. 0 = there is no interval: `low` and `high`
  /// are `value`, and JSON leaves them out.
  double confidence = 0.95;
  UnknownFields unknown{}; ///< fields of a newer form

  /// A ratio of which nothing but its value is known.
  [[nodiscard]] static SpeedUp without_interval(double ratio) { return {ratio, ratio, ratio, 0, {}}; }
  /// Whether there is an interval to show. A kernel against itself, exactly 1, has none.
  [[nodiscard]] bool has_interval() const noexcept { return confidence > 0 && low < high; }

  friend bool operator==(const SpeedUp&, const SpeedUp&) = default; ///< member by member
};

/// What was seen at one size.
struct SizeEvaluation {
  /// The size.
  ProblemSize size;
  /// Median seconds of one call; 0 if not timed.
  double seconds = 0;
  /// The same of the incumbent.
  double incumbent_seconds = 0;
  /// Against the incumbent, where both were timed.
  std::optional<SpeedUp> speed_up{};
  /// Timed pairs.
  int samples = 0;
  /// Elements compared over all runs at this size, and how many there were to compare.
  std::int64_t checked_elements = 0;
  /// Elements there were to compare.
  std::int64_t total_elements = 0;
  /// Largest error seen, in units of the tolerance; above 1 the result is wrong.
  double largest_error = 0;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const SizeEvaluation&, const SizeEvaluation&) = default; ///< member by member
};

/// A part of a launch's function, an outermost loop as a rule, and how long it takes.
struct PartTime {
  /// 1-based first and last line in the kernel's text, both included.
  int first_line = 0;
  int last_line = 0;       ///< 1-based last line
  double seconds = 0;      ///< median, with what comes behind the part before the next one begins
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const PartTime&, const PartTime&) = default; ///< member by member
};

/// One launch of a call, and how long it takes by itself.
struct LaunchTime {
  /// Name of the function.
  std::string entry;
  /// 1-based line of its launch line in the kernel's text.
  int line = 0;
  /// Median seconds of this launch at the task's main size, after those before it and without anything
  /// between them.
  double seconds = 0;
  /// Where its function has several parts and the backend can tell them apart (`DividesKernels`): those of a
  /// kernel that was promoted, or timed without an incumbent. Else empty.
  std::vector<PartTime> parts{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const LaunchTime&, const LaunchTime&) = default; ///< member by member
};

/// Wall-clock seconds an evaluation took, by phase.
struct EvaluationCost {
  double compile = 0;      ///< in the compiler
  double check = 0;        ///< in checks of correctness
  double time = 0;         ///< in timing
  double total = 0;        ///< from the request to the answer
  double launches = 0;     ///< in dividing the time among launches (`Evaluation::launches`)
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const EvaluationCost&, const EvaluationCost&) = default; ///< member by member
};

/// The answer of an evaluator: verdict, reasons, times, and the record of what it was taken with. What a loop
/// reads of it stands at the concept `Evaluator`.
struct Evaluation {
  /// Has to be given.
  Verdict verdict = Verdict::not_given;
  /// Name of the check that refused the candidate; empty if it is correct.
  std::string rule{};
  /// Reasons and remedies, fit for a coder.
  std::vector<Diagnostic> diagnostics{};
  /// One entry for each size that was run.
  std::vector<SizeEvaluation> sizes{};
  /// Weighted mean of the sizes' median seconds; 0 if not timed.
  double seconds = 0;
  /// Weighted geometric mean over the sizes, against the incumbent.
  std::optional<SpeedUp> speed_up{};
  /// The answer of the timing.
  Comparison comparison = Comparison::not_timed;
  /// The launches of one call, in their order, each timed alone; their sum may be less than a call takes
  /// (gaps between launches) or more (what each timing costs). One entry where a call is one launch; empty
  /// where that was not measured: for candidates that are slower than the incumbent, above all, and on
  /// backends that run whole plans only.
  std::vector<LaunchTime> launches{};
  /// SHA-256 of the binary that was judged, in 64 lower-case hexadecimal digits: of exactly the bytes that
  /// the device loaded and ran (a shared object, a CUBIN). Empty where nothing was built, where a worker
  /// was lost with it, or where the backend does not tell (`BackendAbility::binary_hash`): not observed.
  std::string binary_hash{};
  /// The same of the incumbent that the candidate was timed against; empty, too, where there was none.
  std::string incumbent_binary_hash{};
  /// Registers, spills, shared memory, ... as the backend reports them.
  std::map<std::string, double> resources{};
  /// Where its time goes, where that was asked for and the backend can tell; `profile_of` makes the best of
  /// it and everything else.
  std::optional<Profile> profile{};
  /// Compiler, driver, host, clocks, protocol version, ...: what the numbers were taken with.
  std::map<std::string, std::string> environment{};
  EvaluationCost cost{};   ///< what the evaluation took
  UnknownFields unknown{}; ///< fields of a newer form

  /// Whether the candidate broke no rule.
  [[nodiscard]] bool correct() const noexcept { return verdict == Verdict::correct; }

  friend bool operator==(const Evaluation&, const Evaluation&) = default; ///< member by member
};

/// Version of the trust protocol; part of every cache key, so that answers of different protocols never mix.
inline constexpr int protocol_version = 7;

/// A figure of an evaluation; 0 where it has none of that name.
[[nodiscard]] inline double resource_of(const Evaluation& evaluation, const std::string& name) {
  const auto found = evaluation.resources.find(name);
  return found == evaluation.resources.end() ? 0 : found->second;
}

} // namespace mtmc
