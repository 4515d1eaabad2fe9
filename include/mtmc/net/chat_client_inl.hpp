#pragma once
/// Definitions of net/chat_client.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/net/chat_client.hpp>
#include <mtmc/net/chat_lessons.hpp>
#include <mtmc/net/chat_reading.hpp>
#include <mtmc/net/chat_tokens.hpp>
#include <mtmc/support/stopwatch.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Why a request is not sent: what it could take, what is spent, and the caps.
[[nodiscard]] inline std::string over_cap_text(const Usage& most, const Usage& spent,
                                               const SpendingCaps& caps) {
  const auto money = [](double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value);
    return std::string(text.data());
  };
  std::string text = "the request could take " + std::to_string(most.tokens()) + " tokens";
  if (most.cost > 0) text += " and cost " + money(most.cost);
  text += "; spent so far are " + std::to_string(spent.tokens()) + " tokens";
  if (most.cost > 0) text += " and " + money(spent.cost);
  text += "; the limit is ";
  if (caps.tokens > 0) text += std::to_string(caps.tokens) + " tokens";
  if (caps.tokens > 0 && caps.cost > 0) text += " and ";
  if (caps.cost > 0) text += money(caps.cost);
  return text;
}

/// Whether the server may have worked on a try that gave no answer, and be paid for it.
[[nodiscard]] inline bool may_have_worked(const HttpResponse& response) {
  switch (response.failure) {
  case TransportFailure::none:
    return response.ok();
  case TransportFailure::timeout:
  case TransportFailure::dropped:
  case TransportFailure::cancelled:
  case TransportFailure::too_large:
    return true;
  default:
    return false;
  }
}

/// A JSON object that a request brings along as text; throws where it is none.
[[nodiscard]] inline Json given_object(const std::string& text, const char* option) {
  auto object = parse_text(text, false);
  if (!object.is_object())
    throw Error(error_id::net_options, "the text is not a JSON object: " + shortened(text),
                "Give the text of an object, such as {\"top_k\": 20}")
        .about(option);
  return object;
}

} // namespace detail

MTMC_INLINE std::string chat_body(const ChatRequest& request, const EndpointProfile& profile,
                                  const std::string& model) {
  using detail::Json;
  Json body{{"model", model}, {"messages", Json::array()}};
  for (const auto& message : request.messages)
    body["messages"].push_back({{"role", message.role}, {"content", message.content}});
  if (request.max_tokens > 0)
    body[profile.max_completion_tokens ? "max_completion_tokens" : "max_tokens"] = request.max_tokens;
  if (request.temperature && profile.temperature)
    body["temperature"] = std::min(*request.temperature, profile.max_temperature);
  if (request.top_p && profile.top_p) body["top_p"] = *request.top_p;
  if (request.seed && profile.seed) body["seed"] = *request.seed;
  if (!request.stop.empty() && profile.stop) body["stop"] = request.stop;
  if (request.count > 1 && profile.several_answers) body["n"] = request.count;
  if (!request.reasoning_effort.empty() && profile.reasoning_effort)
    body["reasoning_effort"] = request.reasoning_effort;
  if (request.top_logprobs > 0 && profile.logprobs) {
    body["logprobs"] = true;
    body["top_logprobs"] = std::min(request.top_logprobs, 20);
  }
  if (!request.schema.empty() && profile.json_schema)
    body["response_format"] = {{"type", "json_schema"},
                               {"json_schema",
                                {{"name", "answer"},
                                 {"strict", true},
                                 {"schema", detail::given_object(request.schema, "ChatRequest::schema")}}}};
  if (request.stream && profile.stream) {
    body["stream"] = true;
    if (profile.stream_usage) body["stream_options"] = {{"include_usage", true}};
  }
  if (!request.cache_key.empty() && profile.cache_key) body["prompt_cache_key"] = request.cache_key;
  if (request.continues && profile.continues_messages && !profile.continuing_members.empty())
    body.update(detail::given_object(profile.continuing_members, "EndpointProfile::continuing_members"));
  if (!request.extra.empty()) body.update(detail::given_object(request.extra, "ChatRequest::extra"));
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MTMC_INLINE ChatAnswer read_chat_answer(const HttpResponse& response) {
  using detail::member;
  if (!response.arrived()) return detail::failed_by_transport(response);
  if (!response.ok()) return detail::failed_by(response);
  const auto body = detail::parse_text(response.body, false);
  if (!body.is_object())
    return ChatAnswer::failed(ChatFailure::malformed,
                              "the answer is not JSON: " + read_endpoint_error(response).message);
  const auto* const choices = member(body, "choices");
  if (choices == nullptr && member(body, "error") != nullptr) return detail::failed_by(response);
  if (choices == nullptr || !choices->is_array() || choices->empty())
    return ChatAnswer::failed(ChatFailure::malformed,
                              "the answer has no choices: " + detail::shortened(response.body));
  ChatAnswer answer;
  for (const auto& one : *choices) {
    if (answer.choices.size() == detail::max_choices) break;
    auto& choice = answer.choices.emplace_back();
    detail::add_message(member(one, "message"), choice);
    choice.finish = detail::read_finish_reason(member(one, "finish_reason"));
    choice.first_token = detail::read_first_token(member(one, "logprobs"));
  }
  answer.counted = detail::read_usage(body, answer.usage);
  return answer;
}

MTMC_INLINE void ChatClient::demand_price() const {
  const auto& model = endpoint_.options().model;
  if (options_.spending.caps().cost <= 0 || find_price(options_.prices, model) != nullptr) return;
  throw Error(error_id::net_options, "the cost is limited, but the model \"" + model + "\" has no price",
              "Give its price, or limit tokens instead")
      .about("ChatClientOptions::prices");
}

MTMC_INLINE Usage ChatClient::most_of(const ChatRequest& request) const {
  Usage most;
  most.prompt_tokens = detail::max_tokens_of(detail::prompt_bytes(request));
  most.completion_tokens = detail::max_answer_tokens(request, options_.answer_tokens);
  most.cost = cost_of(find_price(options_.prices, endpoint_.options().model), most);
  return most;
}

MTMC_INLINE ChatAnswer ChatClient::ask(const ChatRequest& asked, Deadline deadline, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
  if (stop.stop_requested()) return ChatAnswer::failed(ChatFailure::cancelled, "stopped before it was asked");
  if (start >= deadline)
    return ChatAnswer::failed(ChatFailure::endpoint, "timeout: the time was up before it was asked");
  const auto* const price = find_price(options_.prices, endpoint_.options().model);
  auto request = asked;
  const auto& caps = options_.spending.caps();
  if (request.max_tokens <= 0 && (caps.tokens > 0 || caps.cost > 0))
    request.max_tokens = options_.answer_tokens;
  const auto most = most_of(request);
  const auto over_cap = [&] {
    return ChatAnswer::failed(ChatFailure::budget,
                              detail::over_cap_text(most, options_.spending.spent(), caps));
  };
  // What tries that were lost on the way may have cost.
  Usage lost;
  ChatAnswer answer;
  int tries = 0;
  bool renamed = false;
  constexpr int max_lessons = 12;
  for (int lesson = 0; lesson <= max_lessons; ++lesson) {
    const auto profile = endpoint_.profile();
    std::string body;
    try {
      body = chat_body(request, profile, endpoint_.options().model);
    } catch (const Error& error) {
      answer = ChatAnswer::failed(ChatFailure::bad_request, error.what());
      break;
    }
    auto reservation = options_.spending.reserve(most);
    if (!reservation) {
      answer = over_cap();
      break;
    }
    const bool streams = request.stream && profile.stream;
    std::optional<detail::StreamedAnswer> streamed;
    bool refused_by_cap = false;
    // Sent since the last settlement: a stop may come while it only waits to be sent again.
    bool sent = false;
    const auto settle_without_answer = [&](const HttpResponse& response) {
      Usage usage;
      if (!std::exchange(sent, false) || !detail::may_have_worked(response)) {
        reservation->settle(usage);
        return usage;
      }
      usage.prompt_tokens = detail::usual_tokens_of(detail::prompt_bytes(request));
      usage.completion_tokens = detail::usual_tokens_of(streamed ? streamed->bytes() : response.body.size());
      usage.cost = cost_of(price, usage);
      reservation->settle_lost(usage);
      return usage;
    };
    AnswerReader reader;
    reader.begin = [&] {
      sent = true;
      if (streams) streamed.emplace();
    };
    if (streams)
      reader.take = [&streamed](std::string_view bytes) {
        streamed->take(bytes);
        return true;
      };
    reader.again = [&](const HttpResponse& failed) {
      lost += settle_without_answer(failed);
      auto next = options_.spending.reserve(most);
      refused_by_cap = !next;
      if (next) reservation.emplace(std::move(*next));
      return !refused_by_cap;
    };
    auto outcome =
        endpoint_.send("/chat/completions", std::move(body), deadline, stop, reader, request.label);
    tries += outcome.tries;
    auto& response = outcome.response;
    const bool whole = streams && response.ok() && streamed && !streamed->whole().empty();
    if (whole) response.body = streamed->whole();
    // An answer that breaks off is one that was cut.
    const bool broken = streams && sent && !response.arrived() && streamed && streamed->bytes() > 0 &&
                        response.failure != TransportFailure::cancelled;
    answer =
        !whole && ((streams && response.ok()) || broken) ? streamed->finish() : read_chat_answer(response);
    if (refused_by_cap) {
      answer = over_cap();
      break;
    }
    // What waits for its answer will be paid: its part of the caps stays set aside.
    if (answer.failure == ChatFailure::pending) break;
    if (answer.failure != ChatFailure::none) {
      answer.usage = settle_without_answer(response);
    } else {
      if (!answer.counted) {
        answer.usage.prompt_tokens = detail::usual_tokens_of(detail::prompt_bytes(request));
        for (const auto& choice : answer.choices)
          answer.usage.completion_tokens +=
              detail::usual_tokens_of(choice.content.size() + choice.reasoning.size());
      }
      answer.usage.cost = cost_of(price, answer.usage);
      if (broken && !answer.counted)
        reservation->settle_lost(answer.usage);
      else
        reservation->settle(answer.usage);
      if (profile.cuts_prompts && answer.counted && detail::was_cut(request, answer.usage.prompt_tokens)) {
        answer.failure = ChatFailure::too_long;
        answer.message = "the endpoint read " + std::to_string(answer.usage.prompt_tokens) +
                         " tokens of a prompt of at least " +
                         std::to_string(detail::fewest_prompt_tokens(request)) +
                         ": it cuts what its context does not hold; give it a larger one (Ollama: "
                         "OLLAMA_CONTEXT_LENGTH or num_ctx)";
        answer.choices.clear();
      }
    }
    // llama-cpp-python streams nothing where the prompt is too long; asked for the whole, it says so.
    if (streams && response.ok() && streamed->empty()) {
      request.stream = false;
      continue;
    }
    // Some models answer fields that they do not allow with 403.
    const bool refused = answer.failure == ChatFailure::bad_request || response.status == 403;
    if (!refused || lesson == max_lessons) break;
    const auto error = read_endpoint_error(response);
    bool learnt = false;
    endpoint_.learn([&](EndpointProfile& known) {
      // Somebody else may have learnt it meanwhile.
      learnt = known != profile || detail::learn_from_refusal(error, request, known, renamed);
    });
    if (!learnt) break;
  }
  if (!answer.message.empty()) answer.message = endpoint_.without_secrets(answer.message);
  answer.usage += lost;
  answer.usage.seconds = seconds_since(start);
  answer.tries = tries;
  return answer;
}

} // namespace mtmc
