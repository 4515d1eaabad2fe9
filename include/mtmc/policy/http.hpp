#pragma once
/// The served policy: a language model behind an endpoint scores the text of every legal action.

#include <mtmc/core/concepts.hpp>
#include <mtmc/net/scoring.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/policy_prompt.hpp>

#include <cstddef>
#include <list>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Settings of an `HttpPolicy`.
struct HttpPolicyOptions {
  /// How the model wants to be asked.
  PolicyCard card{};
  /// Model, adapter and method of the card, where it names them, go before these.
  ScoringOptions scoring{};
  /// Newest questions whose scores are kept, so that the same one is not asked twice; 0 = none.
  std::size_t remembered_questions = 64;
};

/// Gives each legal action the softmax, over all legal ones, of its text's log-probability after a prompt
/// that describes the observation (TWOSOME; paper, eq. 2), by the normalization and temperature of its card.
///
/// Probabilities are `exact` where the endpoint gives log-probabilities of the texts themselves; else they
/// are a choice of the model from a list, made into numbers. A single legal action and a question that was
/// asked before cost no request. A prompt that is too long is asked once more without its history, and then
/// without its regions as well. Actions of equal text get equal probabilities.
class HttpPolicy {
public:
  static constexpr int max_concurrency = 1; ///< One question at a time

  /// Asks the endpoint what it can do, see `ContinuationScorer`. Throws `Error`: `mtmc.net.003` where no way
  /// of scoring works, `mtmc.policy.001` for a malformed card, or one of another model or chat template.
  explicit HttpPolicy(Endpoint endpoint, HttpPolicyOptions options = {}, std::stop_token stop = {});

  /// Throws `Error` (`mtmc.net.003`) where the endpoint gives no scores after all tries.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token stop);

  /// Names model, adapter, method, normalization and card.
  [[nodiscard]] std::string identity() const;

  /// What was found out about the endpoint.
  [[nodiscard]] const ScoringReport& report() const noexcept { return scorer_.report(); }
  /// How the model is asked.
  [[nodiscard]] const PolicyCard& card() const noexcept { return card_; }
  /// Tokens and seconds of all questions so far, those of the start included.
  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }
  /// HTTP requests so far, those of the start included.
  [[nodiscard]] int requests() const noexcept { return requests_; }

private:
  struct Remembered {
    std::string key;
    ScoringAnswer answer;
  };
  /// Scores for a prompt, remembered or asked for.
  [[nodiscard]] ScoringAnswer scores_for(const PolicyPrompt& prompt, const std::string& label,
                                         std::stop_token stop);

  PolicyCard card_;
  ContinuationScorer scorer_;
  std::size_t max_remembered_;
  /// Newest first.
  std::list<Remembered> remembered_{};
  Usage usage_{};
  /// Of it, what no distribution has told yet.
  Usage untold_{};
  int requests_ = 0;
};

static_assert(check_policy<HttpPolicy>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/http_inl.hpp>
#endif
