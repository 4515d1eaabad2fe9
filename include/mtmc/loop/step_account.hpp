#pragma once
/// What the steps of a run cost, and what they brought.

#include <mtmc/core/step.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

/// What one action of a step cost, and what it brought.
struct StepAccount {
  int step = 0;            ///< 0-based number of the step
  std::string action_key;  ///< `Action::key`
  std::string action_text; ///< the action as people name it
  int drafts = 0;          ///< asked for, repairs among them
  Usage usage{};           ///< of these drafts
  /// Speed of the best kernel after the step over that before it, as it was measured when the kernel was
  /// promoted; 1 where the action led to no new best kernel.
  double gain = 1;

  friend bool operator==(const StepAccount&, const StepAccount&) = default; ///< member by member
};

} // namespace mtmc
