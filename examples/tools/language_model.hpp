#pragma once
// Language models on the command lines of mtmc-optimize and, as a served policy, mtmc-collect: endpoints,
// records and batches, coders and policies, and what is shown instead of being sent.

#include <mtmc/coder/openai.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/net/batch.hpp>
#include <mtmc/net/cassette.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/policy/chat.hpp>
#include <mtmc/policy/http.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/single_pass.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace command_line {

/// Where a model is.
struct ModelArguments {
  std::string url;
  std::string model;
  std::string profile;
  std::string key_variable;
  std::string ca_file;
};

struct LanguageModelArguments {
  ModelArguments coder;
  ModelArguments policy;
  bool from_environment = false;
  std::string card;
  std::string record;
  std::string play;
  std::string batch;
  std::string prices;
  std::string examples;
  bool no_examples = false;
  std::int64_t max_tokens_in_all = 0;
  double max_cost = 0;
  mtmc::OpenAiCoderOptions options;
};

/// The options of a policy that is served. `otherwise` says what is taken where its endpoint or model is not
/// given.
inline void add_served_policy_options(CLI::App& app, LanguageModelArguments& arguments,
                                      const std::string& group, const std::string& otherwise = {}) {
  app.add_option("--policy-endpoint", arguments.policy.url, "the policy's endpoint" + otherwise)
      ->group(group);
  app.add_option("--policy-model", arguments.policy.model, "the policy's model" + otherwise)->group(group);
  app.add_option("--policy-card", arguments.card,
                 "card (JSON) of a served policy: template, normalisation, model")
      ->group(group)
      ->check(readable_file());
}

inline void add_language_model_options(CLI::App& app, LanguageModelArguments& arguments) {
  const char* const group = "Language models (--coder openai, --policy chat or served)";
  const auto option = [&](const char* name, auto& value, const char* text) {
    return app.add_option(name, value, text)->group(group);
  };
  auto* const url = option("--endpoint", arguments.coder.url,
                           "base URL with its version, such as http://localhost:8000/v1");
  option("--model", arguments.coder.model, "name of the model");
  std::vector<std::string> profiles;
  for (const auto& profile : mtmc::endpoint_profiles()) profiles.push_back(profile.name);
  option("--endpoint-profile", arguments.coder.profile,
         "what the endpoint understands; recognised by the URL where possible")
      ->check(CLI::IsMember(profiles));
  option("--key-variable", arguments.coder.key_variable, "environment variable that holds the key");
  option("--ca-file", arguments.coder.ca_file, "certificates that are trusted, instead of the system's")
      ->check(readable_file());
  app.add_flag("--from-environment", arguments.from_environment,
               "take OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL from the environment")
      ->group(group)
      ->excludes(url);
  add_served_policy_options(app, arguments, group, "; else the coder's");
  option("--answer-tokens", arguments.options.max_tokens, "largest answer, reasoning included")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  option("--coder-temperature", arguments.options.temperature, "of the coder; 0.7 if not given");
  option("--coder-seed", arguments.options.seed, "of the first sample, for endpoints that heed it");
  option("--reasoning-effort", arguments.options.reasoning_effort, "low, medium, high, ...");
  auto* const stream = app.add_flag("--stream", arguments.options.stream, "have answers streamed");
  stream->group(group);
  app.add_flag("--edits", arguments.options.prompt.edits,
               "ask for search/replace edits instead of whole kernels")
      ->group(group);
  app.add_flag("--plain-prompt", arguments.options.prompt.plain,
               "prompts without hardware, times and diagnostics: the same on every machine, so that --play "
               "fits anywhere")
      ->group(group);
  option("--prompt-bytes", arguments.options.prompt.max_bytes, "largest prompt")->capture_default_str();
  auto* const examples =
      option("--examples", arguments.examples, "folder of examples, beside the built-in ones")
          ->check(readable_file(true));
  app.add_flag("--no-examples", arguments.no_examples, "prompts without examples")
      ->group(group)
      ->excludes(examples);
  option(
      "--prices", arguments.prices,
      R"(JSON file: [{"model": "name or beginning*", "prompt": 1.1, "completion": 4.4, "cached": 0.3}], money for a million tokens)")
      ->check(readable_file());
  auto* const tokens = option(
      "--max-tokens", arguments.max_tokens_in_all,
      "never use more tokens than this, for all tasks together; a resumed run counts anew; 0 = no cap");
  command_line::add_old_name(app, "--most-tokens", tokens, arguments.max_tokens_in_all);
  auto* const cost = option("--max-cost", arguments.max_cost, "the same for money, by --prices");
  command_line::add_old_name(app, "--most-cost", cost, arguments.max_cost);
  auto* const record =
      option("--record", arguments.record, "write all questions and answers to this cassette");
  auto* const play =
      option("--play", arguments.play,
             "take all answers from this cassette; nothing is sent. Record and play with --plain-prompt: "
             "other questions are seldom the same twice")
          ->check(readable_file());
  auto* const batch =
      option("--batch", arguments.batch,
             "write questions to this folder instead of sending them; the run stops with exit "
             "code 75 and goes on with --resume once the answers are there");
  record->excludes(play)->excludes(batch);
  play->excludes(batch);
  stream->excludes(batch);
}

/// What a model's URL and name are given with.
struct ModelFlags {
  const char* url;
  const char* model;
};
inline constexpr ModelFlags policy_flags{"--policy-endpoint (or --endpoint)", "--policy-model (or --model)"};

/// Everything that asks, sharing one account and one way to the network.
class LanguageModels {
public:
  explicit LanguageModels(const LanguageModelArguments& arguments)
      : arguments_(arguments), transport_(make_transport(arguments)),
        spending_({.tokens = arguments.max_tokens_in_all, .cost = arguments.max_cost}) {
    if (!arguments.prices.empty()) prices_ = read_prices(arguments.prices);
  }

  [[nodiscard]] mtmc::OpenAiCoder coder() {
    auto options = arguments_.options;
    if (arguments_.no_examples) options.examples = mtmc::ExampleLibrary{};
    if (!arguments_.examples.empty()) options.examples.add_folder(arguments_.examples);
    return mtmc::OpenAiCoder{client(arguments_.coder, {"--endpoint", "--model"}), std::move(options)};
  }
  [[nodiscard]] mtmc::ChatClient policy_client() { return client(policy_arguments(), policy_flags); }
  /// Asks its server what that can do. `flags`: what the program calls its URL and name.
  [[nodiscard]] mtmc::HttpPolicy served_policy(const ModelFlags& flags = policy_flags,
                                               std::stop_token stop = {}) const {
    mtmc::HttpPolicyOptions options;
    if (!arguments_.card.empty()) options.card = mtmc::load_policy_card(arguments_.card);
    try {
      return mtmc::HttpPolicy{endpoint(policy_arguments(), flags), std::move(options), std::move(stop)};
    } catch (const mtmc::Error& error) {
      if (error.option() != "EndpointOptions::base_url") throw;
      throw error.about(flags.url);
    }
  }
  /// The models for which the file of prices has none.
  [[nodiscard]] const std::set<std::string>& without_price() const noexcept { return without_price_; }
  /// The requests that wait for their answers, if this is a batch run.
  [[nodiscard]] std::optional<mtmc::BatchTransport>& batch() noexcept { return batch_; }
  /// The recording that answers, if there is one.
  [[nodiscard]] std::optional<mtmc::ReplayTransport>& replay() noexcept { return replay_; }
  [[nodiscard]] mtmc::Usage spent() const { return spending_.spent(); }

private:
  [[nodiscard]] mtmc::AnyTransport make_transport(const LanguageModelArguments& arguments) {
    if (!arguments.play.empty()) return replay_.emplace(arguments.play);
    if (!arguments.batch.empty()) {
      batch_.emplace(mtmc::BatchOptions{.folder = arguments.batch});
      return *batch_;
    }
    mtmc::AnyTransport network = mtmc::CurlTransport{{.ca_file = arguments.coder.ca_file}};
    if (arguments.record.empty()) return network;
    return mtmc::RecordingTransport{std::move(network), arguments.record};
  }

  [[nodiscard]] ModelArguments policy_arguments() const {
    auto model = arguments_.policy;
    if (model.url.empty()) model.url = arguments_.coder.url;
    if (model.model.empty()) model.model = arguments_.coder.model;
    model.key_variable = arguments_.coder.key_variable;
    if (arguments_.policy.url.empty()) model.profile = arguments_.coder.profile;
    return model;
  }

  [[nodiscard]] mtmc::Endpoint endpoint(const ModelArguments& model, const ModelFlags& flags) const {
    mtmc::EndpointOptions options;
    if (arguments_.from_environment) options = mtmc::endpoint_from_environment();
    if (!model.url.empty()) options.base_url = model.url;
    if (!model.model.empty()) options.model = model.model;
    if (!model.key_variable.empty()) options.api_key = key_of(model.key_variable);
    check_named(options, flags);
    if (!model.profile.empty()) options.profile = mtmc::endpoint_profile(model.profile);
    return mtmc::Endpoint{transport_, std::move(options)};
  }
  /// Says which half of a model's name and place is missing.
  void check_named(const mtmc::EndpointOptions& options, const ModelFlags& flags) const {
    const auto refuse = [](const std::string& what, const std::string& remedy) {
      throw mtmc::Error(mtmc::error_id::net_options, what, remedy);
    };
    if (!options.base_url.empty() && !options.model.empty()) return;
    if (arguments_.from_environment) // has OpenAI's own URL where none is set
      refuse("OPENAI_MODEL is not set, from which --from-environment takes the model's name",
             std::string("Set it (export OPENAI_MODEL=...), or give ") + flags.model);
    if (options.base_url.empty() && options.model.empty())
      refuse("no language model is named",
             std::string("Give ") + flags.url + " and " + flags.model + ", or --from-environment");
    if (options.model.empty())
      refuse(std::string(flags.model) + " is missing",
             "Name the model that " + options.base_url + " is to answer with");
    refuse(std::string(flags.url) + " is missing",
           "Give the base URL of the server that has the model \"" + options.model + '"');
  }
  /// The key in an environment variable that the user named. Where nothing is sent it may be missing.
  [[nodiscard]] std::string key_of(const std::string& variable) const {
    const char* const key = std::getenv(variable.c_str());
    const bool missing = key == nullptr || *key == '\0';
    if (missing && arguments_.play.empty() && arguments_.batch.empty())
      throw mtmc::Error(mtmc::error_id::net_options,
                        "the environment variable " + variable +
                            (key == nullptr ? " is not set" : " is empty"),
                        "Put the endpoint's key into it (export " + variable +
                            "=...), or leave --key-variable out where no key is needed");
    return missing ? std::string() : key;
  }
  [[nodiscard]] mtmc::ChatClient client(const ModelArguments& model, const ModelFlags& flags) {
    auto asked = endpoint(model, flags);
    const auto& name = asked.options().model;
    if (!arguments_.prices.empty() && mtmc::find_price(prices_, name) == nullptr) without_price_.insert(name);
    return mtmc::ChatClient{std::move(asked), {.prices = prices_, .spending = spending_}};
  }

  static mtmc::PriceTable read_prices(const std::string& path) {
    mtmc::PriceTable table;
    const auto wrong = [&](const std::string& what) {
      return mtmc::Error(mtmc::error_id::json_malformed, what, "See --help for the form of the file", path);
    };
    const auto json = nlohmann::json::parse(mtmc::read_file(path), nullptr, false);
    if (!json.is_array()) throw wrong("the prices are no JSON list");
    for (const auto& entry : json) {
      if (!entry.is_object() || !entry.contains("model") || !entry["model"].is_string())
        throw wrong("a price names no model");
      mtmc::Price price{.model = entry["model"].get<std::string>()};
      for (const auto& [name, value] : entry.items()) {
        if (name == "model") continue;
        if (name != "prompt" && name != "completion" && name != "cached")
          throw wrong("the price of " + price.model + " has the unknown field \"" + name + '"');
        if (!value.is_number() || value.get<double>() < 0)
          throw wrong("the price of " + price.model + " has a \"" + name +
                      "\" that is not an amount of money");
        if (name == "prompt") price.prompt = value;
        if (name == "completion") price.completion = value;
        if (name == "cached") price.cached = value.get<double>();
      }
      table.push_back(std::move(price));
    }
    return table;
  }

  const LanguageModelArguments& arguments_;
  std::optional<mtmc::BatchTransport> batch_;
  std::optional<mtmc::ReplayTransport> replay_;
  mtmc::AnyTransport transport_;
  mtmc::Spending spending_;
  mtmc::PriceTable prices_;
  std::set<std::string> without_price_;
};

} // namespace command_line
