#pragma once
/// Policies that play trees: what they see of a state, how they choose, and what that returns.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_network.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/softmax.hpp>
#include <mtmc/train/tree_environment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A state as a network sees it.
struct EncodedState {
  std::vector<double> state{};   ///< features of the state
  std::vector<double> actions{}; ///< features of each choice, `stop` last where it is one
  /// What another policy says of each choice: finite logarithms, up to a constant, which are added to the
  /// network's scores, so that a network that scores all alike plays as that policy; empty for none.
  std::vector<double> priors{};
};

/// Writes where an environment stands: features of the state, then of each of its `choices()`, and priors if
/// there are any. What a state left behind is overwritten, also where there is less this time.
using TreeEncoder = std::function<void(const TreeEnvironment& environment, EncodedState& encoded)>;

/// Writes the probability of each of an environment's `choices()`. May keep buffers: for one thread at a
/// time.
using TreePolicy =
    std::function<void(const TreeEnvironment& environment, std::vector<double>& probabilities)>;

namespace detail {

/// Probabilities of the choices, in the order of their scores. Throws `Error` (`mtmc.train.001`) where the
/// priors are others than the choices.
inline void probabilities_of(std::span<const double> scores, std::span<const double> priors,
                             std::vector<double>& probabilities) {
  if (!priors.empty() && priors.size() != scores.size())
    throw Error(error_id::train_data,
                "the encoder gave " + std::to_string(priors.size()) + " priors for " +
                    std::to_string(scores.size()) + " choices",
                "Give one a choice, or none", "EncodedState::priors");
  probabilities.assign(scores.begin(), scores.end());
  for (std::size_t k = 0; k < priors.size(); ++k) probabilities[k] += priors[k];
  softmax(probabilities);
}

/// A number drawn by those probabilities.
[[nodiscard]] inline std::size_t drawn(std::span<const double> probabilities, PhiloxEngine& random) {
  double place = random.uniform();
  for (std::size_t i = 0; i + 1 < probabilities.size(); ++i) {
    place -= probabilities[i];
    if (place < 0) return i;
  }
  return probabilities.size() - 1;
}

/// The number of the largest one, of several the first.
[[nodiscard]] inline std::size_t likeliest(std::span<const double> probabilities) {
  return static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                                  probabilities.begin());
}

} // namespace detail

/// Plays as a network does that sees states through `encode`.
[[nodiscard]] inline TreePolicy network_policy(ActionNetwork network, TreeEncoder encode) {
  return [network = std::move(network), encode = std::move(encode), encoded = EncodedState{},
          seen = NetworkActivations{}](const TreeEnvironment& environment,
                                       std::vector<double>& probabilities) mutable {
    encode(environment, encoded);
    network.evaluate(encoded.state, encoded.actions, seen);
    detail::probabilities_of(seen.scores, encoded.priors, probabilities);
  };
}

/// Plays by the priors that `encode` writes and by nothing else; by chance where there are none.
[[nodiscard]] inline TreePolicy prior_policy(TreeEncoder encode) {
  return [encode = std::move(encode), encoded = EncodedState{}, scores = std::vector<double>{}](
             const TreeEnvironment& environment, std::vector<double>& probabilities) mutable {
    encode(environment, encoded);
    scores.assign(environment.choices(), 0);
    detail::probabilities_of(scores, encoded.priors, probabilities);
  };
}

/// Takes every choice as likely as any other.
[[nodiscard]] inline TreePolicy uniform_policy() {
  return [](const TreeEnvironment& environment, std::vector<double>& probabilities) {
    probabilities.assign(environment.choices(), 1 / static_cast<double>(environment.choices()));
  };
}

/// Mean return (without discount) of a policy in a tree over that many episodes, which is above 0: with
/// `greedy` its likeliest choice is taken (of several the first), else one is drawn.
[[nodiscard]] inline double mean_return(const TreePolicy& policy, KernelTree& tree, TreeOptions rules,
                                        int episodes, bool greedy, std::uint64_t seed = 0) {
  rules.seed = seed;
  TreeEnvironment environment(tree, rules);
  PhiloxEngine random{seed, 2};
  std::vector<double> probabilities;
  double sum = 0;
  for (int i = 0; i < episodes; ++i)
    for (environment.reset(); !environment.ended();) {
      policy(environment, probabilities);
      const std::size_t choice =
          greedy ? detail::likeliest(probabilities) : detail::drawn(probabilities, random);
      sum += environment.step(choice).reward;
    }
  return sum / episodes;
}

/// The same of a network that sees states through `encode`.
[[nodiscard]] inline double mean_return(const ActionNetwork& network, KernelTree& tree,
                                        const TreeOptions& rules, const TreeEncoder& encode, int episodes,
                                        bool greedy, std::uint64_t seed = 0) {
  return mean_return(network_policy(network, encode), tree, rules, episodes, greedy, seed);
}

} // namespace mtmc
