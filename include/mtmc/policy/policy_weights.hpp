#pragma once
/// A learnt policy as a file: its weights, and a card that says what they were made from and what for.

#include <mtmc/policy/action_network.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Version of the file's form.
inline constexpr int policy_weights_schema_version = 1;

/// What a learnt policy is for, and where it comes from.
struct LearntPolicyCard {
  std::string name{};                       ///< for people
  std::string licence{};                    ///< of the weights
  int features = 0;                         ///< `feature_version` of what it sees
  std::vector<std::string> languages{};     ///< of kernels that it has learnt on: "cpp", "cuda"
  std::vector<std::string> devices{};       ///< kinds of devices: "cpu", "gpu"
  std::vector<std::string> optimizations{}; ///< types of the actions that it has learnt on
  /// What the scores of another policy (logarithms of its probabilities) are multiplied with before the
  /// network's are added; 0 = the network stands alone.
  double prior_weight = 0;
  /// Facts of the training (data, rewards, steps, results, ...): JSON text, kept as it is; empty = none.
  std::string training{};

  friend bool operator==(const LearntPolicyCard&, const LearntPolicyCard&) = default; ///< member by member
};

/// A learnt policy's card and network.
struct PolicyWeights {
  LearntPolicyCard card{}; ///< what it is
  ActionNetwork network{}; ///< as trained, its weights rounded to f32 in a file
};

/// The card in one line: "base 1: cpp, cuda on cpu, gpu; soft+ppo on 160 tasks, 1722 kernels; 0.911 of the
/// best in trees held out". What its `training` does not tell is left out.
[[nodiscard]] std::string describe(const LearntPolicyCard& card);

/// The file's text: a JSON object; the weights, f32 in little-endian order, are base64.
[[nodiscard]] std::string write_policy_weights(const PolicyWeights& weights);

/// Reads one. Throws `Error` (`mtmc.policy.002`) where it is damaged, of a newer form, or for other features
/// than this library's; `place` names the text there.
[[nodiscard]] PolicyWeights read_policy_weights(std::string_view text, const std::string& place = {});

/// The same of a file.
[[nodiscard]] PolicyWeights load_policy_weights(const std::string& path);

/// The weights that come with the library.
[[nodiscard]] const PolicyWeights& built_in_policy_weights();

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/policy_weights_inl.hpp>
#endif
