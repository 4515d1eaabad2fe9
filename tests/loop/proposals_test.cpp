// Policies with actions of their own.
#include <mtmc/core/any.hpp>
#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "toy_world.hpp"

namespace {

/// Says in its own words what to do, three times, and remembers what it was offered.
struct Proposer {
  int* asked;
  std::vector<std::size_t>* offered;
  int proposals = 3;

  [[nodiscard]] std::vector<mtmc::Action>
  propose(const mtmc::Observation& seen, std::span<const mtmc::Action> legal, std::stop_token) const {
    ++*asked;
    offered->push_back(legal.size());
    if (seen.step >= proposals) return {};
    mtmc::Action action;
    action.kind = mtmc::Action::Kind::free_text;
    action.free_text = "improve it, idea " + std::to_string(seen.step);
    return {action};
  }
  [[nodiscard]] mtmc::ActionDistribution
  distribution(const mtmc::Observation&, std::span<const mtmc::Action> legal, std::stop_token) const {
    mtmc::ActionDistribution answer;
    answer.probabilities.assign(legal.size(), 0);
    answer.probabilities.front() = 1;
    return answer;
  }
};
static_assert(mtmc::check_policy<Proposer>() && mtmc::ProposesActions<Proposer>);
static_assert(!mtmc::ProposesActions<toy::Policy>);

struct Desk {
  int asked = 0;
  std::vector<std::size_t> offered;
  mtmc::LoopOptions options{.max_steps = 8, .action_space = toy::space()};

  template <class P> [[nodiscard]] mtmc::Result play(P policy) {
    mtmc::Loop loop{std::move(policy), toy::Coder{.mistakes = 0, .refusals = 0}, toy::Finder{},
                    toy::Evaluator{}, options};
    return loop.optimize(toy::task());
  }
  [[nodiscard]] Proposer proposer() { return {&asked, &offered}; }
};

} // namespace

TEST_CASE("what a policy proposes is done in the place of the action space's, until it proposes nothing") {
  Desk desk;
  const auto result = desk.play(desk.proposer());
  CHECK(result.stop_reason == mtmc::StopReason::stop_action);
  REQUIRE(result.trajectory.size() == 4);
  CHECK(result.trajectory.back().action == mtmc::Action::stop());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& step = result.trajectory[i];
    CHECK(step.action.key() == "free|improve it, idea " + std::to_string(i));
    CHECK(step.legal_actions == std::vector<std::string>{step.action.key(), "stop"});
  }
  CHECK(desk.asked == 4);
  CHECK(desk.offered.front() == toy::space().types.size() * 2 + 1);
}

TEST_CASE("what a policy's answers cost is part of what the run cost, and of its budget") {
  struct Costly : toy::Policy {
    [[nodiscard]] mtmc::ActionDistribution distribution(const mtmc::Observation& observation,
                                                        std::span<const mtmc::Action> legal,
                                                        std::stop_token end) const {
      auto answer = toy::Policy::distribution(observation, legal, std::move(end));
      answer.usage.prompt_tokens = 1000;
      answer.usage.cost = 1;
      return answer;
    }
  };
  const mtmc::TemporaryFolder folder;
  Desk desk;
  desk.options.output = folder.path();
  const auto free = Desk{}.play(toy::Policy{});
  const auto whole = desk.play(Costly{});
  const auto decisions = static_cast<double>(whole.steps);
  CHECK(whole.usage.cost == doctest::Approx(free.usage.cost + decisions));
  desk.options.resume = true;
  CHECK(desk.play(Costly{}).usage == whole.usage);
  Desk poor;
  poor.options.budget.cost = 2.5;
  CHECK(poor.play(Costly{}).stop_reason == mtmc::StopReason::cost);
}

TEST_CASE("a type-erased policy proposes exactly if what it holds does") {
  Desk desk;
  CHECK(desk.play(mtmc::AnyPolicy{desk.proposer()}).trajectory.size() == 4);
  Desk plain;
  const auto result = plain.play(mtmc::AnyPolicy{toy::Policy{}});
  REQUIRE_FALSE(result.trajectory.empty());
  CHECK(result.trajectory.front().legal_actions.size() > 2);
}

TEST_CASE("a policy with actions of its own needs none of the action space") {
  Desk desk;
  desk.options.action_space = {};
  CHECK(desk.play(desk.proposer()).trajectory.size() == 4);
  CHECK(desk.play(toy::Policy{}).stop_reason == mtmc::StopReason::no_legal_action);
}

TEST_CASE("a resumed run takes the proposals from its journal and asks for no others") {
  const mtmc::TemporaryFolder folder;
  Desk desk;
  desk.options.output = folder.path();
  const auto whole = desk.play(desk.proposer());
  const auto path = mtmc::journal_path(whole.folder);
  const auto journal = mtmc::read_file(path);
  for (const double part : {0.3, 0.6, 0.9}) {
    // As if it had been killed there.
    const auto end = journal.find('\n', static_cast<std::size_t>(part * static_cast<double>(journal.size())));
    mtmc::write_file_atomic(path, journal.substr(0, end + 1));
    Desk again;
    again.options = desk.options;
    again.options.resume = true;
    CHECK(toy::text_of(again.play(again.proposer())) == toy::text_of(whole));
    CHECK(again.asked < desk.asked);
  }
  Desk finished;
  finished.options = desk.options;
  finished.options.resume = true;
  CHECK(toy::text_of(finished.play(finished.proposer())) == toy::text_of(whole));
  CHECK(finished.asked == 0);
}
