#pragma once
/// Definitions of policy/neural.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline bool is_named(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Features of a state and its actions, as the network takes them.
struct SeenFeatures {
  std::vector<double> state{};
  std::vector<double> actions{};
};

[[nodiscard]] inline SeenFeatures seen_features(const Observation& seen, std::span<const Action> legal,
                                                const KernelFeatures& kernel) {
  const auto steps = past_of(seen.history);
  const PastFacts past{seen.step, seen.step_limit, steps};
  SeenFeatures features;
  append_state(kernel.kernel, past, features.state);
  const std::size_t each = action_feature_count();
  for (std::size_t i = 0; i < legal.size(); ++i)
    append_action(std::span(kernel.actions).subspan(i * each, each), legal[i].key(), past, features.actions);
  return features;
}

/// The features that moved an action's score most: what it would be without each.
[[nodiscard]] inline std::string moving_features(const ActionNetwork& network, const SeenFeatures& features,
                                                 std::size_t action, double score) {
  const auto& names = action_feature_names();
  const std::size_t each = names.size();
  std::vector<double> own(features.actions.begin() + static_cast<std::ptrdiff_t>(action * each),
                          features.actions.begin() + static_cast<std::ptrdiff_t>((action + 1) * each));
  std::vector<std::pair<double, std::size_t>> moved;
  NetworkActivations without;
  for (std::size_t i = 0; i < each; ++i) {
    if (own[i] == 0) continue;
    const double feature = std::exchange(own[i], 0);
    network.evaluate(features.state, own, without);
    own[i] = feature;
    moved.emplace_back(score - without.scores.front(), i);
  }
  constexpr std::size_t shown = 3;
  std::stable_sort(moved.begin(), moved.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, moved.size()); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, " %+.2f", moved[i].first);
    text += (text.empty() ? "" : ", ") + names[moved[i].second] + number;
  }
  return text.empty() ? "no feature" : text;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE ActionDistribution NeuralPolicy::distribution(const Observation& seen,
                                                          std::span<const Action> legal,
                                                          std::stop_token stop) {
  if (legal.empty()) return {};
  const LearntPolicyCard& card = weights_.card;
  const auto& language = seen.kernel.language.name;
  if (!detail::is_named(card.languages, language) || !detail::is_named(card.devices, seen.device.kind)) {
    auto answer = base_ ? base_->distribution(seen, legal, std::move(stop))
                        : RulesPolicy{}.distribution(seen, legal, std::move(stop));
    answer.rationale = "the learnt policy is not for " + std::string(language) + " on a " + seen.device.kind +
                       ": " + answer.rationale;
    return answer;
  }

  const auto kernel = kernel_features(seen, legal);
  const auto features = detail::seen_features(seen, legal, kernel);
  weights_.network.evaluate(features.state, features.actions, seen_);

  ActionDistribution answer;
  std::vector<double> prior;
  if (base_) {
    auto other = base_->distribution(seen, legal, std::move(stop));
    for (const double one : other.probabilities) prior.push_back(detail::log_probability(one));
    answer.usage = other.usage;
    if (prior.size() != legal.size())
      throw Error(error_id::loop_part,
                  "the policy beneath gave " + std::to_string(prior.size()) + " probabilities for " +
                      std::to_string(legal.size()) + " actions",
                  "Give one for each legal action, in their order", base_->identity());
  } else {
    const std::size_t each = action_feature_count();
    for (std::size_t i = 0; i < legal.size(); ++i)
      prior.push_back(rules_score(std::span(kernel.actions).subspan(i * each, each)));
  }

  // Of what it has not learnt the rules say how it compares with the best of the rest: shifting all known
  // scores keeps that, whatever the network makes of the known ones among each other.
  constexpr double none = -std::numeric_limits<double>::infinity();
  double best_prior = none, best_score = none; // of the known actions
  std::vector<bool> known(legal.size());
  std::vector<double>& scores = answer.probabilities;
  for (std::size_t i = 0; i < legal.size(); ++i) {
    known[i] =
        legal[i].kind == Action::Kind::stop || (legal[i].kind == Action::Kind::optimize &&
                                                detail::is_named(card.optimizations, legal[i].optimization));
    scores.push_back(known[i] ? card.prior_weight * prior[i] + seen_.scores[i] : prior[i]);
    if (!known[i]) continue;
    best_prior = std::max(best_prior, prior[i]);
    best_score = std::max(best_score, scores[i]);
  }
  for (std::size_t i = 0; i < legal.size(); ++i)
    if (known[i]) scores[i] += best_prior - best_score;
  detail::softmax(scores);
  answer.value = seen_.value;
  answer.exact = true;

  const auto likeliest =
      static_cast<std::size_t>(std::max_element(answer.probabilities.begin(), answer.probabilities.end()) -
                               answer.probabilities.begin());
  const auto rules = static_cast<std::size_t>(std::max_element(prior.begin(), prior.end()) - prior.begin());
  answer.rationale =
      "learnt: " + detail::moving_features(weights_.network, features, likeliest, seen_.scores[likeliest]);
  answer.rationale += likeliest == rules ? (base_ ? "; so would the policy beneath" : "; so would the rules")
                      : base_            ? "; the policy beneath preferred " + legal[rules].text()
                                         : "; the rules preferred " + legal[rules].text();
  return answer;
}

MTMC_INLINE NeuralPolicy default_policy() {
  PolicyWeights weights = built_in_policy_weights();
  weights.card.languages = {languages::cpp.name};
  weights.card.devices = {"cpu"};
  return NeuralPolicy{std::move(weights)};
}

MTMC_INLINE std::string NeuralPolicy::identity() const {
  constexpr std::size_t digits = 16;
  return "learnt " + sha256_hex(write_policy_weights(weights_)).substr(0, digits) + " (" +
         describe(weights_.card) + ") over " + (base_ ? base_->identity() : RulesPolicy{}.identity());
}

} // namespace mtmc
