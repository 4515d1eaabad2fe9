// A server that scores continuations: its answers stand one after the other, in parts; the first part names
// it.
#include <mtmc/net/scoring.hpp>

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

/// Gives the parts of a text in turn, and again from the first.
class AnswersInTurn {
public:
  explicit AnswersInTurn(std::string_view text) : state_(std::make_shared<State>()) {
    while (!text.empty() && state_->answers.size() < max_answers)
      state_->answers.emplace_back(take_part(text));
    if (state_->answers.empty()) state_->answers.emplace_back();
  }

  [[nodiscard]] mtmc::HttpResponse send(const mtmc::HttpRequest&, const mtmc::BodySink&, mtmc::Deadline,
                                        std::stop_token) {
    mtmc::HttpResponse response;
    response.status = 200;
    response.body = state_->answers[state_->next++ % state_->answers.size()];
    return response;
  }

private:
  static constexpr std::size_t max_answers = 16;
  struct State {
    std::vector<std::string> answers;
    std::size_t next = 0;
  };
  std::shared_ptr<State> state_;
};

void check(const mtmc::ScoringAnswer& answer, std::size_t asked) {
  if (answer.failure != mtmc::ChatFailure::none) {
    require(answer.continuations.empty() && !answer.message.empty(), "a failure has words and no scores");
    return;
  }
  require(answer.continuations.size() == asked, "every continuation has a score");
  for (const auto& score : answer.continuations)
    require(!std::isnan(score.logprob_sum) && score.tokens >= 0, "a score is a number");
}

} // namespace

void scoring(std::string_view input) {
  auto rest = input;
  const std::string server(take_part(rest));
  mtmc::EndpointOptions where;
  where.base_url = "http://127.0.0.1/v1";
  where.model = "m";
  where.retries.max_retries = 0;
  accepts([&] {
    mtmc::ContinuationScorer scorer(mtmc::Endpoint(AnswersInTurn(rest), where), {.server = server});
    const std::array<std::string, 2> continuations{" Paris", " banana"};
    check(scorer.score("The capital of France is", continuations, {}), continuations.size());
  });
  for (const auto& entry : mtmc::enum_names(mtmc::ScoringMethod{}))
    accepts([&] {
      mtmc::ContinuationScorer scorer(mtmc::Endpoint(AnswersInTurn(rest), where),
                                      {.method = entry.value, .server = server, .wants_paris = false});
      const std::array<std::string, 2> continuations{" Paris", " banana"};
      check(scorer.score("The capital of France is", continuations, {}), continuations.size());
    });
}

} // namespace mtmc_fuzz
