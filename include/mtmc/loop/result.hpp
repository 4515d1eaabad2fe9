#pragma once
/// What a run found.

#include <mtmc/core/error.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/loop/budget.hpp>
#include <mtmc/loop/step_account.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The outcome of optimising one task. Complete also where the run was cut short: the best so far is never
/// lost.
struct Result {
  /// The task.
  Task task;
  /// The device kernels were judged on.
  Device device{};
  /// The fastest kernel that was confirmed twice and compared with the start kernel at the end; the start
  /// kernel itself if there is none.
  Kernel best{};
  /// Of `best` over the start kernel; exactly 1 if they are the same.
  SpeedUp speed_up{};
  /// Whether `speed_up` was measured at the end, `best` against start. If not (the run was cancelled, waits
  /// or failed), it is the product of the ratios measured on the way.
  bool measured = false;
  /// The last judgement of `best`: at the end, against the start kernel, where `measured`.
  Evaluation evaluation{};
  /// The start kernel alone.
  Evaluation start{};
  /// Every action tried, in order.
  std::vector<HistoryEntry> history{};
  /// What each action cost and brought, in the order of `history`.
  std::vector<StepAccount> account{};
  /// Every draft of every finished step, as the journal keeps them, and decisions to stop.
  std::vector<Step> trajectory{};
  /// Number of finished steps.
  int steps = 0;
  /// Of all drafts, those of earlier sessions of a resumed run included.
  Usage usage{};
  /// Wall-clock seconds over all sessions.
  double seconds = 0;
  /// Why the run ended.
  StopReason stop_reason = StopReason::failed;
  /// Why the run failed; nothing otherwise.
  std::optional<Error> error{};
  /// Folder of the journal and the kernels; empty if nothing was written.
  std::string folder{};

  /// Whether a faster kernel was found.
  [[nodiscard]] bool improved() const { return best.id() != task.kernel.id(); }

  /// Seconds of one call of the start kernel: timed in turn with `best` where `measured`, else alone.
  [[nodiscard]] double start_seconds() const;

  /// The sizes at which `best` was found correct.
  [[nodiscard]] std::vector<ProblemSize> verified_sizes() const {
    std::vector<ProblemSize> sizes;
    if (evaluation.correct())
      for (const auto& size : evaluation.sizes) sizes.push_back(size.size);
    return sizes;
  }

  /// How to call `best` at a size. Throws `Error` (`mtmc.launch.001`, `mtmc.task.003`).
  [[nodiscard]] LaunchPlan plan(const ProblemSize& size) const;

  /// What was proved of `best`, and with which compiler, flags and device.
  [[nodiscard]] LauncherEvidence evidence() const;

  /// Plain C++ that calls `best` and needs no part of this library, with `evidence()` in its head: see
  /// `mtmc::launcher_source`.
  [[nodiscard]] std::string launcher_source() const;
  /// The header that declares it; empty where `launcher_source` is a header: see `mtmc::launcher_header`.
  [[nodiscard]] std::string launcher_header() const;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/loop/result_inl.hpp>
#endif
