#pragma once
/// Definitions of net/endpoint_profile.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/net/endpoint_profile.hpp>
#include <mtmc/net/transport.hpp>
#include <mtmc/net/url.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::array<EndpointProfile, 11> make_endpoint_profiles() {
  constexpr std::string_view continuing =
      R"({"add_generation_prompt": false, "continue_final_message": true})";
  return {{
      {},
      {.name = "openai",
       .base_url = "https://api.openai.com/v1",
       .url_part = "api.openai.com",
       .max_completion_tokens = true,
       .top_p = true,
       .seed = true,
       .stop = true,
       .several_answers = true,
       .reasoning_effort = true,
       .json_schema = true,
       .logprobs = true,
       .stream_usage = true,
       .cache_key = true},
      {.name = "gemini",
       .base_url = "https://generativelanguage.googleapis.com/v1beta/openai",
       .url_part = "generativelanguage.googleapis.com",
       .top_p = true,
       .stop = true,
       .several_answers = true,
       .reasoning_effort = true,
       .json_schema = true,
       .stream_usage = true},
      {.name = "anthropic",
       .base_url = "https://api.anthropic.com/v1",
       .url_part = "api.anthropic.com",
       .max_temperature = 1,
       .top_p = true,
       .stop = true,
       .stream_usage = true},
      {.name = "deepseek",
       .base_url = "https://api.deepseek.com",
       .url_part = "api.deepseek.com",
       .top_p = true,
       .stop = true,
       .logprobs = true,
       .stream_usage = true},
      {.name = "vllm",
       .base_url = "http://localhost:8000/v1",
       .top_p = true,
       .seed = true,
       .stop = true,
       .several_answers = true,
       .json_schema = true,
       .logprobs = true,
       .stream_usage = true,
       .continues_messages = true,
       .continuing_members = std::string(continuing)},
      {.name = "sglang",
       .base_url = "http://localhost:30000/v1",
       .url_part = ":30000",
       .top_p = true,
       .seed = true,
       .stop = true,
       .several_answers = true,
       .json_schema = true,
       .logprobs = true,
       .stream_usage = true,
       .continues_messages = true,
       .continuing_members = std::string(continuing)},
      {.name = "llama.cpp",
       .base_url = "http://localhost:8080/v1",
       .url_part = ":8080",
       .top_p = true,
       .seed = true,
       .stop = true,
       .json_schema = true,
       .logprobs = true,
       .stream_usage = true,
       .continues_messages = true},
      {.name = "ollama",
       .base_url = "http://localhost:11434/v1",
       .url_part = ":11434",
       .top_p = true,
       .seed = true,
       .stop = true,
       .json_schema = true,
       .stream_usage = true,
       .cuts_prompts = true},
      {.name = "tgi",
       .base_url = "http://localhost:3000/v1",
       .top_p = true,
       .seed = true,
       .stop = true,
       .logprobs = true,
       .stream_usage = true},
      {.name = "transformers", .base_url = "http://localhost:8000/v1", .stop = true},
  }};
}

[[nodiscard]] inline const std::array<EndpointProfile, 11>& all_endpoint_profiles() {
  static const auto profiles = make_endpoint_profiles();
  return profiles;
}

} // namespace detail

MTMC_INLINE std::span<const EndpointProfile> endpoint_profiles() {
  return std::span(detail::all_endpoint_profiles()).subspan(1);
}

MTMC_INLINE const EndpointProfile& endpoint_profile(std::string_view name) {
  const auto& all = detail::all_endpoint_profiles();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? all.front() : *found;
}

MTMC_INLINE const EndpointProfile& endpoint_profile_for(std::string_view base_url) {
  const auto& all = detail::all_endpoint_profiles();
  const auto url = split_url(base_url);
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    if (one.url_part.starts_with(':')) return one.url_part.substr(1) == std::to_string(url.port);
    return !one.url_part.empty() && detail::equal_ignoring_case(one.url_part, url.host);
  });
  return found == all.end() ? all.front() : *found;
}

} // namespace mtmc
