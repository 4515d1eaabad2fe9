#pragma once
/// Servers of language models in memory, each speaking as its namesake does, with a toy model behind them
/// whose log-probabilities a test can compute by itself.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/scoring.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace toy_scoring {

using mtmc::detail::Json;

inline std::uint32_t hash(std::string_view text, std::uint32_t seed = 2166136261U) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619U;
  return seed ^ (seed >> 15U);
}

/// Cuts text into pieces of at most four letters, of which the first keeps the blank before it; digits are in
/// threes from the right; signs and the bytes of other characters are alone. A colon swallows what follows it
/// if that begins with " x".
struct ToyModel {
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  std::vector<std::string> tokens(const std::string& text) const {
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t n = 1;
      if (text.compare(i, 3, ": x") == 0)
        n = 3;
      else if (digit(text[i])) {
        while (i + n < text.size() && digit(text[i + n])) ++n;
        n = n % 3 == 0 ? 3 : n % 3;
      } else if (letter(text[i]) || (text[i] == ' ' && i + 1 < text.size() && letter(text[i + 1])))
        while (n < 4 + (text[i] == ' ') && i + n < text.size() && letter(text[i + n])) ++n;
      pieces.push_back(text.substr(i, n));
      i += n;
    }
    return pieces;
  }
  static std::int64_t id(const std::string& token) { return static_cast<std::int64_t>(hash(token) >> 4U); }

  /// Of a token after the one before it and the number of those before that.
  double logprob(const std::vector<std::string>& all, std::size_t at) const {
    if (all[at] == " Pari") return -0.25;
    if (all[at] == " bana") return -6;
    if (all[at] == "@") return -9999; // what a server says of the impossible
    const auto mixed = hash(all[at], hash(all[at - 1], static_cast<std::uint32_t>(at)));
    return -0.01 - static_cast<double>(mixed % 100'000) / 30'000.0;
  }

  /// The sum over what is behind the tokens that the whole shares with the context: what a scorer must find.
  mtmc::ScoredContinuation expected(const std::string& context, const std::string& continuation) const {
    const auto before = tokens(context);
    const auto all = tokens(context + continuation);
    std::size_t first = 0;
    while (first < before.size() && before[first] == all[first]) ++first;
    mtmc::ScoredContinuation score;
    score.boundary_merge = first < before.size();
    for (std::size_t i = first; i < all.size(); ++i) {
      score.clamped |= logprob(all, i) < -50;
      score.logprob_sum += std::max(logprob(all, i), -50.0);
      ++score.tokens;
    }
    return score;
  }

  /// How much it likes an item of a list, in whatever company.
  double weight(const std::string& item) const {
    if (item == "Paris") return 100;
    if (item == "banana") return 1;
    return std::exp(static_cast<double>(hash(item) % 1000) / 250.0);
  }
};

/// What a server is to do wrong, what it was asked, and its model.
struct State {
  std::string kind;
  ToyModel model{};
  std::vector<mtmc::HttpRequest> asked{};
  /// Tokens that somebody has seen, by their ids.
  std::map<std::int64_t, std::string> vocabulary{};
  bool backwards = false;
  /// So many answers leave out this index.
  int drops = 0;
  std::size_t dropped = 0;
  bool no_echo = false;
  /// What is generated is the end, which has no text.
  bool ends_at_once = false;
  /// The tokens lack the last one, and each has the score of the one after it, as with llama-cpp-python where
  /// a model has no begin token.
  bool shifted = false;
  /// Grammars are not kept.
  bool no_grammar = false;
  bool first_has_score = false;
  bool hates_paris = false;
  /// Added to the first score of every further answer.
  double drift = 0;
  /// Tokens of the context; more is an error.
  std::size_t context_length = 1 << 20;
  /// Blanks that the offsets count too many.
  int offset_shift = 0;
  /// Share of the probability that letters have.
  double label_mass = 0.9;
  /// How many times likelier than it should be the first of a list is.
  double place_bias = 1;
  bool no_logprobs = false;
  bool no_chat = false;
  bool no_models = false;
  bool no_schema = false;
  bool raw_nonfinite = false;
  std::string chat_text{};
  /// Connections that are accepted before the server is gone.
  std::size_t lives = 1 << 20;
  /// Every answer from now on, if not 0.
  int status = 0;
  std::string error_text = R"({"error":{"message":"out of order"}})";
};

inline mtmc::HttpResponse reply(const Json& body, int status = 200) {
  mtmc::HttpResponse response;
  response.status = status;
  response.body = body.dump();
  return response;
}
inline mtmc::HttpResponse refuse(int status, const std::string& message, const std::string& code = "") {
  return reply({{"error", {{"message", message}, {"code", code}}}}, status);
}

inline std::int64_t code_points(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}
inline Json jsonable(const std::string& piece) { // a byte of a longer character alone is no text
  return static_cast<unsigned char>(piece[0]) < 0x80 ? Json(piece) : Json("");
}

inline double scored(const State& state, const std::vector<std::string>& all, std::size_t at) {
  const double logprob = state.model.logprob(all, at);
  if (state.hates_paris && all[at] == " Pari") return -7;
  return at + 1 == all.size() ? logprob + state.drift * static_cast<double>(state.asked.size()) : logprob;
}

/// The list of a question with marks: "A: tiling".
inline std::vector<std::string> listed(const std::string& question) {
  std::vector<std::string> items;
  auto at = question.find("Which of these should come next?\n");
  at = question.find('\n', at) + 1;
  for (auto end = question.find('\n', at); end != std::string::npos; end = question.find('\n', at)) {
    const auto line = question.substr(at, end - at);
    const auto colon = line.find(": ");
    if (colon == std::string::npos || colon > 3) break;
    items.push_back(line.substr(colon + 2));
    at = end + 1;
  }
  return items;
}

/// Log-probabilities of the letters of a list, and of a blank for the rest.
inline std::map<std::string, double> letters(const State& state, const std::string& question) {
  const auto items = listed(question);
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    weights.push_back(state.model.weight(items[i]) * (i == 0 ? state.place_bias : 1));
    sum += weights.back();
  }
  std::map<std::string, double> result;
  for (std::size_t i = 0; i < items.size() && i < 20; ++i)
    result[(i % 2 == 0 ? " " : "") + std::string(1, static_cast<char>('A' + i))] =
        std::log(weights[i] / sum * state.label_mass);
  return result;
}

/// OpenAI's chat completions, as all servers have them.
inline mtmc::HttpResponse chat(State& state, const Json& body) {
  if (state.no_chat) return refuse(400, "this model has no chat template");
  const std::string question = body["messages"].back()["content"];
  Json choice = {{"index", 0}, {"finish_reason", "stop"}, {"message", {{"role", "assistant"}}}};
  if (body.contains("response_format") && state.no_schema) return refuse(400, "no response_format here");
  const auto items = listed(question);
  const auto best =
      std::max_element(items.begin(), items.end(), [&](const std::string& a, const std::string& b) {
        return state.model.weight(a) < state.model.weight(b);
      });
  choice["message"]["content"] = state.chat_text.empty()
                                     ? "{\"action\": " + std::to_string(best - items.begin()) + "}"
                                     : state.chat_text;
  if (body.value("logprobs", false) && !state.no_logprobs) {
    Json top = Json::array();
    for (const auto& [token, logprob] : letters(state, question))
      top.push_back({{"token", token}, {"logprob", logprob}});
    choice["logprobs"]["content"] = Json::array({{{"token", "A"}, {"top_logprobs", top}}});
  }
  Json choices = Json::array();
  for (int i = 0; i < body.value("n", 1); ++i) choices.push_back(choice);
  return reply({{"choices", choices}, {"usage", {{"prompt_tokens", 50}, {"completion_tokens", 1}}}});
}

/// Ids of a text's tokens, which the server knows from then on.
inline std::vector<std::int64_t> ids_of(State& state, const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const auto& token : state.model.tokens(text)) {
    ids.push_back(ToyModel::id(token));
    state.vocabulary[ids.back()] = token;
  }
  return ids;
}
/// The tokens that a grammar `root ::= <[1]> <[2]>` allows.
inline std::vector<std::string> tokens_of_grammar(const State& state, const std::string& grammar) {
  std::vector<std::string> tokens;
  for (auto at = grammar.find("<["); at != std::string::npos; at = grammar.find("<[", at + 1))
    tokens.push_back(state.vocabulary.at(std::stoll(grammar.substr(at + 2))));
  return tokens;
}
inline bool part_of_character(const std::string& token) {
  return static_cast<unsigned char>(token[0]) >= 0x80;
}

/// Of llama-cpp-python, where its model has one.
inline constexpr std::int64_t begin_token = 1;

/// Completions of llama-cpp-python that a grammar of tokens makes. A part of a character ends the server.
inline mtmc::HttpResponse forced_completion(State& state, const Json& body) {
  const std::string prompt = body["prompt"];
  auto all = state.model.tokens(prompt);
  const auto before = all.size();
  std::string text;
  Json texts = Json::array(), logprobs = Json::array();
  auto wanted = tokens_of_grammar(state, body["grammar"]);
  if (std::any_of(wanted.begin(), wanted.end(), part_of_character)) {
    state.lives = 0;
    return {};
  }
  if (state.no_grammar) wanted = {"as", "I", "like"};
  for (const auto& token : wanted) {
    all.push_back(token);
    text += token;
    texts.push_back(token);
    logprobs.push_back(scored(state, all, all.size() - 1));
  }
  Json choice = {{"index", 0}, {"text", text}, {"finish_reason", "length"}};
  choice["logprobs"] = {{"tokens", texts}, {"token_logprobs", logprobs}};
  return reply(
      {{"choices", {choice}},
       {"usage",
        {{"prompt_tokens", before + (state.shifted ? 0 : 1)}, {"completion_tokens", all.size() - before}}}});
}

/// Completions of OpenAI's legacy form.
inline mtmc::HttpResponse completions(State& state, const Json& body) {
  std::vector<std::string> prompts;
  if (body["prompt"].is_string())
    prompts = {body["prompt"].get<std::string>()};
  else
    prompts = body["prompt"].get<std::vector<std::string>>();
  if (!body.value("echo", false)) { // letters
    if (state.no_logprobs) return refuse(400, "no logprobs here");
    Json choice = {{"index", 0}, {"text", " A"}};
    choice["logprobs"]["top_logprobs"] = Json::array({letters(state, prompts[0])});
    return reply({{"choices", {choice}}, {"usage", {{"prompt_tokens", 50}, {"completion_tokens", 1}}}});
  }
  Json choices = Json::array();
  std::size_t sent = 0;
  int generated = 0;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    auto all = state.model.tokens(prompts[p]);
    if (all.size() > state.context_length)
      return refuse(400, "This model's maximum context length is " + std::to_string(state.context_length));
    sent += all.size();
    int more = body["max_tokens"].get<int>();
    if (state.ends_at_once && state.kind == "llama-cpp-python") more = 0; // it leaves the end out
    if (more > 0) all.push_back(state.ends_at_once ? "</s>" : "!");
    generated += more;
    Json texts = Json::array(), logprobs = Json::array(), offsets = Json::array();
    std::int64_t before = 0;
    for (std::size_t i = state.no_echo ? all.size() - static_cast<std::size_t>(more) : 0; i < all.size();
         ++i) {
      texts.push_back(jsonable(all[i]));
      offsets.push_back(before + (i > 0 ? state.offset_shift : 0));
      logprobs.push_back(i == 0 && !state.first_has_score ? Json()
                                                          : Json(i == 0 ? -1.0 : scored(state, all, i)));
      before += code_points(all[i]);
    }
    if (state.shifted) {
      texts.erase(texts.size() - 1);
      offsets.erase(offsets.size() - 1);
      logprobs.erase(std::size_t{1});
    }
    Json choice = {
        {"index", p},
        {"text", (state.no_echo ? "" : prompts[p]) + (more > 0 && !state.ends_at_once ? "!" : "")}};
    choice["logprobs"] = {{"tokens", texts}, {"token_logprobs", logprobs}, {"text_offset", offsets}};
    if (state.drops > 0 && p == state.dropped) {
      --state.drops;
      continue;
    }
    choices.push_back(choice);
  }
  if (state.backwards) std::reverse(choices.begin(), choices.end());
  auto response =
      reply({{"choices", choices}, {"usage", {{"prompt_tokens", sent}, {"completion_tokens", generated}}}});
  if (state.raw_nonfinite) // as Python's own writer does
    for (auto at = response.body.find("-9999.0"); at != std::string::npos; at = response.body.find("-9999.0"))
      response.body.replace(at, 7, "-Infinity");
  return response;
}

inline Json models(const std::string& owner) {
  return {{"object", "list"}, {"data", {{{"id", "toy"}, {"owned_by", owner}}}}};
}

inline mtmc::HttpResponse vllm(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("vllm"));
  if (path == "/v1/completions") return completions(state, body);
  if (path == "/v1/chat/completions") return chat(state, body);
  return refuse(404, "Not Found");
}

/// No arrays, and a new token however few are asked for: 0 means as many as there is room for. What it does
/// not understand is an error of its own.
inline mtmc::HttpResponse llama_cpp_python(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("me"));
  if (path == "/v1/chat/completions") return chat(state, body);
  if (path == "/extras/tokenize") {
    auto ids = ids_of(state, body["input"]);
    if (!state.shifted) ids.insert(ids.begin(), begin_token);
    return reply({{"tokens", ids}});
  }
  if (path == "/extras/detokenize") {
    std::string text;
    for (const auto& id : body["tokens"])
      if (id != begin_token) text += state.vocabulary.at(id);
    return reply({{"text", text}});
  }
  if (path != "/v1/completions") return refuse(404, "Not Found");
  if (body["prompt"].is_array()) return refuse(500, "");
  if (body["max_tokens"] == 0) throw std::logic_error("this would write until there is no more room");
  if (state.no_logprobs && body.contains("logprobs"))
    return refuse(500, "logprobs is not supported for models created with logits_all=False");
  if (body.contains("grammar")) return forced_completion(state, body);
  return completions(state, body);
}

inline mtmc::HttpResponse sglang(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("sglang"));
  if (path == "/v1/chat/completions") return chat(state, body);
  if (path != "/generate") return refuse(404, "Not Found");
  const bool one = body["text"].is_string();
  Json answers = Json::array();
  for (const auto& text : one ? std::vector<std::string>{body["text"].get<std::string>()}
                              : body["text"].get<std::vector<std::string>>()) {
    const auto all = state.model.tokens(text);
    if (all.size() > state.context_length)
      return reply({{"object", "error"}, {"message", "The input is longer than the model's context length"}},
                   400);
    Json meta = {{"prompt_tokens", all.size()}, {"completion_tokens", 0}, {"cached_tokens", 3}};
    if (body.value("return_logprob", false)) {
      Json entries = Json::array();
      const auto start = body["logprob_start_len"].get<std::size_t>();
      for (std::size_t i = start; i < all.size(); ++i)
        entries.push_back(
            {i == start && !state.first_has_score ? Json() : Json(i == 0 ? -1.0 : scored(state, all, i)),
             ToyModel::id(all[i]), Json()});
      meta["input_token_logprobs"] = entries;
    }
    answers.push_back({{"text", ""}, {"meta_info", meta}});
  }
  if (state.drops > 0 && !one) {
    --state.drops;
    answers.erase(state.dropped);
  }
  return reply(one ? answers[0] : answers);
}

inline mtmc::HttpResponse tgi(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("toy"));
  if (path == "/v1/chat/completions") return chat(state, body);
  if (path != "/generate") return refuse(404, "Not Found");
  const auto all = state.model.tokens(body["inputs"]);
  if (all.size() > state.context_length)
    return reply({{"error", "Input validation error: `inputs` must have less than 9 tokens"},
                  {"error_type", "validation"}},
                 422);
  Json prefill = Json::array();
  for (std::size_t i = 0; i < all.size() && !state.no_echo; ++i)
    prefill.push_back({{"id", ToyModel::id(all[i])},
                       {"text", jsonable(all[i])},
                       {"logprob", i == 0 ? Json() : Json(scored(state, all, i))}});
  return reply({{"generated_text", "!"}, {"details", {{"generated_tokens", 1}, {"prefill", prefill}}}});
}

inline mtmc::HttpResponse llama_cpp(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("llamacpp"));
  if (path == "/props") return reply({{"default_generation_settings", 1}, {"chat_template", "{{m}}"}});
  if (path == "/lora-adapters") return reply(Json::array({{{"id", 4}, {"path", "policy.gguf"}}}));
  if (path == "/v1/chat/completions") return chat(state, body);
  if (path == "/tokenize") {
    Json tokens = Json::array();
    for (const auto id : ids_of(state, body["content"])) {
      const auto& token = state.vocabulary[id];
      tokens.push_back(
          {{"id", id}, {"piece", part_of_character(token) ? Json(Json::array({0})) : Json(token)}});
      if (!body.value("with_pieces", false)) tokens.back() = id;
    }
    return reply({{"tokens", tokens}});
  }
  if (path != "/completion") return refuse(404, "File Not Found", "not_found_error");
  std::vector<std::string> all;
  for (const auto& id : body["prompt"]) all.push_back(state.vocabulary.at(id));
  const auto before = all.size();
  if (before > state.context_length)
    return refuse(400, "request (" + std::to_string(before) + " tokens) exceeds the available context size",
                  "exceed_context_size_error");
  // A bias decides for one token, a grammar for all.
  auto wanted = tokens_of_grammar(state, body.value("grammar", ""));
  if (std::any_of(wanted.begin(), wanted.end(), part_of_character))
    return refuse(500, "got exception: Unexpected empty grammar stack after accepting piece: \x1a (30)");
  if (body.contains("logit_bias")) wanted = {state.vocabulary.at(body["logit_bias"][0][0])};
  if (state.no_grammar) wanted.back() = wanted.back() == "!" ? "?" : "!";
  if (wanted.size() < body["n_predict"]) wanted.emplace_back(""); // the end
  Json probabilities = Json::array();
  for (const auto& token : wanted) {
    all.push_back(token);
    const auto at = all.size() - 1;
    Json one = {{"id", token.empty() ? 2 : ToyModel::id(token)}, {"token", token}};
    one["logprob"] = token.empty() ? -3.0 : scored(state, all, at);
    one["top_logprobs"] = Json::array();
    auto other = all;
    for (const auto& [id, text] : state.vocabulary) {
      other[at] = text;
      if (one["top_logprobs"].size() < body["n_probs"])
        one["top_logprobs"].push_back(
            {{"id", id}, {"token", jsonable(text)}, {"logprob", scored(state, other, at)}});
    }
    if (token.empty() || !part_of_character(token)) probabilities.push_back(one);
  }
  Json answer = {
      {"content", "as I was told"}, {"tokens_evaluated", before}, {"tokens_predicted", wanted.size()}};
  answer["timings"] = {{"cache_n", before - 1}};
  if (!probabilities.empty()) answer["completion_probabilities"] = probabilities;
  return reply(answer);
}

/// A service that knows chat completions alone.
inline mtmc::HttpResponse chat_service(State& state, const std::string& path, const Json& body) {
  if (path == "/v1/models") return reply(models("openai"));
  if (path == "/v1/chat/completions") return chat(state, body);
  return refuse(404, "this is a chat model");
}

struct Server {
  std::shared_ptr<State> state;

  mtmc::HttpResponse send(const mtmc::HttpRequest& request, const mtmc::BodySink&, mtmc::Deadline,
                          std::stop_token stop) {
    state->asked.push_back(request);
    if (stop.stop_requested() || state->asked.size() > state->lives) {
      mtmc::HttpResponse response;
      response.failure =
          stop.stop_requested() ? mtmc::TransportFailure::cancelled : mtmc::TransportFailure::no_connection;
      return response;
    }
    if (state->status != 0) {
      mtmc::HttpResponse response;
      response.status = state->status;
      response.body = state->error_text;
      return response;
    }
    const auto path = request.url.substr(request.url.find('/', request.url.find("://") + 3));
    if (state->no_models) {
      if (path == "/v1/models") return refuse(404, "Not Found");
      if (path == "/info" && state->kind == "tgi") return reply({{"model_id", "toy"}});
      if (path == "/version" && state->kind == "vllm") return reply({{"version", "0.11"}});
      if (path == "/get_model_info" && state->kind == "sglang") return reply({{"model_path", "toy"}});
    }
    const auto body = request.body.empty() ? Json() : mtmc::detail::parse_text(request.body, true);
    if (state->kind == "vllm") return vllm(*state, path, body);
    if (state->kind == "sglang") return sglang(*state, path, body);
    if (state->kind == "tgi") return tgi(*state, path, body);
    if (state->kind == "llama.cpp") return llama_cpp(*state, path, body);
    if (state->kind == "llama-cpp-python") return llama_cpp_python(*state, path, body);
    return chat_service(*state, path, body);
  }
};

/// A server of that kind, and an endpoint for it that tries everything once.
struct Place {
  std::shared_ptr<State> state;
  explicit Place(const std::string& kind) : state(std::make_shared<State>()) { state->kind = kind; }

  mtmc::Endpoint endpoint() const {
    mtmc::EndpointOptions options;
    options.base_url = "http://toy.test/v1";
    options.retries.max_retries = 0;
    return {mtmc::AnyTransport(Server{state}), options};
  }
  mtmc::ContinuationScorer scorer(mtmc::ScoringOptions options = {}) const {
    return mtmc::ContinuationScorer(endpoint(), std::move(options));
  }
  /// The bodies of the requests to a path.
  std::vector<Json> bodies(std::string_view path) const {
    std::vector<Json> found;
    for (const auto& request : state->asked)
      if (request.url.ends_with(path) && !request.body.empty())
        found.push_back(mtmc::detail::parse_text(request.body, true));
    return found;
  }
};

} // namespace toy_scoring
