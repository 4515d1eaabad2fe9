#pragma once
/// What every way of scoring needs (net/scoring_inl.hpp): one question in JSON, its answer, what it cost.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/endpoint.hpp>
#include <mtmc/net/json_member.hpp>
#include <mtmc/net/scoring_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The numbers that Python writes and JSON does not have (`NaN`, `-Infinity`), outside of strings, as null or
/// -9999.
[[nodiscard]] inline std::string without_nonfinite_numbers(std::string_view text) {
  std::string clean;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto rest = text.substr(i);
    if (!quoted && rest.starts_with("-Infinity")) {
      clean += "-9999.0";
      i += 9;
    } else if (!quoted && (rest.starts_with("NaN") || rest.starts_with("Infinity"))) {
      clean += "null";
      i += rest.front() == 'N' ? 3 : 8;
    } else {
      if (quoted && rest.front() == '\\' && rest.size() > 1) {
        clean += rest.substr(0, 2);
        i += 2;
        continue;
      }
      if (rest.front() == '"') quoted = !quoted;
      clean += rest.front();
      ++i;
    }
  }
  return clean;
}

/// Code points of well-formed UTF-8, which is what Python's servers count.
[[nodiscard]] inline std::int64_t count_code_points(std::string_view text) noexcept {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
}

[[nodiscard]] inline int count_words(std::string_view text) noexcept {
  int words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank && !inside) ++words;
    inside = !blank;
  }
  return words;
}

[[nodiscard]] inline bool says_too_long(const EndpointError& error) {
  if (error.code == "context_length_exceeded" || error.code == "exceed_context_size_error") return true;
  std::string text = error.message;
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view part :
       {"context length", "context size", "context window", "maximum allowed length", "too many tokens",
        "must have less than", "longer than the model"})
    if (text.find(part) != std::string::npos) return true;
  return false;
}

/// An answer that was read, or why there is none.
struct JsonAnswer {
  Json body{};
  ChatFailure failure = ChatFailure::none;
  std::string message{};
  /// The option that may help after a failure; empty if none does.
  std::string option{};

  [[nodiscard]] bool ok() const noexcept { return failure == ChatFailure::none; }
};

[[nodiscard]] inline ChatFailure failure_of(const HttpResponse& response, const EndpointError& error) {
  switch (response.failure) {
  case TransportFailure::none:
    break;
  case TransportFailure::cancelled:
    return ChatFailure::cancelled;
  case TransportFailure::pending:
    return ChatFailure::pending;
  default:
    return ChatFailure::endpoint;
  }
  if (says_too_long(error) && response.status != 429) return ChatFailure::too_long;
  if (response.status == 401 || response.status == 402 || response.status == 403)
    return ChatFailure::no_access;
  if (error.code == "insufficient_quota") return ChatFailure::no_access;
  if (response.status == 429) return ChatFailure::endpoint;
  const bool refused = response.status >= 400 && (response.status < 500 || refuses_request(error));
  return refused ? ChatFailure::bad_request : ChatFailure::endpoint;
}

/// One call of a scorer: where it asks, and what it has cost so far.
struct ScoringSession {
  Endpoint& endpoint;
  const ScoringOptions& options;
  EndpointProfile profile;
  std::string server{};
  std::string model{};
  std::vector<std::string> models{};
  std::string label{};
  std::stop_token stop{};
  bool chat_labels = true;
  int adapter_id = -1;
  Usage usage{};
  int requests = 0;
  bool counted = true;
  /// Some question got no answer of any status.
  bool unanswered = false;

  /// Sends a question (GET where it is null). Tokens are counted by `count`, not here.
  [[nodiscard]] JsonAnswer ask(std::string_view path, const Json& question) {
    const auto body = question.is_null() ? std::string() : question.dump(-1, ' ', false, replace);
    auto [response, tries] = endpoint.send(path, body, Deadline::max(), stop, {}, label);
    requests += tries;
    usage.seconds += response.seconds;
    unanswered |= !response.arrived();
    JsonAnswer answer;
    if (!response.ok()) {
      const auto error = response.arrived() ? read_endpoint_error(response) : EndpointError{};
      answer.failure = failure_of(response, error);
      answer.option = response.option;
      answer.message = response.arrived() ? "status " + std::to_string(response.status) +
                                                (error.message.empty() ? "" : ": " + error.message)
                                          : std::string(to_string(response.failure)) +
                                                (response.message.empty() ? "" : ": " + response.message);
      answer.message += tries > 1 ? " (after " + std::to_string(tries) + " tries)" : "";
      return answer;
    }
    answer.body = parse_text(response.body, false);
    if (answer.body.is_discarded()) answer.body = parse_text(without_nonfinite_numbers(response.body), false);
    if (answer.body.is_discarded() || !(answer.body.is_object() || answer.body.is_array()))
      return {{}, ChatFailure::malformed, "the answer is not JSON", {}};
    // Some gateways put an error into a 200.
    if (answer.body.is_object() && answer.body.contains("error") && !answer.body["error"].is_null()) {
      const auto error = read_endpoint_error(response);
      return {{}, says_too_long(error) ? ChatFailure::too_long : ChatFailure::bad_request, error.message, {}};
    }
    return answer;
  }

  /// Adds tokens; where the server counts none, an estimate by the bytes that were sent.
  void count(std::optional<std::int64_t> prompt, std::int64_t completion, std::int64_t cached,
             std::size_t sent_bytes) {
    constexpr std::size_t bytes_per_token = 4;
    if (!prompt) counted = false;
    usage.prompt_tokens += prompt.value_or(static_cast<std::int64_t>(sent_bytes / bytes_per_token));
    usage.completion_tokens += completion;
    usage.cached_tokens += cached;
  }

  /// Names the model, with its adapter in the way of the server, in a question to its OpenAI-like places.
  void name_model(Json& question) const {
    const auto& adapter = options.adapter;
    if (adapter_id >= 0) question["lora"] = Json::array({{{"id", adapter_id}, {"scale", 1.0}}});
    if (adapter.empty() || adapter_id >= 0)
      question["model"] = model;
    else
      question["model"] = server == "sglang" ? model + ':' + adapter : adapter;
  }

private:
  static constexpr auto replace = Json::error_handler_t::replace;
};

/// Counts by the `usage` of completions and chat completions.
inline void count_by_usage(ScoringSession& session, const Json& body, std::size_t sent_bytes) {
  const auto* const usage = member(body, "usage");
  if (usage == nullptr) return session.count(std::nullopt, 0, 0, sent_bytes);
  const auto* const details = member(*usage, "prompt_tokens_details");
  session.count(count_in(member(*usage, "prompt_tokens")),
                count_in(member(*usage, "completion_tokens")).value_or(0),
                details == nullptr ? 0 : count_in(member(*details, "cached_tokens")).value_or(0), sent_bytes);
}

/// What one method makes of a question.
struct ScoredBatch {
  std::vector<ScoredContinuation> scores{};
  ChatFailure failure = ChatFailure::none;
  std::string message{};
  /// The first token of a prompt, which nothing comes before, had no score; also where the method does not
  /// show it.
  bool first_is_null = true;

  [[nodiscard]] bool ok() const noexcept { return failure == ChatFailure::none; }
  [[nodiscard]] static ScoredBatch failed(ChatFailure failure, std::string message) {
    return {{}, failure, std::move(message)};
  }
  [[nodiscard]] static ScoredBatch failed(JsonAnswer answer) {
    return failed(answer.failure, std::move(answer.message));
  }
};

/// A token's log-probability as a document has it: nothing for null, infinite for what JSON cannot say.
[[nodiscard]] inline std::optional<double> logprob_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

/// Adds a token; none counts as the least.
inline void add_token(ScoredContinuation& score, std::optional<double> logprob) {
  const bool clamped = !logprob || !(*logprob >= least_token_logprob);
  score.logprob_sum += clamped ? least_token_logprob : *logprob;
  score.clamped |= clamped;
  ++score.tokens;
}

} // namespace mtmc::detail
