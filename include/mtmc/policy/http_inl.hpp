#pragma once
/// Definitions of policy/http.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_scores.hpp>
#include <mtmc/policy/http.hpp>
#include <mtmc/support/sha256.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The card's model, adapter and method go before the host's.
[[nodiscard]] inline ScoringOptions scoring_options_of(const PolicyCard& card, ScoringOptions options) {
  check_policy_card(card);
  if (!card.model.empty()) options.model = card.model;
  if (!card.adapter.empty()) options.adapter = card.adapter;
  if (card.method) options.method = card.method;
  return options;
}

/// A card that was made for something else than what is served gives probabilities that mean nothing.
inline void check_card_fits(const PolicyCard& card, const ScoringReport& report) {
  const auto& served = report.models;
  if (!card.model.empty() && !served.empty() &&
      std::find(served.begin(), served.end(), card.model) == served.end())
    throw Error(error_id::policy_card,
                "the card is for the model \"" + card.model + "\", the server has \"" + served.front() + '"',
                "Serve that model under that name, or correct \"model\" in the card", "field \"model\"");
  if (!card.chat_template_hash.empty() && !report.chat_template_hash.empty() &&
      card.chat_template_hash != report.chat_template_hash)
    throw Error(error_id::policy_card,
                "the server's chat template (" + report.chat_template_hash.substr(0, 12) +
                    ") is not the one that the card was made with",
                "Serve the policy with the chat template it was trained with",
                "field \"chat_template_hash\"");
}

[[nodiscard]] inline std::string remedy_for(ChatFailure failure) {
  switch (failure) {
  case ChatFailure::too_long:
    return "Serve the policy with a longer context; history and regions were left out already";
  case ChatFailure::no_access:
    return "Check the endpoint's key and account";
  case ChatFailure::cancelled:
    return "Nothing is wrong: the host asked to stop";
  case ChatFailure::pending:
    return "A served policy needs its answers at once; use a local policy for batch runs";
  case ChatFailure::bad_request:
  case ChatFailure::malformed:
    return "Look at the policy's report on scoring, or choose another method";
  default:
    return "Check that the policy's server runs, then resume the run";
  }
}

/// The option that `remedy_for` speaks of; empty where it speaks of none.
[[nodiscard]] inline std::string_view option_for(ChatFailure failure) {
  const bool other_method = failure == ChatFailure::bad_request || failure == ChatFailure::malformed;
  return other_method ? "ScoringOptions::method" : "";
}

[[nodiscard]] inline std::string rationale_of(const ScoringAnswer& answer, const PolicyCard& card,
                                              std::size_t actions, PromptCut cut) {
  std::string text = std::to_string(actions) + " actions scored by " + std::string(to_string(answer.method));
  text += answer.exact ? ", " + std::string(to_string(card.normalization)) : ", a choice from a list";
  if (cut == PromptCut::history) text += "; the prompt was too long, history left out";
  if (cut == PromptCut::regions) text += "; the prompt was too long, history and regions left out";
  const auto count = [&](auto flag) {
    return std::count_if(answer.continuations.begin(), answer.continuations.end(), flag);
  };
  if (const auto clamped = count([](const auto& one) { return one.clamped; }); clamped > 0)
    text += "; " + std::to_string(clamped) + " with a token that is all but impossible";
  if (const auto merged = count([](const auto& one) { return one.boundary_merge; }); merged > 0)
    text += "; " + std::to_string(merged) + " that share a token with the prompt";
  return text;
}

} // namespace detail

MTMC_INLINE HttpPolicy::HttpPolicy(Endpoint endpoint, HttpPolicyOptions options, std::stop_token stop)
    : card_(std::move(options.card)),
      scorer_(std::move(endpoint), detail::scoring_options_of(card_, std::move(options.scoring)),
              std::move(stop)),
      max_remembered_(options.remembered_questions), usage_(scorer_.report().usage), untold_(usage_),
      requests_(scorer_.report().requests) {
  detail::check_card_fits(card_, scorer_.report());
}

MTMC_INLINE std::string HttpPolicy::identity() const {
  const auto& adapter = scorer_.options().adapter;
  return "http " + (report().model.empty() ? "unnamed model" : report().model) +
         (adapter.empty() ? "" : " with " + adapter) + ", " + std::string(to_string(report().method)) + ", " +
         std::string(to_string(card_.normalization)) + ", card " + policy_card_hash(card_).substr(0, 16);
}

MTMC_INLINE ScoringAnswer HttpPolicy::scores_for(const PolicyPrompt& prompt, const std::string& label,
                                                 std::stop_token stop) {
  // Actions of the same text have the same score.
  std::map<std::string, std::size_t> index;
  std::vector<std::string> distinct;
  for (const auto& continuation : prompt.continuations)
    if (index.emplace(continuation, distinct.size()).second) distinct.push_back(continuation);

  Sha256 hash;
  const auto add = [&hash](const std::string& text) {
    hash.update(std::to_string(text.size()) + ':');
    hash.update(text);
  };
  add(identity());
  add(report().chat_template_hash);
  add(prompt.context);
  for (const auto& continuation : distinct) add(continuation);
  const auto key = hash.hex_digest();

  ScoringAnswer answer;
  const auto found = std::find_if(remembered_.begin(), remembered_.end(),
                                  [&](const Remembered& one) { return one.key == key; });
  if (found != remembered_.end()) {
    remembered_.splice(remembered_.begin(), remembered_, found);
    answer = remembered_.front().answer;
  } else {
    answer = scorer_.score(prompt.context, distinct, std::move(stop), label);
    usage_ += answer.usage;
    untold_ += answer.usage;
    requests_ += answer.requests;
    if (answer.failure != ChatFailure::none) return answer;
    remembered_.push_front({key, answer});
    if (remembered_.size() > max_remembered_) remembered_.pop_back();
  }
  std::vector<ScoredContinuation> all;
  for (const auto& continuation : prompt.continuations)
    all.push_back(answer.continuations[index[continuation]]);
  answer.continuations = std::move(all);
  return answer;
}

MTMC_INLINE ActionDistribution HttpPolicy::distribution(const Observation& seen,
                                                        std::span<const Action> legal, std::stop_token stop) {
  ActionDistribution result;
  if (legal.size() <= 1) {
    result.probabilities.assign(legal.size(), 1.0);
    result.exact = true;
    result.rationale = "the only legal action";
    return result;
  }
  const auto label = seen.task.name + "-policy-" + std::to_string(seen.step);
  std::string context;
  ScoringAnswer answer;
  PromptCut used = PromptCut::nothing;
  for (const auto cut : {PromptCut::nothing, PromptCut::history, PromptCut::regions}) {
    auto prompt = policy_prompt(card_, seen, legal, cut);
    if (prompt.context == context) continue; // there was nothing to leave out
    context = prompt.context;
    used = cut;
    answer = scores_for(prompt, label, stop);
    if (answer.failure != ChatFailure::too_long) break;
  }
  if (answer.failure != ChatFailure::none)
    throw Error(error_id::net_endpoint,
                "the served policy gave no scores for " + std::to_string(legal.size()) +
                    " actions: " + answer.message,
                detail::remedy_for(answer.failure), identity())
        .about(detail::option_for(answer.failure));
  result.probabilities = action_probabilities(answer.continuations, card_.normalization, card_.temperature);
  result.exact = answer.exact;
  result.rationale = detail::rationale_of(answer, card_, legal.size(), used);
  result.usage = std::exchange(untold_, {});
  return result;
}

} // namespace mtmc
