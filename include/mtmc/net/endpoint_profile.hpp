#pragma once
/// What one kind of endpoint understands of a request, as data.

#include <mtmc/requirements.hpp>

#include <span>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Quirks of an endpoint for chat completions. As it stands: the smallest request, which every server
/// understands (model, messages, max_tokens, temperature).
struct EndpointProfile {
  /// What it is called.
  std::string name = "unknown";
  /// With the version, without a slash at the end; empty where there is no usual place.
  std::string base_url{};
  /// The host, or a colon and the port, by which a URL is recognised as the endpoint's; empty = it is not.
  std::string url_part{};
  /// The limit is called `max_completion_tokens` instead of `max_tokens`.
  bool max_completion_tokens = false;
  /// It knows `temperature`.
  bool temperature = true;
  /// Largest value it takes.
  double max_temperature = 2;
  /// It knows `top_p`.
  bool top_p = false;
  /// It knows `seed`.
  bool seed = false;
  /// It knows `stop`.
  bool stop = false;
  /// Several answers to one request (`n`).
  bool several_answers = false;
  /// `reasoning_effort`.
  bool reasoning_effort = false;
  /// `response_format` with a JSON schema.
  bool json_schema = false;
  /// `logprobs` and `top_logprobs`.
  bool logprobs = false;
  /// `stream` at all, and `stream_options` for the usage at its end.
  bool stream = true;
  /// It knows `stream_options`.
  bool stream_usage = false;
  /// A last message of the assistant is continued instead of answered.
  bool continues_messages = false;
  /// A JSON object whose members ask for that; empty = it is done unasked.
  std::string continuing_members{};
  /// `prompt_cache_key`.
  bool cache_key = false;
  /// A prompt that is too long is cut without a word, so that the counted tokens must be compared with an
  /// estimate.
  bool cuts_prompts = false;

  friend bool operator==(const EndpointProfile&, const EndpointProfile&) = default; ///< member by member
};

/// "openai", "gemini", "anthropic", "deepseek", "vllm", "sglang", "llama.cpp", "ollama", "tgi",
/// "transformers".
[[nodiscard]] std::span<const EndpointProfile> endpoint_profiles();

/// The profile of that name; the smallest ("unknown") where there is none.
[[nodiscard]] const EndpointProfile& endpoint_profile(std::string_view name);

/// The profile that a base URL belongs to, by the host's name or the usual port; the smallest where none is
/// recognised.
[[nodiscard]] const EndpointProfile& endpoint_profile_for(std::string_view base_url);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/endpoint_profile_inl.hpp>
#endif
