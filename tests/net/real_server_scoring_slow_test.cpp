#include <mtmc/net/scoring.hpp>
#include <mtmc/policy/http.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "real_server/endpoint.hpp"
#include "real_server/real_server.hpp"

using namespace mtmc;
using real_server::Server;

namespace {

/// A server of the one kind or the other, with the one model or the other.
struct Kind {
  bool own = false;
  bool begin_token = true;

  [[nodiscard]] std::vector<std::string> options() const {
    std::vector<std::string> options;
    if (own) options.emplace_back("--own-server");
    if (!begin_token) options.emplace_back("--no-begin-token");
    return options;
  }
  [[nodiscard]] std::string name() const {
    return std::string(own ? "llama.cpp" : "llama-cpp-python") + (begin_token ? "" : " without begin token");
  }
  [[nodiscard]] std::string model() const {
    return begin_token ? "model.gguf" : "model-without-begin-token.gguf";
  }
};

/// What the policy asks with the paper's card on a real kernel.
struct Question {
  Observation seen = real_server::observation("layer_norm");
  std::vector<Action> legal = real_server::legal_actions(seen);
  PolicyPrompt prompt = policy_prompt(paper_policy_card(), seen, legal);

  /// Those of the actions, and more until there are 24.
  [[nodiscard]] std::vector<std::string> continuations() const {
    auto all = prompt.continuations;
    for (int line = 1; all.size() < 24; ++line)
      all.push_back(" fusing the loops of f in line " + std::to_string(7 * line) + " to " +
                    std::to_string(8 * line));
    return all;
  }
};

/// The library's own sums.
std::vector<double> sums(const Kind& kind, const std::string& context,
                         const std::vector<std::string>& continuations) {
  const auto expected =
      real_server::expected_scores({{{"context", context}, {"continuations", continuations}}}, kind.model());
  std::vector<double> sums;
  for (const auto& one : expected[0]["continuations"]) sums.push_back(one["sum"]);
  return sums;
}

/// The scores of a scorer that was told this method, or none, against the library's, which are returned.
std::vector<double> check_scores(const Server& server, const Kind& kind, std::optional<ScoringMethod> told,
                                 ScoringMethod used, const std::string& context,
                                 const std::vector<std::string>& continuations) {
  ContinuationScorer scorer(real_server::endpoint(server), {.method = told, .wants_paris = false});
  CHECK(scorer.report().method == used);
  CHECK(scorer.report().server == (kind.own ? "llama.cpp" : "llama-cpp-python"));
  const auto answer = scorer.score(context, continuations, {});
  INFO(answer.message);
  REQUIRE(answer.failure == ChatFailure::none);
  REQUIRE(answer.continuations.size() == continuations.size());
  CHECK(answer.exact);
  CHECK(answer.counted);
  CHECK(answer.usage.prompt_tokens > 0);
  const auto expected = sums(kind, context, continuations);
  double largest = 0;
  for (std::size_t i = 0; i < continuations.size(); ++i)
    largest = std::max(largest, std::abs(answer.continuations[i].logprob_sum - expected[i]));
  CHECK(largest < 1e-3);
  MESSAGE(kind.name(), ", ", to_string(used), ": ", continuations.size(), " continuations of ",
          context.size(), " bytes, ", answer.requests, " requests, ", answer.usage.seconds,
          " s, largest difference ", largest);
  return expected;
}

/// The policy's probabilities against the softmax of the library's sums, by their logarithms, as a random
/// model finds one action all but certain: the shortest.
void check_policy(const Server& server, const Kind& kind, const Question& question,
                  std::vector<double> expected) {
  HttpPolicy policy(real_server::endpoint(server),
                    {.card = paper_policy_card(), .scoring = {.wants_paris = false}});
  const auto answer = policy.distribution(question.seen, question.legal, {});
  CHECK(answer.exact);
  expected.resize(question.prompt.continuations.size());
  const double highest = *std::max_element(expected.begin(), expected.end());
  double sum = 0;
  for (const double one : expected) sum += std::exp(one - highest);
  REQUIRE(answer.probabilities.size() == expected.size());
  REQUIRE(expected.size() > 3);
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest,
                       std::abs(std::log(answer.probabilities[i]) - (expected[i] - highest - std::log(sum))));
  CHECK(largest < 1e-3);
  MESSAGE(kind.name(), ", policy: ", expected.size(), " actions, ", policy.usage().prompt_tokens,
          " prompt tokens, largest difference of their logarithms ", largest);
}

} // namespace

TEST_CASE("the echo of llama-cpp-python carries the log-probabilities that the library computes") {
  const Kind kind;
  const auto server = Server::start(kind.options());
  if (!server) return;
  // The time of an echo grows with the square of the text.
  const Question question{.seen = real_server::observation("gemm")};
  auto continuations = question.continuations();
  continuations.resize(20);
  continuations.emplace_back(" größer, 平铺");
  (void)check_scores(*server, kind, {}, ScoringMethod::completions_echo, question.prompt.context,
                     continuations);
}

TEST_CASE("so does its grammar of tokens, also where a model has no begin token and the echo is wrong") {
  for (const Kind kind : {Kind{.begin_token = true}, Kind{.begin_token = false}}) {
    CAPTURE(kind.name());
    const auto server = Server::start(kind.options());
    if (!server) return;
    const Question question;
    constexpr auto method = ScoringMethod::completions_forced;
    const auto expected = check_scores(*server, kind, kind.begin_token ? std::optional(method) : std::nullopt,
                                       method, question.prompt.context, question.continuations());
    // A token that spans the boundary.
    (void)check_scores(*server, kind, method, method, "for (int i = 0; i < N; +", {"+i) out[i]", "+j)"});
    if (kind.begin_token) continue;
    check_policy(*server, kind, question, expected);
    const auto echo = [&] {
      (void)ContinuationScorer(real_server::endpoint(*server),
                               {.method = ScoringMethod::completions_echo, .wants_paris = false});
    };
    CHECK_THROWS_WITH_AS(echo(), doctest::Contains("no begin token"), Error);
  }
}

TEST_CASE("a grammar of tokens makes llama.cpp's own server score continuations as the library does") {
  for (const Kind kind : {Kind{.own = true, .begin_token = true}, Kind{.own = true, .begin_token = false}}) {
    CAPTURE(kind.name());
    const auto server = Server::start(kind.options());
    if (!server) return;
    const Question question;
    constexpr auto method = ScoringMethod::llama_cpp_forced;
    auto continuations = question.continuations();
    // Characters of several tokens.
    continuations.emplace_back(" größer, 平铺");
    const auto expected = check_scores(*server, kind, {}, method, question.prompt.context, continuations);
    (void)check_scores(*server, kind, {}, method, "for (int i = 0; i < N; +", {"+i) out[i]", "+j)"});
    check_policy(*server, kind, question, expected);
  }
}
