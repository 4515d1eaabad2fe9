#pragma once
/// What is asked of a language model and what it answers, in the terms of chat completions but of no one
/// endpoint.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/step.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One message: role "system", "user" or "assistant".
struct ChatMessage {
  std::string role;    ///< "system", "user" or "assistant"
  std::string content; ///< the text

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default; ///< member by member
};

/// One question. What an endpoint does not know of it is left out, by its `EndpointProfile`.
struct ChatRequest {
  /// Oldest first.
  std::vector<ChatMessage> messages;
  /// Largest number of tokens of one answer, reasoning included; 0 = the endpoint's own limit.
  std::int64_t max_tokens = 0;
  /// Nothing = the endpoint's default.
  std::optional<double> temperature{};
  /// Nothing = the endpoint's default.
  std::optional<double> top_p{};
  /// Nothing = none.
  std::optional<std::int64_t> seed{};
  /// Texts that end an answer.
  std::vector<std::string> stop{};
  /// Answers wanted at once.
  int count = 1;
  /// "low", "medium", "high", ...; empty = the endpoint's own.
  std::string reasoning_effort{};
  /// Likeliest alternatives to report for each token, at most 20; 0 = no log-probabilities.
  int top_logprobs = 0;
  /// Requests with an equal key share the beginning of their prompts; empty = none is sent.
  std::string cache_key{};
  /// A JSON schema the answer must keep, as text; empty = free text.
  std::string schema{};
  /// A JSON object whose members are added to the request as they are; empty = none.
  std::string extra{};
  /// Asks for the answer in pieces as they are written.
  bool stream = false;
  /// The last message is the assistant's and is to be continued, where the endpoint can do that.
  bool continues = false;
  /// What the request is called in records and batches, such as "gemm-3-0".
  std::string label{};

  friend bool operator==(const ChatRequest&, const ChatRequest&) = default; ///< member by member
};

/// Why an answer ended.
enum class FinishReason {
  /// By itself, or at a stop text.
  stop,
  /// At its largest number of tokens, or where the connection ended: it is not whole.
  length,
  /// The provider would not say it.
  filtered,
  /// The endpoint says something else, or nothing.
  unknown
};

namespace detail {
inline constexpr EnumName<FinishReason> finish_reason_names[] = {
    {FinishReason::stop, "stop"},
    {FinishReason::length, "length"},
    {FinishReason::filtered, "filtered"},
    {FinishReason::unknown, "unknown"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<FinishReason>> enum_names(FinishReason) noexcept {
  return detail::finish_reason_names;
}

/// A token that might have come, and the natural logarithm of its probability.
struct TokenLogprob {
  std::string token;  ///< its text
  double logprob = 0; ///< natural logarithm; at most 0

  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default; ///< member by member
};

/// One answer.
struct ChatChoice {
  /// The text of the answer.
  std::string content;
  /// What the model thought before, where the endpoint tells it apart from the content.
  std::string reasoning{};
  /// Why it ended.
  FinishReason finish = FinishReason::unknown;
  /// What the model refuses, in its own words; empty if it does not.
  std::string refusal{};
  /// Of the first token: the likeliest ones, if they were asked for.
  std::vector<TokenLogprob> first_token{};

  friend bool operator==(const ChatChoice&, const ChatChoice&) = default; ///< member by member
};

/// Why there is no answer. The list is closed.
enum class ChatFailure {
  none,
  /// No answer, or 429 or 5xx, after all tries.
  endpoint,
  /// The endpoint says that the request is wrong (400, 404, 422, ...).
  bad_request,
  /// Key, account or permission (401, 402, 403; a quota that is used up).
  no_access,
  /// The prompt is longer than the model's context.
  too_long,
  /// The answer is nothing that chat completions are.
  malformed,
  /// A cap on tokens or money would be passed.
  budget,
  cancelled,
  /// The answer comes later, under `ChatAnswer::pending`.
  pending
};

namespace detail {
inline constexpr EnumName<ChatFailure> chat_failure_names[] = {
    {ChatFailure::none, "none"},
    {ChatFailure::endpoint, "endpoint"},
    {ChatFailure::bad_request, "bad_request"},
    {ChatFailure::no_access, "no_access"},
    {ChatFailure::too_long, "too_long"},
    {ChatFailure::malformed, "malformed"},
    {ChatFailure::budget, "budget"},
    {ChatFailure::cancelled, "cancelled"},
    {ChatFailure::pending, "pending"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ChatFailure>> enum_names(ChatFailure) noexcept {
  return detail::chat_failure_names;
}

/// What came of a question.
struct ChatAnswer {
  /// At least one if there is no failure.
  std::vector<ChatChoice> choices{};
  /// `none` if there is an answer.
  ChatFailure failure = ChatFailure::none;
  /// One sentence on the failure, without secrets.
  std::string message{};
  /// Id of an answer that is still to come.
  std::string pending{};
  /// Tokens as the endpoint counts them, or an estimate where it does not; money by the host's prices;
  /// seconds with all tries.
  Usage usage{};
  /// Whether the endpoint counted the tokens itself.
  bool counted = false;
  /// HTTP requests that were sent for it.
  int tries = 0;
  /// The option that may help after a failure, such as "CurlOptions::ca_file"; empty if none does.
  std::string option{};

  /// An answer that is a failure.
  [[nodiscard]] static ChatAnswer failed(ChatFailure failure, std::string message) {
    ChatAnswer answer;
    answer.failure = failure;
    answer.message = std::move(message);
    return answer;
  }

  friend bool operator==(const ChatAnswer&, const ChatAnswer&) = default; ///< member by member
};

} // namespace mtmc
