#include <mtmc/core/error.hpp>
#include <mtmc/net/scoring.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "fake_scoring_servers.hpp"

using namespace mtmc;

namespace {

const std::string context = "## Kernel\nfor (int i = 0; i < N; ++i) y[i] = x[i];\n\nAction:";

const std::vector<std::string> actions = {" tiling the i loop of copy in line 1", " fusing R1", " stop",
                                          " unrolling the k loop of gemm in line 115 to 120"};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Compares with what the toy model says itself.
void check_scores(const toy_scoring::Place& place, const std::string& text, const ScoringAnswer& answer,
                  const std::vector<std::string>& wanted) {
  REQUIRE(answer.failure == ChatFailure::none);
  REQUIRE(answer.continuations.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto expected = place.state->model.expected(text, wanted[i]);
    const auto& got = answer.continuations[i];
    CAPTURE(wanted[i]);
    CHECK(std::abs(got.logprob_sum - expected.logprob_sum) < 1e-9);
    CHECK(got.tokens == expected.tokens);
    CHECK(got.clamped == expected.clamped);
  }
}

double sum_of_shares(const ScoringAnswer& answer) {
  double sum = 0;
  for (const auto& one : answer.continuations) sum += std::exp(one.logprob_sum);
  return sum;
}

} // namespace

TEST_CASE("every server's own way gives the model's own log-probabilities, after few requests") {
  struct Kind {
    std::string name;
    ScoringMethod method;
    bool several;
  };
  for (const auto& kind :
       {Kind{"sglang", ScoringMethod::sglang_generate, true}, Kind{"vllm", ScoringMethod::vllm_echo, true},
        Kind{"llama-cpp-python", ScoringMethod::completions_echo, false},
        Kind{"llama.cpp", ScoringMethod::llama_cpp_forced, false},
        Kind{"tgi", ScoringMethod::tgi_prefill, false}}) {
    CAPTURE(kind.name);
    const toy_scoring::Place place(kind.name);
    auto scorer = place.scorer();
    const auto& report = scorer.report();
    CHECK(report.method == kind.method);
    CHECK(report.server == kind.name);
    CHECK(report.model == "toy");
    CHECK(report.exact);
    CHECK(report.several_at_once == kind.several);
    CHECK(report.requests == static_cast<int>(place.state->asked.size()));
    // llama.cpp's own is asked for the tokens of each text first.
    CHECK(report.requests <= (kind.name == "llama.cpp" ? 9 : 5));
    CHECK(report.likely.logprob_sum > report.unlikely.logprob_sum);
    CHECK(report.usage.prompt_tokens > 0);

    const auto answer = scorer.score(context, actions, {});
    CHECK(answer.exact);
    CHECK(answer.method == kind.method);
    CHECK(answer.counted);
    CHECK(answer.continuations[1].words == 2);
    check_scores(place, context, answer, actions);
    for (const auto& one : answer.continuations) CHECK_FALSE(one.boundary_merge);
  }
}

TEST_CASE("where a server takes arrays, 200 continuations are one request") {
  std::vector<std::string> many;
  for (int i = 0; i < 200; ++i) many.push_back(" tiling R" + std::to_string(i));
  for (const std::string kind : {"vllm", "sglang"}) {
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    const auto answer = scorer.score(context, many, {});
    check_scores(place, context, answer, many);
    CHECK(answer.requests == (kind == "vllm" ? 1 : 2)); // SGLang is shown the context first
  }
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer({.max_at_once = 64});
  const auto answer = scorer.score(context, many, {});
  check_scores(place, context, answer, many);
  CHECK(answer.requests == 4);

  auto small = place.scorer({.max_echoed_bytes = 10 * (context.size() + 12)});
  const auto pieces = small.score(context, many, {});
  check_scores(place, context, pieces, many);
  CHECK(pieces.requests == 20);
}

TEST_CASE("characters of several bytes are scored with all their tokens") {
  const std::vector<std::string> texts = {" größer α", " naïve – stop", " 平铺", " plain"};
  const std::string before = "Kachelgröße 平:";
  for (const std::string kind : {"sglang", "vllm", "llama-cpp-python", "llama.cpp", "tgi"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    check_scores(place, before, scorer.score(before, texts, {}), texts);
  }
}

TEST_CASE("offsets that are off by a blank do not move the boundary") {
  const toy_scoring::Place place("llama-cpp-python");
  place.state->offset_shift = 1;
  auto scorer = place.scorer();
  check_scores(place, context, scorer.score(context, actions, {}), actions);
  // Half characters have no offsets to be trusted: the context's own tokens decide.
  const std::vector<std::string> texts = {" größer", " x"};
  check_scores(place, "a", scorer.score("a", texts, {}), texts);
}

TEST_CASE("a model that has nothing more to say does not shift its scores") {
  for (const std::string kind : {"vllm", "llama-cpp-python"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    place.state->ends_at_once = true;
    auto scorer = place.scorer({.method = ScoringMethod::completions_echo});
    check_scores(place, context, scorer.score(context, actions, {}), actions);
  }
}

TEST_CASE("completions with one new token do in arrays as they do alone") {
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer({.method = ScoringMethod::completions_echo});
  const auto answer = scorer.score(context, actions, {});
  check_scores(place, context, answer, actions);
  CHECK(answer.requests == 1);
}

TEST_CASE("a token that holds the end of the context and the beginning of an action is scored and told") {
  const std::vector<std::string> texts = {" xor", " stop"};
  for (const std::string kind : {"sglang", "vllm", "llama-cpp-python", "tgi"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    const auto answer = scorer.score(context, texts, {});
    check_scores(place, context, answer, texts);
    CHECK(answer.continuations[0].boundary_merge);
    CHECK_FALSE(answer.continuations[1].boundary_merge);
  }
}

TEST_CASE("a context whose tokens change far before its end is scored from the first that changes") {
  // Seven groups of three digits, all of which shift.
  const std::string number = "n = 123456789012345678901";
  const std::vector<std::string> texts = {"2", " stop"};
  for (const std::string kind : {"sglang", "tgi"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    const auto answer = scorer.score(number, texts, {});
    check_scores(place, number, answer, texts);
    CHECK(answer.continuations[0].boundary_merge);
    CHECK(answer.continuations[0].tokens == 8);
    CHECK_FALSE(answer.continuations[1].boundary_merge);
  }
}

TEST_CASE("what is impossible counts as -50 and is told") {
  for (const std::string kind : {"sglang", "vllm", "tgi", "llama.cpp"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    const auto answer = scorer.score(context, std::vector<std::string>{" a@b", " ab"}, {});
    check_scores(place, context, answer, {" a@b", " ab"});
    CHECK(answer.continuations[0].clamped);
    CHECK(answer.continuations[0].logprob_sum < -50);
    CHECK_FALSE(answer.continuations[1].clamped);
  }
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer();
  place.state->raw_nonfinite = true;
  check_scores(place, context, scorer.score(context, std::vector<std::string>{" a@b"}, {}), {" a@b"});
}

TEST_CASE("choices in another order go by their index") {
  const toy_scoring::Place place("vllm");
  place.state->backwards = true;
  auto scorer = place.scorer();
  check_scores(place, context, scorer.score(context, actions, {}), actions);
}

TEST_CASE("a choice that is left out is asked for once more, by itself") {
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer();
  place.state->drops = 1;
  place.state->dropped = 2;
  const auto answer = scorer.score(context, actions, {});
  check_scores(place, context, answer, actions);
  CHECK(answer.requests == 2);

  place.state->drops = 99;
  place.state->dropped = 0;
  const auto never = scorer.score(context, actions, {});
  CHECK(never.failure == ChatFailure::malformed);
  CHECK(never.continuations.empty());
  CHECK(contains(never.message, "leaves out"));

  const toy_scoring::Place other("sglang");
  auto strict = other.scorer();
  other.state->drops = 1;
  CHECK(strict.score(context, actions, {}).failure == ChatFailure::malformed);
}

TEST_CASE("the probe goes one row down at each failure, and says why") {
  SUBCASE("no echo") {
    const toy_scoring::Place place("vllm");
    place.state->no_echo = true;
    const auto report = place.scorer().report();
    CHECK(report.method == ScoringMethod::labels);
    CHECK_FALSE(report.exact);
    CHECK_FALSE(report.several_at_once);
    REQUIRE(report.rejected.size() == 6);
    CHECK(report.rejected[0].reason == "the server is not sglang");
    CHECK(report.rejected[1].reason == "the prompt is not echoed");
    const auto text = describe(report);
    CHECK(contains(text, "scoring by labels (a choice from a list"));
    CHECK(contains(text, "not vllm_echo: "));
    CHECK(contains(text, "server: vllm, model toy"));
  }
  SUBCASE("a first token that something is said to come before") {
    const toy_scoring::Place place("sglang");
    place.state->first_has_score = true;
    const auto report = place.scorer().report();
    CHECK(report.method == ScoringMethod::labels);
    CHECK(contains(report.rejected[0].reason, "very first token"));
  }
  SUBCASE("scores that mean something else") {
    const toy_scoring::Place place("vllm");
    place.state->hates_paris = true;
    const auto report = place.scorer().report();
    CHECK(contains(report.rejected[1].reason, "not likelier"));
    CHECK(place.scorer({.wants_paris = false}).report().method == ScoringMethod::vllm_echo);
  }
  SUBCASE("scores that move") {
    const toy_scoring::Place place("vllm");
    place.state->drift = -0.02;
    CHECK(contains(place.scorer().report().rejected[1].reason, "asked again, the score moved by 0.02"));
    const toy_scoring::Place steady("vllm");
    steady.state->drift = -0.005;
    const auto report = steady.scorer().report();
    CHECK(report.method == ScoringMethod::vllm_echo);
    CHECK(report.repeat_difference == doctest::Approx(0.005));
  }
  SUBCASE("scores of the wrong tokens") {
    const toy_scoring::Place place("llama-cpp-python");
    place.state->shifted = true;
    auto scorer = place.scorer();
    CHECK(scorer.report().method == ScoringMethod::completions_forced);
    CHECK(scorer.report().exact);
    CHECK(contains(scorer.report().rejected[2].reason, "shifted"));
    check_scores(place, context, scorer.score(context, actions, {}), actions);
    // It shows in the answer only where something was generated.
    const toy_scoring::Place other("vllm");
    other.state->shifted = true;
    CHECK_THROWS_WITH_AS((void)other.scorer({.method = ScoringMethod::completions_echo}),
                         doctest::Contains("the tokens are shifted"), Error);
    place.state->ends_at_once = true;
    CHECK(place.scorer().report().method == ScoringMethod::completions_forced);
    place.state->no_grammar = true;
    CHECK(contains(scorer.score(context, actions, {}).message, "the grammar was not kept"));
    CHECK(place.scorer().report().method == ScoringMethod::labels);
  }
  SUBCASE("TGI without its switch, llama.cpp without grammars") {
    const toy_scoring::Place place("tgi");
    place.state->no_echo = true;
    CHECK(contains(place.scorer().report().rejected[5].reason, "--enable-prefill-logprobs"));
    const toy_scoring::Place other("llama.cpp");
    other.state->no_grammar = true;
    CHECK(contains(other.scorer().report().rejected[3].reason, "the grammar was not kept"));
  }
  SUBCASE("all the way") {
    const toy_scoring::Place place("chat");
    place.state->no_logprobs = true;
    CHECK(place.scorer({.server = "vllm"}).report().method == ScoringMethod::constrained);
    place.state->no_schema = true;
    CHECK(place.scorer({.server = "vllm"}).report().method == ScoringMethod::chat_json);
    place.state->chat_text = "I would rather not.";
    try {
      (void)place.scorer({.server = "vllm"});
      FAIL("nothing can work");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::net_endpoint);
      CHECK(contains(error.what(), "chat_json: the answer chooses nothing of the list"));
      CHECK(contains(error.what(), "constrained: status 400: no response_format here"));
      CHECK(contains(error.what(), "http://toy.test/v1"));
    }
  }
}

TEST_CASE("a server that lists no models is known by its other places") {
  for (const std::string kind : {"tgi", "vllm", "sglang", "llama.cpp"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    place.state->no_models = true;
    const auto report = place.scorer().report();
    CHECK(report.server == kind);
    CHECK(report.exact);
    CHECK(report.models.empty());
    CHECK(report.model == (kind == "tgi" || kind == "sglang" ? "toy" : ""));
  }
}

TEST_CASE("a method that is asked for is the only one that is tried") {
  const toy_scoring::Place place("vllm");
  CHECK(place.scorer({.method = ScoringMethod::labels}).report().rejected.empty());
  place.state->no_echo = true;
  CHECK_THROWS_AS((void)place.scorer({.method = ScoringMethod::vllm_echo}), Error);
}

TEST_CASE("options that mean nothing are refused") {
  const toy_scoring::Place place("vllm");
  for (const auto& wrong : {ScoringOptions{.max_at_once = 0}, ScoringOptions{.rotations = 0},
                            ScoringOptions{.least_label_mass = 2}, ScoringOptions{.choice_share = 0},
                            ScoringOptions{.answers = 0}, ScoringOptions{.answer_tokens = 0}})
    CHECK_THROWS_WITH_AS((void)place.scorer(wrong), doctest::Contains("(ScoringOptions::"), Error);
  CHECK_THROWS_WITH_AS((void)place.scorer({.rotations = 0}),
                       "[mtmc.net.001] the number of rotations is less than 1. Use 1 or more "
                       "(ScoringOptions::rotations)",
                       Error);
  CHECK(place.state->asked.empty());
}

TEST_CASE("a server that is down, or does not let us in, ends the probe at once") {
  const toy_scoring::Place place("vllm");
  place.state->status = 503;
  CHECK_THROWS_WITH_AS((void)place.scorer(), doctest::Contains("status 503: out of order"), Error);
  place.state->status = 401;
  CHECK_THROWS_WITH_AS((void)place.scorer(), doctest::Contains("the address and the key"), Error);
  CHECK(place.state->asked.size() == 2);

  const toy_scoring::Place dies("vllm");
  dies.state->lives = 1;
  CHECK_THROWS_WITH_AS((void)dies.scorer(), doctest::Contains("vllm_echo: no_connection"), Error);
  CHECK(dies.state->asked.size() == 2);

  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_WITH_AS(ContinuationScorer(place.endpoint(), {}, stop.get_token()),
                       doctest::Contains("cancelled"), Error);
}

TEST_CASE("failures of a question are values") {
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer();
  const auto fails_as = [&](int status, const std::string& text) {
    place.state->status = status;
    place.state->error_text = text;
    const auto answer = scorer.score(context, actions, {});
    CHECK(answer.continuations.empty());
    return answer.failure;
  };
  CHECK(fails_as(400, R"({"object":"error","message":"logprobs must be positive"})") ==
        ChatFailure::bad_request);
  CHECK(fails_as(500, R"({"error":"internal"})") == ChatFailure::endpoint);
  CHECK(fails_as(500, R"({"error":{"message":"2 validation errors: prompt"}})") == ChatFailure::bad_request);
  CHECK(fails_as(429, R"({"error":{"message":"slow down"}})") == ChatFailure::endpoint);
  CHECK(fails_as(403, "<html><title>Forbidden</title></html>") == ChatFailure::no_access);
  CHECK(fails_as(400, R"({"error":{"message":"too much","code":"context_length_exceeded"}})") ==
        ChatFailure::too_long);
  CHECK(fails_as(200, R"({"error":{"message":"proxy says no"}})") == ChatFailure::bad_request);
  CHECK(fails_as(200, "<html>") == ChatFailure::malformed);
  CHECK(fails_as(200, "[]") == ChatFailure::malformed);
  CHECK(fails_as(200, R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[1,2]}}]})") ==
        ChatFailure::malformed);

  place.state->status = 0;
  std::stop_source stop;
  stop.request_stop();
  CHECK(scorer.score(context, actions, stop.get_token()).failure == ChatFailure::cancelled);
}

TEST_CASE("every server's way of saying that a text is too long is understood") {
  for (const std::string kind : {"sglang", "vllm", "tgi", "llama.cpp"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer();
    place.state->context_length = 9;
    CHECK(scorer.score(context, actions, {}).failure == ChatFailure::too_long);
  }
}

TEST_CASE("letters give the shares of a list, whatever place an item stands at") {
  const toy_scoring::Place place("chat");
  auto scorer = place.scorer();
  REQUIRE(scorer.report().method == ScoringMethod::labels);
  CHECK(scorer.report().requests == 6); // the models, an echo that is refused, and twice two rotations
  const auto answer = scorer.score(context, actions, {});
  REQUIRE(answer.failure == ChatFailure::none);
  CHECK_FALSE(answer.exact);
  CHECK(sum_of_shares(answer) == doctest::Approx(1));
  double all = 0;
  for (const auto& action : actions) all += place.state->model.weight(action.substr(1));
  for (std::size_t i = 0; i < actions.size(); ++i) {
    CHECK(std::exp(answer.continuations[i].logprob_sum) ==
          doctest::Approx(place.state->model.weight(actions[i].substr(1)) / all).epsilon(1e-9));
    CHECK(answer.continuations[i].tokens == 1);
    CHECK(answer.continuations[i].words == 1);
  }

  // Two equals, and a model that likes the first place: rotated once, they come out equal.
  place.state->place_bias = 3;
  const auto twins = scorer.score(context, std::vector<std::string>{" same", " same"}, {});
  CHECK(std::exp(twins.continuations[0].logprob_sum) == doctest::Approx(0.5));
  auto once = place.scorer({.method = ScoringMethod::labels, .rotations = 1});
  const auto biased = once.score(context, std::vector<std::string>{" same", " same"}, {});
  CHECK(std::exp(biased.continuations[0].logprob_sum) == doctest::Approx(0.75));
}

TEST_CASE("200 items are asked for in pages, and the pages' first ones against each other") {
  const toy_scoring::Place place("chat");
  auto scorer = place.scorer();
  for (const int count : {21, 200, 450}) {
    std::vector<std::string> many;
    double all = 0;
    for (int i = 0; i < count; ++i) {
      many.push_back(" item" + std::to_string(i));
      all += place.state->model.weight(many.back().substr(1));
    }
    const auto answer = scorer.score(context, many, {});
    REQUIRE(answer.continuations.size() == many.size());
    CHECK(sum_of_shares(answer) == doctest::Approx(1));
    for (std::size_t i = 0; i < many.size(); ++i)
      CHECK(std::abs(answer.continuations[i].logprob_sum -
                     std::log(place.state->model.weight(many[i].substr(1)) / all)) < 1e-9);
    if (count == 200) CHECK(answer.requests == 22);
  }
}

TEST_CASE("a model without a chat template is asked for its letters by plain completions") {
  const toy_scoring::Place place("vllm");
  place.state->no_chat = true;
  auto scorer = place.scorer({.method = ScoringMethod::labels});
  const auto answer = scorer.score(context, actions, {});
  CHECK(sum_of_shares(answer) == doctest::Approx(1));
  CHECK(place.state->asked.back().url.ends_with("/v1/completions"));
}

TEST_CASE("letters that are unlikely altogether are not believed") {
  const toy_scoring::Place place("chat");
  auto scorer = place.scorer({.server = "vllm"});
  REQUIRE(scorer.report().method == ScoringMethod::labels);
  place.state->label_mass = 0.3;
  const auto answer = scorer.score(context, actions, {});
  CHECK(answer.method == ScoringMethod::constrained);
  CHECK_FALSE(answer.exact);
  CHECK(sum_of_shares(answer) == doctest::Approx(1));
  place.state->no_schema = true;
  CHECK(scorer.score(context, actions, {}).method == ScoringMethod::chat_json);
  place.state->chat_text = "no";
  const auto failed = scorer.score(context, actions, {});
  CHECK(failed.failure == ChatFailure::malformed);
  CHECK(contains(failed.message, "labels: the letters have the probability 0.3; constrained: "));
}

TEST_CASE("a choice alone becomes a share, several become frequencies") {
  const toy_scoring::Place place("chat");
  place.state->no_logprobs = true;
  auto scorer = place.scorer({.method = ScoringMethod::chat_json});
  place.state->chat_text =
      "<think>{\"action\": 3}</think>\nI take {this}:\n```json\n{\"action\": \"1\"}\n```";
  const auto one = scorer.score(context, actions, {});
  REQUIRE(one.failure == ChatFailure::none);
  CHECK(std::exp(one.continuations[1].logprob_sum) == doctest::Approx(0.925));
  CHECK(std::exp(one.continuations[0].logprob_sum) == doctest::Approx(0.025));

  place.state->chat_text.clear();
  auto several = place.scorer({.method = ScoringMethod::chat_json, .answers = 8});
  place.state->chat_text = R"({"action": 2})";
  const auto votes = several.score(context, actions, {});
  CHECK(std::exp(votes.continuations[2].logprob_sum) == doctest::Approx(8.5 / 10));
  CHECK(std::exp(votes.continuations[3].logprob_sum) == doctest::Approx(0.5 / 10));
  CHECK(place.bodies("/chat/completions").back()["n"] == 8);

  place.state->chat_text = R"({"action": 4})"; // there are four, from 0 on
  CHECK(scorer.score(context, actions, {}).failure == ChatFailure::malformed);
}

TEST_CASE("an adapter is named in each server's way") {
  const auto sent = [](const std::string& kind, const std::string& adapter, std::string_view path) {
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer({.adapter = adapter});
    (void)scorer.score(context, actions, {});
    return place.bodies(path).back();
  };
  CHECK(sent("vllm", "tuned", "/completions")["model"] == "tuned");
  CHECK(sent("sglang", "tuned", "/generate")["lora_path"] == "tuned");
  CHECK(sent("tgi", "tuned", "/generate")["parameters"]["adapter_id"] == "tuned");
  CHECK(sent("llama.cpp", "policy.gguf", "/completion")["lora"][0]["id"] == 4);
  const toy_scoring::Place place("llama.cpp");
  CHECK_THROWS_WITH_AS((void)place.scorer({.adapter = "other"}), doctest::Contains("no adapter"), Error);
}

TEST_CASE("llama.cpp is made to write the tokens of the tokenizer, and no more of them") {
  const toy_scoring::Place place("llama.cpp");
  auto scorer = place.scorer();
  const std::vector<std::string> texts = {R"( set "a\b")"};
  check_scores(place, context, scorer.score(context, texts, {}), texts);
  const auto tokens = place.state->model.tokens(texts[0]);
  const auto asked = place.bodies("/completion").back();
  CHECK(asked["n_predict"] == tokens.size());
  CHECK(asked["prompt"].size() == place.state->model.tokens(context).size());
  CHECK(asked["cache_prompt"] == true);
  std::string grammar = "root ::=";
  for (const auto& token : tokens) grammar += " <[" + std::to_string(toy_scoring::ToyModel::id(token)) + "]>";
  CHECK(asked["grammar"] == grammar);
}

TEST_CASE("a token that spans the boundary is forced as a whole") {
  const std::vector<std::string> texts = {" x tile", " tile"};
  for (const std::string kind : {"llama.cpp", "llama-cpp-python"}) {
    CAPTURE(kind);
    const toy_scoring::Place place(kind);
    auto scorer = place.scorer({.method = kind == "llama.cpp" ? ScoringMethod::llama_cpp_forced
                                                              : ScoringMethod::completions_forced});
    const auto answer = scorer.score("Action:", texts, {});
    check_scores(place, "Action:", answer, texts);
    CHECK(answer.continuations[0].boundary_merge);
    CHECK_FALSE(answer.continuations[1].boundary_merge);
  }
}

TEST_CASE("llama-cpp-python is not sent a grammar that would end it") {
  const toy_scoring::Place place("llama-cpp-python");
  auto scorer = place.scorer({.method = ScoringMethod::completions_forced});
  const auto answer = scorer.score("größer:", std::vector<std::string>{" plain", " ö"}, {});
  CHECK(answer.failure == ChatFailure::malformed);
  CHECK(contains(answer.message, "beyond ASCII"));
  CHECK(scorer.score("größer:", std::vector<std::string>{" plain"}, {}).exact);
}

TEST_CASE("llama-cpp-python without logits_all is asked to choose") {
  const toy_scoring::Place place("llama-cpp-python");
  place.state->no_logprobs = true;
  const auto report = place.scorer().report();
  CHECK(report.method == ScoringMethod::chat_json);
  CHECK(contains(report.rejected[2].reason, "logits_all=False"));
  CHECK(contains(report.rejected[4].reason, "logits_all=False"));
}

TEST_CASE("nothing to score costs nothing") {
  const toy_scoring::Place place("vllm");
  auto scorer = place.scorer();
  const auto before = place.state->asked.size();
  CHECK(scorer.score(context, {}, {}).continuations.empty());
  CHECK(place.state->asked.size() == before);
}
