#pragma once
/// What a small network sees of a state and of each action: numbers near [-1, 1], the same list for CPUs and
/// GPUs, each with a name. What belongs to a kernel is kept apart from what belongs to the way there, so that
/// recorded kernels are played on ways that nobody has taken.

#include <mtmc/core/action.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/step.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Version of the list. It grows with every change of a feature's place or meaning. Version 2 has what tells
/// of modules in Python behind the kernel's features, and behind those of an action that the kernel alone
/// decides; elsewhere they are 0, so that data and weights of version 1 are read as if they had been made
/// with zeros there.
inline constexpr int feature_version = 2;

namespace detail {

/// What smaller probabilities are taken for, so that their logarithms stay finite.
inline constexpr double least_probability = 1e-4;

/// The logarithm of a probability.
[[nodiscard]] inline double log_probability(double probability) {
  return std::log(std::max(probability, least_probability));
}

/// Whether a verdict is on a kernel that compiled.
[[nodiscard]] constexpr bool was_compiled(Verdict verdict) noexcept {
  return verdict != Verdict::not_given && verdict != Verdict::compile_error &&
         verdict != Verdict::compile_timeout && verdict != Verdict::refused;
}

} // namespace detail

/// One step of the way to a kernel, as far as features tell of it.
struct PastStep {
  std::string_view action{}; ///< `Action::key()`
  bool compiled = false;     ///< there was a kernel, and it compiled
  bool correct = false;      ///< and it was right
  double log2_gain = 0;      ///< logarithm to base 2 of its speed-up over the kernel it was made from
  bool kept = false;         ///< the search went on from it
};

/// What belongs to the way, not to the kernel.
struct PastFacts {
  int step = 0;                      ///< steps taken
  int step_limit = 0;                ///< of the search
  std::span<const PastStep> steps{}; ///< oldest first
};

/// The features of a kernel, whatever the way to it.
struct KernelFeatures {
  std::vector<double> kernel{}; ///< of the kernel, its task and its device: `kernel_feature_count()`
  /// Of each action, one after the other: `action_feature_count()` each.
  std::vector<double> actions{};

  friend bool operator==(const KernelFeatures&, const KernelFeatures&) = default; ///< member by member
};

/// Names of a state's features: those of the kernel, then those of the way.
[[nodiscard]] const std::vector<std::string>& state_feature_names();
/// Names of an action's features: those that the kernel alone decides, then those of the way.
[[nodiscard]] const std::vector<std::string>& action_feature_names();
/// How many of a state's features belong to the kernel.
[[nodiscard]] std::size_t kernel_feature_count();
/// How many of an action's features the kernel alone decides.
[[nodiscard]] std::size_t action_feature_count();

/// How many of a kernel's features version 1 had.
[[nodiscard]] std::size_t kernel_feature_count_of_version_1();
/// How many of an action's features, of those that the kernel alone decides, version 1 had.
[[nodiscard]] std::size_t action_feature_count_of_version_1();

/// The steps of a history, as features tell of them. They refer to the history's texts.
[[nodiscard]] std::vector<PastStep> past_of(std::span<const HistoryEntry> history);

/// The features of an observation's kernel and of its legal actions; history, step and step limit do not
/// matter. Throws `Error` where the task's own expressions cannot be evaluated.
[[nodiscard]] KernelFeatures kernel_features(const Observation& seen, std::span<const Action> legal);

/// The features of `stop` on a kernel with these features.
[[nodiscard]] std::vector<double> stop_features(std::span<const double> kernel);

/// Appends the features of a state: the kernel's, then those of the way.
void append_state(std::span<const double> kernel, const PastFacts& past, std::vector<double>& state);

/// Appends the features of the action with that key: the kernel's, then those of the way.
void append_action(std::span<const double> action, std::string_view key, const PastFacts& past,
                   std::vector<double>& actions);

/// The logarithm of what the default rules, without history, give an action with these features (its
/// probability, at least 1e-4): what a learnt policy stands on.
[[nodiscard]] double rules_score(std::span<const double> action);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/features_inl.hpp>
#endif
