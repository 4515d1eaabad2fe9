#include <mtmc/loop/budget.hpp>

#include <doctest/doctest.h>

using mtmc::Budget;
using mtmc::exhausted;
using mtmc::Spent;
using mtmc::StopReason;

TEST_CASE("a budget without limits leaves only the number of steps") {
  CHECK(exhausted(8, {}, {.steps = 7, .seconds = 1e9, .tokens = 1 << 30, .cost = 1e9, .idle_steps = 7}) ==
        std::nullopt);
  CHECK(exhausted(8, {}, {.steps = 8}) == StopReason::step_limit);
  CHECK(exhausted(0, {}, {}) == StopReason::step_limit);
}

TEST_CASE("each limit has its reason, and is reached when it is spent") {
  CHECK(exhausted(8, {.seconds = 2}, {.seconds = 1.99}) == std::nullopt);
  CHECK(exhausted(8, {.seconds = 2}, {.seconds = 2}) == StopReason::time);
  CHECK(exhausted(8, {.tokens = 100}, {.tokens = 100}) == StopReason::tokens);
  CHECK(exhausted(8, {.cost = 0.5}, {.cost = 0.6}) == StopReason::cost);
  CHECK(exhausted(8, {.patience = 3}, {.steps = 5, .idle_steps = 2}) == std::nullopt);
  CHECK(exhausted(8, {.patience = 3}, {.steps = 5, .idle_steps = 3}) == StopReason::patience);
}

TEST_CASE("reasons have stable names") {
  CHECK(to_string(StopReason::waiting_for_answers) == "waiting_for_answers");
  CHECK(mtmc::parse_enum<StopReason>("no_legal_action") == StopReason::no_legal_action);
  CHECK(enum_names(StopReason{}).size() == 10);
}
