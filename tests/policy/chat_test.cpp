#include <mtmc/core/any.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/policy/chat.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "../net/scripted_transport.hpp"
#include "observations.hpp"

using namespace mtmc;
using detail::Json;
using mtmc_test::http;
using mtmc_test::ScriptedTransport;

namespace {

HttpResponse says(const std::string& content) {
  return http(200,
              Json{{"choices", {{{"message", {{"content", content}}}, {"finish_reason", "stop"}}}}}.dump());
}

ChatClient client(const ScriptedTransport& transport) {
  EndpointOptions endpoint;
  endpoint.base_url = "http://127.0.0.1:1/v1";
  endpoint.model = "model-1";
  endpoint.profile = endpoint_profile("openai");
  endpoint.retries.max_retries = 0;
  return ChatClient(Endpoint(transport, std::move(endpoint)));
}

std::vector<Action> legal_actions() {
  std::vector<Action> legal{observed::action("tiling", "f/i"), observed::action("unrolling", "f/i"),
                            Action::stop()};
  legal[0].verb = "tiling";
  legal[0].label = "the i loop of f";
  legal[0].first_line = 3;
  legal[0].last_line = 5;
  return legal;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

} // namespace

TEST_CASE(
    "the model sees the observation and all legal actions, and its choice is likeliest but not certain") {
  ScriptedTransport transport({says("<think>{\"action\": 2}? No.</think> {\"action\": 0}")});
  ChatPolicy policy(client(transport));
  const auto answer = policy.distribution(observed::with_seconds(1e-3), legal_actions(), {});
  REQUIRE(answer.probabilities.size() == 3);
  CHECK(sum(answer.probabilities) == doctest::Approx(1));
  CHECK(answer.probabilities[0] == doctest::Approx(0.9 + 0.1 / 3));
  CHECK(answer.probabilities[1] == doctest::Approx(0.1 / 3));
  CHECK_FALSE(answer.exact);
  const auto sent = transport.asked().at(0).body;
  CHECK(sent.find("tiling the i loop of f in line 3 to 5") != std::string::npos);
  CHECK(sent.find("2: stop") != std::string::npos);
  CHECK(sent.find("\"maximum\":2") != std::string::npos);
  CHECK(transport.asked().at(0).label == "copy-0-policy-0");
}

TEST_CASE("several answers are votes") {
  ScriptedTransport transport({says("{\"action\":1}"), says("{\"action\":1}"), says("{\"action\":2}")});
  ChatPolicy policy(client(transport), {.votes = 3});
  const auto answer = policy.distribution(observed::with_seconds(1e-3), legal_actions(), {});
  CHECK(answer.probabilities[0] == doctest::Approx(0.5 / 4.5));
  CHECK(answer.probabilities[1] == doctest::Approx(2.5 / 4.5));
  CHECK(answer.probabilities[2] == doctest::Approx(1.5 / 4.5));
  CHECK(answer.rationale.find("3 votes") != std::string::npos);
  CHECK(answer.usage.prompt_tokens >= 3 * 100);
}

TEST_CASE("an answer that names no legal action is asked for once more, and then all are equal") {
  ScriptedTransport mended({says("the first one"), says("{\"action\": 1}")});
  ChatPolicy policy(client(mended));
  CHECK(policy.distribution(observed::with_seconds(1e-3), legal_actions(), {}).probabilities[1] > 0.9);
  CHECK(mended.asked().size() == 2);
  for (const char* const nonsense : {"{\"action\": 3}", "{\"action\": -1}", "{\"action\": \"0\"}", "{", ""}) {
    CAPTURE(nonsense);
    ScriptedTransport transport({says(nonsense)});
    ChatPolicy lost(client(transport));
    const auto answer = lost.distribution(observed::with_seconds(1e-3), legal_actions(), {});
    for (const double probability : answer.probabilities) CHECK(probability == doctest::Approx(1.0 / 3));
    CHECK(answer.rationale.find("no legal action") != std::string::npos);
    CHECK(transport.asked().size() == 2);
  }
}

TEST_CASE("a model that never names a legal action does not lead a run by chance") {
  ScriptedTransport transport({says("I would tile it")});
  ChatPolicy policy(client(transport));
  const auto ask = [&] { return policy.distribution(observed::with_seconds(1e-3), legal_actions(), {}); };
  CHECK_NOTHROW((void)ask());
  CHECK_NOTHROW((void)ask());
  CHECK_THROWS_WITH_AS((void)ask(),
                       doctest::Contains("3 decisions in a row; its last answer: I would tile it"), Error);
}

TEST_CASE("a single legal action costs nothing, and an endpoint that does not answer is an error") {
  ScriptedTransport transport({http(500, "down")});
  ChatPolicy policy(client(transport));
  const std::vector<Action> only{Action::stop()};
  CHECK(policy.distribution(observed::with_seconds(1e-3), only, {}).probabilities == std::vector<double>{1});
  CHECK(transport.asked().empty());
  CHECK_THROWS_WITH_AS((void)policy.distribution(observed::with_seconds(1e-3), legal_actions(), {}),
                       doctest::Contains("down"), Error);
  ScriptedTransport pending({mtmc_test::lost(TransportFailure::pending, "id")});
  ChatPolicy batched(client(pending));
  CHECK_THROWS_WITH_AS((void)batched.distribution(observed::with_seconds(1e-3), legal_actions(), {}),
                       doctest::Contains("batch run needs a policy"), Error);
}

TEST_CASE("free form: the model's sentence is the action, and the word stop ends the search") {
  const auto proposed = [](const std::string& answer) {
    ScriptedTransport transport({says(answer)});
    FreeFormPolicy policy(client(transport));
    return policy.propose(observed::with_seconds(1e-3), legal_actions(), {});
  };
  const auto actions = proposed("<think>hm</think>\nUse two accumulators\nin the inner loop.");
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].kind == Action::Kind::free_text);
  CHECK(actions[0].text() == "Use two accumulators in the inner loop.");
  CHECK(proposed("stop").empty());
  CHECK(proposed("Stop.").empty());
  CHECK(proposed("").empty());
  CHECK(proposed("Stop recomputing the norm in every iteration.").size() == 1);

  ScriptedTransport transport({says("x")});
  FreeFormPolicy policy(client(transport));
  const std::vector<Action> offered{actions[0], Action::stop()};
  (void)policy.propose(observed::with_seconds(1e-3), legal_actions(), {});
  const auto taken = policy.distribution({}, offered, {});
  CHECK(taken.probabilities == std::vector<double>{1, 0});
  CHECK(taken.usage.tokens() > 0);
  CHECK(policy.distribution({}, std::vector<Action>{Action::stop()}, {}).probabilities ==
        std::vector<double>{1});
  CHECK(AnyPolicy{policy}.proposes_actions());
  CHECK_FALSE(AnyPolicy{ChatPolicy{client(transport)}}.proposes_actions());
}

TEST_CASE("an identity, which is written into journals, holds nothing that a URL keeps secret") {
  EndpointOptions endpoint;
  endpoint.base_url = "http://me:hunter2@127.0.0.1:1/v1?key=hunter2&api-version=2";
  endpoint.model = "model-1";
  const ChatPolicy policy(ChatClient(Endpoint(ScriptedTransport({says("")}), std::move(endpoint))));
  CHECK(policy.identity().find("model-1 at http://127.0.0.1:1/v1?key=[redacted]&api-version=2") !=
        std::string::npos);
  CHECK(policy.identity().find("hunter2") == std::string::npos);
}
