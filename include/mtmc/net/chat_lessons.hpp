#pragma once
/// What a refused question says about the endpoint that refused it.

#include <mtmc/net/chat.hpp>
#include <mtmc/net/endpoint_profile.hpp>
#include <mtmc/net/retry.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a message names a field of a request. Most names are words of no language; those that are ("stop",
/// "seed", "stream", "n") count only where they are quoted, begin the message or stand beside a word that
/// says what they are.
[[nodiscard]] inline bool names_field(std::string_view message, std::string_view field) {
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto is_quote = [](char c) { return c == '\'' || c == '"' || c == '`'; };
  const bool plain_word = field == "stop" || field == "seed" || field == "stream" || field == "n";
  for (auto at = message.find(field); at != std::string_view::npos; at = message.find(field, at + 1)) {
    const auto before = message.substr(0, at);
    const auto after = message.substr(at + field.size());
    if ((!before.empty() && in_word(before.back())) || (!after.empty() && in_word(after.front()))) continue;
    if (!plain_word || before.empty() || after.starts_with(':') || after.starts_with(" parameter") ||
        (!after.empty() && is_quote(before.back()) && is_quote(after.front())))
      return true;
    for (const std::string_view kind :
         {"arameter ", "arameter: ", "rgument ", "rgument: ", "ield ", "ield: ", "supplied: "})
      if (before.ends_with(kind)) return true;
  }
  return false;
}

/// Whether a refusal is about how large a limit is, not about its name.
[[nodiscard]] inline bool is_of_size(std::string_view message) {
  constexpr std::array<std::string_view, 11> words{"context", "at most", "at least", "too large",
                                                   "range",   "exceed",  "maximum",  "greater",
                                                   "larger",  "smaller", "less than"};
  if (message.find("instead") != std::string_view::npos) return false;
  return std::any_of(words.begin(), words.end(), [message](std::string_view word) {
    return message.find(word) != std::string_view::npos;
  });
}

/// Changes the profile by what a refusal says. False if it says nothing that can be mended. `renamed`: the
/// limit has had its other name already for this question; it is not given back and forth.
[[nodiscard]] inline bool learn_from_refusal(const EndpointError& error, const ChatRequest& request,
                                             EndpointProfile& profile, bool& renamed) {
  const auto blames = [&error](std::string_view field) {
    if (error.parameter.empty()) return names_field(error.message, field);
    const std::string_view told = error.parameter;
    return told.starts_with(field) &&
           (told.size() == field.size() || told[field.size()] == '.' || told[field.size()] == '[');
  };
  if (request.max_tokens > 0 && !renamed && (blames("max_completion_tokens") || blames("max_tokens")) &&
      !is_of_size(error.message)) {
    profile.max_completion_tokens = !profile.max_completion_tokens;
    renamed = true;
    return true;
  }
  const auto leave_out = [&blames](bool asked, bool& ability, std::initializer_list<const char*> fields) {
    if (!asked || !ability || std::none_of(fields.begin(), fields.end(), blames)) return false;
    ability = false;
    return true;
  };
  const bool one_answer = error.message.find("Only one completion choice") != std::string::npos;
  if (request.count > 1 && profile.several_answers && (one_answer || blames("n"))) {
    profile.several_answers = false;
    return true;
  }
  if (request.continues && !profile.continuing_members.empty() &&
      (blames("continue_final_message") || blames("add_generation_prompt"))) {
    profile.continuing_members.clear();
    return true;
  }
  return leave_out(request.temperature.has_value(), profile.temperature, {"temperature"}) ||
         leave_out(request.top_p.has_value(), profile.top_p, {"top_p"}) ||
         leave_out(request.seed.has_value(), profile.seed, {"seed"}) ||
         leave_out(!request.stop.empty(), profile.stop, {"stop"}) ||
         leave_out(!request.reasoning_effort.empty(), profile.reasoning_effort, {"reasoning_effort"}) ||
         leave_out(!request.schema.empty(), profile.json_schema, {"response_format", "json_schema"}) ||
         leave_out(request.top_logprobs > 0, profile.logprobs, {"logprobs", "top_logprobs"}) ||
         leave_out(request.stream, profile.stream_usage, {"stream_options"}) ||
         leave_out(request.stream, profile.stream, {"stream"}) ||
         leave_out(!request.cache_key.empty(), profile.cache_key, {"prompt_cache_key"});
}

} // namespace mtmc::detail
