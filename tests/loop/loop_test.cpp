#include <mtmc/core/any.hpp>

#include <doctest/doctest.h>

#include "scripted_parts.hpp"

using mtmc::DraftFailure;
using mtmc::StopReason;
using mtmc::Verdict;
using scripted::Stage;
using Deeds = std::vector<std::string>;

TEST_CASE("the loop goes on from what is faster and reports the last comparison with the start") {
  Stage stage;
  stage.wants({"alpha", "beta", "gamma"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 0.5}, {"gamma#0", 3}};
  stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
    // Only the closing comparison is between these two.
    if (request.incumbent && toy::deeds(*request.incumbent).empty() &&
        toy::deeds(request.candidate).size() == 2)
      evaluation.speed_up->value = 5.5, evaluation.sizes[0].incumbent_seconds = 0.25;
  };
  const auto result = stage.run();
  CHECK(result.start_seconds() == 0.25); // as timed together, not alone
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0", "gamma#0"});
  CHECK(result.improved());
  CHECK(result.measured);
  CHECK(result.speed_up.value == 5.5);
  CHECK(result.evaluation.speed_up == result.speed_up);
  CHECK(result.stop_reason == StopReason::stop_action);
  CHECK(result.steps == 4); // alpha, beta, gamma, and beta once more on top
  REQUIRE(result.history.size() == 4);
  CHECK(result.history[0].kept);
  CHECK(result.history[0].speed_up->value == doctest::Approx(2));
  CHECK_FALSE(result.history[1].kept);
  CHECK(result.history[1].comparison == mtmc::Comparison::slower);
  CHECK(result.history[2].kept);
  CHECK(result.usage.tokens() == 60);
  CHECK(result.usage.cost == doctest::Approx(1));
  CHECK(result.verified_sizes().size() == 1);
  CHECK_FALSE(result.error);
  CHECK(result.folder.empty());
}

TEST_CASE("what a policy sees: the kernel it stands on, its speed, and what was tried on the way") {
  Stage stage;
  stage.wants({"alpha", "beta", "gamma"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"gamma#0", 3}};
  stage.evaluator.verdicts = {{"beta#0", Verdict::wrong_result}};
  stage.options.repairs = 0;
  (void)stage.run();
  REQUIRE(stage.policy.seen.size() == 5);
  CHECK(toy::deeds(stage.policy.seen[0].kernel).empty());
  CHECK(stage.policy.seen[0].history.empty());
  CHECK(stage.policy.seen[0].evaluation->seconds == 1);
  CHECK(stage.policy.seen[0].step_limit == 8);
  CHECK(stage.policy.seen[2].step == 2);
  CHECK(toy::deeds(stage.policy.seen[2].kernel) == Deeds{"alpha#0"});
  CHECK(stage.policy.seen[2].evaluation->seconds == 0.5);
  REQUIRE(stage.policy.seen[2].history.size() == 2);
  CHECK(stage.policy.seen[2].history[1].verdict == Verdict::wrong_result);
  CHECK(stage.policy.seen[2].history[1].message == "it is wrong_result");
  CHECK(stage.policy.seen[2].history[1].action_text == "betaing loop 0 in line 1");
  CHECK(toy::deeds(stage.policy.seen[3].kernel) == Deeds{"alpha#0", "gamma#0"});
  // and a coder in addition the action with its type's intent and principle
  CHECK(stage.coder.requests[0].intent == "try it");
  CHECK(stage.coder.requests[0].principle == "do it");
  CHECK(stage.coder.requests[0].seen == stage.policy.seen[0]);
}

TEST_CASE("candidates are paired with the best so far, promotions asked for as such") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 2}};
  (void)stage.run();
  const auto& asked = stage.evaluator.requests;
  REQUIRE(asked.size() == 6);
  CHECK_FALSE(asked[0].incumbent);
  CHECK(asked[1].purpose == mtmc::Purpose::explore);
  CHECK(toy::deeds(*asked[1].incumbent).empty());
  CHECK(asked[2].purpose == mtmc::Purpose::promote);
  CHECK(toy::deeds(*asked[3].incumbent) == Deeds{"alpha#0"});
  CHECK(asked[5].purpose == mtmc::Purpose::promote);
  CHECK(toy::deeds(asked[5].candidate) == Deeds{"alpha#0", "beta#0"});
  CHECK(toy::deeds(*asked[5].incumbent).empty());
}

TEST_CASE("without anything better the result is the start kernel and exactly 1") {
  Stage stage;
  stage.wants({"alpha", "beta", "gamma", "delta"});
  stage.evaluator.speed = {{"alpha#0", 0.9}, {"gamma#0", 1.005}};
  stage.evaluator.verdicts = {{"beta#0", Verdict::crashed}, {"delta#0", Verdict::compile_error}};
  const auto result = stage.run();
  CHECK_FALSE(result.improved());
  CHECK(result.best == toy::task().kernel);
  CHECK(result.speed_up == mtmc::SpeedUp{});
  CHECK(result.evaluation == result.start);
  CHECK(result.history.size() == 4);
  CHECK(stage.evaluator.requests.size() == 5); // nothing to promote, nothing to compare at the end
}

TEST_CASE("a best that fails its second look is none") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 1.5}};
  SUBCASE("because it is wrong") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
      if (request.purpose != mtmc::Purpose::promote || toy::deeds(request.candidate).back() != "alpha#0")
        return;
      evaluation = {};
      evaluation.verdict = Verdict::nondeterministic;
      evaluation.rule = "two looks";
    };
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"beta#0"});
    CHECK(result.history[0].verdict == Verdict::nondeterministic);
    CHECK(result.history[0].message == "two looks");
    CHECK_FALSE(result.history[0].kept);
  }
  SUBCASE("because it is not faster") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
      if (request.purpose != mtmc::Purpose::promote || toy::deeds(request.candidate).back() != "alpha#0")
        return;
      evaluation.speed_up = mtmc::SpeedUp{0.99, 0.97, 1.01, 0.95, {}};
      evaluation.comparison = mtmc::Comparison::undecided;
    };
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"beta#0"});
    CHECK(result.history[0].verdict == Verdict::correct);
    CHECK(result.history[0].comparison == mtmc::Comparison::undecided);
    CHECK_FALSE(result.history[0].kept);
  }
}

TEST_CASE("a best that does not hold against the start kernel gives way to the one before") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 1.5}};
  const auto spoil = [&stage](std::size_t deeds) {
    stage.evaluator.twist = [deeds](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
      const bool closing =
          request.purpose == mtmc::Purpose::promote && toy::deeds(*request.incumbent).empty();
      static int looks = 0;
      if (!closing || toy::deeds(request.candidate).size() < deeds) return;
      if (toy::deeds(request.candidate).size() == 1 && looks++ == 0) return; // its promotion
      evaluation.comparison = mtmc::Comparison::undecided;
    };
  };
  SUBCASE("which holds") {
    spoil(2);
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
    CHECK(result.speed_up.value == doctest::Approx(2));
    CHECK(result.measured);
  }
  SUBCASE("down to the start kernel") {
    spoil(1);
    const auto result = stage.run();
    CHECK_FALSE(result.improved());
    CHECK(result.speed_up == mtmc::SpeedUp{});
  }
}

TEST_CASE("an action that was tried on a kernel is not offered there again") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (request.action.optimization == "alpha")
      return mtmc::Draft::failed(DraftFailure::declined, "the loop carries a dependence");
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  stage.evaluator.speed = {{"beta#0", 2}};
  SUBCASE("but on the next kernel it is") {
    const auto result = stage.run();
    CHECK(stage.policy.offered[0].size() == 7);
    CHECK(stage.policy.offered[1].size() == 6);
    CHECK(stage.policy.offered[2].size() == 7);
    CHECK(stage.coder.requests.size() == 3); // alpha, beta; alpha on the next
    CHECK(result.history[0].draft_failure == DraftFailure::declined);
    CHECK(result.history[0].message == "the loop carries a dependence");
  }
  SUBCASE("unless this is switched off: then the coder is asked for another sample") {
    stage.options.mask_failed_actions = false;
    stage.options.max_steps = 3;
    (void)stage.run();
    REQUIRE(stage.coder.requests.size() == 3);
    CHECK(stage.coder.requests[0].sample == 0);
    CHECK(stage.coder.requests[1].sample == 1);
    CHECK(stage.coder.requests[2].sample == 2);
  }
  SUBCASE("unless the endpoint failed") {
    stage.coder.answer = [first = true](const mtmc::CodingRequest& request, std::stop_token) mutable {
      if (std::exchange(first, false)) return mtmc::Draft::failed(DraftFailure::endpoint, "502 Bad Gateway");
      return scripted::Coder::did(request, "answer");
    };
    const auto result = stage.run();
    CHECK(result.history[0].draft_failure == DraftFailure::endpoint);
    CHECK(result.history[1].action_key == result.history[0].action_key);
    CHECK(stage.coder.requests[1].sample == 1);
  }
}

TEST_CASE("an answer that is the parent again counts as unchanged, whatever blanks it has at line ends") {
  Stage stage;
  stage.wants({"alpha"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    mtmc::Draft draft;
    draft.kernel = request.seen.kernel;
    draft.kernel->source += "   \r\n";
    return draft;
  };
  const auto result = stage.run();
  CHECK(result.history[0].draft_failure == DraftFailure::unchanged);
  CHECK(stage.evaluator.requests.size() == 1);
}

TEST_CASE("a coder that says nothing at all gave no kernel") {
  Stage stage;
  stage.wants({"alpha"});
  stage.coder.answer = [](const mtmc::CodingRequest&, std::stop_token) { return mtmc::Draft{}; };
  const auto result = stage.run();
  CHECK(result.history[0].draft_failure == DraftFailure::no_kernel);
  CHECK(stage.coder.requests.size() == 2); // and was asked to repair that
}

TEST_CASE("minimum_gain decides what is worth going on from") {
  Stage stage;
  stage.evaluator.speed = {{"alpha#0", 0.99}, {"beta#0", 3}, {"gamma#0", 1.05}};
  SUBCASE("at 1 a neutral step is a dead end") {
    stage.wants({"alpha", "beta"});
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"beta#0"});
  }
  SUBCASE("below 1 the search continues from it, and the best stays the best until something is faster") {
    stage.options.minimum_gain = 0.97;
    stage.wants({"alpha", "beta"});
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0", "beta#0"});
    CHECK(result.history[0].kept);
    CHECK(stage.evaluator.asked({"alpha#0"}, mtmc::Purpose::promote) == 0);
    CHECK(result.history[1].speed_up->value == doctest::Approx(3)); // over its parent
    CHECK(result.speed_up.value == doctest::Approx(2.97));
  }
  SUBCASE("neutral steps together may lose no more than that") {
    stage.options.minimum_gain = 0.985;
    stage.evaluator.speed = {{"alpha#0", 0.99}, {"beta#0", 0.99}, {"gamma#0", 2}};
    stage.wants({"alpha", "beta", "gamma"});
    const auto result = stage.run();
    CHECK(result.history[0].kept);
    CHECK_FALSE(result.history[1].kept);
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0", "gamma#0"});
  }
  SUBCASE("above 1 small gains are left alone") {
    stage.options.minimum_gain = 1.1;
    stage.wants({"gamma", "beta"});
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"beta#0"});
    CHECK_FALSE(result.history[0].kept);
  }
}

TEST_CASE("when a neutral step leads nowhere, the search goes back to the best kernel") {
  Stage stage;
  stage.options.minimum_gain = 0.9;
  stage.options.action_space = toy::space(2);
  stage.options.repairs = 0;
  stage.policy.once = false;
  stage.evaluator.speed = {{"alpha#0", 0.95}, {"beta#0", 2}};
  stage.wants({"alpha", "beta"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (!toy::deeds(request.seen.kernel).empty() && toy::deeds(request.seen.kernel)[0] == "alpha#0")
      return mtmc::Draft::failed(DraftFailure::declined, "not on top of alpha");
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  const auto result = stage.run();
  CHECK(result.history[0].kept);
  CHECK(toy::deeds(result.best).front() == "beta#0");
  CHECK(stage.policy.offered[3] == std::vector<std::string>{"beta|play/0", "stop"});
}

TEST_CASE("of several samples the best counts, and equal texts are judged once") {
  Stage stage;
  stage.options.samples = 4;
  stage.wants({"alpha"});
  stage.options.max_steps = 1;
  stage.evaluator.speed = {{"alpha#1", 1.5}, {"alpha#2", 3}};
  stage.evaluator.verdicts = {{"alpha#0", Verdict::timeout}};
  stage.options.repairs = 0;
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    return scripted::Coder::did(request, "alpha#" + std::to_string(request.sample == 3 ? 1 : request.sample));
  };
  const auto result = stage.run();
  CHECK(toy::deeds(result.best) == Deeds{"alpha#2"});
  CHECK(stage.evaluator.asked({"alpha#1"}) == 1);
  REQUIRE(result.history.size() == 1);
  CHECK(result.history[0].speed_up->value == doctest::Approx(3));
  CHECK(result.trajectory.size() == 4);
  CHECK(result.trajectory[1].evaluation == result.trajectory[3].evaluation);
  CHECK(result.usage.tokens() == 60);
}

TEST_CASE("a failure is judged once, whatever it is compared with later") {
  Stage stage;
  stage.options.repairs = 0;
  stage.wants({"alpha", "beta", "gamma"});
  stage.evaluator.speed = {{"beta#0", 2}};
  stage.evaluator.verdicts = {{"dead end", Verdict::wrong_result}};
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (request.action.optimization == "beta") return scripted::Coder::did(request, "beta#0");
    mtmc::Draft draft;
    draft.kernel = mtmc::Kernel{mtmc::languages::cpp, "#pragma did dead end\n"};
    return draft;
  };
  const auto result = stage.run();
  CHECK(stage.evaluator.asked({"dead end"}) == 1);
  CHECK(result.history.back().verdict == Verdict::wrong_result);
}

TEST_CASE("a kernel that the search has been at is not judged again, and the history says so") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}};
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (request.action.optimization == "alpha") return scripted::Coder::did(request, "alpha#0");
    mtmc::Draft draft;
    draft.kernel = toy::task().kernel;
    return draft;
  };
  const auto result = stage.run();
  REQUIRE(result.history.size() >= 2);
  CHECK(result.history[1].verdict == Verdict::correct);
  CHECK(result.history[1].message == "the search has already been at this kernel");
  CHECK_FALSE(result.history[1].kept);
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
  CHECK(stage.evaluator.asked({}) == 1);
}

TEST_CASE("an optimisation type says how many drafts it asks for, unless the options do") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  for (auto& type : stage.options.action_space.types)
    if (type.id == "alpha") type.samples = 3;
  std::map<std::string, int> drafts;
  const auto count_drafts = [&] {
    (void)stage.run();
    for (const auto& request : stage.coder.requests)
      if (!request.repair) ++drafts[request.action.optimization];
  };
  SUBCASE("nothing said") {
    count_drafts();
    CHECK(drafts["alpha"] == 3);
    CHECK(drafts["beta"] == 1);
  }
  SUBCASE("a number for all") {
    stage.options.samples = 2;
    count_drafts();
    CHECK(drafts["alpha"] == 2);
    CHECK(drafts["beta"] == 2);
  }
}

TEST_CASE("a beam holds no two kernels that differ in numbers alone") {
  Stage stage;
  stage.options.beam = 3;
  stage.options.samples = 2;
  stage.options.max_steps = 1;
  stage.options.repairs = 0;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"alpha#1", 2}, {"beta#0", 1.2}, {"beta#1", 1.3}};
  std::vector<std::string> kept;
  stage.options.observer.step_finished = [&kept](const mtmc::StepFinished& event) {
    for (const auto& outcome : event.outcomes)
      if (outcome.entry.kept) kept.push_back(outcome.entry.action_key);
  };
  (void)stage.run();
  CHECK(kept == std::vector<std::string>{"alpha|play/0", "beta|play/0"}); // one variant of each
}

TEST_CASE("where nothing is left to try on the best kernel, the search goes back to one that it came by") {
  Stage stage;
  stage.options.action_space = toy::space(2);
  stage.options.repairs = 0;
  stage.policy.once = false;
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 3}};
  stage.wants({"alpha", "beta"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (!toy::deeds(request.seen.kernel).empty())
      return mtmc::Draft::failed(DraftFailure::declined, "one deed is enough");
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  const auto result = stage.run();
  REQUIRE(stage.policy.offered.size() > 3);
  CHECK(toy::deeds(stage.policy.seen[3].kernel).empty()); // the start kernel again
  CHECK(stage.policy.offered[3] == std::vector<std::string>{"beta|play/0", "stop"});
  CHECK(toy::deeds(result.best) == Deeds{"beta#0"});
  CHECK(result.stop_reason == StopReason::no_legal_action);
}

TEST_CASE("the account says which step brought what, and for how much") {
  Stage stage;
  stage.options.samples = 2;
  stage.options.repairs = 0;
  stage.options.max_steps = 2;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#1", 2}};
  const auto result = stage.run();
  REQUIRE(result.account.size() == 2);
  CHECK(result.account[0].action_key == "alpha|play/0");
  CHECK(result.account[0].gain == doctest::Approx(2));
  CHECK(result.account[0].drafts == 2);
  CHECK(result.account[0].usage.tokens() == 30);
  CHECK(result.account[1].step == 1);
  CHECK(result.account[1].gain == 1);
  CHECK(result.account[1].usage.tokens() == 30);
}

TEST_CASE("a failed draft is repaired with what was wrong before the coder's eyes") {
  Stage stage;
  stage.wants({"alpha"});
  stage.options.max_steps = 1;
  stage.options.repairs = 2;
  stage.evaluator.speed = {{"mended", 2}};
  stage.evaluator.verdicts = {{"broken", Verdict::compile_error}, {"worse", Verdict::crashed}};
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (!request.repair) return scripted::Coder::did(request, "broken");
    if (request.repair->evaluation.verdict == Verdict::compile_error)
      return scripted::Coder::did(request, "worse");
    return scripted::Coder::did(request, "mended");
  };
  SUBCASE("until it is right") {
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"mended"});
    REQUIRE(stage.coder.requests.size() == 3);
    CHECK(toy::deeds(stage.coder.requests[1].repair->kernel) == Deeds{"broken"});
    CHECK(stage.coder.requests[1].repair->evaluation.diagnostics[0].message == "it is compile_error");
    CHECK(toy::deeds(stage.coder.requests[2].repair->kernel) == Deeds{"worse"});
    REQUIRE(result.trajectory.size() == 3);
    CHECK(result.trajectory[2].repair == 2);
    CHECK(result.history.size() == 1);
    CHECK(result.history[0].kept);
  }
  SUBCASE("or the repairs are used up") {
    stage.options.repairs = 1;
    const auto result = stage.run();
    CHECK_FALSE(result.improved());
    CHECK(stage.coder.requests.size() == 2);
    CHECK(result.history[0].verdict == Verdict::crashed);
  }
  SUBCASE("or the tokens are") {
    stage.options.budget.tokens = 20;
    const auto result = stage.run();
    CHECK(stage.coder.requests.size() == 2);
    CHECK(result.usage.tokens() == 30);
  }
  SUBCASE("an answer without kernel is repaired too") {
    stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
      if (!request.repair) return mtmc::Draft::failed(DraftFailure::truncated, "cut off after 4096 tokens");
      return scripted::Coder::did(request, "mended");
    };
    const auto result = stage.run();
    CHECK(toy::deeds(result.best) == Deeds{"mended"});
    CHECK(stage.coder.requests[1].repair->evaluation.diagnostics[0].message == "cut off after 4096 tokens");
    CHECK(toy::deeds(stage.coder.requests[1].repair->kernel).empty());
  }
  SUBCASE("what a coder declines is not") {
    stage.coder.answer = [](const mtmc::CodingRequest&, std::stop_token) {
      return mtmc::Draft::failed(DraftFailure::declined, "no");
    };
    (void)stage.run();
    CHECK(stage.coder.requests.size() == 1);
  }
}

TEST_CASE("a beam stands on several kernels and tries several actions from each") {
  Stage stage;
  stage.options.beam = 2;
  stage.options.max_steps = 2;
  stage.options.repairs = 0;
  // alpha then gamma is the way; beta alone looks better at first and leads nowhere
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"beta#0", 2}, {"gamma#0", 1}};
  stage.evaluator.twist = nullptr;
  stage.wants({"alpha", "beta", "gamma"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    const auto done = toy::deeds(request.seen.kernel);
    if (done == Deeds{"alpha#0"} && request.action.optimization == "beta")
      return scripted::Coder::did(request, "jackpot");
    if (!done.empty()) return mtmc::Draft::failed(DraftFailure::declined, "no");
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  stage.evaluator.speed["jackpot"] = 4;
  const auto result = stage.run();
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0", "jackpot"});
  CHECK(result.speed_up.value == doctest::Approx(6));
  REQUIRE(stage.policy.seen.size() == 3);
  CHECK(toy::deeds(stage.policy.seen[1].kernel) == Deeds{"beta#0"}); // the new best first
  CHECK(toy::deeds(stage.policy.seen[2].kernel) == Deeds{"alpha#0"});
  CHECK(result.trajectory.size() == 2 + 4);
  CHECK(result.trajectory[2].parent_index == 0);
  CHECK(result.trajectory[4].parent_index == 1);
  // each kernel's history is that of its own way
  REQUIRE(stage.policy.seen[2].history.size() == 2);
  CHECK(stage.policy.seen[2].history[0].kept); // alpha is on its way,
  CHECK_FALSE(
      stage.policy.seen[2].history[1].kept); // beta, although the search also continues from it, is not
  CHECK(result.history.size() == 6);
  CHECK(result.history[1].kept);
  for (const auto& entry : result.history)
    if (entry.speed_up && entry.step == 1)
      CHECK(entry.speed_up->value == doctest::Approx(4)); // over its parent
}

TEST_CASE("in a beam, stopping concerns one kernel") {
  Stage stage;
  stage.options.beam = 2;
  stage.options.max_steps = 5;
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"beta#0", 2}};
  stage.wants({"alpha", "beta"});
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (!toy::deeds(request.seen.kernel).empty()) return mtmc::Draft::failed(DraftFailure::declined, "no");
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  const auto result = stage.run();
  CHECK(result.stop_reason == StopReason::stop_action);
  CHECK(result.steps == 2);
  CHECK(result.trajectory.back().action.kind == mtmc::Action::Kind::stop);
}

TEST_CASE("every way to end has its reason") {
  Stage stage;
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"beta#0", 2}};
  stage.wants({"alpha", "beta", "gamma", "delta", "epsilon", "zeta"});
  SUBCASE("the policy stops") {
    stage.wants({"alpha", "stop"});
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::stop_action);
    CHECK(result.steps == 1);
  }
  SUBCASE("the number of steps") {
    stage.options.max_steps = 2;
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::step_limit);
    CHECK(result.steps == 2);
  }
  SUBCASE("no steps at all") {
    stage.options.max_steps = 0;
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::step_limit);
    CHECK(result.speed_up == mtmc::SpeedUp{});
  }
  SUBCASE("time, and what was found is still confirmed") {
    stage.options.budget.seconds = 0.05;
    stage.options.samples = 2;
    stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token stop) {
      if (request.sample == 0) return scripted::Coder::did(request, scripted::Coder::name_of(request));
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return mtmc::Draft::failed(DraftFailure::cancelled, "stopped");
    };
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::time);
    // In a step that is cut short nothing was judged yet.
    CHECK(result.steps == 0);
    CHECK(result.seconds >= 0.05);
  }
  SUBCASE("time, in the middle of a judgement") {
    stage.options.budget.seconds = 0.3;
    stage.options.samples = 2;
    stage.options.threads = 1;
    stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation&) {
      const auto done = toy::deeds(request.candidate);
      if (done == Deeds{"alpha#1"}) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    };
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::time);
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0"}); // promoted and compared after the end of the time
    CHECK(result.measured);
    CHECK(result.steps == 0);
  }
  SUBCASE("tokens") {
    stage.options.budget.tokens = 30;
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::tokens);
    CHECK(result.steps == 2);
  }
  SUBCASE("money") {
    stage.options.budget.cost = 0.7;
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::cost);
    CHECK(result.steps == 3);
  }
  SUBCASE("the coder's own purse") {
    stage.coder.answer = [](const mtmc::CodingRequest&, std::stop_token) {
      return mtmc::Draft::failed(DraftFailure::budget, "the cap of 5 is reached");
    };
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::cost);
    CHECK(result.steps == 1);
  }
  SUBCASE("patience") {
    stage.options.budget.patience = 2;
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::patience);
    CHECK(result.steps == 4);
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0", "beta#0"});
  }
  SUBCASE("nothing to do") {
    stage.options.action_space = toy::space(1);
    stage.evaluator.speed = {};
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::no_legal_action);
    CHECK(result.steps == 1);
  }
  SUBCASE("the host, before it begins") {
    std::stop_source source;
    source.request_stop();
    const auto result = stage.run(source.get_token());
    CHECK(result.stop_reason == StopReason::cancelled);
    CHECK(stage.evaluator.requests.empty());
  }
  SUBCASE("the host, in the middle: the best so far, unmeasured") {
    std::stop_source source;
    stage.coder.answer = [&source](const mtmc::CodingRequest& request, std::stop_token stop) {
      if (request.seen.step == 1) source.request_stop();
      if (stop.stop_requested()) throw std::runtime_error("interrupted");
      return scripted::Coder::did(request, scripted::Coder::name_of(request));
    };
    const auto result = stage.run(source.get_token());
    CHECK(result.stop_reason == StopReason::cancelled);
    CHECK_FALSE(result.error);
    CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
    CHECK(result.speed_up.value == doctest::Approx(1.5));
    CHECK_FALSE(result.measured);
  }
  SUBCASE("answers that are to come") {
    stage.options.samples = 3;
    stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
      mtmc::Draft draft;
      draft.pending = "batch-" + std::to_string(request.sample);
      return draft;
    };
    const auto result = stage.run();
    CHECK(result.stop_reason == StopReason::waiting_for_answers);
    CHECK(stage.coder.requests.size() == 3); // all questions of the step are out
    CHECK(stage.evaluator.requests.size() == 1);
  }
}

TEST_CASE("what goes wrong before the first step is thrown") {
  Stage stage;
  stage.wants({"alpha"});
  SUBCASE("contradicting options") {
    stage.options.samples = -1;
    CHECK_THROWS_WITH_AS((void)stage.run(),
                         doctest::Contains("the number of drafts per action is negative. Use 1 or more"),
                         mtmc::Error);
  }
  SUBCASE("resume without a folder") {
    stage.options.resume = true;
    CHECK_THROWS_WITH_AS((void)stage.run(), doctest::Contains("[mtmc.loop.001]"), mtmc::Error);
  }
  SUBCASE("a start kernel that fails") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
      evaluation.verdict = Verdict::wrong_result;
      evaluation.rule = "reference";
    };
    CHECK_THROWS_WITH_AS((void)stage.run(),
                         doctest::Contains("the start kernel does not pass: wrong_result: "), mtmc::Error);
  }
  SUBCASE("an evaluator that throws") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation&) {
      throw std::runtime_error("no device");
    };
    CHECK_THROWS_WITH_AS((void)stage.run(),
                         doctest::Contains("[mtmc.loop.002] the evaluator threw: no device"), mtmc::Error);
  }
  SUBCASE("an evaluator that forgets its verdict") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
      evaluation = {};
      evaluation.seconds = 1;
    };
    CHECK_THROWS_WITH_AS(
        (void)stage.run(),
        doctest::Contains("[mtmc.evaluator.005] the evaluator gave an evaluation without a verdict"),
        mtmc::Error);
  }
  SUBCASE("a region finder that throws") {
    stage.finder.before = [](const mtmc::Kernel&) { throw 42; };
    CHECK_THROWS_WITH_AS((void)stage.run(), doctest::Contains("the region finder threw something"),
                         mtmc::Error);
  }
  SUBCASE("an error of the part's own keeps its id") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation&) {
      throw mtmc::Error("mtmc.backend.004", "no GPU", "Insert one");
    };
    CHECK_THROWS_WITH_AS((void)stage.run(), doctest::Contains("[mtmc.backend.004] no GPU"), mtmc::Error);
  }
}

TEST_CASE("what goes wrong later is in the result, next to the best so far") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"beta#0", 1.1}};
  const auto second_step = [](const mtmc::Kernel& kernel) { return !toy::deeds(kernel).empty(); };
  std::string expected;
  bool measured = true;
  SUBCASE("the coder") {
    stage.coder.answer = [&](const mtmc::CodingRequest& request, std::stop_token) -> mtmc::Draft {
      if (second_step(request.seen.kernel)) throw std::logic_error("out of ideas");
      return scripted::Coder::did(request, scripted::Coder::name_of(request));
    };
    expected = "the coder threw: out of ideas";
  }
  SUBCASE("the evaluator") {
    stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation&) {
      if (toy::deeds(request.candidate).size() == 2) throw std::runtime_error("the device is lost");
    };
    expected = "the evaluator threw: the device is lost";
    measured = false;
  }
  SUBCASE("the evaluator, at the last comparison") {
    stage.options.max_steps = 1;
    stage.evaluator.twist = [looks = 0](const mtmc::EvaluationRequest& request, mtmc::Evaluation&) mutable {
      if (request.purpose == mtmc::Purpose::promote && ++looks == 2)
        throw std::runtime_error("the device is lost");
    };
    expected = "the evaluator threw: the device is lost";
    measured = false;
  }
  SUBCASE("the region finder") {
    stage.finder.before = [&](const mtmc::Kernel& kernel) {
      if (second_step(kernel)) throw std::runtime_error("lost");
    };
    expected = "the region finder threw: lost";
  }
  const auto result = stage.run();
  CHECK(result.stop_reason == StopReason::failed);
  REQUIRE(result.error);
  CHECK(result.error->message() == expected);
  CHECK(result.error->id() == mtmc::error_id::loop_part);
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
  CHECK(result.speed_up.value == doctest::Approx(1.5));
  CHECK(result.measured == measured);
}

TEST_CASE("a verdict that is forgotten later is an error in the result") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 1.5}, {"beta#0", 1.1}};
  stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
    if (toy::deeds(request.candidate).size() == 2) evaluation.verdict = Verdict::not_given;
  };
  const auto result = stage.run();
  REQUIRE(result.error);
  CHECK(result.error->id() == mtmc::error_id::evaluator_verdict);
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
}

TEST_CASE("seconds alone are compared, and nobody makes an interval of them") {
  Stage stage;
  stage.wants({"alpha"});
  stage.options.max_steps = 1;
  stage.evaluator.speed = {{"alpha#0", 1.5}};
  stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
    evaluation.speed_up.reset();
    evaluation.comparison = mtmc::Comparison::not_timed;
  };
  const auto result = stage.run();
  CHECK(toy::deeds(result.best) == Deeds{"alpha#0"});
  CHECK(result.speed_up.value == doctest::Approx(1.5));
  CHECK_FALSE(result.speed_up.has_interval());
  REQUIRE(result.history.size() == 1);
  REQUIRE(result.history[0].speed_up);
  CHECK_FALSE(result.history[0].speed_up->has_interval());
  CHECK(result.history[0].comparison == mtmc::Comparison::faster);
}

TEST_CASE("a policy that throws or answers nonsense ends the run") {
  struct Broken {
    std::vector<double> answer;
    [[nodiscard]] mtmc::ActionDistribution
    distribution(const mtmc::Observation&, std::span<const mtmc::Action>, std::stop_token) const {
      if (answer.empty()) throw std::runtime_error("server gone");
      mtmc::ActionDistribution result;
      result.probabilities = answer;
      return result;
    }
  };
  const auto message = [](std::vector<double> answer) {
    Stage stage;
    stage.options.action_space = toy::space(1);
    mtmc::Loop loop{Broken{std::move(answer)}, stage.coder, stage.finder, stage.evaluator, stage.options};
    const auto result = loop.optimize(toy::task());
    CHECK(result.stop_reason == StopReason::failed);
    CHECK(result.best == toy::task().kernel);
    return result.error ? result.error->message() : std::string();
  };
  CHECK(message({}) == "the policy threw: server gone");
  CHECK(message({1}) == "the policy gave 1 probabilities for 2 legal actions");
  CHECK(message({1.5, -0.5}) == "the policy gave the probability -0.500000 for action 1");
  CHECK(message({0.5, NAN}) == "the policy gave the probability nan for action 1");
  CHECK(message({0.5, 0.4}) == "the policy's probabilities sum to 0.900000");
}

TEST_CASE("an evaluator that only measures seconds is enough") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 0.5}};
  stage.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
    evaluation.speed_up.reset();
    evaluation.comparison = mtmc::Comparison::not_timed;
  };
  stage.options.max_steps = 2;
  const auto result = stage.run();
  CHECK(result.speed_up.value == doctest::Approx(2));
  CHECK(result.measured);
}

TEST_CASE("an evaluator is prepared once, before the start kernel is judged") {
  struct Preparing : scripted::Evaluator {
    std::vector<std::string> prepared{};
    void prepare(const mtmc::Task& task, std::stop_token) {
      CHECK(requests.empty());
      prepared.push_back(task.name);
      if (task.name == "hopeless")
        throw mtmc::Error(mtmc::error_id::task_start_kernel, "it does not compile", "Mend it");
    }
  };
  Stage stage;
  Preparing evaluator;
  mtmc::Loop loop{stage.policy, stage.coder, stage.finder, evaluator, stage.options};
  (void)loop.optimize(toy::task());
  CHECK(evaluator.prepared == std::vector<std::string>{"toy"});
  evaluator.requests.clear();
  CHECK_THROWS_AS((void)loop.optimize(toy::task("hopeless")), mtmc::Error);
}

TEST_CASE("many tasks: one that fails does not stop the others") {
  Stage stage;
  stage.wants({"alpha"});
  stage.options.max_steps = 1;
  stage.evaluator.speed = {{"alpha#0", 2}};
  stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation&) {
    if (request.task.name == "bad") throw std::runtime_error("cannot");
  };
  mtmc::Loop loop{stage.policy, stage.coder, stage.finder, stage.evaluator, stage.options};
  const std::vector<mtmc::Task> tasks{toy::task("first"), toy::task("bad"), toy::task("last")};
  const auto results = loop.optimize(tasks);
  REQUIRE(results.size() == 3);
  CHECK(results[0].improved());
  CHECK(results[1].stop_reason == StopReason::failed);
  CHECK(results[1].task.name == "bad");
  CHECK(results[1].best == tasks[1].kernel);
  CHECK(results[1].error->message() == "the evaluator threw: cannot");
  CHECK(results[2].improved());
}

TEST_CASE("lvalues are used where they are, rvalues are taken over, twins and const parts fit") {
  Stage stage;
  stage.wants({"alpha"});
  const toy::Finder finder;
  struct MoveOnly : scripted::Coder {};
  MoveOnly coder;
  mtmc::Loop loop{stage.policy,
                  std::move(coder),
                  finder,
                  mtmc::AnyEvaluator{scripted::Evaluator{}},
                  {.max_steps = 1, .action_space = toy::space()}};
  (void)loop.optimize(toy::task());
  CHECK(stage.policy.seen.size() == 1);
  static_assert(
      std::is_same_v<decltype(loop),
                     mtmc::Loop<scripted::Policy&, MoveOnly, const toy::Finder&, mtmc::AnyEvaluator>>);
}

namespace {
/// Counts how many calls are under way at once.
struct Gauge {
  std::atomic<int> now{0}, most{0};
  void enter() {
    const int here = ++now;
    int seen = most;
    while (here > seen && !most.compare_exchange_weak(seen, here)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --now;
  }
};
template <int limit> struct LimitedCoder {
  static constexpr int max_concurrency = limit;
  Gauge* gauge;
  mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token) const {
    gauge->enter();
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  }
};
template <int limit> struct LimitedEvaluator : toy::Evaluator {
  static constexpr int max_concurrency = limit;
  Gauge* gauge;
  mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request, std::stop_token stop) const {
    gauge->enter();
    return toy::Evaluator::evaluate(request, std::move(stop));
  }
};
} // namespace

TEST_CASE("parts say how many of their calls may run at once, the host too") {
  const auto run = [](auto coder_limit, auto evaluator_limit, int threads) {
    Gauge drafting, judging;
    LimitedEvaluator<evaluator_limit> evaluator;
    evaluator.gauge = &judging;
    mtmc::Loop loop{
        toy::Policy{},
        LimitedCoder<coder_limit>{&drafting},
        toy::Finder{},
        evaluator,
        {.max_steps = 1, .samples = 6, .repairs = 0, .threads = threads, .action_space = toy::space()}};
    (void)loop.optimize(toy::task());
    return std::pair{drafting.most.load(), judging.most.load()};
  };
  constexpr auto one = std::integral_constant<int, 1>{};
  constexpr auto three = std::integral_constant<int, 3>{};
  CHECK(run(one, one, 0) == std::pair{1, 1});
  const auto [drafts, judgements] = run(three, one, 0);
  CHECK(drafts <= 3);
  CHECK(drafts > 1);
  CHECK(judgements == 1);
  CHECK(run(three, three, 1) == std::pair{1, 1});
}

TEST_CASE("an observer sees the run pass by, and cannot disturb it") {
  Stage stage;
  stage.wants({"alpha", "beta"});
  stage.evaluator.speed = {{"alpha#0", 2}};
  stage.evaluator.verdicts = {{"beta#0", Verdict::wrong_result}};
  stage.options.max_steps = 2;
  const auto undisturbed = toy::text_of(stage.run());
  std::vector<std::string> events;
  auto& observer = stage.options.observer;
  observer.run_started = [&](const mtmc::RunStarted& event) {
    events.push_back("run " + event.task.name);
    throw std::runtime_error("an observer's problem");
  };
  observer.step_started = [&](const mtmc::StepStarted& event) {
    events.push_back("step " + std::to_string(event.step) + ' ' + event.chosen.front().key());
  };
  observer.draft_ready = [&](const mtmc::DraftReady& event) {
    events.push_back("draft " + event.action.optimization + ' ' + std::to_string(event.repair));
  };
  observer.evaluated = [&](const mtmc::CandidateEvaluated& event) {
    events.push_back("judged " + std::string(to_string(event.evaluation.verdict)));
  };
  observer.step_finished = [&](const mtmc::StepFinished& event) {
    events.push_back("done " + std::to_string(event.outcomes.size()) +
                     (event.outcomes[0].new_best ? " new" : "") + " tokens " +
                     std::to_string(event.outcomes[0].usage.tokens()));
  };
  observer.finished = [&](const mtmc::Result& result) {
    events.push_back("end " + std::string(to_string(result.stop_reason)));
  };
  std::vector<std::pair<int, int>> bar;
  observer.progress = [&](const mtmc::Progress& event) { bar.emplace_back(event.done, event.total); };
  stage.wants({"alpha", "beta"});
  stage.options.max_steps = 2;
  CHECK(toy::text_of(stage.run()) == undisturbed);
  CHECK(events == std::vector<std::string>{"run toy", "step 0 alpha|play/0", "draft alpha 0",
                                           "judged correct", "done 1 new tokens 15", "step 1 beta|play/0",
                                           "draft beta 0", "judged wrong_result", "draft beta 1",
                                           "judged wrong_result", "done 1 tokens 30", "end step_limit"});
  for (const auto& [done, total] : bar) CHECK(done <= total);
  CHECK(bar.size() > 8);
}
