#include <mtmc/core/any.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/policy/action_scores.hpp>
#include <mtmc/policy/http.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "../core/sample_nouns.hpp"
#include "../net/fake_scoring_servers.hpp"

using namespace mtmc;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// `count` actions on different regions, and `stop`.
std::vector<Action> actions(int count, const std::string& label = "the loop of f") {
  std::vector<Action> legal;
  for (int i = 0; i < count; ++i) {
    Action action;
    action.kind = Action::Kind::optimize;
    action.optimization = action.verb = i % 2 == 0 ? "tiling" : "fusing";
    action.region = "f/" + std::to_string(i);
    action.label = label;
    action.first_line = action.last_line = i + 1;
    legal.push_back(action);
  }
  legal.push_back(Action::stop());
  return legal;
}

/// A card with a short prompt.
PolicyCard short_card() {
  PolicyCard card;
  card.prompt_template = "{kernel}\n{history}\nNext step:";
  return card;
}

HttpPolicyOptions with_card(PolicyCard card) { return {.card = std::move(card)}; }

/// The distribution by the toy model's own numbers.
std::vector<double> expected(const toy_scoring::Place& place, const PolicyPrompt& prompt,
                             ScoreNormalization normalization, double temperature) {
  std::vector<double> weights;
  for (const auto& text : prompt.continuations) {
    const auto score = place.state->model.expected(prompt.context, text);
    double logit = score.logprob_sum;
    if (normalization == ScoreNormalization::token_mean) logit /= score.tokens;
    if (normalization == ScoreNormalization::word_mean)
      logit /= static_cast<double>(std::count(text.begin(), text.end(), ' ')); // one before each word
    weights.push_back(std::exp(logit / temperature));
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

} // namespace

TEST_CASE("known log-probabilities become known probabilities") {
  // Two actions: -1 -1 (2 tokens, 1 word) and -0.5 -0.5 -0.5 -0.9 (4 tokens, 3 words).
  std::vector<ScoredContinuation> scores(2);
  scores[0] = {.logprob_sum = -2, .tokens = 2, .words = 1};
  scores[1] = {.logprob_sum = -2.4, .tokens = 4, .words = 3};
  const auto first = [&](ScoreNormalization normalization, double temperature) {
    const auto probabilities = action_probabilities(scores, normalization, temperature);
    CHECK(probabilities[0] + probabilities[1] == doctest::Approx(1));
    return probabilities[0];
  };
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(std::abs(first(ScoreNormalization::sum, 1) - logistic(-2 + 2.4)) < 1e-12);
  CHECK(std::abs(first(ScoreNormalization::token_mean, 1) - logistic(-1 + 0.6)) < 1e-12);
  CHECK(std::abs(first(ScoreNormalization::word_mean, 1) - logistic(-2 + 0.8)) < 1e-12);
  CHECK(std::abs(first(ScoreNormalization::sum, 0.5) - logistic(0.8)) < 1e-12);
  CHECK(first(ScoreNormalization::sum, 1e-6) == doctest::Approx(1));

  scores[1].logprob_sum = -1e5; // no overflow, no NaN
  CHECK(first(ScoreNormalization::sum, 1) == 1);
  CHECK(action_probabilities({}, ScoreNormalization::sum).empty());
  CHECK(normalized_score({.logprob_sum = -3}, ScoreNormalization::token_mean) == -3);
}

TEST_CASE("the policy is the softmax of the model's own scores, in all three normalizations") {
  const auto seen = sample::observation();
  const auto legal = actions(5);
  for (const auto normalization :
       {ScoreNormalization::sum, ScoreNormalization::token_mean, ScoreNormalization::word_mean})
    for (const std::string kind : {"vllm", "sglang", "llama.cpp", "llama-cpp-python", "tgi"}) {
      CAPTURE(to_string(normalization));
      CAPTURE(kind);
      auto card = short_card();
      card.normalization = normalization;
      card.temperature = 0.75;
      const toy_scoring::Place place(kind);
      HttpPolicy policy(place.endpoint(), with_card(card));
      const auto answer = policy.distribution(seen, legal, {});
      CHECK(answer.exact);
      CHECK(contains(answer.rationale, to_string(policy.report().method)));
      CHECK(contains(answer.rationale, to_string(normalization)));
      const auto wanted = expected(place, policy_prompt(card, seen, legal), normalization, 0.75);
      REQUIRE(answer.probabilities.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(std::abs(answer.probabilities[i] - wanted[i]) < 1e-9);
    }
}

TEST_CASE("200 actions are one request where the server takes arrays") {
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint(), with_card(short_card()));
  const auto before = policy.requests();
  const auto answer = policy.distribution(sample::observation(), actions(199), {});
  CHECK(answer.probabilities.size() == 200);
  CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) == doctest::Approx(1));
  CHECK(policy.requests() == before + 1);
  CHECK(policy.requests() == static_cast<int>(place.state->asked.size()));
}

TEST_CASE("actions of equal text have equal probabilities and are sent once") {
  auto legal = actions(3);
  for (auto& action : legal) action.first_line = action.last_line = 7;
  legal[1].verb = "tiling";
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint());
  const auto answer = policy.distribution(sample::observation(), legal, {});
  CHECK(place.bodies("/completions").back()["prompt"].size() == 2);
  CHECK(answer.probabilities[0] == answer.probabilities[1]);
  CHECK(answer.probabilities[0] == answer.probabilities[2]);

  PolicyCard card;
  card.region_names = RegionNames::legend;
  HttpPolicy with_numbers(place.endpoint(), with_card(card));
  (void)with_numbers.distribution(sample::observation(), legal, {});
  CHECK(place.bodies("/completions").back()["prompt"].size() == 4);
}

TEST_CASE("names of any script are scored") {
  const toy_scoring::Place place("sglang");
  HttpPolicy policy(place.endpoint());
  auto seen = sample::observation();
  seen.task.summary = "Größe × 大小";
  const auto legal = actions(2, "the größe-Schleife 循环");
  const auto answer = policy.distribution(seen, legal, {});
  const auto wanted =
      expected(place, policy_prompt(policy.card(), seen, legal), ScoreNormalization::token_mean, 1);
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(answer.probabilities[i] - wanted[i]) < 1e-9);
}

TEST_CASE("a single legal action costs nothing") {
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint());
  const auto before = place.state->asked.size();
  const auto answer = policy.distribution(sample::observation(), actions(0), {});
  CHECK(answer.probabilities == std::vector<double>{1});
  CHECK(answer.exact);
  CHECK(place.state->asked.size() == before);
}

TEST_CASE("the same question is answered from memory, another is not") {
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint(), {.card = short_card(), .remembered_questions = 2});
  auto seen = sample::observation();
  const auto legal = actions(3);
  const auto first = policy.distribution(seen, legal, {});
  CHECK(first.usage.prompt_tokens > 0);
  const auto again = [&] { return policy.distribution(seen, legal, {}).probabilities; };
  const auto asked = place.state->asked.size();
  CHECK(again() == first.probabilities);
  CHECK(place.state->asked.size() == asked);
  // Other actions, another state.
  (void)policy.distribution(seen, actions(4), {});
  CHECK(place.state->asked.size() == asked + 1);
  seen.step += 1;
  (void)policy.distribution(seen, legal, {});
  CHECK(place.state->asked.size() == asked + 2);
  // Two are remembered: the first question is forgotten by now.
  seen.step -= 1;
  CHECK(again() == first.probabilities);
  CHECK(place.state->asked.size() == asked + 3);
}

TEST_CASE("usage counts the tokens that the server counts, those of the start included") {
  const toy_scoring::Place place("llama.cpp");
  HttpPolicy policy(place.endpoint());
  const auto start = policy.usage();
  CHECK(start.prompt_tokens > 0);
  const auto seen = sample::observation();
  const auto legal = actions(2);
  (void)policy.distribution(seen, legal, {});
  const auto prompt = policy_prompt(policy.card(), seen, legal);
  const auto tokens = static_cast<std::int64_t>(place.state->model.tokens(prompt.context).size());
  CHECK(policy.usage().prompt_tokens - start.prompt_tokens == 3 * tokens);
}

TEST_CASE("a choice from a list is marked as such") {
  const toy_scoring::Place place("chat");
  HttpPolicy policy(place.endpoint());
  const auto answer = policy.distribution(sample::observation(), actions(3), {});
  CHECK_FALSE(answer.exact);
  CHECK(contains(answer.rationale, "labels, a choice from a list"));
  CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) == doctest::Approx(1));
}

TEST_CASE("a prompt that is too long loses its history, then its regions, and then it is an error") {
  auto seen = sample::observation();
  const auto legal = actions(2);
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint(), {.remembered_questions = 0});
  const auto length = [&](PromptCut cut) {
    const auto prompt = policy_prompt(policy.card(), seen, legal, cut);
    std::size_t longest = 0;
    for (const auto& text : prompt.continuations)
      longest = std::max(longest, place.state->model.tokens(prompt.context + text).size());
    return longest;
  };
  const auto sent = [&] {
    const auto before = place.state->asked.size();
    const auto answer = policy.distribution(seen, legal, {});
    CHECK(std::accumulate(answer.probabilities.begin(), answer.probabilities.end(), 0.0) ==
          doctest::Approx(1));
    return std::pair(place.state->asked.size() - before, answer.rationale);
  };
  REQUIRE(length(PromptCut::regions) < length(PromptCut::history));
  REQUIRE(length(PromptCut::history) < length(PromptCut::nothing));
  place.state->context_length = length(PromptCut::nothing);
  CHECK(sent().first == 1);
  place.state->context_length = length(PromptCut::history);
  const auto [history_requests, history_reason] = sent();
  CHECK(history_requests == 2);
  CHECK(history_reason.ends_with("history left out"));
  place.state->context_length = length(PromptCut::regions);
  const auto [regions_requests, regions_reason] = sent();
  CHECK(regions_requests == 3);
  CHECK(regions_reason.ends_with("history and regions left out"));

  place.state->context_length = 5;
  const auto before = place.state->asked.size();
  CHECK_THROWS_WITH_AS((void)policy.distribution(seen, legal, {}), doctest::Contains("longer context"),
                       Error);
  CHECK(place.state->asked.size() == before + 3);
  // With nothing to leave out, nothing is asked again.
  seen.history.clear();
  seen.structure.regions.clear();
  CHECK_THROWS_AS((void)policy.distribution(seen, legal, {}), Error);
  CHECK(place.state->asked.size() == before + 4);
}

TEST_CASE("an endpoint that fails is an error with what was tried and what to do") {
  const toy_scoring::Place place("vllm");
  HttpPolicy policy(place.endpoint());
  const auto what = [&](int status) -> std::string {
    place.state->status = status;
    try {
      (void)policy.distribution(sample::observation(), actions(3), {});
    } catch (const Error& error) {
      CHECK(error.id() == error_id::net_endpoint);
      return error.what();
    }
    return "";
  };
  CHECK(contains(what(500), "vllm_echo: status 500: out of order"));
  CHECK(contains(what(500), "resume the run"));
  CHECK(contains(what(500), "http toy, vllm_echo"));
  CHECK(contains(what(400), "choose another method (ScoringOptions::method)"));
  CHECK(contains(what(401), "key"));

  place.state->status = 0; // nothing of that is remembered
  CHECK(policy.distribution(sample::observation(), actions(3), {}).exact);

  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_WITH_AS((void)policy.distribution(sample::observation(), actions(5), stop.get_token()),
                       doctest::Contains("cancelled"), Error);
}

TEST_CASE("a card of another model, or of another chat template, is refused") {
  PolicyCard card;
  card.model = "other";
  const toy_scoring::Place place("llama.cpp");
  CHECK_THROWS_WITH_AS(HttpPolicy(place.endpoint(), with_card(card)),
                       doctest::Contains("the card is for the model \"other\", the server has \"toy\""),
                       Error);
  card.model = "toy";
  card.chat_template_hash = sha256_hex("another");
  CHECK_THROWS_WITH_AS(HttpPolicy(place.endpoint(), with_card(card)),
                       doctest::Contains("field \"chat_template_hash\""), Error);
  card.chat_template_hash = sha256_hex("{{m}}");
  CHECK(HttpPolicy(place.endpoint(), with_card(card)).report().exact);
  card.prompt_template = "{nothing}:";
  const auto before = place.state->asked.size();
  CHECK_THROWS_WITH_AS(HttpPolicy(place.endpoint(), with_card(card)), doctest::Contains("{nothing}"), Error);
  CHECK(place.state->asked.size() == before);
}

TEST_CASE("the card's adapter and method are used, and the identity tells all that changes an answer") {
  PolicyCard card;
  card.adapter = "tuned";
  card.method = ScoringMethod::completions_echo;
  const toy_scoring::Place place("vllm");
  const HttpPolicy policy(place.endpoint(), with_card(card));
  CHECK(place.bodies("/completions").back()["model"] == "tuned");
  CHECK(place.bodies("/completions").back()["max_tokens"] == 1);
  const auto identity = policy.identity();
  CHECK(identity.starts_with("http toy with tuned, completions_echo, token_mean, card "));
  card.history = 2;
  CHECK(HttpPolicy(place.endpoint(), with_card(card)).identity() != identity);
}

TEST_CASE("any policy can hold it") {
  const toy_scoring::Place place("vllm");
  AnyPolicy policy = HttpPolicy(place.endpoint(), with_card(paper_policy_card()));
  CHECK(policy.concurrency_limit() == 1);
  CHECK(contains(policy.identity(), ", sum, card "));
  CHECK(policy.distribution(sample::observation(), actions(3), {}).exact);
}
