#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/chat_client.hpp>
#include <mtmc/net/chat_lessons.hpp>
#include <mtmc/net/event_stream.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "scripted_transport.hpp"

using namespace mtmc;
using detail::Json;
using mtmc_test::http;
using mtmc_test::lost;
using mtmc_test::ScriptedTransport;

namespace {

constexpr auto whenever = Deadline::max();

const std::string plain_answer =
    R"({"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],)"
    R"("usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
    R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}})";

EndpointOptions endpoint(const std::string& profile = "openai") {
  EndpointOptions options;
  options.base_url = "http://127.0.0.1:1/v1";
  options.api_key = "secret-key";
  options.model = "model-1";
  options.profile = endpoint_profile(profile);
  options.retries.first_wait = 0;
  options.retries.max_wait = 0;
  return options;
}

/// A client and what it sends.
struct Desk {
  explicit Desk(ScriptedTransport scripted, EndpointOptions options = endpoint(),
                ChatClientOptions money = {})
      : transport(std::move(scripted)), client(Endpoint(transport, std::move(options)), std::move(money)) {}

  [[nodiscard]] Json body(std::size_t i) const {
    return detail::parse_text(transport.asked().at(i).body, true);
  }
  [[nodiscard]] ChatAnswer ask(const ChatRequest& request) { return client.ask(request, whenever, {}); }

  ScriptedTransport transport;
  ChatClient client;
};

ChatRequest question() {
  ChatRequest request;
  request.messages = {{"system", "You are."}, {"user", "Are you?"}};
  request.max_tokens = 100;
  request.temperature = 0.5;
  return request;
}

ChatRequest full_question() {
  auto request = question();
  request.top_p = 0.9;
  request.seed = 7;
  request.stop = {"END"};
  request.count = 2;
  request.reasoning_effort = "low";
  request.top_logprobs = 50;
  request.schema = R"({"type":"object"})";
  request.cache_key = "gemm";
  request.stream = true;
  return request;
}

} // namespace

TEST_CASE("an answer is read with all its tokens, and money by the host's prices") {
  ChatClientOptions money;
  money.prices = {{.model = "other", .prompt = 99, .completion = 99},
                  {.model = "model-*", .prompt = 2, .completion = 10, .cached = 0.5}};
  Desk desk(ScriptedTransport({http(200, plain_answer)}), endpoint(), money);
  const auto answer = desk.ask(question());
  REQUIRE(answer.failure == ChatFailure::none);
  REQUIRE(answer.choices.size() == 1);
  CHECK(answer.choices[0].content == "hello");
  CHECK(answer.choices[0].finish == FinishReason::stop);
  CHECK(answer.counted);
  CHECK(answer.tries == 1);
  CHECK(answer.usage.prompt_tokens == 10);
  CHECK(answer.usage.completion_tokens == 3);
  CHECK(answer.usage.cached_tokens == 4);
  CHECK(answer.usage.reasoning_tokens == 1);
  CHECK(answer.usage.cost == doctest::Approx((6 * 2 + 4 * 0.5 + 3 * 10) * 1e-6));
  CHECK(desk.client.spent().cost == answer.usage.cost);

  const auto sent = desk.transport.asked().front();
  CHECK(sent.url == "http://127.0.0.1:1/v1/chat/completions");
  CHECK(sent.method == "POST");
  REQUIRE(find_header(sent.headers, "authorization") != nullptr);
  CHECK(*find_header(sent.headers, "authorization") == "Bearer secret-key");
}

TEST_CASE("a request holds what the endpoint's profile knows, and nothing else") {
  const auto members = [](const std::string& profile) {
    std::vector<std::string> names;
    const auto body = detail::parse_text(chat_body(full_question(), endpoint_profile(profile), "m"), true);
    for (const auto& [name, value] : body.items()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(members("unknown") == Names{"max_tokens", "messages", "model", "stream", "temperature"});
  CHECK(members("openai") == Names{"logprobs", "max_completion_tokens", "messages", "model", "n",
                                   "prompt_cache_key", "reasoning_effort", "response_format", "seed", "stop",
                                   "stream", "stream_options", "temperature", "top_logprobs", "top_p"});
  CHECK(members("anthropic") ==
        Names{"max_tokens", "messages", "model", "stop", "stream", "stream_options", "temperature", "top_p"});
  CHECK(members("transformers") == Names{"max_tokens", "messages", "model", "stop", "stream", "temperature"});
  for (const auto& profile : endpoint_profiles()) {
    CAPTURE(profile.name);
    auto hot = question();
    hot.temperature = 1.5;
    const auto body = detail::parse_text(chat_body(hot, profile, "m"), true);
    CHECK(body.at("temperature").get<double>() <= profile.max_temperature);
    CHECK(body.contains("max_tokens") != body.contains("max_completion_tokens"));
    CHECK_FALSE(body.contains("n"));
  }
  auto logprobs = full_question();
  CHECK(detail::parse_text(chat_body(logprobs, endpoint_profile("openai"), "m"), true).at("top_logprobs") ==
        20);
  auto extra = question();
  extra.extra = R"({"chat_template_kwargs":{"enable_thinking":false},"temperature":0})";
  const auto body = detail::parse_text(chat_body(extra, endpoint_profile("vllm"), "m"), true);
  CHECK(body.at("chat_template_kwargs").at("enable_thinking") == false);
  CHECK(body.at("temperature") == 0);
}

TEST_CASE("every server's way to write an answer is read") {
  const auto read = [](const std::string& message, const std::string& rest = "") {
    return read_chat_answer(
        http(200, R"({"choices":[{"message":)" + message + R"(,"finish_reason":"stop"}])" + rest + "}"));
  };
  CHECK(read(R"({"content":null})").choices.at(0).content.empty());
  CHECK(
      read(R"({"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})").choices.at(0).content ==
      "ab");
  CHECK(read(R"({"content":"c","reasoning_content":"r"})").choices.at(0).reasoning == "r");
  CHECK(read(R"({"content":"c","reasoning":"r"})").choices.at(0).reasoning == "r");
  CHECK(read(R"({"content":null,"refusal":"I will not"})").choices.at(0).refusal == "I will not");
  const auto deepseek =
      read(R"({"content":"c"})",
           R"(,"usage":{"prompt_tokens":9.0,"completion_tokens":1,"prompt_cache_hit_tokens":5})");
  CHECK(deepseek.usage.prompt_tokens == 9);
  CHECK(deepseek.usage.cached_tokens == 5);
  CHECK_FALSE(read(R"({"content":"c"})").counted);
  CHECK_FALSE(read(R"({"content":"c"})", R"(,"usage":null)").counted);

  const auto finish = [](const std::string& reason) {
    return read_chat_answer(
               http(200, R"({"choices":[{"message":{"content":"c"},"finish_reason":)" + reason + "}]}"))
        .choices.at(0)
        .finish;
  };
  CHECK(finish("\"length\"") == FinishReason::length);
  CHECK(finish("\"insufficient_system_resource\"") == FinishReason::length);
  CHECK(finish("\"content_filter\"") == FinishReason::filtered);
  CHECK(finish("\"something new\"") == FinishReason::unknown);
  CHECK(finish("null") == FinishReason::unknown);
}

TEST_CASE("what is no answer says why") {
  const auto failure = [](const HttpResponse& response) { return read_chat_answer(response).failure; };
  CHECK(failure(http(200, "<html><title>Sign in</title></html>")) == ChatFailure::malformed);
  CHECK(read_chat_answer(http(200, "<html><title>Sign in</title></html>")).message.find("Sign in") !=
        std::string::npos);
  CHECK(failure(http(200, "")) == ChatFailure::malformed);
  CHECK(failure(http(200, "[1,2]")) == ChatFailure::malformed);
  CHECK(failure(http(200, R"({"choices":[]})")) == ChatFailure::malformed);
  CHECK(failure(http(200, R"({"choices":{"a":1}})")) == ChatFailure::malformed);
  CHECK(failure(http(200, R"({"error":{"message":"boom"}})")) == ChatFailure::endpoint);
  CHECK(failure(http(401, R"({"error":{"message":"bad key"}})")) == ChatFailure::no_access);
  CHECK(failure(http(402, R"({"error":{"message":"Insufficient Balance"}})")) == ChatFailure::no_access);
  CHECK(failure(http(429, R"({"error":{"code":"insufficient_quota","message":"pay"}})")) ==
        ChatFailure::no_access);
  CHECK(failure(http(404, R"({"error":{"message":"no such model"}})")) == ChatFailure::bad_request);
  CHECK(failure(http(302, "")) == ChatFailure::bad_request);
  CHECK(failure(http(400, R"({"error":{"code":"context_length_exceeded","message":"long"}})")) ==
        ChatFailure::too_long);
  CHECK(
      failure(http(
          400,
          R"({"object":"error","message":"This model's maximum context length is 4096 tokens","code":400})")) ==
      ChatFailure::too_long);
  CHECK(
      failure(http(
          400,
          R"({"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}})")) ==
      ChatFailure::too_long);
  CHECK(failure(http(503, R"({"error":{"type":"unavailable_error","message":"Loading model"}})")) ==
        ChatFailure::endpoint);
  CHECK(failure(lost(TransportFailure::tls)) == ChatFailure::endpoint);
  CHECK(failure(lost(TransportFailure::cancelled)) == ChatFailure::cancelled);
  const auto pending = read_chat_answer(lost(TransportFailure::pending, "id-7"));
  CHECK(pending.failure == ChatFailure::pending);
  CHECK(pending.pending == "id-7");
}

TEST_CASE("a streamed answer is the same as a whole one, however it is cut") {
  const std::string stream =
      ": keep-alive\r\n\r\n"
      "data: "
      "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"hm\"}}]}\r\n\r\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\\u00e9\"}}]}\n\n"
      "event: message\ndata: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"llo\"}}]}\n\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\n"
      "data: [DONE]\n\n";
  Desk desk(ScriptedTransport({http(200, stream)}));
  auto request = question();
  request.stream = true;
  const auto answer = desk.ask(request);
  REQUIRE(answer.failure == ChatFailure::none);
  CHECK(answer.choices.at(0).content == "h\xc3\xa9llo");
  CHECK(answer.choices.at(0).reasoning == "hm");
  CHECK(answer.choices.at(0).finish == FinishReason::stop);
  CHECK(answer.usage.completion_tokens == 6);
  CHECK(desk.body(0).at("stream_options").at("include_usage") == true);
}

TEST_CASE("a stream that ends without an end is a cut answer, and an error in it is one") {
  auto request = question();
  request.stream = true;
  const std::string piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half of\"}}]}\n\n";
  Desk cut(ScriptedTransport({http(200, piece)}));
  const auto answer = cut.ask(request);
  REQUIRE(answer.failure == ChatFailure::none);
  CHECK(answer.choices.at(0).content == "half of");
  CHECK(answer.choices.at(0).finish == FinishReason::length);
  CHECK_FALSE(answer.counted);
  CHECK(answer.usage.completion_tokens > 0);

  Desk failing(
      ScriptedTransport({http(200, piece + "data: {\"error\":{\"message\":\"out of memory\"}}\n\n")}));
  CHECK(failing.ask(request).failure == ChatFailure::endpoint);
  CHECK(failing.ask(request).message.find("out of memory") != std::string::npos);

  Desk empty(ScriptedTransport({http(200, "")}));
  CHECK(empty.ask(request).failure == ChatFailure::malformed);
}

TEST_CASE("where nothing at all is streamed, the whole answer is asked for, which tells why") {
  const auto too_long =
      http(400, R"({"error":{"message":"This model's maximum context length is 8192 tokens.",)"
                R"("type":"invalid_request_error","param":"messages",)"
                R"("code":"context_length_exceeded"}})");
  auto request = question();
  request.stream = true;
  Desk desk(ScriptedTransport({http(200, ""), too_long}));
  const auto answer = desk.ask(request);
  CHECK(answer.failure == ChatFailure::too_long);
  CHECK(answer.message.find("8192 tokens") != std::string::npos);
  CHECK(answer.tries == 2);
  CHECK(desk.body(0).contains("stream"));
  CHECK_FALSE(desk.body(1).contains("stream"));

  Desk talks(ScriptedTransport({http(200, ""), http(200, plain_answer)}));
  CHECK(talks.ask(request).choices.at(0).content == "hello");
  // A stream that says that it is over has said something.
  Desk over(ScriptedTransport({http(200, "data: [DONE]\n\n")}));
  CHECK(over.ask(request).failure == ChatFailure::malformed);
  CHECK(over.transport.asked().size() == 1);
}

TEST_CASE("a 500 about the request is a refusal, and something may be learnt from it") {
  // llama-cpp-python's answer to a JSON schema.
  const auto refusal =
      http(500, R"({"error":{"message":"1 validation error:\n  {'type': 'literal_error', 'loc': ('body',)"
                R"( 'response_format', 'type'), 'input': 'json_schema'}","type":"internal_server_error"}})");
  auto request = question();
  request.schema = "{}";
  Desk desk(ScriptedTransport({refusal, http(200, plain_answer)}));
  const auto answer = desk.ask(request);
  CHECK(answer.failure == ChatFailure::none);
  CHECK(answer.tries == 2);
  CHECK_FALSE(desk.body(1).contains("response_format"));
  Desk stubborn(ScriptedTransport({refusal}));
  CHECK(stubborn.ask(request).failure == ChatFailure::bad_request);
  CHECK(stubborn.transport.asked().size() == 2);
}

TEST_CASE("a server that answers in one piece although a stream was asked for is understood") {
  Desk desk(ScriptedTransport({http(200, plain_answer)}));
  auto request = question();
  request.stream = true;
  const auto answer = desk.ask(request);
  REQUIRE(answer.failure == ChatFailure::none);
  CHECK(answer.choices.at(0).content == "hello");
  CHECK(answer.counted);
}

TEST_CASE("what an earlier try streamed is void") {
  int tries = 0;
  auto dropped = http(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"first \"}}]}\n\n");
  dropped.failure = TransportFailure::dropped;
  const auto whole = http(200, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"second\"},"
                               "\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
  Desk desk(ScriptedTransport([&](const HttpRequest&) { return ++tries == 1 ? dropped : whole; }));
  auto request = question();
  request.stream = true;
  const auto answer = desk.ask(request);
  CHECK(answer.choices.at(0).content == "second");
  CHECK(answer.tries == 2);
  // The lost try may have been paid for: its prompt, and what had come.
  CHECK(answer.usage.prompt_tokens > desk.client.most_of(request).prompt_tokens / 2);
}

TEST_CASE("refused fields are left out or renamed at once, and for all requests after it") {
  const auto refusing = [](const std::string& field, const std::string& message, int& refusals) {
    return ScriptedTransport([field, message, &refusals](const HttpRequest& request) {
      const auto body = detail::parse_text(request.body, true);
      if (!body.contains(field)) return http(200, plain_answer);
      ++refusals;
      return http(400, Json{{"error", {{"message", message}, {"param", field}}}}.dump());
    });
  };
  const std::pair<const char*, const char*> lessons[] = {
      {"max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."},
      {"temperature", "temperature does not support 0.5 with this model"},
      {"top_p", "unknown field top_p"},
      {"seed", "seed: extra fields not permitted"},
      {"stop", "stop is not supported"},
      {"stream_options", "unrecognized request argument: stream_options"},
      {"response_format", "response_format is not available"},
      {"logprobs", "logprobs are not supported"}};
  for (const auto& lesson : lessons) {
    const auto* const field = lesson.first;
    const auto* const message = lesson.second;
    CAPTURE(field);
    int refusals = 0;
    auto options = endpoint(std::string(field) == "max_tokens" ? "vllm" : "openai");
    Desk desk(refusing(field, message, refusals), options);
    auto request = full_question();
    request.stream = std::string(field) == "stream_options";
    CHECK(desk.ask(request).failure == ChatFailure::none);
    CHECK(desk.ask(request).failure == ChatFailure::none);
    CHECK(refusals == 1);
  }
  int refusals = 0;
  Desk desk(refusing("messages", "messages: too many", refusals));
  CHECK(desk.ask(question()).failure == ChatFailure::bad_request);
  CHECK(refusals == 1);
}

TEST_CASE("a cap on money needs a price for the model: it could not be kept otherwise") {
  ScriptedTransport transport([](const HttpRequest&) { return http(200, "{}"); });
  ChatClientOptions money;
  money.prices = {{.model = "another", .prompt = 1, .completion = 1}};
  CHECK_NOTHROW(ChatClient(Endpoint(transport, endpoint()), money));
  money.spending = Spending({.cost = 10});
  CHECK_THROWS_WITH_AS(ChatClient(Endpoint(transport, endpoint()), money), doctest::Contains("has no price"),
                       mtmc::Error);
  money.prices.push_back({.model = "*"}); // a model of one's own may cost nothing
  CHECK_NOTHROW(ChatClient(Endpoint(transport, endpoint()), money));
}

TEST_CASE("a cap is never passed, however many ask at once") {
  std::atomic<int> sent{0};
  ChatClientOptions money;
  money.prices = {{.model = "*", .prompt = 0, .completion = 1e6}};
  money.spending = Spending({.cost = 10});
  ScriptedTransport transport([&](const HttpRequest&) {
    ++sent;
    return http(200, R"({"choices":[{"message":{"content":"x"},"finish_reason":"length"}],)"
                     R"("usage":{"prompt_tokens":1,"completion_tokens":3}})");
  });
  ChatClient client(Endpoint(transport, endpoint()), money);
  auto request = question();
  request.max_tokens = 3;
  std::atomic<int> refused{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i)
      threads.emplace_back([client, &request, &refused]() mutable {
        const auto answer = client.ask(request, whenever, {});
        if (answer.failure == ChatFailure::budget) ++refused;
      });
  }
  CHECK(sent + refused == 16);
  CHECK(sent == 3);
  CHECK(client.spent().cost == 9);
}

TEST_CASE("what is not used of a reservation comes free, and what was lost on the way is counted") {
  ChatClientOptions money;
  money.spending = Spending({.tokens = 2000});
  auto request = question();
  request.max_tokens = 900;
  Desk desk(ScriptedTransport({http(200, plain_answer)}), endpoint(), money);
  for (int i = 0; i < 50; ++i) CHECK(desk.ask(request).failure == ChatFailure::none);
  CHECK(desk.client.spent().tokens() == 50 * 13);

  money.spending = Spending({.tokens = 100 * 1000});
  Desk losing(ScriptedTransport({lost(TransportFailure::timeout)}), endpoint(), money);
  const auto answer = losing.ask(request);
  CHECK(answer.failure == ChatFailure::endpoint);
  CHECK(answer.tries == 6);
  CHECK(answer.usage.prompt_tokens > 6 * 10);
  CHECK(losing.client.spent().tokens() == answer.usage.tokens());
}

TEST_CASE("what waits for its answer stays within the cap, for it will be paid") {
  auto waits = lost(TransportFailure::pending, "mtmc-1");
  ChatClientOptions money;
  money.prices = {{.model = "*", .prompt = 0, .completion = 1e6}};
  money.spending = Spending({.cost = 250});
  Desk desk(ScriptedTransport({waits}), endpoint(), money);
  CHECK(desk.ask(question()).failure == ChatFailure::pending);
  const auto second = desk.ask(question());
  CHECK(second.failure == ChatFailure::pending);
  CHECK(second.usage.tokens() == 0);
  const auto third = desk.ask(question());
  CHECK(third.failure == ChatFailure::budget);
  CHECK(third.message.find("cost 100; spent so far are") != std::string::npos);
  CHECK(third.message.find("the limit is 250") != std::string::npos);
  CHECK(desk.transport.asked().size() == 2);
}

TEST_CASE("a stop ends a question at once, also between its tries") {
  auto options = endpoint();
  options.retries.first_wait = 100;
  options.retries.max_wait = 100;
  std::stop_source source;
  ScriptedTransport transport([&](const HttpRequest&) { return http(503, "busy"); });
  ChatClient client(Endpoint(transport, options));
  std::jthread stopper([&] {
    while (transport.asked().empty()) std::this_thread::yield();
    source.request_stop();
  });
  CHECK(client.ask(question(), whenever, source.get_token()).failure == ChatFailure::cancelled);
  CHECK(transport.asked().size() == 1);
}

TEST_CASE("an answer that was lost may have been paid for in full, so that a cap keeps its place") {
  auto request = question();
  request.max_tokens = 900;
  ChatClientOptions money;
  money.spending = Spending({.tokens = 3000});
  Desk desk(ScriptedTransport({lost(TransportFailure::timeout)}), endpoint(), money);
  const auto answer = desk.ask(request);
  CHECK(answer.failure == ChatFailure::budget);
  CHECK(answer.tries == 3);
  CHECK(desk.ask(request).failure == ChatFailure::budget);
  CHECK(desk.client.spent().tokens() == answer.usage.tokens());

  // What was refused before any work is free again.
  money.spending = Spending({.tokens = 1000});
  Desk busy(ScriptedTransport({http(503, "busy")}), endpoint(), money);
  CHECK(busy.ask(request).failure == ChatFailure::endpoint);
  CHECK(busy.ask(request).tries == 6);
  CHECK(busy.client.spent().tokens() == 0);
}

TEST_CASE("a stop while it waits to ask again costs nothing more") {
  auto options = endpoint();
  options.retries.first_wait = options.retries.max_wait = 100;
  std::stop_source source;
  ScriptedTransport transport([&](const HttpRequest&) { return lost(TransportFailure::timeout); });
  ChatClient client(Endpoint(transport, options));
  std::jthread stopper([&] {
    while (client.spent().tokens() == 0) std::this_thread::yield();
    source.request_stop();
  });
  const auto answer = client.ask(question(), whenever, source.get_token());
  CHECK(answer.failure == ChatFailure::cancelled);
  CHECK(answer.usage.tokens() == client.spent().tokens());
  // One prompt of 16 bytes in two messages.
  CHECK(client.spent().tokens() < 50);
}

TEST_CASE("after its time or after a stop nothing is sent") {
  Desk desk(ScriptedTransport({http(200, plain_answer)}));
  CHECK(desk.client.ask(question(), std::chrono::steady_clock::now(), {}).failure == ChatFailure::endpoint);
  CHECK(desk.client.ask(question(), Deadline::min(), {}).failure == ChatFailure::endpoint);
  std::stop_source source;
  source.request_stop();
  CHECK(desk.client.ask(question(), whenever, source.get_token()).failure == ChatFailure::cancelled);
  CHECK(desk.transport.asked().empty());
  CHECK(desk.client.spent().tokens() == 0);
}

TEST_CASE("words that only look like a field's name teach nothing") {
  const auto learns = [](const std::string& message, const std::string& parameter = "") {
    auto profile = endpoint_profile("openai");
    bool renamed = false;
    const bool learnt =
        detail::learn_from_refusal({message, "", parameter}, full_question(), profile, renamed);
    CHECK(learnt == (profile != endpoint_profile("openai")));
    return learnt;
  };
  CHECK_FALSE(learns("this model was stopped and superseded"));
  CHECK_FALSE(learns("please stop asking for what is not there"));
  CHECK_FALSE(learns("the stream was broken"));
  CHECK_FALSE(learns("max_tokens is too large: 100. This model supports at most 50"));
  CHECK_FALSE(learns("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"));
  CHECK_FALSE(learns("seed", "messages"));
  CHECK_FALSE(learns("Invalid type for 'n'", "messages[0].content"));
  CHECK(learns("[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs'}]"));
  CHECK(learns("Unrecognized request argument supplied: stop"));
  CHECK(learns("Unknown name \"seed\": Cannot find field."));
  CHECK(learns("`n` must be 1"));
  CHECK(learns("whatever", "response_format.json_schema"));
}

TEST_CASE("a refusal that says the same for ever ends the question") {
  auto request = full_question();
  request.stream = false;
  const auto refusing = [&](const std::string& message) {
    Desk desk(ScriptedTransport({http(400, Json{{"error", {{"message", message}}}}.dump())}));
    CHECK(desk.ask(request).failure == ChatFailure::bad_request);
    return desk.transport.asked().size();
  };
  CHECK(refusing("'max_tokens' and 'max_completion_tokens' are unknown") == 2);
  CHECK(refusing("temperature, top_p, 'seed', 'stop', logprobs, response_format, reasoning_effort, 'n', "
                 "prompt_cache_key, max_tokens, 'stream'") == 11);
  CHECK(refusing("no") == 1);
}

TEST_CASE("messages hold no secrets, although servers quote them") {
  auto options = endpoint();
  options.headers = {{"X-Gateway", "gateway-secret"}};
  Desk desk(
      ScriptedTransport({http(
          401, R"({"error":{"message":"Incorrect key secret-key, gateway-secret, Bearer secret-key"}})")}),
      options);
  const auto message = desk.ask(question()).message;
  CHECK(message.find("Incorrect key") != std::string::npos);
  CHECK(message.find("secret-key") == std::string::npos);
  CHECK(message.find("gateway-secret") == std::string::npos);
}

TEST_CASE("what is malformed in a request is said, and nothing is sent or set aside") {
  ChatClientOptions money;
  money.spending = Spending({.tokens = 1000});
  Desk desk(ScriptedTransport({http(200, plain_answer)}), endpoint(), money);
  auto request = question();
  for (const char* const text : {"{", "[1]", "7"}) {
    request.extra = text;
    const auto answer = desk.ask(request);
    CHECK(answer.failure == ChatFailure::bad_request);
    CHECK(answer.message.find("ChatRequest::extra") != std::string::npos);
  }
  request = full_question();
  request.schema = "no schema";
  CHECK(desk.ask(request).message.find("ChatRequest::schema") != std::string::npos);
  CHECK(desk.transport.asked().empty());
  CHECK(desk.client.spent().tokens() == 0);

  // Text that is no UTF-8 is sent with marks in its place.
  request = question();
  request.messages[1].content = "caf\xe9 \xff";
  CHECK(desk.ask(request).failure == ChatFailure::none);
  CHECK(desk.body(0).at("messages").at(1).at("content") == "caf\xef\xbf\xbd \xef\xbf\xbd");
}

TEST_CASE("a cap holds for what the extra members ask for, and for numbers of any size") {
  ChatClientOptions money;
  money.spending = Spending({.tokens = 1000});
  Desk desk(ScriptedTransport({http(200, plain_answer)}), endpoint(), money);
  auto request = question();
  request.extra = R"({"max_tokens":5000})";
  CHECK(desk.ask(request).failure == ChatFailure::budget);
  request.extra = R"({"n":100})";
  CHECK(desk.ask(request).failure == ChatFailure::budget);
  request = question();
  request.max_tokens = std::numeric_limits<std::int64_t>::max();
  request.count = std::numeric_limits<int>::max();
  CHECK(desk.ask(request).failure == ChatFailure::budget);
  CHECK(desk.transport.asked().empty());
}

TEST_CASE("numbers of tokens that cannot be are estimated instead") {
  for (const char* const usage :
       {R"({"prompt_tokens":-5,"completion_tokens":1})", R"({"prompt_tokens":1e300,"completion_tokens":1})",
        R"({"prompt_tokens":"12","completion_tokens":"3"})", R"({"prompt_tokens":12})", R"([1,2])",
        R"("none")", R"({"prompt_tokens":999999999999999,"completion_tokens":1})"}) {
    CAPTURE(usage);
    Desk desk(ScriptedTransport(
        {http(200, R"({"choices":[{"message":{"content":"hello"}}],"usage":)" + std::string(usage) + "}")}));
    const auto answer = desk.ask(question());
    CHECK(answer.failure == ChatFailure::none);
    CHECK_FALSE(answer.counted);
    CHECK(answer.usage.prompt_tokens > 0);
    CHECK(answer.usage.tokens() < 100);
  }
}

TEST_CASE("hostile answers take no more than their bytes") {
  std::string many = R"({"choices":[)";
  for (int i = 0; i < 200 * 1000; ++i) many += "{},";
  CHECK(read_chat_answer(http(200, many + "{}]}")).choices.size() <= 128);

  const std::string deep(std::size_t{1} << 20, '[');
  CHECK(read_chat_answer(http(500, R"({"error":{"message":)" + deep)).failure == ChatFailure::endpoint);
  const auto closed = deep + std::string(deep.size(), ']');
  CHECK(read_chat_answer(http(500, R"({"error":{"message":)" + closed + "}}")).failure ==
        ChatFailure::endpoint);
  CHECK(read_chat_answer(http(200, R"({"choices":)" + closed + "}")).failure == ChatFailure::malformed);

  auto request = question();
  request.stream = true;
  std::string stream;
  for (const char* const index : {"1000000000", "-1", "1e300", "127", "\"x\""})
    stream +=
        R"(data: {"choices":[{"index":)" + std::string(index) + R"(,"delta":{"content":"a"}}]})" + "\n\n";
  Desk desk(ScriptedTransport({http(200, stream)}));
  CHECK(desk.ask(request).choices.size() == 128);

  EventStream endless;
  std::size_t largest = 0;
  const std::string piece(std::size_t{1} << 20, 'x');
  const auto take = [&largest](const std::string& event) { largest = std::max(largest, event.size()); };
  endless.feed("data: ", take);
  for (int i = 0; i < 20; ++i) endless.feed(piece, take);
  endless.finish(take);
  CHECK(largest <= (std::size_t{17} << 20));
}

TEST_CASE("a hole in a stream is no answer, a cut at its end is a cut answer") {
  auto request = question();
  request.stream = true;
  const std::string piece = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";
  const std::string broken = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xff\"}}]}\n\n";
  Desk hole(ScriptedTransport({http(200, piece + broken + piece + "data: [DONE]\n\n")}));
  const auto answer = hole.ask(request);
  CHECK(answer.failure == ChatFailure::malformed);
  CHECK(answer.usage.completion_tokens > 0);
  Desk cut(ScriptedTransport({http(200, piece + "data: {\"choices\":[{\"ind")}));
  CHECK(cut.ask(request).choices.at(0).content == "half");
  CHECK(cut.ask(request).choices.at(0).finish == FinishReason::length);
}

TEST_CASE("an answer that is none may have been paid for") {
  Desk desk(ScriptedTransport({http(200, R"({"choices":[{"message":{"content":"cut o)")}));
  const auto answer = desk.ask(question());
  CHECK(answer.failure == ChatFailure::malformed);
  CHECK(answer.usage.prompt_tokens > 0);
  CHECK(answer.usage.completion_tokens > 0);
  CHECK(desk.client.spent().tokens() == answer.usage.tokens());
}

TEST_CASE("a prompt that was cut without a word is told from one that was read") {
  auto request = question();
  for (int i = 0; i < 2000; ++i) request.messages[1].content += "for (int i = 0; i < N; ++i) y[i] += x[i];\n";
  const auto tokens = [](int count) {
    return http(200, R"({"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":1,)"
                     R"("prompt_tokens":)" +
                         std::to_string(count) + "}}");
  };
  // 2000 lines of 11 words and numbers each.
  Desk whole(ScriptedTransport({tokens(44000), tokens(20000), tokens(0)}), endpoint("ollama"));
  for (int i = 0; i < 3; ++i) CHECK(whole.ask(request).failure == ChatFailure::none);
  Desk cut(ScriptedTransport({tokens(4096)}), endpoint("ollama"));
  const auto answer = cut.ask(request);
  CHECK(answer.failure == ChatFailure::too_long);
  CHECK(answer.message.find("4096") != std::string::npos);
  CHECK(answer.message.find("OLLAMA_CONTEXT_LENGTH") != std::string::npos);
  CHECK(answer.usage.prompt_tokens == 4096);
  CHECK(cut.client.spent().tokens() == 4097);
  CHECK(cut.ask(question()).failure == ChatFailure::none);
  Desk other(ScriptedTransport({tokens(4096)}), endpoint("vllm"));
  CHECK(other.ask(request).failure == ChatFailure::none);
}
