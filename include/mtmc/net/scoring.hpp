#pragma once
/// How likely a language model finds given continuations of a text, over HTTP: what a token-scored policy
/// (TWOSOME; paper, eq. 2) is made of. Servers differ in how they tell; the best way is found by trying.

#include <mtmc/net/endpoint.hpp>
#include <mtmc/net/scoring_types.hpp>

#include <span>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// A report as lines for people.
[[nodiscard]] std::string describe(const ScoringReport& report);

/// Scores continuations at one endpoint. Copies share the endpoint. Calls may run at once.
class ContinuationScorer {
public:
  /// Asks the endpoint what it is and tries the methods in their order with two continuations: the right
  /// number of tokens, no score for the very first, finite, " Paris" above " banana", the same again. At most
  /// 5 small requests (9 to llama.cpp's own server) where the endpoint says what it is and the first method
  /// that suits it works. Throws `Error` (`mtmc.net.003`) where no method works or the server does not
  /// answer, with all that was tried, and (`mtmc.net.001`) for options that contradict each other.
  explicit ContinuationScorer(Endpoint endpoint, ScoringOptions options = {}, std::stop_token stop = {});

  /// What was found out about the endpoint.
  [[nodiscard]] const ScoringReport& report() const noexcept { return report_; }
  /// The settings it was made with.
  [[nodiscard]] const ScoringOptions& options() const noexcept { return options_; }

  /// Scores each continuation after `context`, which should not end with a blank while each continuation
  /// begins with one. Texts must be UTF-8 and no continuation empty. Does not throw for what may happen on a
  /// network. `label` names the requests in records.
  [[nodiscard]] ScoringAnswer score(const std::string& context, std::span<const std::string> continuations,
                                    std::stop_token stop, const std::string& label = "score");

private:
  Endpoint endpoint_;
  ScoringOptions options_;
  ScoringReport report_;
  /// `labels`: whether chat completions give the letters, or else plain completions.
  bool chat_labels_ = true;
  /// llama.cpp's number of the adapter.
  int adapter_id_ = -1;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/scoring_inl.hpp>
#endif
