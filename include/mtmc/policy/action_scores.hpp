#pragma once
/// From the scores of actions' texts to probabilities of actions (TWOSOME; paper, eq. 2).

#include <mtmc/net/scoring_types.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/support/softmax.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A continuation's score after normalization; its sum where there is nothing to divide by.
[[nodiscard]] inline double normalized_score(const ScoredContinuation& score,
                                             ScoreNormalization normalization) noexcept {
  const int parts = normalization == ScoreNormalization::token_mean  ? score.tokens
                    : normalization == ScoreNormalization::word_mean ? score.words
                                                                     : 1;
  return score.logprob_sum / std::max(parts, 1);
}

/// Softmax of the normalized scores, divided by `temperature` (above 0). They sum to 1; as many as scores.
[[nodiscard]] inline std::vector<double> action_probabilities(std::span<const ScoredContinuation> scores,
                                                              ScoreNormalization normalization,
                                                              double temperature = 1) {
  std::vector<double> values;
  values.reserve(scores.size());
  for (const auto& score : scores) values.push_back(normalized_score(score, normalization) / temperature);
  detail::softmax(values);
  return values;
}

} // namespace mtmc
