#pragma once
/// Reading chat completions, whole or piece by piece. Tolerates what is missing, unknown or of another type.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/chat.hpp>
#include <mtmc/net/event_stream.hpp>
#include <mtmc/net/json_member.hpp>
#include <mtmc/net/retry.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Text, or the texts of a list of parts.
[[nodiscard]] inline std::string content_text(const Json* value) {
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  std::string text;
  if (!value->is_array()) return text;
  for (const auto& part : *value) {
    const auto* const inner = part.is_string() ? &part : member(part, "text");
    if (inner != nullptr && inner->is_string()) text += inner->get<std::string>();
  }
  return text;
}

[[nodiscard]] inline FinishReason read_finish_reason(const Json* value) {
  if (value == nullptr || !value->is_string()) return FinishReason::unknown;
  const auto& reason = value->get_ref<const std::string&>();
  if (reason == "stop" || reason == "eos_token" || reason == "stop_sequence" || reason == "end_turn")
    return FinishReason::stop;
  // The last is DeepSeek's word for a server that ran out of something.
  if (reason == "length" || reason == "max_tokens" || reason == "insufficient_system_resource")
    return FinishReason::length;
  if (reason == "content_filter" || reason == "refusal") return FinishReason::filtered;
  return FinishReason::unknown;
}

/// Log-probabilities of the first token, in the form of chat completions.
[[nodiscard]] inline std::vector<TokenLogprob> read_first_token(const Json* logprobs) {
  std::vector<TokenLogprob> result;
  const auto* const content = member(logprobs, "content");
  if (content == nullptr || !content->is_array() || content->empty()) return result;
  const auto* const alternatives = member(content->front(), "top_logprobs");
  if (alternatives == nullptr || !alternatives->is_array()) return result;
  for (const auto& one : *alternatives) {
    const auto* const token = member(one, "token");
    const auto* const logprob = member(one, "logprob");
    if (token != nullptr && token->is_string() && logprob != nullptr && logprob->is_number())
      result.push_back({token->get<std::string>(), logprob->get<double>()});
  }
  return result;
}

/// Adds what a message or a delta says.
inline void add_message(const Json* message, ChatChoice& choice) {
  choice.content += content_text(member(message, "content"));
  choice.refusal += content_text(member(message, "refusal"));
  // The name has changed between versions of vLLM.
  const auto* reasoning = member(message, "reasoning_content");
  if (reasoning == nullptr) reasoning = member(message, "reasoning");
  choice.reasoning += content_text(reasoning);
}

/// More answers than anybody asks for are left out.
inline constexpr std::size_t max_choices = 128;

/// False where there is none, or one of numbers that cannot be.
[[nodiscard]] inline bool read_usage(const Json& body, Usage& usage) {
  constexpr std::int64_t absurd = 1'000'000'000'000;
  const auto* const told = member(body, "usage");
  const auto prompt = count_in(member(told, "prompt_tokens"));
  const auto completion = count_in(member(told, "completion_tokens"));
  if (!prompt || !completion || *prompt >= absurd || *completion >= absurd) return false;
  usage.prompt_tokens = *prompt;
  usage.completion_tokens = *completion;
  usage.cached_tokens = count_in(member(member(told, "prompt_tokens_details"), "cached_tokens")).value_or(0);
  // DeepSeek's name.
  if (usage.cached_tokens == 0)
    usage.cached_tokens = count_in(member(told, "prompt_cache_hit_tokens")).value_or(0);
  usage.reasoning_tokens =
      count_in(member(member(told, "completion_tokens_details"), "reasoning_tokens")).value_or(0);
  return true;
}

/// What an error under status 200 or any other means.
[[nodiscard]] inline ChatAnswer failed_by(const HttpResponse& response) {
  const auto error = read_endpoint_error(response);
  const auto has = [&error](std::string_view part) {
    return error.code.find(part) != std::string::npos || error.message.find(part) != std::string::npos;
  };
  const int status = response.status;
  auto said = (response.status != 0 ? "HTTP " + std::to_string(response.status) + ": " : std::string()) +
              (error.message.empty() ? "no explanation" : error.message) +
              (error.code.empty() ? "" : " (" + error.code + ')');
  if ((status == 404 || status == 405) && !has("model"))
    said += "; check the base URL and the version in it, such as /v1";
  if (has("context_length_exceeded") || has("exceed_context_size") || has("maximum context length") ||
      has("context window") || has("Context size has been exceeded"))
    return ChatAnswer::failed(ChatFailure::too_long, said);
  if (status == 401 || status == 402 || status == 403 || has("insufficient_quota") || has("invalid_api_key"))
    return ChatAnswer::failed(ChatFailure::no_access, said);
  if (status >= 300 && (status < 500 || refuses_request(error)) && status != 408 && status != 409 &&
      status != 429)
    return ChatAnswer::failed(ChatFailure::bad_request, said);
  return ChatAnswer::failed(ChatFailure::endpoint, said);
}

[[nodiscard]] inline ChatAnswer failed_by_transport(const HttpResponse& response) {
  if (response.failure == TransportFailure::pending) {
    auto answer = ChatAnswer::failed(ChatFailure::pending, "the answer is still to come");
    answer.pending = response.message;
    return answer;
  }
  if (response.failure == TransportFailure::cancelled)
    return ChatAnswer::failed(ChatFailure::cancelled, response.message);
  auto answer = ChatAnswer::failed(ChatFailure::endpoint,
                                   std::string(to_string(response.failure)) + ": " + response.message);
  answer.option = response.option;
  return answer;
}

/// An answer that comes in pieces.
class StreamedAnswer {
public:
  void take(std::string_view bytes) {
    if (empty_ && bytes.starts_with('{')) comes_whole_ = true;
    empty_ = empty_ && bytes.empty();
    if (comes_whole_)
      whole_ += bytes;
    else
      stream_.feed(bytes, [this](const std::string& data) { event(data); });
  }
  /// What has come, once there is no more.
  [[nodiscard]] ChatAnswer finish() {
    ended_ = true;
    stream_.finish([this](const std::string& data) { event(data); });
    if (error_) return std::move(*error_);
    for (auto& choice : answer_.choices)
      // The end was not told, so it is not known to be there.
      if (choice.finish == FinishReason::unknown && !done_) choice.finish = FinishReason::length;
    if (answer_.choices.empty())
      return ChatAnswer::failed(ChatFailure::malformed, "the stream held no answer");
    return std::move(answer_);
  }
  /// The body of a server that answers in one piece all the same; empty if it streams.
  [[nodiscard]] const std::string& whole() const noexcept { return whole_; }
  /// Whether nothing at all has come.
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  /// Bytes of all answers so far.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  void event(const std::string& data) {
    if (data == "[DONE]") {
      done_ = true;
      return;
    }
    const auto body = parse_text(data, false);
    // The last event may have been cut with the stream; a hole in the middle of a kernel is no answer.
    if (body.is_discarded() && data.starts_with('{') && !ended_ && !error_)
      error_ =
          ChatAnswer::failed(ChatFailure::malformed, "a piece of the stream is not JSON: " + shortened(data));
    if (!body.is_object() || error_) return;
    if (member(body, "error") != nullptr) {
      error_ = failed_by({.body = data});
      return;
    }
    if (read_usage(body, answer_.usage)) answer_.counted = true;
    const auto* const choices = member(body, "choices");
    if (choices == nullptr || !choices->is_array()) return;
    for (const auto& piece : *choices) {
      const auto index = static_cast<std::size_t>(count_in(member(piece, "index")).value_or(0));
      if (index >= max_choices) continue;
      if (answer_.choices.size() <= index) answer_.choices.resize(index + 1);
      auto& choice = answer_.choices[index];
      const auto before = choice.content.size() + choice.reasoning.size();
      add_message(member(piece, "delta"), choice);
      bytes_ += choice.content.size() + choice.reasoning.size() - before;
      if (choice.first_token.empty()) choice.first_token = read_first_token(member(piece, "logprobs"));
      if (const auto* const reason = member(piece, "finish_reason")) {
        choice.finish = read_finish_reason(reason);
        if (choice.finish == FinishReason::unknown) choice.finish = FinishReason::stop;
      }
    }
  }

  EventStream stream_;
  std::string whole_;
  bool comes_whole_ = false;
  ChatAnswer answer_;
  std::optional<ChatAnswer> error_;
  std::size_t bytes_ = 0;
  bool done_ = false;
  bool ended_ = false;
  bool empty_ = true;
};

} // namespace mtmc::detail
