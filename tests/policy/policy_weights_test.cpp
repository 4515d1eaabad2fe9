// Weights as a file: what is written is read, and what is damaged is refused with a reason.

#include <mtmc/core/error.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/support/philox.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;
using doctest::Contains;

namespace {
PolicyWeights some_weights() {
  PolicyWeights weights;
  weights.card = {.name = "test",
                  .licence = "MIT",
                  .features = feature_version,
                  .languages = {"cpp"},
                  .devices = {"cpu"},
                  .optimizations = {"tiling", "fusion"},
                  .prior_weight = 1,
                  .training = R"({"steps":7})"};
  weights.network.shape = {state_feature_names().size(), action_feature_names().size(), 4};
  PhiloxEngine random{1};
  weights.network.weights.resize(NetworkLayers(weights.network.shape).size());
  for (double& one : weights.network.weights)
    one = static_cast<double>(static_cast<float>(2 * random.uniform() - 1));
  return weights;
}
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}
} // namespace

TEST_CASE("policy weights: a file gives back the card, and weights of f32 bit for bit") {
  const auto weights = some_weights();
  const auto read = read_policy_weights(write_policy_weights(weights));
  CHECK(read.card == weights.card);
  CHECK(read.network.shape == weights.network.shape);
  CHECK(read.network.weights == weights.network.weights);
}

TEST_CASE("policy weights: a card in one line says what of it is known") {
  auto card = some_weights().card;
  CHECK(describe(card) == "test: cpp on cpu");
  card.training = R"({"method":"ppo","data":{"tasks":3,"kernels":40},"held_out_ratio":0.5})";
  CHECK(describe(card) ==
        "test: cpp on cpu; ppo on 3 tasks, 40 kernels; 0.500 of the best in trees held out");
  card.training = R"({"method":5,"data":{"tasks":3,"kernels":40}})";
  CHECK(describe(card) == "test: cpp on cpu; trained on 3 tasks, 40 kernels");
  card.training = "no JSON";
  CHECK(describe(card) == "test: cpp on cpu");
}

TEST_CASE("policy weights: other features, a newer form, and damage are refused, with the place") {
  const auto text = write_policy_weights(some_weights());
  const auto refusal = [](const std::string& broken) {
    try {
      (void)read_policy_weights(broken, "weights.json");
    } catch (const Error& error) {
      CHECK(error.id() == error_id::policy_weights);
      CHECK(error.place() == "weights.json");
      return std::string(error.message());
    }
    FAIL("accepted");
    return std::string();
  };
  const std::string version = std::to_string(feature_version);
  CHECK(refusal(changed(text, "\"features\": " + version, "\"features\": 99")).find("version 99") !=
        std::string::npos);
  CHECK(refusal(changed(text, "\"schema\": 1", "\"schema\": 2")).find("form 2") != std::string::npos);
  CHECK(refusal(changed(text, "\"schema\": 1", "\"schema\": 0")).find("form 0") != std::string::npos);
  for (const char* prior : {"null", "1e308", "-3"})
    CHECK(refusal(changed(text, "\"prior_weight\": 1.0", std::string("\"prior_weight\": ") + prior)).size() >
          10);
  CHECK(refusal(changed(text, "\"hidden\": 4", "\"hidden\": 5")).find("damaged") != std::string::npos);
  CHECK(refusal(changed(text, "\"hidden\": 4", "\"hidden\": -1")).find("damaged") != std::string::npos);
  CHECK(refusal(text.substr(0, text.size() / 2)).find("damaged") != std::string::npos);
  const std::string name = "\"name\": \"" + some_weights().card.name;
  CHECK(refusal(changed(text, name, name + "\\u001b[2J")).find("control characters") != std::string::npos);
  CHECK(refusal("{}").find("damaged") != std::string::npos);
  CHECK_THROWS_WITH_AS((void)load_policy_weights("/no/such/file"), Contains("cannot be read"), Error);
}

TEST_CASE("policy weights of features of version 1 score as before") {
  const NetworkShape former{
      .state = state_feature_names().size() - kernel_feature_count() + kernel_feature_count_of_version_1(),
      .action = action_feature_names().size() - action_feature_count() + action_feature_count_of_version_1(),
      .hidden = 3};
  PolicyWeights written = some_weights();
  written.card.features = 1;
  written.network = {former, {}};
  for (std::size_t i = 0; i < NetworkLayers(former).size(); ++i)
    written.network.weights.push_back(static_cast<float>(std::sin(static_cast<double>(i))));
  const auto read = read_policy_weights(write_policy_weights(written), "weights.json");
  CHECK(read.card.features == feature_version);

  // The same numbers, without and with zeros for what version 1 did not have.
  const auto numbers = [](std::size_t before, std::size_t zeros, std::size_t behind) {
    std::vector<double> all;
    for (std::size_t i = 0; i < before; ++i) all.push_back(std::cos(static_cast<double>(i)));
    all.resize(before + zeros, 0.0);
    for (std::size_t i = 0; i < behind; ++i) all.push_back(std::cos(static_cast<double>(before + i)));
    return all;
  };
  const std::size_t kernel = kernel_feature_count_of_version_1(),
                    action = action_feature_count_of_version_1();
  const std::size_t more = kernel_feature_count() - kernel, wider = action_feature_count() - action;
  NetworkActivations before, now;
  written.network.evaluate(numbers(kernel, 0, former.state - kernel),
                           numbers(action, 0, former.action - action), before);
  read.network.evaluate(numbers(kernel, more, former.state - kernel),
                        numbers(action, wider, former.action - action), now);
  CHECK(now.scores == before.scores);
  CHECK(now.value == before.value);
}
