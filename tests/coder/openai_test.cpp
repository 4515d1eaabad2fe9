#include <mtmc/coder/openai.hpp>
#include <mtmc/core/json_fields.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../net/scripted_transport.hpp"

using namespace mtmc;
using detail::Json;
using mtmc_test::http;
using mtmc_test::lost;
using mtmc_test::ScriptedTransport;

namespace {

const std::string start = "//@ launch scale(x, y, N)\n"
                          "void scale(const float* x, float* y, int N) {\n"
                          "  for (int i = 0; i < N; ++i)\n"
                          "    y[i] = 2 * x[i];\n"
                          "}\n";
const std::string faster = "//@ launch scale(x, y, N)\n"
                           "void scale(const float* x, float* y, int N) {\n"
                           "#pragma omp parallel for\n"
                           "  for (int i = 0; i < N; ++i)\n"
                           "    y[i] = 2 * x[i];\n"
                           "}\n";

CodingRequest request() {
  CodingRequest asked;
  auto& seen = asked.seen;
  seen.task.name = "scale";
  seen.task.summary = "y = 2 x";
  seen.task.kernel = seen.kernel = {languages::cpp, start, {}};
  seen.task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                         {.name = "y", .role = ArgumentRole::output, .shape = {"N"}},
                         {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  seen.task.sizes = {{.symbols = {{"N", 1000}}}};
  seen.device.name = "A processor";
  seen.device.kind = "cpu";
  seen.step = 3;
  seen.step_limit = 8;
  asked.action = {.kind = Action::Kind::optimize,
                  .optimization = "parallelization",
                  .verb = "parallelizing",
                  .region = "scale/i",
                  .label = "the i loop of scale",
                  .first_line = 3,
                  .last_line = 4};
  asked.intent = "Spread independent iterations.";
  asked.principle = "Give every thread a share.";
  return asked;
}

/// An answer of chat completions with this content.
HttpResponse says(const std::string& content, const std::string& finish = "stop", int tokens = 50) {
  return http(200, Json{{"choices", {{{"message", {{"content", content}}}, {"finish_reason", finish}}}},
                        {"usage", {{"prompt_tokens", 100}, {"completion_tokens", tokens}}}}
                       .dump());
}
std::string fenced(const std::string& code) { return "Threads share the loop.\n```cpp\n" + code + "```\n"; }

/// A coder and what it sends.
struct Desk {
  explicit Desk(ScriptedTransport scripted, OpenAiCoderOptions options = {}, const char* profile = "openai",
                ChatClientOptions money = {})
      : transport(std::move(scripted)), coder(client(profile, std::move(money)), std::move(options)) {}

  [[nodiscard]] ChatClient client(const char* profile, ChatClientOptions money) const {
    EndpointOptions endpoint;
    endpoint.base_url = "http://127.0.0.1:1/v1";
    endpoint.api_key = "secret-key";
    endpoint.model = "model-1";
    endpoint.profile = endpoint_profile(profile);
    endpoint.retries.first_wait = endpoint.retries.max_wait = 0;
    return ChatClient(Endpoint(transport, std::move(endpoint)), std::move(money));
  }
  [[nodiscard]] Draft draft(const CodingRequest& asked = request()) { return coder.implement(asked, {}); }
  [[nodiscard]] Json body(std::size_t i) const {
    return detail::parse_text(transport.asked().at(i).body, true);
  }

  ScriptedTransport transport;
  OpenAiCoder coder;
};

} // namespace

static_assert(check_coder<OpenAiCoder>());

TEST_CASE("a kernel comes back as a draft, with what it cost and what the model said") {
  Desk desk(ScriptedTransport({says(fenced(faster))}));
  const auto draft = desk.draft();
  REQUIRE(draft.kernel);
  CHECK(draft.kernel->source == faster);
  CHECK(draft.failure == DraftFailure::none);
  CHECK(draft.message == "Threads share the loop.");
  CHECK(draft.raw_text == fenced(faster));
  CHECK(draft.usage.tokens() == 150);
  CHECK(desk.transport.asked().at(0).label == "scale-3-0");
  CHECK(desk.body(0).at("prompt_cache_key") == "scale");
  CHECK(desk.body(0).at("messages").size() == 2);
  CHECK(desk.coder.identity().find("model-1") != std::string::npos);
  CHECK(desk.coder.identity().find("secret") == std::string::npos);
}

TEST_CASE("samples differ in seed, and what is sent is what can be looked at before") {
  OpenAiCoderOptions options;
  options.seed = 40;
  options.temperature = 0.25;
  Desk desk(ScriptedTransport({says(fenced(faster))}), options);
  auto second = request();
  second.sample = 2;
  (void)desk.draft(second);
  CHECK(desk.body(0).at("seed") == 42);
  CHECK(desk.body(0).at("temperature") == 0.25);
  const auto shown = desk.coder.prompt(second).messages();
  for (std::size_t i = 0; i < shown.size(); ++i)
    CHECK(desk.body(0).at("messages").at(i).at("content") == shown[i].content);
}

TEST_CASE("a host may redact and replace pieces of the prompt") {
  OpenAiCoderOptions options;
  options.revise = [](Prompt& prompt, const CodingRequest&) {
    prompt.find(prompt_part::hardware)->text = "# Hardware\nnot told\n";
  };
  Desk desk(ScriptedTransport({says(fenced(faster))}), options);
  (void)desk.draft();
  CHECK(desk.transport.asked().at(0).body.find("A processor") == std::string::npos);
  CHECK(desk.transport.asked().at(0).body.find("not told") != std::string::npos);
}

TEST_CASE("an answer that was cut is continued once, and never taken for whole") {
  const auto whole = fenced(faster);
  const auto first = whole.substr(0, 120);
  SUBCASE("by an endpoint that goes on with messages") {
    Desk desk(ScriptedTransport({says(first, "length"), says(whole.substr(120))}), {}, "vllm");
    const auto draft = desk.draft();
    REQUIRE(draft.kernel);
    CHECK(draft.kernel->source == faster);
    CHECK(draft.usage.tokens() == 300);
    const auto again = desk.body(1);
    CHECK(again.at("messages").back().at("role") == "assistant");
    CHECK(again.at("messages").back().at("content") == first);
    CHECK(again.at("continue_final_message") == true);
    CHECK(again.at("add_generation_prompt") == false);
  }
  SUBCASE("by llama.cpp's own server, whose answer begins with what it goes on with") {
    for (std::size_t cut = 2; cut < whole.size(); cut += 2) {
      CAPTURE(cut);
      Desk desk(ScriptedTransport({says(whole.substr(0, cut), "length"), says(whole)}), {}, "llama.cpp");
      const auto draft = desk.draft();
      REQUIRE(draft.kernel);
      CHECK(draft.kernel->source == faster);
      CHECK(draft.raw_text == whole);
      const auto again = desk.body(1);
      CHECK(again.at("messages").back().at("role") == "assistant");
      CHECK(again.at("messages").back().at("content") == whole.substr(0, cut));
      CHECK_FALSE(again.contains("continue_final_message"));
    }
  }
  SUBCASE("by one that has to be asked") {
    Desk desk(ScriptedTransport({says(first, "length"), says(whole.substr(110))}));
    const auto draft = desk.draft();
    REQUIRE(draft.kernel);
    CHECK(draft.kernel->source == faster);
    CHECK(desk.body(1).at("messages").back().at("role") == "user");
  }
  SUBCASE("but not twice") {
    Desk desk(ScriptedTransport({says(first, "length"), says("    y[i]", "length")}));
    const auto draft = desk.draft();
    CHECK_FALSE(draft.kernel);
    CHECK(draft.failure == DraftFailure::truncated);
    CHECK(desk.transport.asked().size() == 2);
    CHECK(draft.raw_text.starts_with(first));
  }
}

TEST_CASE("where all tokens went into reasoning, twice as many are allowed, once") {
  OpenAiCoderOptions options;
  options.max_tokens = 1000;
  Desk desk(ScriptedTransport({says("", "length", 1000), says(fenced(faster))}), options);
  CHECK(desk.draft().kernel);
  CHECK(desk.body(0).at("max_completion_tokens") == 1000);
  CHECK(desk.body(1).at("max_completion_tokens") == 2000);
  Desk silent(ScriptedTransport({says("", "length", 1000)}), options);
  CHECK(silent.draft().failure == DraftFailure::truncated);
  CHECK(silent.transport.asked().size() == 2);
}

TEST_CASE("a prompt that is too long is shortened once") {
  const auto too_long = http(400, R"({"error":{"code":"context_length_exceeded","message":"too long"}})");
  auto asked = request();
  for (int i = 0; i < 8; ++i) {
    auto& entry = asked.seen.history.emplace_back();
    entry.action_text = "something that was tried";
    entry.message = std::string(3000, 'x');
  }
  Desk desk(ScriptedTransport({too_long, says(fenced(faster))}));
  CHECK(desk.draft(asked).kernel);
  CHECK(desk.transport.asked().at(1).body.size() < desk.transport.asked().at(0).body.size() / 2 + 4000);
  Desk hopeless(ScriptedTransport({too_long}));
  const auto draft = hopeless.draft(asked);
  CHECK(draft.failure == DraftFailure::declined);
  CHECK(draft.message.find("too long") != std::string::npos);
}

TEST_CASE("what is no kernel says why") {
  const auto failure_of = [](const HttpResponse& answer) {
    Desk desk{ScriptedTransport(std::vector{answer})};
    const auto draft = desk.draft();
    CHECK_FALSE(draft.kernel);
    CHECK_FALSE(draft.message.empty());
    return draft.failure;
  };
  CHECK(failure_of(says("I would use threads.")) == DraftFailure::no_kernel);
  CHECK(failure_of(says(fenced(start))) == DraftFailure::unchanged);
  CHECK(failure_of(says(fenced("//@ launch scale(x, y, N)\nvoid scale() {\n  // ... rest unchanged\n}\n"))) ==
        DraftFailure::no_kernel);
  CHECK(failure_of(says("", "content_filter")) == DraftFailure::refused);
  CHECK(
      failure_of(http(
          200, R"({"choices":[{"message":{"content":null,"refusal":"I won't"},"finish_reason":"stop"}]})")) ==
      DraftFailure::refused);
  CHECK(failure_of(lost(TransportFailure::timeout)) == DraftFailure::endpoint);
  CHECK(failure_of(http(500, "oops")) == DraftFailure::endpoint);
  CHECK(failure_of(http(200, "<html>")) == DraftFailure::endpoint);
  CHECK(failure_of(lost(TransportFailure::cancelled)) == DraftFailure::cancelled);
}

TEST_CASE("where no draft will ever come, the run is told so instead of wasting its steps") {
  const auto error_of = [](const HttpResponse& answer, int drafts) -> std::string {
    Desk desk{ScriptedTransport(std::vector{answer})};
    try {
      for (int i = 0; i < drafts; ++i) CHECK(desk.draft().failure == DraftFailure::endpoint);
      (void)desk.draft();
    } catch (const Error& error) {
      CHECK(error.id() == error_id::net_endpoint);
      CHECK(std::string(error.what()).find("secret-key") == std::string::npos);
      return error.what();
    }
    return "no error";
  };
  CHECK(error_of(http(401, R"({"error":{"message":"bad key"}})"), 0).find("bad key") != std::string::npos);
  CHECK(error_of(http(404, R"({"error":{"message":"no such model"}})"), 0).find("no such model") !=
        std::string::npos);
  CHECK(error_of(lost(TransportFailure::no_connection, "nobody listens"), 2).find("nobody listens") !=
        std::string::npos);
}

TEST_CASE("one answer in between makes an endpoint alive again") {
  int asked = 0;
  // Six tries a draft: two drafts fail, the third is answered.
  Desk desk(ScriptedTransport(
      [&asked](const HttpRequest&) { return ++asked % 13 == 0 ? says(fenced(faster)) : http(503, "busy"); }));
  for (int round = 0; round < 3; ++round) {
    CHECK(desk.draft().failure == DraftFailure::endpoint);
    CHECK(desk.draft().failure == DraftFailure::endpoint);
    CHECK(desk.draft().kernel);
  }
}

TEST_CASE("an answer that comes later is a pending draft, the continuation of one as well") {
  Desk desk(ScriptedTransport({lost(TransportFailure::pending, "mtmc-scale-3-0-abc")}));
  const auto draft = desk.draft();
  CHECK(draft.pending == "mtmc-scale-3-0-abc");
  CHECK(draft.failure == DraftFailure::none);
  Desk rest(ScriptedTransport(
      {says(fenced(faster).substr(0, 120), "length"), lost(TransportFailure::pending, "later")}));
  CHECK(rest.draft().pending == "later");
}

TEST_CASE("a stop while the rest of an answer is asked for is a stop, not a cut answer") {
  Desk desk(ScriptedTransport(
      {says(fenced(faster).substr(0, 120), "length"), lost(TransportFailure::cancelled, "stopped")}));
  const auto draft = desk.draft();
  CHECK(draft.failure == DraftFailure::cancelled);
  CHECK(draft.usage.prompt_tokens > 100);
}

TEST_CASE("a prompt that the endpoint cut without a word is shortened once, like one it calls too long") {
  auto asked = request();
  HistoryEntry tried;
  tried.action_text = "tiling the i loop";
  for (int i = 0; i < 3000; ++i) tried.message += "y[" + std::to_string(i) + "] is wrong ";
  asked.seen.history.assign(8, tried);
  asked.seen.task.summary = tried.message;
  Desk desk(ScriptedTransport({says(fenced(faster))}), {}, "ollama");
  const auto draft = desk.draft(asked);
  CHECK(draft.failure == DraftFailure::declined);
  CHECK(draft.message.find("OLLAMA_CONTEXT_LENGTH") != std::string::npos);
  CHECK(draft.usage.tokens() == 150 * static_cast<std::int64_t>(desk.transport.asked().size()));
}

TEST_CASE("nothing is sent that could pass a cap") {
  ChatClientOptions money;
  money.spending = Spending({.tokens = 5000});
  Desk desk(ScriptedTransport({says(fenced(faster))}), {}, "openai", money);
  const auto draft = desk.draft();
  CHECK(draft.failure == DraftFailure::budget);
  CHECK(desk.transport.asked().empty());
}

TEST_CASE("edits are asked for and applied where the host wants them") {
  OpenAiCoderOptions options;
  options.prompt.edits = true;
  Desk desk(ScriptedTransport({says("<<<<<<< SEARCH\n  for (int i = 0; i < N; ++i)\n=======\n"
                                    "#pragma omp parallel for\n  for (int i = 0; i < N; ++i)\n"
                                    ">>>>>>> REPLACE\n")}),
            options);
  const auto draft = desk.draft();
  REQUIRE(draft.kernel);
  CHECK(draft.kernel->source == faster);
}

TEST_CASE("a repair shows the failed attempt, and compares with it") {
  auto asked = request();
  RepairContext repair;
  repair.kernel = {languages::cpp, faster, {}};
  repair.evaluation.verdict = Verdict::wrong_result;
  Diagnostic diagnostic;
  diagnostic.message = "y[3] is 0 but should be 6";
  diagnostic.remedy = "Compare with the original kernel";
  repair.evaluation.diagnostics.push_back(diagnostic);
  asked.repair = repair;
  Desk desk(ScriptedTransport({says(fenced(faster))}));
  CHECK(desk.draft(asked).failure == DraftFailure::unchanged);
  const auto prompt = desk.coder.prompt(asked).text();
  CHECK(prompt.find("y[3] is 0 but should be 6") != std::string::npos);
  CHECK(prompt.find("wrong_result") != std::string::npos);
  CHECK(prompt.find(faster) != std::string::npos);
}
