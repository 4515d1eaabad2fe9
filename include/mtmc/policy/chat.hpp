#pragma once
/// A general language model as policy, by conversation instead of token probabilities (the paper's ablations,
/// table 7): it chooses from the legal actions, or says in its own words what to do.

#include <mtmc/core/concepts.hpp>
#include <mtmc/net/chat_client.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Settings of the policies that ask a chat model.
struct ChatPolicyOptions {
  /// Questions asked for one choice; with more than one, each answer is a vote.
  int votes = 1;
  /// With a single vote: probability that is spread over all legal actions, so that none is impossible.
  double uniform = 0.1;
  /// Largest answer, reasoning included.
  std::int64_t max_tokens = 4096;
  /// Nothing = the endpoint's default.
  std::optional<double> temperature{};
  /// "low", "medium", "high", ... as the endpoint names it; empty = its default.
  std::string reasoning_effort{};
  /// Longest time of one choice, in seconds.
  double seconds = 600;
  /// After so many choices in a row in which the model named no legal action, the run ends with an error.
  int max_unheard = 3;
};

/// Asks which legal action to take next. The distribution is made of votes (add one half each) and is not
/// exact. An answer that names no legal action is asked for once more and then counts for none; with no vote
/// at all the distribution is uniform, and the rationale says so. Throws `Error` (`mtmc.net.003`) where the
/// endpoint does not answer, or has not named an action `max_unheard` times in a row: a run that was said to
/// be led by a model would be led by chance.
class ChatPolicy {
public:
  /// Takes over the client, and with it the endpoint.
  explicit ChatPolicy(ChatClient client, ChatPolicyOptions options = {})
      : client_(std::move(client)), options_(std::move(options)) {}

  /// Asks the model which action comes next. See above for what is thrown.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token stop);
  /// What is sent for a choice.
  [[nodiscard]] ChatRequest question(const Observation& seen, std::span<const Action> legal) const;
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const;

private:
  ChatClient client_;
  ChatPolicyOptions options_;
  /// Decisions in a row in which no legal action was named.
  int unheard_ = 0;
};

/// The same without an action space: the model says in one sentence which optimisation to apply, or to stop.
class FreeFormPolicy {
public:
  /// Takes over the client, and with it the endpoint.
  explicit FreeFormPolicy(ChatClient client, ChatPolicyOptions options = {})
      : client_(std::move(client)), options_(std::move(options)) {}

  /// One action in the model's own words; none to stop.
  [[nodiscard]] std::vector<Action> propose(const Observation& seen, std::span<const Action> legal,
                                            std::stop_token stop);
  /// Takes what was proposed, and says what that cost.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token stop);
  /// What the model is asked.
  [[nodiscard]] ChatRequest question(const Observation& seen) const;
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const;

private:
  ChatClient client_;
  ChatPolicyOptions options_;
  /// Of the last proposal.
  Usage usage_{};
};

static_assert(check_policy<ChatPolicy>());
static_assert(check_policy<FreeFormPolicy>() && ProposesActions<FreeFormPolicy>);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/policy/chat_inl.hpp>
#endif
