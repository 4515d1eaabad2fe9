#pragma once
/// Calls recorded plans on a device and says whether what they compute is right, and how long they take.

#include <mtmc/backend/python/lowered_kernel.hpp>
#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/evaluation.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {
class PythonProcess;
}

/// Something that is called: a candidate's plan with its kernels, or a problem's own module.
struct PlanContestant {
  /// A plan that `check_recorded_plan` has passed. Of a module the problem's, which gives it its weights.
  const RecordedPlan* plan = nullptr;
  /// The plan's kernels in its order.
  std::vector<std::shared_ptr<const LoweredKernel>> kernels{};
  /// Text of a problem that defines `Model`, which PyTorch itself runs in place of the plan; else empty. It
  /// is trusted: on a device nothing fences it in.
  std::string module{};
  /// Of a module: whether `torch.compile` makes it faster first.
  bool compiled = false;
};

/// By which rules a plan is judged.
enum class JudgingRules {
  /// The truth in double precision, fresh inputs for each pair of calls; see `PlanJudge`.
  strict,
  /// KernelBench's: a result is right that is within a tolerance of what the problem's own arithmetic gives,
  /// absolute and relative; times are those of many calls on the same inputs, after three that do not count.
  compatible,
  /// For scripts that launch kernels themselves: the incumbent, in another process and with other contents in
  /// unwritten memory, gives the same within a tolerance relative to the result's scale.
  reproducible,
};

namespace detail {
inline constexpr EnumName<JudgingRules> judging_rules_names[] = {
    {JudgingRules::strict, "strict"},
    {JudgingRules::compatible, "compatible"},
    {JudgingRules::reproducible, "reproducible"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<JudgingRules>> enum_names(JudgingRules) noexcept {
  return detail::judging_rules_names;
}

/// What is judged, and how thoroughly.
struct PlanJudging {
  const RecordedPlan* problem = nullptr; ///< says what is right
  PlanContestant candidate{};            ///< what is judged
  /// Further configurations of the candidate: the fastest that is right is judged, the others count nothing.
  std::vector<PlanContestant> variants{};
  const PlanContestant* incumbent = nullptr; ///< what it is timed against, or null
  std::int64_t key = 0;                      ///< of all inputs and weights: keep it secret
  int cases = 2;                             ///< inputs that are compared with the truth
  double call_seconds = 20;                  ///< a call may take
  double seconds = 0;                        ///< for timing; 0: nothing is timed
  int least_pairs = 7;  ///< timed whatever they take; calls, where the same inputs are used again
  int most_pairs = 28;  ///< timed at most
  bool promote = false; ///< all pairs are taken, however clear the answer is
  bool atomics = false; ///< two calls on the same inputs may differ in their last bits
  JudgingRules rules = JudgingRules::strict; ///< what is right, and what is timed
  double tolerance = 0;                      ///< of the rules that have one
};

/// What came of it.
struct JudgedPlan {
  Verdict verdict = Verdict::not_given; ///< given unless there are diagnostics or it was timed out
  std::string rule{};                   ///< that was broken; empty for `correct`
  std::string message{};                ///< what was found; empty for `correct`
  std::string remedy{};                 ///< what to do instead
  std::int64_t checked_elements = 0;    ///< compared over all calls
  double largest_error = 0;             ///< in units of what is allowed
  double library_share = 0;             ///< part of a call's time in operators of PyTorch, 0 to 1
  /// The largest error of the problem's own arithmetic against the truth, relative to the value or the mean
  /// magnitude of all, whichever is larger.
  double problem_error = 0;
  std::int64_t problem_far = 0;  ///< its elements in a case that err by more than is allowed
  std::int64_t memory_bytes = 0; ///< of the device, that a call needs with its inputs; 0: not known
  std::string flaw{};            ///< why the problem tells little, where that was seen
  int chosen = 0; ///< which configuration was judged: 0 the candidate itself, 1 the first of its variants
  std::vector<double> candidate_seconds{}; ///< of its calls, in the order of the pairs
  std::vector<double> incumbent_seconds{}; ///< of the incumbent's calls on the same inputs
  std::vector<Diagnostic> diagnostics{};   ///< why nothing could be judged
  /// Seconds by stage: "start" (processes that use the device), "check", "time".
  std::map<std::string, double> spent{};
  bool timed_out = false; ///< the deadline or a stop request came first
};

/// Judges plans with PyTorch: a process of the judge's own code makes inputs and weights from a key, computes
/// what is right in double precision, and compares; each contestant is called in a process of its own, which
/// shares nothing with it but the tensors that go in and come out. What they allocate holds other values in
/// each call, and what the constructor made is renewed before each.
///
/// A result may be off by eight times what the problem's own arithmetic errs by against the truth (three
/// times where that computes with shortened operands, as TF32 does, and for results of 16 and 8 bits), by 16
/// roundings of f32 or 4 of 16 bits at least and by 3 % at most, relative to its own size or the mean
/// magnitude of all, whichever is larger. Errors in each slice along each axis, and of all results of one
/// magnitude, may be so many times those of the problem's own, too. Where that itself leaves the truth (a
/// step, a tie, an overflow), its results are right as well. The problem's own arithmetic is what it gives
/// here, what it gives in a process like a candidate's, and, on a device, what convolutions give whose
/// operands are cut off to TF32. In timed calls, which are compared with the problem's own results, twice
/// that is allowed; one of them, which nobody knows, and a call behind them all are compared with the truth.
///
/// That last call finds the candidate as earlier calls on other inputs have left it, unless the problem's own
/// second call differs from its first. From the second key on parameters that the constructor fills with one
/// number, as a normalisation's, are something else by up to a quarter, where problem and candidates have
/// them by the same name. On a device nothing may be written in the 256 KiB before and behind inputs,
/// results and what a call makes. Results alone are compared, not what a call leaves in a module's buffers.
///
/// What looks at other memory (a transposed input, say) where the problem gives memory of its own is computed
/// within the time.
class PlanJudge {
public:
  /// Starts Python, which takes a second. `device`: "cpu", where plans may launch no kernels, or "cuda".
  /// `visible`: which of the devices, as CUDA_VISIBLE_DEVICES names it. `contestants`: how many there may be
  /// at once, the incumbent among them; what variants there are beyond them are left out. On a device six
  /// processes wait for the next two judgements, which hold a context each. Throws `Error`
  /// (`mtmc.backend.001`) where Python is missing or lacks torch.
  explicit PlanJudge(const PythonOptions& options = {}, std::string device = "cpu", std::string visible = "0",
                     int contestants = 9);
  PlanJudge(PlanJudge&&) noexcept;            ///< takes over the process
  PlanJudge& operator=(PlanJudge&&) noexcept; ///< takes over the process
  ~PlanJudge();

  /// Of "python" and "torch".
  [[nodiscard]] const std::map<std::string, std::string>& versions() const noexcept;

  /// Judges within `time`. May be called from several threads, which then disturb each other's times. Throws
  /// `Error` (`mtmc.backend.001`) where Python is lost.
  [[nodiscard]] JudgedPlan judge(const PlanJudging& what, std::chrono::milliseconds time,
                                 std::stop_token stop = {}) const;

private:
  PythonOptions options_;
  std::string device_;
  std::string visible_;
  int most_contestants_;
  std::unique_ptr<detail::PythonProcess> python_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/plan_judge_inl.hpp>
#endif
