// Each kind of endpoint as a strict server: it refuses what the real one refuses, in its words, and answers
// in its form. What a profile knows must not be refused even once; what nobody knew must be refused once
// only.
#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/chat_client.hpp>
#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fake_server.hpp"

using namespace mtmc;
using detail::Json;

namespace {

constexpr auto whenever = Deadline::max();

/// How errors are written.
using Refusal = std::function<std::pair<int, Json>(const std::string& field)>;

Refusal by_openai() {
  return [](const std::string& field) {
    const auto message = field == "max_tokens"
                             ? "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                               "'max_completion_tokens' instead."
                             : "Unsupported parameter: '" + field + "' is not supported with this model.";
    return std::pair{400, Json{{"error",
                                {{"message", message},
                                 {"type", "invalid_request_error"},
                                 {"param", field},
                                 {"code", "unsupported_parameter"}}}}};
  };
}
Refusal by_google() {
  return [](const std::string& field) {
    return std::pair{400, Json::array({{{"error",
                                         {{"code", 400},
                                          {"message", "Invalid JSON payload received. Unknown name \"" +
                                                          field + "\": Cannot find field."},
                                          {"status", "INVALID_ARGUMENT"}}}}})};
  };
}
Refusal nested(const std::string& type, const std::string& before, const std::string& after) {
  return [=](const std::string& field) {
    return std::pair{400, Json{{"error",
                                {{"message", before + field + after},
                                 {"type", type},
                                 {"param", nullptr},
                                 {"code", "invalid_request_error"}}}}};
  };
}
/// vLLM before 0.10, and SGLang.
Refusal flat() {
  return [](const std::string& field) {
    return std::pair{400, Json{{"object", "error"},
                               {"message", "[{'type': 'extra_forbidden', 'loc': ('body', '" + field +
                                               "'), 'msg': 'Extra inputs are not permitted', 'input': 1}]"},
                               {"type", "BadRequestError"},
                               {"param", nullptr},
                               {"code", 400}}};
  };
}
/// What FastAPI makes of it.
Refusal detailed() {
  return [](const std::string& field) {
    return std::pair{422, Json{{"detail", "Unexpected keys in the request: {'" + field + "'}"}}};
  };
}
Refusal typed() {
  return [](const std::string& field) {
    return std::pair{422, Json{{"error", "Input validation error: `" + field + "` is not supported"},
                               {"error_type", "validation"}}};
  };
}

/// One kind of endpoint.
struct Kind {
  std::string name;
  std::string profile;
  /// Fields of a request that it refuses.
  std::vector<std::string> refused;
  Refusal refusal;
  /// Refusals of the first question.
  int refusals = 0;
  Json message = {{"role", "assistant"}, {"content", "an answer"}};
  /// Null = none is told.
  Json usage = {{"prompt_tokens", 21}, {"completion_tokens", 4}, {"total_tokens", 25}};
  std::int64_t cached = 0;
  std::int64_t reasoning = 0;
  bool thinks = false;
  /// Before each event of a stream.
  std::string comment{};
  bool says_done = true;
  double highest_temperature = 2;
};

std::vector<Kind> kinds() {
  const Json thought = {{"role", "assistant"}, {"content", "an answer"}, {"reasoning_content", "a thought"}};
  const Json newer = {{"role", "assistant"}, {"content", "an answer"}, {"reasoning", "a thought"}};
  const std::vector<std::string> newest{"max_completion_tokens", "reasoning_effort", "prompt_cache_key"};
  return {
      {.name = "OpenAI",
       .profile = "openai",
       .refused = {"max_tokens"},
       .refusal = by_openai(),
       .message = {{"role", "assistant"}, {"content", "an answer"}, {"refusal", nullptr}},
       .usage = {{"prompt_tokens", 21},
                 {"completion_tokens", 4},
                 {"prompt_tokens_details", {{"cached_tokens", 16}, {"audio_tokens", 0}}},
                 {"completion_tokens_details", {{"reasoning_tokens", 2}}}},
       .cached = 16,
       .reasoning = 2},
      {.name = "OpenAI, a reasoning model",
       .profile = "openai",
       .refused = {"max_tokens", "temperature", "top_p", "stop", "logprobs"},
       .refusal = by_openai(),
       .refusals = 4,
       .usage = {{"prompt_tokens", 21},
                 {"completion_tokens", 4},
                 {"completion_tokens_details", {{"reasoning_tokens", 3}}}},
       .reasoning = 3},
      {.name = "Gemini",
       .profile = "gemini",
       .refused = {"seed", "logprobs", "top_logprobs", "prompt_cache_key"},
       .refusal = by_google()},
      {.name = "Anthropic",
       .profile = "anthropic",
       .refused = {"n", "response_format", "logprobs", "seed", "reasoning_effort", "prompt_cache_key"},
       .refusal = nested("invalid_request_error", "", ": Extra inputs are not permitted"),
       .usage = {{"prompt_tokens", 21}, {"completion_tokens", 4}, {"prompt_tokens_details", nullptr}},
       .highest_temperature = 1},
      {.name = "DeepSeek",
       .profile = "deepseek",
       .refused = {"n", "seed", "reasoning_effort", "response_format", "prompt_cache_key",
                   "max_completion_tokens"},
       .refusal = nested("invalid_request_error", "unknown field `", "`, expected `messages`"),
       .message = thought,
       .usage = {{"prompt_tokens", 21},
                 {"completion_tokens", 4},
                 {"prompt_cache_hit_tokens", 8},
                 {"prompt_cache_miss_tokens", 13}},
       .cached = 8,
       .thinks = true,
       .comment = ": keep-alive\n\n\n\n"},
      {.name = "DeepSeek, its reasoning model",
       .profile = "deepseek",
       .refused = {"logprobs"},
       .refusal = nested("invalid_request_error", "deepseek-reasoner does not support the parameter `", "`"),
       .refusals = 1,
       .message = thought,
       .thinks = true,
       .comment = ": keep-alive\n\n"},
      {.name = "vLLM",
       .profile = "vllm",
       .refused = {"prompt_cache_key", "reasoning_effort"},
       .refusal = nested("BadRequestError", "'", "': Extra inputs are not permitted"),
       .message = newer,
       .thinks = true},
      {.name = "vLLM, older",
       .profile = "vllm",
       .refused = newest,
       .refusal = flat(),
       .message = thought,
       .thinks = true},
      {.name = "vLLM, oldest",
       .profile = "vllm",
       .refused = {"max_completion_tokens", "response_format", "stream_options"},
       .refusal = flat(),
       // The schema; in a stream the usage as well.
       .refusals = 1},
      {.name = "SGLang",
       .profile = "sglang",
       .refused = newest,
       .refusal = flat(),
       .message = thought,
       .thinks = true},
      {.name = "llama.cpp",
       .profile = "llama.cpp",
       .refused = {"n", "prompt_cache_key"},
       .refusal = nested("invalid_request_error", "Field '", "' is not supported"),
       .message = thought,
       .thinks = true},
      {.name = "llama-cpp-python",
       .profile = "llama.cpp",
       .refused = {"n", "logprobs"},
       .refusal =
           [](const std::string& field) {
             return std::pair{500, Json{{"error",
                                         {{"message", field + " is not supported for models created with "
                                                              "logits_all=False"},
                                          {"type", "internal_server_error"},
                                          {"param", nullptr},
                                          {"code", nullptr}}}}};
           },
       .refusals = 1},
      {.name = "Ollama",
       .profile = "ollama",
       .refused = {"n", "logit_bias", "max_completion_tokens", "tool_choice", "logprobs"},
       .refusal =
           [](const std::string& field) {
             return std::pair{400, Json{{"error", "json: unknown field \"" + field + "\""}}};
           },
       .message = newer,
       .thinks = true},
      {.name = "TGI",
       .profile = "tgi",
       .refused = {"n", "max_completion_tokens", "response_format", "reasoning_effort", "prompt_cache_key"},
       .refusal = typed(),
       // Its counts as the older ones wrote them.
       .usage = {{"prompt_tokens", 21.0}, {"completion_tokens", 4.0}},
       .says_done = false},
      {.name = "transformers serve",
       .profile = "transformers",
       .refused = {"max_completion_tokens", "response_format", "n", "logprobs", "stream_options", "seed"},
       .refusal = detailed(),
       .usage = nullptr},
      {.name = "a server nobody knows",
       .profile = "unknown",
       .refused = {"max_completion_tokens", "top_p", "seed", "stop", "n", "reasoning_effort",
                   "response_format", "logprobs", "stream_options", "prompt_cache_key"},
       .refusal = detailed(),
       .message = {{"content",
                    {{{"type", "text"}, {"text", "an "}}, {{"type", "text"}, {"text", "answer"}}}}},
       .usage = nullptr,
       .says_done = false},
      {.name = "a server nobody knows, of a reasoning model",
       .profile = "unknown",
       .refused = {"max_tokens", "temperature"},
       .refusal = by_openai(),
       .refusals = 2},
  };
}

/// An answer as a stream: the role, what it thinks and says cut in pieces, why it ended, the usage.
std::string events(const Kind& kind, int count, bool with_usage) {
  std::string text;
  const auto event = [&](const Json& body) { text += kind.comment + "data: " + body.dump() + "\n\n"; };
  const auto piece = [&](int index, const Json& delta, const Json& reason) {
    event({{"object", "chat.completion.chunk"},
           {"choices", {{{"index", index}, {"delta", delta}, {"finish_reason", reason}}}}});
  };
  for (int index = 0; index < count; ++index) piece(index, {{"role", "assistant"}, {"content", ""}}, nullptr);
  for (int index = 0; index < count; ++index) {
    for (const char* const name : {"reasoning_content", "reasoning"})
      if (kind.message.contains(name)) piece(index, {{name, "a thought"}, {"content", nullptr}}, nullptr);
    for (const char* const part : {"an", " ans", "wer"}) piece(index, {{"content", part}}, nullptr);
    piece(index, Json::object(), "stop");
  }
  if (with_usage) event({{"choices", Json::array()}, {"usage", kind.usage}});
  return kind.says_done ? text + kind.comment + "data: [DONE]\n\n" : text;
}

/// The server of that kind. `refusals` counts.
fake::Script strict(const Kind& kind, std::atomic<int>& refusals) {
  return [kind, &refusals](const fake::Request& request, fake::Connection& connection) {
    if (request.path != "/v1/chat/completions") {
      connection.answer(404, R"({"detail":"Not Found"})");
      return;
    }
    const auto body = detail::parse_text(request.body, false);
    for (const auto& field : kind.refused)
      if (body.contains(field)) {
        ++refusals;
        const auto [status, error] = kind.refusal(field);
        connection.answer(status, error.dump());
        return;
      }
    if (body.value("temperature", 0.0) > kind.highest_temperature) {
      ++refusals;
      connection.answer(400, R"({"error":{"message":"temperature: range: 0..1"}})");
      return;
    }
    const int count = body.value("n", 1);
    if (body.value("stream", false)) {
      const bool usage = body.contains("stream_options") && !kind.usage.is_null();
      connection.begin_chunks(200, {{"Content-Type", "text/event-stream"}});
      const auto text = events(kind, count, usage);
      // No reader may depend on where a network cuts.
      for (std::size_t at = 0; at < text.size(); at += 7)
        connection.chunk(std::string_view(text).substr(at, 7));
      connection.end_chunks();
      return;
    }
    Json answer{{"id", "1"}, {"object", "chat.completion"}, {"choices", Json::array()}};
    for (int index = 0; index < count; ++index)
      answer["choices"].push_back({{"index", index}, {"message", kind.message}, {"finish_reason", "stop"}});
    if (!kind.usage.is_null()) answer["usage"] = kind.usage;
    // Keep-alives of answers that are not streamed are empty lines.
    connection.answer(200, (kind.comment.empty() ? "" : "\n\n") + answer.dump());
  };
}

ChatClient client_of(const std::string& base_url, const std::string& profile) {
  EndpointOptions options;
  options.base_url = base_url;
  options.model = "model-1";
  options.profile = endpoint_profile(profile);
  options.retries.first_wait = options.retries.max_wait = 0;
  return ChatClient(Endpoint(CurlTransport{}, options));
}

/// All that can be asked.
ChatRequest full_question(bool stream) {
  ChatRequest request;
  request.messages = {{"system", "You are."}, {"user", "Are you?"}};
  request.max_tokens = 100;
  request.temperature = 1.5;
  request.top_p = 0.9;
  request.seed = 7;
  request.stop = {"END"};
  request.count = 2;
  request.reasoning_effort = "low";
  request.top_logprobs = 5;
  request.schema = R"({"type":"object"})";
  request.cache_key = "gemm";
  request.stream = stream;
  return request;
}

bool has_library() {
  if (CurlTransport{}.problem().empty()) return true;
  MESSAGE("skipped: " << CurlTransport{}.problem());
  return false;
}

} // namespace

TEST_CASE("every kind of endpoint answers a full question, and is asked for nothing twice that it refused") {
  if (!has_library()) return;
  for (const auto& kind : kinds())
    for (const bool stream : {false, true}) {
      CAPTURE(kind.name);
      CAPTURE(stream);
      std::atomic<int> refusals = 0;
      fake::Server server(strict(kind, refusals));
      auto client = client_of(server.url("/v1"), kind.profile);
      for (int turn = 0; turn < 2; ++turn) {
        CAPTURE(turn);
        const int before = refusals;
        const auto answer = client.ask(full_question(stream), whenever, {});
        CAPTURE(answer.message);
        REQUIRE(answer.failure == ChatFailure::none);
        const int more = kind.name == "vLLM, oldest" && stream ? 1 : 0;
        CHECK(refusals - before == (turn == 0 ? kind.refusals + more : 0));
        CHECK(answer.tries == refusals - before + 1);
        for (const auto& choice : answer.choices) {
          CHECK(choice.content == "an answer");
          CHECK(choice.reasoning == (kind.thinks ? "a thought" : ""));
          CHECK(choice.finish == FinishReason::stop);
        }
        const auto profile = client.endpoint().profile();
        CHECK(answer.choices.size() == (profile.several_answers ? 2 : 1));
        const bool told = !kind.usage.is_null() && (!stream || profile.stream_usage);
        CHECK(answer.counted == told);
        if (told) {
          CHECK(answer.usage.prompt_tokens == 21);
          CHECK(answer.usage.completion_tokens == 4);
          CHECK(answer.usage.cached_tokens == kind.cached);
          CHECK(answer.usage.reasoning_tokens == kind.reasoning);
        } else {
          CHECK(answer.usage.prompt_tokens > 0);
          CHECK(answer.usage.completion_tokens > 0);
        }
      }
    }
}

TEST_CASE("a server nobody knows gets the smallest request") {
  if (!has_library()) return;
  const auto kind = kinds()[15];
  REQUIRE(kind.name == "a server nobody knows");
  std::atomic<int> refusals = 0;
  fake::Server server(strict(kind, refusals));
  auto client = client_of(server.url("/v1"), "unknown");
  CHECK(client.ask(full_question(false), whenever, {}).failure == ChatFailure::none);
  std::vector<std::string> names;
  const auto body = detail::parse_text(server.requests().front().body, true);
  for (const auto& [name, value] : body.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"max_tokens", "messages", "model", "temperature"});
}

TEST_CASE("answers of odd forms are answers") {
  if (!has_library()) return;
  Json given;
  fake::Server server(
      [&given](const fake::Request&, fake::Connection& connection) { connection.answer(200, given.dump()); });
  auto client = client_of(server.url("/v1"), "unknown");
  const auto choice = [&](Json message, Json reason) {
    given = {{"choices", {{{"message", std::move(message)}, {"finish_reason", std::move(reason)}}}}};
    const auto answer = client.ask(full_question(false), whenever, {});
    REQUIRE(answer.failure == ChatFailure::none);
    return answer.choices.at(0);
  };
  CHECK(choice({{"content", nullptr}, {"reasoning_content", "long"}}, "length").content.empty());
  CHECK(choice({{"content", nullptr}, {"reasoning_content", "long"}}, "length").finish ==
        FinishReason::length);
  CHECK(choice({{"content", ""}, {"tool_calls", Json::array()}}, "tool_calls").finish ==
        FinishReason::unknown);
  CHECK(choice({{"content", "x"}}, "insufficient_system_resource").finish == FinishReason::length);
  CHECK(choice({{"content", "x"}}, "eos_token").finish == FinishReason::stop);
  CHECK(choice({{"content", "x"}}, nullptr).finish == FinishReason::unknown);
  CHECK(choice({{"content", nullptr}, {"refusal", "no"}}, "content_filter").finish == FinishReason::filtered);
  CHECK(choice(nullptr, nullptr).content.empty());
}

TEST_CASE("a server that loads its model is waited for, one without credit is not") {
  if (!has_library()) return;
  std::atomic<int> asked = 0;
  fake::Server server([&asked](const fake::Request&, fake::Connection& connection) {
    if (++asked < 3)
      connection.answer(503,
                        R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})");
    else
      connection.answer(402, R"({"error":{"message":"Insufficient Balance","type":"unknown_error"}})");
  });
  auto client = client_of(server.url("/v1"), "llama.cpp");
  const auto answer = client.ask(full_question(false), whenever, {});
  CHECK(answer.failure == ChatFailure::no_access);
  CHECK(answer.tries == 3);
  CHECK(answer.message.find("Insufficient Balance") != std::string::npos);
}

TEST_CASE("a prompt that is too long is said to be, in every server's words") {
  if (!has_library()) return;
  const std::pair<int, std::string> words[] = {
      {400,
       R"({"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages )"
       R"(resulted in 9000 tokens.","type":"invalid_request_error","param":"messages",)"
       R"("code":"context_length_exceeded"}})"},
      {400,
       R"({"object":"error","message":"This model's maximum context length is 4096 tokens. However, you )"
       R"(requested 5000 tokens (4900 in the messages, 100 in the completion).",)"
       R"("type":"BadRequestError","param":null,"code":400})"},
      {400, R"({"error":{"code":400,"message":"the request exceeds the available context size",)"
            R"("type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}})"},
      {400, R"({"error":{"message":"Requested tokens (5000) exceed context window of 4096",)"
            R"("type":"invalid_request_error","code":"context_length_exceeded"}})"}};
  for (const auto& told : words) {
    CAPTURE(told.second);
    fake::Server server([&told](const fake::Request&, fake::Connection& connection) {
      connection.answer(told.first, told.second);
    });
    auto client = client_of(server.url("/v1"), "vllm");
    const auto answer = client.ask(full_question(false), whenever, {});
    CHECK(answer.failure == ChatFailure::too_long);
    CHECK(answer.tries == 1);
  }
}

TEST_CASE("Ollama's silent cut of a long prompt is noticed, whole and streamed") {
  if (!has_library()) return;
  auto kind = kinds()[12];
  REQUIRE(kind.name == "Ollama");
  kind.usage = {{"prompt_tokens", 2048}, {"completion_tokens", 4}};
  std::atomic<int> refusals = 0;
  fake::Server server(strict(kind, refusals));
  auto client = client_of(server.url("/v1"), "ollama");
  for (const bool stream : {false, true}) {
    auto request = full_question(stream);
    for (int line = 0; line < 1000; ++line) request.messages[1].content += "a[i] = b[i] + c[i];\n";
    const auto answer = client.ask(request, whenever, {});
    CHECK(answer.failure == ChatFailure::too_long);
    CHECK(answer.message.find("2048") != std::string::npos);
    CHECK(answer.usage.tokens() == 2052);
  }
}

TEST_CASE("a base URL with or without a slash is the same, one without its version is told") {
  if (!has_library()) return;
  std::atomic<int> refusals = 0;
  fake::Server server(strict(kinds().front(), refusals));
  CHECK(client_of(server.url("/v1"), "openai").ask(full_question(false), whenever, {}).failure ==
        ChatFailure::none);
  CHECK(client_of(server.url("/v1//"), "openai").ask(full_question(false), whenever, {}).failure ==
        ChatFailure::none);
  const auto told = [](const ChatAnswer& answer) {
    CHECK(answer.failure == ChatFailure::bad_request);
    CHECK(answer.tries == 1);
    return answer.message.find("version") != std::string::npos;
  };
  CHECK(told(client_of(server.url(), "openai").ask(full_question(false), whenever, {})));
  CHECK(told(client_of(server.url("/"), "openai").ask(full_question(true), whenever, {})));
  server.script([](const fake::Request&, fake::Connection& connection) { connection.answer_html(404); });
  CHECK(told(client_of(server.url("/v2"), "openai").ask(full_question(false), whenever, {})));
  server.script([](const fake::Request&, fake::Connection& connection) {
    connection.answer(404, R"({"error":{"message":"model \"model-1\" not found, try pulling it first"}})");
  });
  CHECK_FALSE(told(client_of(server.url("/v1"), "ollama").ask(full_question(false), whenever, {})));
}
