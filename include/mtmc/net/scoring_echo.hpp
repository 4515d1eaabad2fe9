#pragma once
/// Scores out of completions that repeat their prompt (`echo`): vLLM, OpenAI's legacy models, the server of
/// llama-cpp-python.

#include <mtmc/net/scoring_exchange.hpp>
#include <mtmc/support/text.hpp>

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

/// The tokens of an echoed prompt, without what was generated after it.
struct EchoedTokens {
  std::vector<std::string> texts{};
  /// Nothing where the server gives null.
  std::vector<std::optional<double>> logprobs{};
  /// Where each token begins, in code points, by the server's count (which may be off by a stripped or added
  /// blank); empty where it does not say.
  std::vector<std::int64_t> offsets{};
  /// Where the prompt ends, by the same count.
  std::int64_t end = 0;
};

/// How many of the tokens of a choice come after the prompt: none or one.
[[nodiscard]] inline std::size_t generated_tokens(const Json& body, const Json& choice,
                                                  const std::string& prompt, bool one_more,
                                                  const EchoedTokens& echoed) {
  if (!one_more || echoed.texts.empty()) return 0;
  // The sum of all choices, so it says nothing of one among several.
  const auto* const usage = member(body, "usage");
  if (usage != nullptr && body["choices"].size() == 1)
    if (const auto count = count_in(member(*usage, "completion_tokens"))) return *count > 0 ? 1 : 0;
  if (string_member(choice, "text").size() > prompt.size()) return 1;
  // An end token has no text, or one that the choice's text lacks.
  if (echoed.offsets.empty()) return echoed.texts.back().empty() ? 1 : 0;
  return echoed.offsets.back() >= count_code_points(prompt) ? 1 : 0;
}

/// Whether the last token is the one that was generated, as far as the text tells. The server of
/// llama-cpp-python pairs each token with the log-probabilities after it, and drops the last pair, where a
/// model has no start token.
[[nodiscard]] inline bool ends_with_generated(const Json& choice, const std::string& prompt,
                                              const std::string& last_token) {
  const auto whole = string_member(choice, "text");
  if (!whole.starts_with(prompt)) return true;
  const auto generated = trim(std::string_view(whole).substr(prompt.size()));
  return generated.empty() || generated == trim(last_token);
}

/// Reads one choice; a text that says what is wrong with it goes to `problem`.
[[nodiscard]] inline EchoedTokens read_echo(const Json& body, const Json& choice, const std::string& prompt,
                                            bool one_more, std::string& problem) {
  EchoedTokens echoed;
  const auto* const logprobs = member(choice, "logprobs");
  const auto* const texts = logprobs == nullptr ? nullptr : member(*logprobs, "tokens");
  const auto* const values = logprobs == nullptr ? nullptr : member(*logprobs, "token_logprobs");
  if (texts == nullptr || values == nullptr || !texts->is_array() || !values->is_array()) {
    problem = "the answer holds no log-probabilities of tokens";
    return echoed;
  }
  if (texts->size() != values->size()) {
    problem = std::to_string(texts->size()) + " tokens came with " + std::to_string(values->size()) +
              " log-probabilities";
    return echoed;
  }
  for (const auto& text : *texts) echoed.texts.push_back(text.is_string() ? text.get<std::string>() : "");
  for (const auto& value : *values) echoed.logprobs.push_back(logprob_of(value));
  if (const auto* const offsets = member(*logprobs, "text_offset");
      offsets != nullptr && offsets->is_array() && offsets->size() == texts->size())
    for (const auto& offset : *offsets)
      echoed.offsets.push_back(offset.is_number() ? offset.get<std::int64_t>() : -1);

  const auto more = generated_tokens(body, choice, prompt, one_more, echoed);
  const auto kept = echoed.texts.size() - more;
  if (kept == 0) {
    problem = "the prompt is not echoed";
    return echoed;
  }
  if (more > 0 && !ends_with_generated(choice, prompt, echoed.texts.back())) {
    problem = "the tokens are shifted against their log-probabilities";
    return echoed;
  }
  if (!echoed.offsets.empty())
    echoed.end =
        more > 0 ? echoed.offsets[kept] : echoed.offsets.back() + count_code_points(echoed.texts.back());
  echoed.texts.resize(kept);
  echoed.logprobs.resize(kept);
  if (!echoed.offsets.empty()) echoed.offsets.resize(kept);
  return echoed;
}

/// The first token that is scored, and whether it holds the end of the context.
struct Boundary {
  std::size_t first = 0;
  bool merged = false;
};

/// By the offsets, counted from the end of the prompt, as some servers count a blank too many or too few at
/// its beginning. Nothing where they cannot be trusted.
[[nodiscard]] inline std::optional<Boundary>
boundary_by_offsets(const EchoedTokens& echoed, const std::string& context, const std::string& continuation) {
  if (echoed.offsets.empty()) return std::nullopt;
  const auto length = count_code_points(continuation);
  const bool agrees = echoed.end == count_code_points(context) + length;
  // Tokens that hold half a character have no reliable text or offset.
  const bool plain = length == static_cast<std::int64_t>(continuation.size());
  const bool sorted = std::is_sorted(echoed.offsets.begin(), echoed.offsets.end());
  if (!sorted || echoed.offsets.front() < 0 || !(agrees || plain)) return std::nullopt;
  const auto wanted = echoed.end - length;
  const auto found = std::lower_bound(echoed.offsets.begin(), echoed.offsets.end(), wanted);
  const bool exact = found != echoed.offsets.end() && *found == wanted;
  const auto index = static_cast<std::size_t>(found - echoed.offsets.begin());
  if (index == 0) return std::nullopt;
  return Boundary{exact ? index : index - 1, !exact};
}

/// By comparison with the tokens of the context alone.
template <class Tokens>
[[nodiscard]] Boundary boundary_by_prefix(const Tokens& whole, const Tokens& context) {
  const auto differs = std::mismatch(whole.begin(), whole.end(), context.begin(), context.end()).first;
  const auto first = static_cast<std::size_t>(differs - whole.begin());
  return {first, first < context.size()};
}

/// One request for the prompts; answers by their index, nothing for those that are missing or malformed.
struct EchoAnswer {
  std::vector<std::optional<EchoedTokens>> prompts{};
  ChatFailure failure = ChatFailure::none;
  std::string message{};
};
[[nodiscard]] inline EchoAnswer ask_for_echo(ScoringSession& session, std::span<const std::string> prompts,
                                             bool one_more) {
  Json question;
  session.name_model(question);
  if (prompts.size() == 1)
    question["prompt"] = prompts.front();
  else
    question["prompt"] = Json(std::vector<std::string>(prompts.begin(), prompts.end()));
  question["echo"] = true;
  question["logprobs"] = 1;
  question["max_tokens"] = one_more ? 1 : 0;
  question["temperature"] = 0;
  EchoAnswer result;
  auto answer = session.ask("/completions", question);
  if (!answer.ok()) return {{}, answer.failure, std::move(answer.message)};
  std::size_t sent = 0;
  for (const auto& prompt : prompts) sent += prompt.size();
  count_by_usage(session, answer.body, sent);
  const auto* const choices = member(answer.body, "choices");
  if (choices == nullptr || !choices->is_array())
    return {{}, ChatFailure::malformed, "the answer holds no choices"};
  result.prompts.resize(prompts.size());
  for (std::size_t i = 0; i < choices->size(); ++i) {
    const auto& choice = (*choices)[i];
    const auto index = count_in(member(choice, "index")).value_or(static_cast<std::int64_t>(i));
    if (index >= static_cast<std::int64_t>(prompts.size())) continue;
    const auto at = static_cast<std::size_t>(index);
    std::string problem;
    auto echoed = read_echo(answer.body, choice, prompts[at], one_more, problem);
    if (problem.empty())
      result.prompts[at] = std::move(echoed);
    else
      result.message = std::move(problem);
  }
  if (result.message.empty()) result.message = "the answer leaves out a prompt";
  return result;
}

/// How many of the prompts go into one request: at least one.
[[nodiscard]] inline std::size_t prompts_at_once(std::span<const std::string> prompts, std::size_t most,
                                                 std::size_t max_bytes) {
  std::size_t count = 0, bytes = 0;
  for (const auto& prompt : prompts) {
    bytes += prompt.size();
    if (count == most || (count > 0 && bytes > max_bytes)) break;
    ++count;
  }
  return count;
}

/// All prompts, so many in a request; those that an answer leaves out are asked for once more, by themselves.
[[nodiscard]] inline EchoAnswer ask_for_all_echoes(ScoringSession& session,
                                                   std::span<const std::string> prompts, bool one_more,
                                                   std::size_t at_once) {
  EchoAnswer all;
  while (all.prompts.size() < prompts.size()) {
    const auto rest = prompts.subspan(all.prompts.size());
    const auto part = rest.first(prompts_at_once(rest, at_once, session.options.max_echoed_bytes));
    auto answer = ask_for_echo(session, part, one_more);
    if (answer.failure != ChatFailure::none) return answer;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!answer.prompts[i] && part.size() > 1) {
        auto again = ask_for_echo(session, part.subspan(i, 1), one_more);
        if (again.failure != ChatFailure::none) return again;
        answer.prompts[i] = std::move(again.prompts.front());
      }
      if (!answer.prompts[i]) return {{}, ChatFailure::malformed, answer.message};
      all.prompts.push_back(std::move(answer.prompts[i]));
    }
  }
  return all;
}

/// `vllm_echo` and, with `one_more` token generated, `completions_echo`.
[[nodiscard]] inline ScoredBatch score_by_echo(ScoringSession& session, const std::string& context,
                                               std::span<const std::string> continuations, bool one_more,
                                               std::size_t at_once) {
  std::vector<std::string> prompts;
  prompts.reserve(continuations.size());
  for (const auto& continuation : continuations) prompts.push_back(context + continuation);
  auto all = ask_for_all_echoes(session, prompts, one_more, at_once);
  if (all.failure != ChatFailure::none) return ScoredBatch::failed(all.failure, std::move(all.message));

  ScoredBatch batch;
  std::optional<EchoedTokens> alone;
  for (std::size_t i = 0; i < continuations.size(); ++i) {
    const EchoedTokens& echoed = *all.prompts[i];
    auto boundary = boundary_by_offsets(echoed, context, continuations[i]);
    if (!boundary) {
      if (!alone) {
        auto answer = ask_for_all_echoes(session, std::span(&context, 1), one_more, 1);
        if (answer.failure != ChatFailure::none)
          return ScoredBatch::failed(answer.failure, std::move(answer.message));
        alone = std::move(answer.prompts.front());
      }
      boundary = boundary_by_prefix(echoed.texts, alone->texts);
    }
    batch.first_is_null &= !echoed.logprobs.front().has_value();
    ScoredContinuation score;
    score.words = count_words(continuations[i]);
    score.boundary_merge = boundary->merged;
    for (std::size_t k = boundary->first; k < echoed.logprobs.size(); ++k) {
      if (!echoed.logprobs[k])
        return ScoredBatch::failed(ChatFailure::malformed,
                                   "token " + std::to_string(k) + " has no log-probability");
      add_token(score, echoed.logprobs[k]);
    }
    if (score.tokens == 0)
      return ScoredBatch::failed(ChatFailure::malformed, "a continuation has no token of its own");
    batch.scores.push_back(score);
  }
  return batch;
}

} // namespace mtmc::detail
