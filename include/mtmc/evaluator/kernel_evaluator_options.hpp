#pragma once
/// Everything that can be set about `KernelEvaluator`.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace mtmc::inline MTMC_ABI {

/// The defences of the trust protocol that can be switched off one by one, to show what each of them stops.
/// Comparison with the reference, deadlines and the backend's own defences are not among them. Never switch
/// one off where candidates are not trusted.
struct EvaluatorDefences {
  /// After each checked run and each timed group, a program's own memory is what it was when it was loaded,
  /// on backends that see it.
  bool state = true;
  /// What earlier calls left in memory that programs are given uncleared is overwritten before each checked
  /// run and each timed group, on backends that can do so.
  bool residue = true;
  /// Outputs and scratch buffers hold other values before each run.
  bool poison = true;
  /// Writes next to a buffer are found.
  bool red_zones = true;
  /// Some runs take place where there is no memory next to the buffers, on backends that have guard pages or
  /// map guarded memory.
  bool guard_pages = true;
  /// Writes to inputs are found.
  bool inputs_unchanged = true;
  /// Two runs on the same inputs must give the same bits.
  bool same_bits = true;
  /// One of the second runs, all of a promotion, and all timing of a candidate take place in a fresh process.
  bool fresh_process = true;
  /// Candidate and incumbent are loaded anew between checks and times and between two timed pairs, and called
  /// once without a clock then, on backends that can do so.
  bool reload = true;
  /// Sizes that nobody was told, beside the listed ones.
  bool secret_sizes = true;
  /// Inputs of other distributions than the normal one, with heavy tails, offsets, spikes, zeros or integers.
  bool distributions = true;
  /// Inputs of far scales, and of slices (rows, say) that are unlike each other.
  bool far_distributions = true;
  /// At cheap sizes, results of many calls in a row are compared, each on inputs of its own.
  bool calls_in_a_row = true;
  /// All sizes are checked; else the main one only.
  bool sizes = true;
  /// Each case has contents of its own; else all cases of a size and distribution have the same.
  bool fresh_inputs = true;
  /// Results of timed runs are compared, too.
  bool timed_results = true;
  /// Errors may be as large as honest rounding makes them; else 1 % of the output's scale.
  bool precision = true;
  /// What is right is computed in double precision where that can be done, and the tolerance is measured by
  /// it; else results are compared with those of the reference in its own precision.
  bool truth = true;
  /// No call may be faster than its inputs can be read.
  bool plausibility = true;

  friend bool operator==(const EvaluatorDefences&, const EvaluatorDefences&) = default; ///< member by member
};

/// What `EvaluatorDefences` was called before 0.2.
using EvaluatorLocks [[deprecated("is EvaluatorDefences now")]] = EvaluatorDefences;

/// Settings of the trust protocol. The defaults are meant for real work; a test may make them smaller.
struct KernelEvaluatorOptions {
  /// Probability with which the interval of a speed-up covers the true one. From (0.5, 1).
  double confidence = 0.95;
  /// Half the interval's width, relative to the speed-up, that is precise enough.
  double precision = 0.01;
  /// Exploring ends as undecided, at one of the looks, once the speed-up's interval lies below one plus this:
  /// what such a candidate might bring is not worth more pairs. 0 = goes on until the interval is precise.
  double worthwhile_gain = 0.02;
  /// Seconds that timing may take when a candidate is explored and when it is promoted. Timing goes on for up
  /// to three times as long where kernels are so slow that there would be fewer than seven pairs, and the
  /// difference is more than 5 %; a promotion then goes on as far as `evaluation_seconds` until there are as
  /// many pairs as an interval of `confidence` needs (six for 95 %).
  double explore_seconds = 1.5;
  /// The same for a promotion.
  double promote_seconds = 3;
  /// Seconds that may go, while a candidate is explored, into what timing needs besides the kernels' own
  /// calls: inputs, buffers, comparisons. Ends at the look before the one that would take longer, with a
  /// wider interval: matters where buffers are large and kernels fast.
  double explore_overhead_seconds = 0.25;
  /// Seconds that a promotion may spend on checks beyond those of every evaluation (`audit`): sizes, inputs
  /// and numbers of calls that no evaluation has time for; up to a second more goes into what they need. Not
  /// for kernels that are proven slower. 0 = none, which is for candidates that are trusted.
  double audit_seconds = 3;
  /// Whether a promotion refuses a candidate of which some branch has gone one way only in all calls of its
  /// audit (`environment["branches"]`), on backends that show branches. What stands behind such a branch has
  /// been shown to nobody; honest kernels have such, too, for sizes that the task does not list, say.
  bool refuse_uncovered_branches = false;
  /// Most timed pairs.
  int explore_pairs = 28;
  /// Most timed pairs of a promotion.
  int promote_pairs = 56;
  /// Calls shorter than this are timed in groups that take about as long. Seconds.
  double shortest_timing = 200e-6;
  /// Most calls of one group, and most bytes of all its buffers, scratch included (0 = 16 MiB, or a 64th of
  /// the device's memory where inputs are made there, if that is more). Fewer where memory is short.
  int max_group_size = 32;
  /// Most bytes of all buffers of a group.
  std::int64_t group_bytes = 0;
  /// Most buffers of all groups of one kernel, since each may cost this process a descriptor.
  int group_buffers = 256;
  /// Whether caches are emptied before every timed group.
  bool cold = true;

  /// Seconds the compiler may take.
  double compile_seconds = 60;
  /// A call may take this long, or `launch_factor` times as long as the start kernel if that is more.
  /// Seconds.
  double launch_seconds = 2;
  /// Times the start kernel's time.
  double launch_factor = 20;
  /// A call of the start kernel or the reference may take this long. Seconds.
  double start_seconds = 60;
  /// Seconds one evaluation may take after compilation; a candidate that needs more gets the verdict
  /// `timeout`.
  double evaluation_seconds = 300;

  /// Smallest red zone before and after each buffer; larger buffers get larger ones. Bytes.
  std::size_t red_zone_bytes = 4096;
  /// Memory for reference outputs of one task; what does not fit is computed again. Bytes; 0 = 256 MiB, or a
  /// 16th of the device's memory where they are kept on the device, if that is more.
  std::int64_t reference_bytes = 0;
  /// Most bytes of all scratch buffers of a candidate; 0 = a quarter of the device's memory.
  std::int64_t scratch_bytes = 0;
  /// Tasks that are kept prepared, the ones used last.
  std::size_t prepared_tasks = 8;
  /// Compiled incumbents that are kept for each task, the ones used last.
  std::size_t kept_incumbents = 2;

  /// Whether the launches of correct candidates that are not slower than the incumbent are timed one by one
  /// (`Evaluation::launches`). Costs a twentieth of an evaluation at most, and at least one call.
  bool launch_times = true;
  /// Whether the profile of each correct candidate is taken, at the main size, where the backend can
  /// (`Profiles`). Costs seconds.
  bool profile = false;

  /// Key of all inputs, for tests that must repeat. Without one it is secret and comes from the operating
  /// system. Never set it where candidates are not trusted.
  std::optional<std::uint64_t> seed{};
  EvaluatorDefences defences{}; ///< what is defended against; leave all on outside of measurements

  /// Member by member.
  friend bool operator==(const KernelEvaluatorOptions&, const KernelEvaluatorOptions&) = default;
};

} // namespace mtmc
