#pragma once
/// Does what a recorded plan says, in a PyTorch process that never ran a candidate's text.

#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {
class PythonProcess;
}

/// How a plan is replayed.
struct ReplayOptions {
  /// Decides every random number that the plan draws: the n-th draw of a phase gives two plans that pair
  /// (`check_paired_draws`) the same numbers.
  std::int64_t key = 0;
  /// Whether the call computes in double precision, for the truth that candidates are held against. Inputs,
  /// weights and random numbers stay the numbers they are.
  bool double_precision = false;
};

/// A tensor that a replay gave.
struct ReplayedTensor {
  std::string type;                  ///< as `RecordedView::type`
  std::vector<std::int64_t> sizes{}; ///< extents, outermost first
  std::string bytes{};               ///< its elements in rows, in the order of this machine
};

/// What came of it.
struct Replayed {
  std::vector<ReplayedTensor> outputs{}; ///< of the call; none where it failed
  /// At least one error where it failed, unless it was timed out.
  std::vector<Diagnostic> diagnostics{};
  /// The deadline or a stop request came first.
  bool timed_out = false;
  /// Wall-clock time.
  double seconds = 0;
};

/// Replays plans on the processor: inputs, constructor and call of a module, as PyTorch itself does them. Of
/// kernels nothing can be replayed here.
class PlanReplayer {
public:
  /// Starts Python, which takes a second. Throws `Error` (`mtmc.backend.001`) where it is missing or lacks
  /// torch.
  explicit PlanReplayer(const PythonOptions& options = {});
  PlanReplayer(PlanReplayer&&) noexcept;            ///< takes over the process
  PlanReplayer& operator=(PlanReplayer&&) noexcept; ///< takes over the process
  ~PlanReplayer();

  /// Does all phases of a plan that `check_recorded_plan` has passed, within
  /// `PythonOptions::record_timeout`. Of a plan that draws nothing else, equal keys give equal outputs, bit
  /// by bit. May be called from several threads. Throws `Error` (`mtmc.backend.001`) where Python is lost.
  [[nodiscard]] Replayed replay(const RecordedPlan& plan, const ReplayOptions& how = {},
                                std::stop_token stop = {}) const;

private:
  PythonOptions options_;
  std::unique_ptr<detail::PythonProcess> python_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/python/plan_replayer_inl.hpp>
#endif
