#include <mtmc/coder/answer.hpp>
#include <mtmc/coder/openai.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/chat_client.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "real_server/endpoint.hpp"
#include "real_server/real_server.hpp"

using namespace mtmc;
using real_server::Server;

namespace {

constexpr auto whenever = Deadline::max();

ChatRequest question(const std::string& text) {
  ChatRequest request;
  request.messages = {{"user", text}};
  request.max_tokens = 24;
  request.temperature = 0;
  return request;
}

/// One question, whole and streamed. `counts_streams`: the server tells the tokens of a stream.
void check_chat(const Server& server, const std::string& profile, bool counts_streams) {
  ChatClient client(real_server::endpoint(server, profile));
  auto request = question("Which action is next?");
  const auto whole = client.ask(request, whenever, {});
  INFO(whole.message);
  REQUIRE(whole.failure == ChatFailure::none);
  CHECK_FALSE(whole.choices.at(0).content.empty());
  CHECK(whole.counted);
  CHECK(whole.usage.prompt_tokens > 0);
  CHECK(whole.usage.completion_tokens > 0);
  CHECK(whole.usage.completion_tokens <= 24);
  CHECK(whole.tries == 1);

  request.stream = true;
  const auto streamed = client.ask(request, whenever, {});
  INFO(streamed.message);
  REQUIRE(streamed.failure == ChatFailure::none);
  CHECK(streamed.choices.at(0).content == whole.choices.at(0).content);
  CHECK(streamed.choices.at(0).finish == whole.choices.at(0).finish);
  CHECK(streamed.counted == counts_streams);
  CHECK(streamed.usage.prompt_tokens > 0);
  CHECK(streamed.usage.completion_tokens > 0);
  if (counts_streams) {
    CHECK(streamed.usage.prompt_tokens == whole.usage.prompt_tokens);
    CHECK(streamed.usage.completion_tokens == whole.usage.completion_tokens);
  }
  CHECK(streamed.tries == 1);
}

/// What is wrong with a request is told as such, at once.
void check_refusals(const Server& server, const std::string& profile) {
  ChatClient client(real_server::endpoint(server, profile));
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "x ";
  for (const bool stream : {false, true}) {
    CAPTURE(stream);
    auto request = question(text);
    request.stream = stream;
    const auto answer = client.ask(request, whenever, {});
    CHECK(answer.failure == ChatFailure::too_long);
    CHECK(answer.message.find("8192") != std::string::npos);
    CHECK(answer.tries <= 2);
  }
  auto wrong = question("Which action is next?");
  wrong.extra = R"({"messages": "none"})";
  CHECK(client.ask(wrong, whenever, {}).failure == ChatFailure::bad_request);
}

CodingRequest coding_request() {
  CodingRequest request;
  request.seen = real_server::observation("gemm");
  request.action = real_server::legal_actions(request.seen).front();
  return request;
}

} // namespace

TEST_CASE("the server of llama-cpp-python answers a chat and coders") {
  const auto server = Server::start();
  if (!server) return;
  // It takes `stream_options` and does nothing about them.
  check_chat(*server, "llama.cpp", false);
  check_refusals(*server, "llama.cpp");
  check_refusals(*server, "");

  // Several drafts at once. A random model writes no kernel, and often nothing.
  OpenAiCoderOptions options;
  options.max_tokens = 64;
  options.temperature = 1.0;
  options.seed = 1;
  OpenAiCoder coder(ChatClient(real_server::endpoint(*server, "llama.cpp")), options);
  std::vector<Draft> drafts(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < drafts.size(); ++i)
      threads.emplace_back([&coder, &draft = drafts[i], i] {
        auto request = coding_request();
        request.sample = static_cast<int>(i);
        draft = coder.implement(request, {});
      });
  }
  bool different = false;
  for (const auto& draft : drafts) {
    INFO(draft.message);
    CHECK_FALSE(draft.kernel);
    const bool came = draft.failure == DraftFailure::no_kernel || draft.failure == DraftFailure::truncated;
    CHECK(came);
    CHECK(draft.usage.prompt_tokens > 500);
    CHECK(draft.usage.completion_tokens > 0);
    CHECK(draft.usage.seconds > 0);
    different = different || draft.raw_text != drafts.front().raw_text;
  }
  CHECK(different);
}

TEST_CASE("llama.cpp's own server understands all that its profile says") {
  const auto server = Server::start({"--own-server"});
  if (!server) return;
  check_chat(*server, "llama.cpp", true);
  check_refusals(*server, "llama.cpp");

  ChatClient client(real_server::endpoint(*server, "llama.cpp"));
  const auto profile = client.endpoint().profile();
  auto request = question("Which action is next?");
  request.temperature = 1.5;
  request.top_p = 0.9;
  request.seed = 7;
  request.stop = {"never written"};
  request.top_logprobs = 5;
  for (const bool stream : {false, true}) {
    CAPTURE(stream);
    request.stream = stream;
    const auto answer = client.ask(request, whenever, {});
    INFO(answer.message);
    REQUIRE(answer.failure == ChatFailure::none);
    CHECK(answer.tries == 1);
    CHECK(answer.choices.at(0).first_token.size() == 5);
    CHECK(client.ask(request, whenever, {}).choices.at(0).content == answer.choices.at(0).content);
  }
  request.stream = false;
  request.top_logprobs = 0;
  request.max_tokens = 200;
  request.schema =
      R"({"type": "object", "properties": {"action": {"enum": ["tile", "fuse"]}}, "required": ["action"]})";
  const auto constrained = client.ask(request, whenever, {});
  REQUIRE(constrained.failure == ChatFailure::none);
  const auto object = detail::parse_text(constrained.choices.at(0).content, false);
  REQUIRE(object.is_object());
  const bool known = object["action"] == "tile" || object["action"] == "fuse";
  CHECK(known);
  // Nothing of the profile had to be unlearnt.
  CHECK(client.endpoint().profile() == profile);
}

TEST_CASE("a cut answer of llama.cpp's own server is continued, and joined without a seam") {
  const auto server = Server::start({"--own-server"});
  if (!server) return;
  ChatClient client(real_server::endpoint(*server, "llama.cpp"));
  int cut = 0;
  for (int i = 0; i < 8; ++i) {
    auto request = question("Which action is next after step " + std::to_string(i) + "?");
    const auto first = client.ask(request, whenever, {});
    REQUIRE(first.failure == ChatFailure::none);
    if (first.choices.at(0).finish != FinishReason::length) continue;
    ++cut;
    const auto text = first.choices.at(0).content;
    request.messages.push_back({"assistant", text});
    request.continues = true;
    const auto rest = client.ask(request, whenever, {});
    REQUIRE(rest.failure == ChatFailure::none);
    CHECK(rest.choices.at(0).content.starts_with(text));
    CHECK(join_continuation(text, rest.choices.at(0).content) == rest.choices.at(0).content);
    CHECK(rest.usage.completion_tokens <= 24);
  }
  CHECK(cut > 0);

  // A coder does so by itself.
  OpenAiCoderOptions options;
  options.max_tokens = 24;
  options.temperature = 0.0;
  OpenAiCoder coder(client, options);
  const auto draft = coder.implement(coding_request(), {});
  CHECK(draft.failure == DraftFailure::truncated);
  auto request = question("");
  request.messages = coder.prompt(coding_request()).messages();
  const auto first = client.ask(request, whenever, {});
  REQUIRE(first.failure == ChatFailure::none);
  request.messages.push_back({"assistant", first.choices.at(0).content});
  request.continues = true;
  const auto rest = client.ask(request, whenever, {});
  REQUIRE(rest.failure == ChatFailure::none);
  CHECK(draft.raw_text == rest.choices.at(0).content);
  CHECK(draft.usage.completion_tokens == first.usage.completion_tokens + rest.usage.completion_tokens);
}
