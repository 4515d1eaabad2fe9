#pragma once
/// How a loop searches, what it may spend, and where it keeps its journal.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/loop/budget.hpp>
#include <mtmc/loop/observer.hpp>
#include <mtmc/loop/search.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Options of a `Loop`. The defaults are a greedy chain.
struct LoopOptions {
  /// Largest number of steps; at each, the policy is asked once per kernel of the beam.
  int max_steps = 8;
  /// Time, tokens, money, patience.
  Budget budget{};
  /// Drafts per action, asked for in parallel; the best one counts. 0: as many as each optimization asks for
  /// (`OptimizationType::samples`: several for a rewriting, one for a single step).
  int samples = 0;
  /// Further drafts for one that failed, each seeing what was wrong.
  int repairs = 1;
  /// Kernels the search stands on, and actions tried from each of them, per step.
  int beam = 1;
  /// How an action is chosen from the distribution.
  Selection selection = Selection::argmax;
  /// For `Selection::sample`: actions are drawn from p^(1/temperature). Positive.
  double temperature = 1;
  /// Of everything that is drawn.
  std::uint64_t seed = 0;
  /// Least measured gain over its parent for the search to continue from a kernel. At 1 or more its interval
  /// must also lie above 1. Below 1 (0.97, say), the search also continues from a step that is neutral alone,
  /// for the sake of what it makes possible; such steps together may lose no more than that, and the best
  /// kernel is still only replaced by one that is proven faster.
  double minimum_gain = 1;
  /// An action that was tried on a kernel is not offered again on that same kernel, unless a broken endpoint
  /// or a spent budget was the reason. Without it, a policy that takes the likeliest action repeats itself.
  bool mask_failed_actions = true;
  /// Most drafts, or evaluations, at once, as far as coder and evaluator allow it; 0 = 64. With 1 no thread
  /// is started. The result does not depend on it.
  int threads = 0;
  /// Which optimisations there are.
  ActionSpace action_space = ActionSpace::extended();
  /// Folder under which each task's run gets its own (`run_folder`) with journal and kernels; empty: nothing
  /// is written.
  std::string output{};
  /// Take up the run found in the folder, if there is one. Without it, finding one is an error.
  bool resume = false;
  /// Every journalled line is on the disk before the run goes on (fsync).
  bool durable = false;
  Observer observer{}; ///< is told how the run goes on
};

namespace detail {

/// Drafts of one step with an optimization; null for what is in no action space.
[[nodiscard]] inline int samples_of(const LoopOptions& options, const OptimizationType* type) noexcept {
  if (options.samples > 0) return options.samples;
  return type != nullptr ? type->samples : 1;
}

/// Throws `Error` (`mtmc.loop.001`) where options contradict themselves.
inline void check_options(const LoopOptions& options) {
  const auto require = [](bool holds, const std::string& option, const char* what, const char* remedy) {
    if (!holds) throw Error(error_id::loop_options, what, remedy).about("LoopOptions::" + option);
  };
  require(options.max_steps >= 0, "max_steps", "the number of steps is negative", "Use 0 or more");
  require(options.samples >= 0, "samples", "the number of drafts per action is negative",
          "Use 1 or more, or 0 for as many as each optimization asks for");
  require(options.repairs >= 0, "repairs", "the number of repairs is negative", "Use 0 or more");
  require(options.beam >= 1, "beam", "the beam is less than 1 kernel wide",
          "Use 1 for a chain, more for a beam");
  require(options.threads >= 0, "threads", "the number of threads is negative",
          "Use 0 for as many as the parts allow");
  require(options.temperature > 0 && std::isfinite(options.temperature), "temperature",
          "the temperature is not a positive number",
          "Use 1, or less to prefer likely actions more, or always take the likeliest");
  require(options.minimum_gain >= 0 && std::isfinite(options.minimum_gain), "minimum_gain",
          "the minimum gain is not a ratio of 0 or more",
          "Use 1, or a little less to continue from steps that gain nothing");
  constexpr const char* negative_budget = "the limit is negative";
  constexpr const char* unlimited = "Use 0 for no limit";
  require(options.budget.seconds >= 0, "budget.seconds", negative_budget, unlimited);
  require(options.budget.tokens >= 0, "budget.tokens", negative_budget, unlimited);
  require(options.budget.cost >= 0, "budget.cost", negative_budget, unlimited);
  require(options.budget.patience >= 0, "budget.patience", negative_budget, unlimited);
  require(!options.resume || !options.output.empty(), "output",
          "a run is to be resumed, but no output folder is named",
          "Name the folder in which the run's journal lies");
}

} // namespace detail

} // namespace mtmc
