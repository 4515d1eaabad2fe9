#include <mtmc/core/error.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/policy_prompt.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include "../core/sample_nouns.hpp"

using namespace mtmc;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

PolicyCard full_card() {
  PolicyCard card;
  card.name = "first run";
  card.prompt_template = "<|user|>{task}|{device}|{history}\n{legend}<|assistant|>";
  card.separator = "\n";
  card.normalization = ScoreNormalization::word_mean;
  card.temperature = 0.5;
  card.model = "coder-1.3b";
  card.adapter = "policy-7";
  card.method = ScoringMethod::vllm_echo;
  card.region_names = RegionNames::legend;
  card.chat_template_hash = "00ff";
  card.history = 3;
  card.line_numbers = false;
  card.training = R"({"gamma":0.99,"steps":[1,2,{"a":null}]})";
  return card;
}

/// What reading a text throws.
std::string refusal(const std::string& json) {
  try {
    (void)read_policy_card(json, "card.json");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::policy_card);
    return error.what();
  }
  return "";
}

Action action(const std::string& verb, const std::string& region, const std::string& label, int line) {
  Action action;
  action.kind = Action::Kind::optimize;
  action.optimization = action.verb = verb;
  action.region = region;
  action.label = label;
  action.first_line = line;
  action.last_line = line + 2;
  return action;
}

} // namespace

TEST_CASE("a card comes back from its text as it was, with the facts of its training") {
  const auto card = full_card();
  CHECK(read_policy_card(write_policy_card(card)) == card);
  CHECK(read_policy_card(write_policy_card({})) == PolicyCard{});
  CHECK(policy_card_hash(card) == policy_card_hash(full_card()));
  CHECK(policy_card_hash(card) != policy_card_hash({}));
}

TEST_CASE("a card is read from a file, and errors name it") {
  const TemporaryFolder folder;
  const auto path = folder.path() + "/card.json";
  write_file_atomic(path, write_policy_card(full_card()));
  CHECK(load_policy_card(path) == full_card());
  CHECK_THROWS_WITH_AS((void)load_policy_card(folder.path() + "/none.json"),
                       doctest::Contains("mtmc.policy.001"), Error);
}

TEST_CASE("the paper's card compares sums") {
  const auto card = paper_policy_card();
  CHECK(card.normalization == ScoreNormalization::sum);
  CHECK(card.temperature == 1);
  CHECK(PolicyCard{}.normalization == ScoreNormalization::token_mean);
  check_policy_card(card);
}

TEST_CASE("what is wrong with a card is told with its field") {
  const std::string good = R"("template": "{task}:", "normalization": "sum")";
  CHECK(refusal("{" + good + "}").empty());
  CHECK(contains(refusal("{"), "card.json"));
  CHECK(contains(refusal(R"({"normalization": "sum"})"), "\"template\" is missing"));
  CHECK(contains(refusal(R"({"template": "a:"})"), "\"normalization\" is missing"));
  CHECK(contains(refusal(R"({"template": "a:", "normalization": "mean"})"),
                 "\"mean\" is not one of: sum, token_mean, word_mean"));
  CHECK(contains(refusal(R"({"template": "a:", "normalization": "mean"})"), "field \"normalization\""));
  CHECK(contains(refusal("{" + good + R"(, "normalisation": "sum"})"), "field \"normalisation\""));
  CHECK(contains(refusal("{" + good + R"(, "temperature": 0})"), "field \"temperature\""));
  CHECK(contains(refusal("{" + good + R"(, "temperature": null})"), "field \"temperature\""));
  CHECK(contains(refusal("{" + good + R"(, "history": -1})"), "field \"history\""));
  CHECK(contains(refusal("{" + good + R"(, "history": "all"})"), "field \"history\""));
  CHECK(contains(refusal("{" + good + R"(, "method": "magic"})"), "field \"method\""));
  CHECK(contains(refusal("{" + good + R"(, "region_names": "legend"})"), "shows no legend"));
  CHECK(contains(refusal("{" + good + R"(, "schema": 99})"), "schema 99"));
  const auto with_template = [](const std::string& text) {
    return refusal(R"({"normalization": "sum", "template": ")" + text + "\"}");
  };
  CHECK(contains(with_template("{kernle}:"),
                 "there is no placeholder {kernle} (card.json, field \"template\")"));
  CHECK(contains(with_template("{task}: "), "ends with a blank"));
  CHECK(contains(with_template("{task}:\\n"), "ends with a blank"));
  CHECK(contains(with_template("  "), "the prompt is empty"));
  CHECK(with_template("{{no_placeholder}} {} {a b} }{ {{{task}}} :").empty());

  PolicyCard card;
  card.training = "{";
  CHECK_THROWS_WITH_AS((void)write_policy_card(card), doctest::Contains("field \"training\""), Error);
}

TEST_CASE("a prompt is the template with the observation, and ends with no blank") {
  auto seen = sample::observation();
  const std::vector<Action> legal = {action("tiling", "f/i", "the i loop of f", 2), Action::stop()};
  const auto prompt = policy_prompt({}, seen, legal);
  CHECK(prompt.continuations == std::vector<std::string>{" tiling the i loop of f in line 2 to 4", " stop"});
  CHECK(prompt.context.starts_with(describe(seen) + "\n## Possible next steps\n- tiling the i loop"));
  CHECK(prompt.context.ends_with("- stop\n\n## Decision\nNext step:"));
  CHECK(prompt == policy_prompt({}, seen, legal));

  PolicyCard card;
  card.prompt_template = "{{{kernel}}}|{device}|{history}|{regions}|{task}{legend}";
  card.line_numbers = false;
  card.separator = "\n-> ";
  const auto parts = policy_prompt(card, seen, legal);
  CHECK(parts.context.starts_with("{void f(float* x) {}\n//@ launch f(x)}|Sample 9000"));
  CHECK(contains(parts.context, "|- the i, j loop nest of f"));
  CHECK(contains(parts.context, "step 3 of at most 8"));
  CHECK_FALSE(parts.context.ends_with("\n"));
  CHECK(parts.continuations[1] == "\n-> stop");
}

TEST_CASE("what a kernel holds is never taken for a placeholder") {
  auto seen = sample::observation();
  seen.kernel.source = "int {task}; {{x}}\n";
  PolicyCard card;
  card.prompt_template = "{kernel}:";
  card.line_numbers = false;
  CHECK(policy_prompt(card, seen, std::vector{Action::stop()}).context == "int {task}; {{x}}:");
}

TEST_CASE("regions with numbers have a legend, and equal labels become different texts") {
  PolicyCard card;
  card.region_names = RegionNames::legend;
  card.prompt_template = "{actions}\nNext:";
  const std::vector<Action> legal = {action("fusing", "f/i", "the loop", 2),
                                     action("tiling", "f/i", "the loop", 2),
                                     action("tiling", "f/j", "the loop", 2), Action::stop()};
  const auto prompt = policy_prompt(card, sample::observation(), legal);
  CHECK(prompt.continuations == std::vector<std::string>{" fusing R1", " tiling R1", " tiling R2", " stop"});
  CHECK(prompt.context == "R1: the loop in line 2 to 4\nR2: the loop in line 2 to 4\n"
                          "- fusing R1\n- tiling R1\n- tiling R2\n- stop\nNext:");
}

TEST_CASE("a legend can tell what is known of each region") {
  const auto seen = sample::observation();
  REQUIRE_FALSE(seen.structure.regions.empty());
  const Region& known = seen.structure.regions.front();
  PolicyCard card;
  card.region_names = RegionNames::described_legend;
  card.prompt_template = "{actions}\nNext:";
  const std::vector<Action> legal = {action("tiling", known.path, "the loop", 2),
                                     action("fusing", "f/j", "another loop", 2)};
  const std::string actions = "- tiling R1\n- fusing R2\nNext:";
  CHECK(policy_prompt(card, seen, legal).context ==
        "R1: " + describe(known) + "\nR2: another loop in line 2 to 4\n" + actions);
  CHECK(policy_prompt(card, seen, legal, PromptCut::regions).context ==
        "R1: the loop in line 2 to 4\nR2: another loop in line 2 to 4\n" + actions);
}

TEST_CASE("a prompt is cut by its history first and its regions next, and by nothing else") {
  auto seen = sample::observation();
  REQUIRE_FALSE(seen.history.empty());
  const std::vector<Action> legal = {action("tiling", "f/i", "the i loop of f", 2), Action::stop()};
  const auto whole = policy_prompt({}, seen, legal).context;
  const auto no_history = policy_prompt({}, seen, legal, PromptCut::history).context;
  const auto no_regions = policy_prompt({}, seen, legal, PromptCut::regions).context;
  CHECK(contains(whole, "- step 4"));
  CHECK_FALSE(contains(no_history, "- step 4"));
  CHECK(contains(no_history, "earlier ones left out"));
  CHECK(contains(no_history, "## Regions"));
  CHECK_FALSE(contains(no_regions, "- step 4"));
  CHECK_FALSE(contains(no_regions, "## Regions"));
  for (const auto& text : {no_history, no_regions}) {
    CHECK(contains(text, "void f(float* x) {}"));
    CHECK(contains(text, "- tiling the i loop of f in line 2 to 4\n"));
  }
}
