#include <mtmc/actions/action_space.hpp>
#include <mtmc/policy/single_pass.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;

TEST_CASE("all legal actions are one step, each type explained once, and then it is over") {
  auto seen = observed::with_seconds(1e-3);
  auto first = observed::action("tiling", "f/i");
  first.verb = "tiling";
  first.label = "the i loop of f";
  first.first_line = 3;
  auto second = first;
  second.label = "the j loop of f";
  const std::vector<Action> legal{first, second, Action::stop()};
  const SinglePassPolicy policy;
  const auto proposed = policy.propose(seen, legal, {});
  REQUIRE(proposed.size() == 1);
  CHECK(proposed[0].kind == Action::Kind::free_text);
  const auto& text = proposed[0].free_text;
  CHECK(text.find("tiling the i loop of f in line 3") != std::string::npos);
  CHECK(text.find("tiling the j loop of f") != std::string::npos);
  const auto intent = ActionSpace::extended().find("tiling")->intent;
  const auto explained = text.find(intent);
  CHECK(explained != std::string::npos);
  CHECK(text.find(intent, explained + 1) == std::string::npos);
  CHECK(text.find("stop") == std::string::npos);

  seen.step = 1;
  CHECK(policy.propose(seen, legal, {}).empty());
  seen.step = 0;
  CHECK(policy.propose(seen, std::vector<Action>{Action::stop()}, {}).empty());
  CHECK(policy.distribution(seen, std::vector<Action>{proposed[0], Action::stop()}, {}).probabilities ==
        std::vector<double>{1, 0});
}
