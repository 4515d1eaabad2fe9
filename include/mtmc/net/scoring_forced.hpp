#pragma once
/// Scores out of continuations that a grammar of token ids makes the model write: llama.cpp's own server and
/// the one of llama-cpp-python. Both tell a token's log-probability before the grammar forbids the others.

#include <mtmc/net/scoring_echo.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A text's tokens as the server makes them.
struct TextTokens {
  std::vector<std::int64_t> ids{};
  /// Of each token: it is text by itself, no part of a longer character.
  std::vector<bool> whole{};
  ChatFailure failure = ChatFailure::none;
  std::string message{};

  [[nodiscard]] bool ok() const noexcept { return failure == ChatFailure::none; }
};

/// Reads `"tokens"`: ids, or objects with `id` and `piece`, which is an array where it is no text.
[[nodiscard]] inline TextTokens read_text_tokens(const Json& body) {
  constexpr const char* none = "the server does not say what tokens a text has";
  TextTokens tokens;
  const auto* const list = member(body, "tokens");
  if (list == nullptr || !list->is_array()) return {{}, {}, ChatFailure::malformed, none};
  for (const auto& token : *list) {
    const auto id = count_in(token.is_object() ? member(token, "id") : &token);
    const auto* const piece = member(token, "piece");
    if (!id) return {{}, {}, ChatFailure::malformed, none};
    tokens.ids.push_back(*id);
    tokens.whole.push_back(piece == nullptr || piece->is_string());
  }
  return tokens;
}

[[nodiscard]] inline TextTokens ask_for_tokens(ScoringSession& session, std::string_view path,
                                               const Json& question) {
  auto answer = session.ask(path, question);
  if (!answer.ok()) return {{}, {}, answer.failure, std::move(answer.message)};
  return read_text_tokens(answer.body);
}

/// A grammar that allows these tokens and no others.
[[nodiscard]] inline std::string token_grammar(std::span<const std::int64_t> ids) {
  std::string grammar = "root ::=";
  for (const auto id : ids) grammar += " <[" + std::to_string(id) + "]>";
  return grammar;
}

/// Where the tokens of a continuation begin in the whole: behind those it shares with the context, of which
/// there must be one, as the first of all has no probability.
[[nodiscard]] inline Boundary forced_boundary(const std::vector<std::int64_t>& whole,
                                              const std::vector<std::int64_t>& context) {
  auto boundary = boundary_by_prefix(whole, context);
  boundary.first = std::max<std::size_t>(boundary.first, 1);
  return boundary;
}

/// One request of `llama_cpp_forced`; `question` says what is to be written.
[[nodiscard]] inline JsonAnswer ask_llama_cpp(ScoringSession& session, std::span<const std::int64_t> prompt,
                                              Json question) {
  question["prompt"] = Json(std::vector<std::int64_t>(prompt.begin(), prompt.end()));
  question["temperature"] = 0;
  question["cache_prompt"] = true;
  question["post_sampling_probs"] = false;
  if (session.adapter_id >= 0) question["lora"] = Json::array({{{"id", session.adapter_id}, {"scale", 1.0}}});
  auto answer = session.ask("//completion", question);
  if (!answer.ok()) return answer;
  const auto* const timings = member(answer.body, "timings");
  constexpr std::size_t bytes_per_token = 4;
  session.count(count_in(member(answer.body, "tokens_evaluated")),
                count_in(member(answer.body, "tokens_predicted")).value_or(0),
                timings == nullptr ? 0 : count_in(member(*timings, "cache_n")).value_or(0),
                prompt.size() * bytes_per_token);
  const auto* const written = member(answer.body, "completion_probabilities");
  if (written == nullptr || !written->is_array() || written->empty())
    return {{}, ChatFailure::malformed, "the answer holds no log-probabilities of tokens"};
  return {*written};
}

/// Adds the tokens from `first` to `end` to the score, by a grammar; why that fails, or nothing.
[[nodiscard]] inline JsonAnswer force_tokens(ScoringSession& session, const TextTokens& whole,
                                             std::size_t first, std::size_t end, ScoredContinuation& score) {
  const std::span ids(whole.ids);
  Json question;
  question["n_predict"] = end - first;
  question["n_probs"] = 1;
  question["grammar"] = token_grammar(ids.subspan(first, end - first));
  auto answer = ask_llama_cpp(session, ids.first(first), std::move(question));
  if (!answer.ok()) return answer;
  if (answer.body.size() != end - first) return {{}, ChatFailure::malformed, "the grammar was not kept"};
  for (std::size_t i = first; i < end; ++i) {
    const auto& token = answer.body[i - first];
    const auto* const logprob = member(token, "logprob");
    if (count_in(member(token, "id")) != whole.ids[i])
      return {{}, ChatFailure::malformed, "the grammar was not kept"};
    if (logprob == nullptr) return {{}, ChatFailure::malformed, "a token has no log-probability"};
    add_token(score, logprob_of(*logprob));
  }
  return {};
}

/// Adds a token that is part of a character. A grammar would not let it through, and the server hides its
/// log-probability when it is written, but not among the alternatives to another token (`plain`), of which
/// all are asked for.
[[nodiscard]] inline JsonAnswer look_up_token(ScoringSession& session, const TextTokens& whole,
                                              std::size_t at, std::int64_t plain, ScoredContinuation& score) {
  constexpr int more_than_any_vocabulary = 1 << 24;
  constexpr int certain = 1000;
  Json question;
  question["n_predict"] = 1;
  question["n_probs"] = more_than_any_vocabulary;
  question["logit_bias"] = Json::array({Json::array({plain, certain})});
  auto answer = ask_llama_cpp(session, std::span(whole.ids).first(at), std::move(question));
  if (!answer.ok()) return answer;
  const auto* const alternatives = member(answer.body.front(), "top_logprobs");
  if (alternatives != nullptr && alternatives->is_array())
    for (const auto& token : *alternatives)
      if (count_in(member(token, "id")) == whole.ids[at] && member(token, "logprob") != nullptr) {
        add_token(score, logprob_of(token["logprob"]));
        return {};
      }
  return {{}, ChatFailure::malformed, "a token that is part of a character has no log-probability"};
}

/// `llama_cpp_forced`: one continuation.
[[nodiscard]] inline JsonAnswer force_continuation(ScoringSession& session, const TextTokens& whole,
                                                   std::size_t first, ScoredContinuation& score) {
  const auto plain = std::find(whole.whole.begin(), whole.whole.end(), true);
  if (plain == whole.whole.end())
    return {{}, ChatFailure::malformed, "no token of the text is a whole character"};
  const auto plain_id = whole.ids[static_cast<std::size_t>(plain - whole.whole.begin())];
  for (std::size_t at = first; at < whole.ids.size();) {
    auto end = at;
    while (end < whole.ids.size() && whole.whole[end]) ++end;
    auto answer = end > at ? force_tokens(session, whole, at, end, score)
                           : look_up_token(session, whole, at, plain_id, score);
    if (!answer.ok()) return answer;
    at = std::max(end, at + 1);
  }
  return {};
}

/// `llama_cpp_forced`. Each continuation is tokenised with the context, and then written after the tokens
/// that both share.
[[nodiscard]] inline ScoredBatch score_by_forcing(ScoringSession& session, const std::string& context,
                                                  std::span<const std::string> continuations) {
  const auto tokens_of = [&session](const std::string& text) {
    Json question;
    question["content"] = text;
    question["add_special"] = true;
    question["with_pieces"] = true;
    return ask_for_tokens(session, "//tokenize", question);
  };
  auto alone = tokens_of(context);
  if (!alone.ok()) return ScoredBatch::failed(alone.failure, std::move(alone.message));
  ScoredBatch batch;
  for (const auto& continuation : continuations) {
    auto whole = tokens_of(context + continuation);
    if (!whole.ok()) return ScoredBatch::failed(whole.failure, std::move(whole.message));
    const auto boundary = forced_boundary(whole.ids, alone.ids);
    ScoredContinuation score;
    score.words = count_words(continuation);
    score.boundary_merge = boundary.merged;
    if (auto asked = force_continuation(session, whole, boundary.first, score); !asked.ok())
      return ScoredBatch::failed(std::move(asked));
    if (score.tokens == 0)
      return ScoredBatch::failed(ChatFailure::malformed, "a continuation has no token of its own");
    batch.scores.push_back(score);
  }
  return batch;
}

[[nodiscard]] inline TextTokens ask_llama_cpp_python(ScoringSession& session, const std::string& text) {
  Json question;
  session.name_model(question);
  question["input"] = text;
  return ask_for_tokens(session, "//extras/tokenize", question);
}

/// Why the echo of llama-cpp-python's server is wrong; empty where it is right. It takes the tokens' scores
/// from the place after theirs where a model has no begin token, which shows in nothing if the model ends at
/// once.
[[nodiscard]] inline std::string reason_against_echo(ScoringSession& session) {
  if (session.server != "llama-cpp-python") return {};
  const auto nothing = ask_llama_cpp_python(session, "");
  if (!nothing.ok() || !nothing.ids.empty()) return {};
  return "the model has no begin token, so this server's echo is shifted against its log-probabilities";
}

/// The beginning of `text` that has these tokens, as llama-cpp-python takes prompts as text only; nothing
/// where there is none.
[[nodiscard]] inline std::optional<std::string> text_of_tokens(ScoringSession& session,
                                                               std::span<const std::int64_t> ids,
                                                               const std::string& text, JsonAnswer& failure) {
  Json question;
  session.name_model(question);
  question["tokens"] = Json(std::vector<std::int64_t>(ids.begin(), ids.end()));
  failure = session.ask("//extras/detokenize", question);
  if (!failure.ok()) return std::nullopt;
  auto part = string_member(failure.body, "text");
  const auto again = ask_llama_cpp_python(session, part);
  if (again.ok() && text.starts_with(part) &&
      std::equal(ids.begin(), ids.end(), again.ids.begin(), again.ids.end()))
    return part;
  failure = {{}, ChatFailure::malformed, "no text has the tokens that context and continuation share"};
  return std::nullopt;
}

/// `completions_forced`: one continuation after a prompt that has `first` tokens.
[[nodiscard]] inline JsonAnswer force_completion(ScoringSession& session, const std::string& prompt,
                                                 const TextTokens& whole, std::size_t first,
                                                 std::string_view continuation, ScoredContinuation& score) {
  const auto rest = std::span(whole.ids).subspan(first);
  // A token that is part of a character is one that the grammar does not let through, which ends this server.
  if (std::any_of(continuation.begin(), continuation.end(),
                  [](char c) { return static_cast<unsigned char>(c) >= 0x80U; }))
    return {{},
            ChatFailure::malformed,
            "this server cannot be made to write characters beyond ASCII; use llama.cpp's own server"};
  Json question;
  session.name_model(question);
  question["prompt"] = prompt;
  question["max_tokens"] = rest.size();
  question["temperature"] = 0;
  question["logprobs"] = 0;
  question["grammar"] = token_grammar(rest);
  auto answer = session.ask("/completions", question);
  if (!answer.ok()) return answer;
  count_by_usage(session, answer.body, prompt.size());
  const auto* const choices = member(answer.body, "choices");
  const auto* const choice =
      choices == nullptr || !choices->is_array() || choices->empty() ? nullptr : &choices->front();
  const auto* const logprobs = member(choice, "logprobs");
  const auto* const values = member(logprobs, "token_logprobs");
  if (values == nullptr || !values->is_array())
    return {{}, ChatFailure::malformed, "the answer holds no log-probabilities of tokens"};
  if (values->size() != rest.size() || string_member(*choice, "text") != continuation)
    return {{}, ChatFailure::malformed, "the grammar was not kept"};
  const auto sent = count_in(member(member(answer.body, "usage"), "prompt_tokens"));
  if (sent && *sent != static_cast<std::int64_t>(first))
    return {{}, ChatFailure::malformed, "the server made other tokens of the context"};
  for (const auto& value : *values) add_token(score, logprob_of(value));
  return {};
}

/// `completions_forced`.
[[nodiscard]] inline ScoredBatch score_by_forced_completions(ScoringSession& session,
                                                             const std::string& context,
                                                             std::span<const std::string> continuations) {
  auto alone = ask_llama_cpp_python(session, context);
  if (!alone.ok()) return ScoredBatch::failed(alone.failure, std::move(alone.message));
  ScoredBatch batch;
  for (const auto& continuation : continuations) {
    const auto text = context + continuation;
    auto whole = ask_llama_cpp_python(session, text);
    if (!whole.ok()) return ScoredBatch::failed(whole.failure, std::move(whole.message));
    const auto boundary = forced_boundary(whole.ids, alone.ids);
    if (boundary.first >= whole.ids.size())
      return ScoredBatch::failed(ChatFailure::malformed, "a continuation has no token of its own");
    ScoredContinuation score;
    score.words = count_words(continuation);
    score.boundary_merge = boundary.merged;
    std::optional<std::string> prompt = context;
    if (boundary.first != alone.ids.size()) {
      JsonAnswer failure;
      prompt = text_of_tokens(session, std::span(whole.ids).first(boundary.first), text, failure);
      if (!prompt) return ScoredBatch::failed(std::move(failure));
    }
    const auto rest = std::string_view(text).substr(prompt->size());
    if (auto asked = force_completion(session, *prompt, whole, boundary.first, rest, score); !asked.ok())
      return ScoredBatch::failed(std::move(asked));
    batch.scores.push_back(score);
  }
  return batch;
}

} // namespace mtmc::detail
