#pragma once
/// Definitions of coder/openai.hpp.

#include <mtmc/coder/answer.hpp>
#include <mtmc/coder/openai.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// What an answer's failure is for a draft.
[[nodiscard]] inline DraftFailure draft_failure_of(AnswerFailure failure) {
  switch (failure) {
  case AnswerFailure::none:
    return DraftFailure::none;
  case AnswerFailure::truncated:
    return DraftFailure::truncated;
  case AnswerFailure::refusal:
    return DraftFailure::refused;
  case AnswerFailure::unchanged:
    return DraftFailure::unchanged;
  default:
    return DraftFailure::no_kernel;
  }
}

/// A draft for an answer that did not come; throws where none will.
[[nodiscard]] inline Draft draft_without_answer(const ChatAnswer& answer, const EndpointOptions& endpoint,
                                                std::atomic<int>& silent, int max_silent) {
  const auto place = endpoint.model + " at " + url_without_secrets(endpoint.base_url);
  switch (answer.failure) {
  case ChatFailure::pending: {
    Draft draft;
    draft.pending = answer.pending;
    draft.message = answer.message;
    return draft;
  }
  case ChatFailure::cancelled:
    return Draft::failed(DraftFailure::cancelled, answer.message);
  case ChatFailure::budget:
    return Draft::failed(DraftFailure::budget, answer.message);
  case ChatFailure::too_long:
    return Draft::failed(DraftFailure::declined, "the prompt is too long for the model: " + answer.message);
  case ChatFailure::no_access:
    throw Error(error_id::net_endpoint, "the endpoint denies access: " + answer.message,
                "Check the key, and what the account may use and has left", place);
  case ChatFailure::bad_request:
    throw Error(error_id::net_endpoint, "the endpoint does not accept the request: " + answer.message,
                "Check the model's name, the URL with its version, and the settings of the coder", place);
  default:
    break;
  }
  if (++silent >= max_silent)
    throw Error(error_id::net_endpoint,
                "the endpoint gave no usable answer to " + std::to_string(max_silent) +
                    " drafts in a row; the last time: " + answer.message,
                "Correct what the message names (a server that is down, a rate limit, a wrong address), then "
                "resume the run: one with a journal continues from here",
                place)
        .about(answer.option);
  return Draft::failed(DraftFailure::endpoint, answer.message);
}

/// One question after another for one draft, and what they used together.
class Dialogue {
public:
  Dialogue(ChatClient& client, Deadline deadline, std::stop_token stop)
      : client_(client), deadline_(deadline), stop_(std::move(stop)) {}

  [[nodiscard]] ChatAnswer ask(const ChatRequest& request) {
    auto answer = client_.ask(request, deadline_, stop_);
    usage_ += answer.usage;
    return answer;
  }
  [[nodiscard]] const Usage& usage() const noexcept { return usage_; }

private:
  ChatClient& client_;
  Deadline deadline_;
  std::stop_token stop_;
  Usage usage_;
};

[[nodiscard]] inline bool is_cut(const ChatAnswer& answer) {
  return answer.failure == ChatFailure::none && answer.choices.front().finish == FinishReason::length;
}

/// The same question with the answer so far, to be continued.
[[nodiscard]] inline ChatRequest continuation_of(ChatRequest request, const std::string& content,
                                                 const EndpointProfile& profile) {
  request.messages.push_back({"assistant", content});
  request.continues = profile.continues_messages;
  if (!profile.continues_messages)
    request.messages.push_back({"user", "Your answer was cut off. Go on exactly where it ends, without "
                                        "repeating anything and without any remark."});
  request.label += "-rest";
  return request;
}

} // namespace detail

MTMC_INLINE OpenAiCoder::OpenAiCoder(ChatClient client, OpenAiCoderOptions options)
    : client_(std::move(client)), options_(std::move(options)) {}

MTMC_INLINE Prompt OpenAiCoder::prompt(const CodingRequest& request) const {
  const auto examples = options_.examples.find(request.action.optimization, request.seen.kernel.language,
                                               options_.shown_examples);
  auto prompt = build_prompt(request, examples, options_.prompt);
  if (options_.revise) options_.revise(prompt, request);
  return prompt;
}

MTMC_INLINE ChatRequest OpenAiCoder::chat_request(const CodingRequest& request, const Prompt& prompt) const {
  ChatRequest chat;
  chat.messages = prompt.messages();
  chat.max_tokens = options_.max_tokens;
  chat.temperature = options_.temperature;
  chat.top_p = options_.top_p;
  if (options_.seed) chat.seed = *options_.seed + request.sample;
  chat.reasoning_effort = options_.reasoning_effort;
  chat.extra = options_.extra;
  chat.stream = options_.stream;
  chat.cache_key = request.seen.task.name;
  chat.label = request.seen.task.name + '-' + std::to_string(request.seen.step) + '-' +
               std::to_string(request.sample) + (request.repair ? "-repair" : "");
  return chat;
}

MTMC_INLINE Usage OpenAiCoder::most_of(const CodingRequest& request) const {
  return client_.most_of(chat_request(request, prompt(request)));
}

MTMC_INLINE Usage OpenAiCoder::most_of_draft(const CodingRequest& request) const {
  auto chat = chat_request(request, prompt(request));
  auto most = client_.most_of(chat);
  if (chat.max_tokens > 0) {
    chat.max_tokens *= 2;
    most += client_.most_of(chat);
  }
  const auto answer = client_.most_of(chat).completion_tokens;
  constexpr std::int64_t bytes_a_token = 2; // as `ChatClient::most_of` has it
  const std::string text(static_cast<std::size_t>(bytes_a_token * answer), ' ');
  most += client_.most_of(detail::continuation_of(chat, text, client_.endpoint().profile()));
  return most;
}

MTMC_INLINE std::string OpenAiCoder::identity() const {
  const auto& endpoint = client_.endpoint().options();
  auto text = "openai, " + endpoint.model + " at " + url_without_secrets(endpoint.base_url) + ", " +
              std::to_string(options_.max_tokens) + " tokens";
  if (options_.temperature) text += ", temperature " + std::to_string(*options_.temperature);
  if (!options_.reasoning_effort.empty()) text += ", reasoning effort " + options_.reasoning_effort;
  if (options_.prompt.edits) text += ", edits";
  if (options_.prompt.plain) text += ", plain prompts";
  return text;
}

MTMC_INLINE Draft OpenAiCoder::implement(const CodingRequest& request, std::stop_token stop) {
  detail::Dialogue dialogue(client_, detail::deadline_in(options_.seconds), stop);
  auto shown = prompt(request);
  auto chat = chat_request(request, shown);
  auto answer = dialogue.ask(chat);
  if (answer.failure == ChatFailure::too_long && !shown.fit(shown.bytes() / 2).empty()) {
    chat = chat_request(request, shown);
    answer = dialogue.ask(chat);
  }
  // All tokens went into reasoning.
  if (detail::is_cut(answer) && answer.choices.front().content.empty() && chat.max_tokens > 0) {
    chat.max_tokens *= 2;
    chat.label += "-longer";
    answer = dialogue.ask(chat);
  }
  const auto with_usage = [&dialogue](Draft draft) {
    draft.usage = dialogue.usage();
    return draft;
  };
  const auto failed = [&](const ChatAnswer& without) {
    return with_usage(detail::draft_without_answer(without, client_.endpoint().options(), *silent_,
                                                   options_.max_silent_drafts));
  };
  if (answer.failure != ChatFailure::none) return failed(answer);
  *silent_ = 0;

  const auto& choice = answer.choices.front();
  if (!choice.refusal.empty() || (choice.finish == FinishReason::filtered && choice.content.empty())) {
    auto draft = Draft::failed(DraftFailure::refused,
                               choice.refusal.empty() ? "the provider filtered the answer" : choice.refusal);
    draft.raw_text = choice.content;
    return with_usage(std::move(draft));
  }
  AnswerOptions options;
  options.language = request.seen.kernel.language;
  options.parent = request.repair ? &request.repair->kernel : &request.seen.kernel;
  options.edits = options_.prompt.edits;
  options.cut = detail::is_cut(answer);
  auto text = choice.content;
  auto extracted = extract_kernel(text, options);
  if (extracted.failure == AnswerFailure::truncated && !text.empty()) {
    const auto rest = dialogue.ask(detail::continuation_of(chat, text, client_.endpoint().profile()));
    if (rest.failure == ChatFailure::pending || rest.failure == ChatFailure::cancelled) return failed(rest);
    if (rest.failure == ChatFailure::none) {
      text = join_continuation(text, rest.choices.front().content);
      options.cut = detail::is_cut(rest);
      extracted = extract_kernel(text, options);
    }
  }
  Draft draft;
  draft.kernel = std::move(extracted.kernel);
  draft.failure = detail::draft_failure_of(extracted.failure);
  draft.message = draft.kernel ? std::move(extracted.note) : std::move(extracted.message);
  draft.raw_text = std::move(text);
  return with_usage(std::move(draft));
}

} // namespace mtmc
