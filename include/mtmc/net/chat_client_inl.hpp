#pragma once
/// Definitions of net/chat_client.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/net/chat_client.hpp>
#include <mtmc/net/chat_reading.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc {

namespace detail {

/// Tokens of a text, rather too many than too few.
[[nodiscard]] inline std::int64_t most_tokens_of(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes / 2 + 1);
}
/// Tokens of a text as they usually are.
[[nodiscard]] inline std::int64_t usual_tokens_of(std::size_t bytes) {
  return static_cast<std::int64_t>((bytes + 2) / 3);
}

[[nodiscard]] inline std::size_t prompt_bytes(const ChatRequest& request) {
  // A template's marks around each message.
  constexpr std::size_t marks = 32;
  std::size_t bytes = 0;
  for (const auto& message : request.messages) bytes += message.role.size() + message.content.size() + marks;
  return bytes;
}

/// Why a request is not sent: what it could take, what is spent, and the caps.
[[nodiscard]] inline std::string over_cap_text(const Usage& most, const Usage& spent,
                                               const SpendingCaps& caps) {
  const auto money = [](double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", value);
    return std::string(text.data());
  };
  std::string text = "asking could take " + std::to_string(most.tokens()) + " tokens";
  if (most.cost > 0) text += " and cost " + money(most.cost);
  text += "; so far it was " + std::to_string(spent.tokens()) + " tokens";
  if (most.cost > 0) text += " and " + money(spent.cost);
  text += "; the cap is ";
  if (caps.tokens > 0) text += std::to_string(caps.tokens) + " tokens";
  if (caps.tokens > 0 && caps.cost > 0) text += " and ";
  if (caps.cost > 0) text += money(caps.cost);
  return text;
}

/// Changes the profile by what a refusal (400, 422) says. False if it says nothing that can be mended.
[[nodiscard]] inline bool learn_from_refusal(const EndpointError& error, const ChatRequest& request,
                                             EndpointProfile& profile) {
  const auto blames = [&error](std::string_view field) {
    return error.parameter == field || error.message.find(field) != std::string::npos;
  };
  const auto turn_off = [](bool& ability) { return std::exchange(ability, false); };
  // A limit that is too high, or too high for the context, is no matter of its name.
  const bool limit_blamed = blames("max_completion_tokens") || blames("max_tokens");
  const bool of_size = blames("context") || blames("at most") || blames("too large");
  if (request.max_tokens > 0 && limit_blamed && !of_size) {
    profile.max_completion_tokens = !profile.max_completion_tokens;
    return true;
  }
  if (request.temperature && blames("temperature")) return turn_off(profile.temperature);
  if (request.top_p && blames("top_p")) return turn_off(profile.top_p);
  if (request.seed && blames("seed")) return turn_off(profile.seed);
  if (!request.stop.empty() && blames("stop")) return turn_off(profile.stop);
  if (!request.reasoning_effort.empty() && blames("reasoning_effort"))
    return turn_off(profile.reasoning_effort);
  if (!request.schema.empty() && (blames("response_format") || blames("json_schema")))
    return turn_off(profile.json_schema);
  if (request.top_logprobs > 0 && blames("logprobs")) return turn_off(profile.logprobs);
  if (request.stream && blames("stream_options")) return turn_off(profile.stream_usage);
  if (request.stream && blames("stream")) return turn_off(profile.stream);
  if (blames("prompt_cache_key")) return turn_off(profile.cache_key);
  return false;
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
    body["temperature"] = std::min(*request.temperature, profile.highest_temperature);
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
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema",
         {{"name", "answer"}, {"strict", true}, {"schema", detail::parse_text(request.schema, true)}}}};
  if (request.stream && profile.stream) {
    body["stream"] = true;
    if (profile.stream_usage) body["stream_options"] = {{"include_usage", true}};
  }
  if (!request.cache_key.empty() && profile.cache_key) body["prompt_cache_key"] = request.cache_key;
  if (request.continues && profile.continues_messages && !profile.continuing_members.empty())
    body.update(detail::parse_text(profile.continuing_members, true));
  if (!request.extra.empty()) body.update(detail::parse_text(request.extra, true));
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

MTMC_INLINE ChatAnswer read_chat_answer(const HttpResponse& response) {
  using detail::member;
  if (!response.arrived()) return detail::failed_by_transport(response);
  if (!response.ok()) return detail::failed_by(response);
  const auto body = detail::parse_text(response.body, false);
  if (!body.is_object())
    return ChatAnswer::failed(ChatFailure::malformed,
                              "the answer is no JSON: " + read_endpoint_error(response).message);
  const auto* const choices = member(body, "choices");
  if (choices == nullptr && member(body, "error") != nullptr) return detail::failed_by(response);
  if (choices == nullptr || !choices->is_array() || choices->empty())
    return ChatAnswer::failed(ChatFailure::malformed,
                              "the answer has no choices: " + detail::shortened(response.body));
  ChatAnswer answer;
  for (const auto& one : *choices) {
    auto& choice = answer.choices.emplace_back();
    detail::add_message(member(one, "message"), choice);
    choice.finish = detail::read_finish_reason(member(one, "finish_reason"));
    choice.first_token = detail::read_first_token(member(one, "logprobs"));
  }
  answer.counted = detail::read_usage(body, answer.usage);
  return answer;
}

MTMC_INLINE Usage ChatClient::most_of(const ChatRequest& request) const {
  Usage most;
  most.prompt_tokens = detail::most_tokens_of(detail::prompt_bytes(request));
  most.completion_tokens =
      (request.max_tokens > 0 ? request.max_tokens : options_.answer_tokens) * std::max(request.count, 1);
  most.cost = cost_of(find_price(options_.prices, endpoint_.options().model), most);
  return most;
}

MTMC_INLINE ChatAnswer ChatClient::ask(const ChatRequest& asked, Deadline deadline, std::stop_token stop) {
  const auto start = std::chrono::steady_clock::now();
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
  constexpr int most_lessons = 8;
  for (int lesson = 0; lesson <= most_lessons; ++lesson) {
    auto reservation = options_.spending.reserve(most);
    if (!reservation) {
      answer = over_cap();
      break;
    }
    const auto profile = endpoint_.profile();
    const bool streams = request.stream && profile.stream;
    std::optional<detail::StreamedAnswer> streamed;
    bool refused_by_cap = false;
    // A try that ended without an answer, although the server may have worked on it.
    const auto charge = [&](const HttpResponse& response) {
      if (response.failure != TransportFailure::timeout && response.failure != TransportFailure::dropped &&
          response.failure != TransportFailure::cancelled)
        return Usage{};
      Usage usage;
      usage.prompt_tokens = detail::usual_tokens_of(detail::prompt_bytes(request));
      usage.completion_tokens = detail::usual_tokens_of(streamed ? streamed->bytes() : response.body.size());
      usage.cost = cost_of(price, usage);
      return usage;
    };
    AnswerReader reader;
    if (streams) {
      reader.begin = [&streamed] { streamed.emplace(); };
      reader.take = [&streamed](std::string_view bytes) {
        streamed->take(bytes);
        return true;
      };
    }
    reader.again = [&](const HttpResponse& failed) {
      const auto spent = charge(failed);
      lost += spent;
      reservation->settle(spent);
      auto next = options_.spending.reserve(most);
      refused_by_cap = !next;
      if (next) reservation.emplace(std::move(*next));
      return !refused_by_cap;
    };
    const auto outcome =
        endpoint_.send("/chat/completions", chat_body(request, profile, endpoint_.options().model), deadline,
                       stop, reader, request.label);
    tries += outcome.tries;
    const auto& response = outcome.response;
    // An answer that breaks off is one that was cut.
    const bool broken = streams && !response.arrived() && streamed && streamed->bytes() > 0 &&
                        response.failure != TransportFailure::cancelled;
    answer = (streams && response.ok()) || broken ? streamed->finish() : read_chat_answer(response);
    if (refused_by_cap) {
      answer = over_cap();
      break;
    }
    if (!answer.counted && answer.failure == ChatFailure::none) {
      answer.usage.prompt_tokens = detail::usual_tokens_of(detail::prompt_bytes(request));
      for (const auto& choice : answer.choices)
        answer.usage.completion_tokens +=
            detail::usual_tokens_of(choice.content.size() + choice.reasoning.size());
    }
    if (answer.failure != ChatFailure::none) answer.usage += charge(response);
    answer.usage.cost = cost_of(price, answer.usage);
    // What waits for its answer will be paid: its part of the caps stays set aside.
    if (answer.failure != ChatFailure::pending) reservation->settle(answer.usage);
    if (answer.failure != ChatFailure::bad_request || lesson == most_lessons) break;
    const auto error = read_endpoint_error(response);
    bool learnt = false;
    endpoint_.learn([&](EndpointProfile& known) {
      // Somebody else may have learnt it meanwhile.
      learnt = known != profile || detail::learn_from_refusal(error, request, known);
    });
    if (!learnt) break;
  }
  answer.usage += lost;
  answer.usage.seconds = seconds_since(start);
  answer.tries = tries;
  return answer;
}

} // namespace mtmc
