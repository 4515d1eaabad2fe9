#pragma once
/// The learnt policy: a small network that scores each legal action by features of kernel, action and way.

#include <mtmc/core/any.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/policy_weights.hpp>

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Gives the legal actions the softmax of a network's scores, added to `prior_weight` times the logarithm of
/// what another policy gives them. That is `RulesPolicy` by itself, or the one it is made with (a served
/// model, say): the network is then a residual head over it.
///
/// For a language or a kind of device that its card does not name it answers as the rules do, and says so.
/// Actions of types that the card does not name stand to the likeliest of the other actions as by the rules:
/// only the order of those others is learnt. Deterministic; no network connection, no state but buffers.
class NeuralPolicy {
public:
  static constexpr int max_concurrency = 1; ///< one question at a time

  /// With the library's own weights (`built_in_policy_weights`).
  NeuralPolicy() : weights_(built_in_policy_weights()) {}
  /// With weights of one's own.
  explicit NeuralPolicy(PolicyWeights weights) : weights_(std::move(weights)) {}
  /// Over another policy, which is asked with the whole observation.
  NeuralPolicy(PolicyWeights weights, AnyPolicy base)
      : weights_(std::move(weights)), base_(std::move(base)) {}

  /// Weighs the legal actions. `value` is the network's estimate of the reward that is still to come, the
  /// rationale names the features that moved the likeliest action's score most. Throws what the other policy
  /// throws.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token stop);

  /// Names the weights, by their hash and their card, and the other policy: a run is only resumed with the
  /// same.
  [[nodiscard]] std::string identity() const;

  /// What it was trained on.
  [[nodiscard]] const LearntPolicyCard& card() const noexcept { return weights_.card; }

private:
  PolicyWeights weights_;
  std::optional<AnyPolicy> base_{};
  NetworkActivations seen_{};
};

static_assert(check_policy<NeuralPolicy>());

/// The policy that `optimize` runs with: the library's weights where they were measured to be ahead of the
/// rules on tasks that they had not seen, which is in C++ kernels on processors, and the rules elsewhere.
[[nodiscard]] NeuralPolicy default_policy();

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/neural_inl.hpp>
#endif
