#pragma once
/// Scores out of the servers' own interfaces: SGLang, TGI.

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

/// Ids of a prompt's tokens from some place on, and their log-probabilities.
struct ScoredTokens {
  std::vector<std::int64_t> ids{};
  std::vector<std::optional<double>> logprobs{};
};

/// SGLang's `[[logprob, id, text], ...]`; empty where it is something else.
[[nodiscard]] inline ScoredTokens read_sglang_tokens(const Json& answer) {
  ScoredTokens tokens;
  const auto* const meta = member(answer, "meta_info");
  const auto* const entries = meta == nullptr ? nullptr : member(*meta, "input_token_logprobs");
  if (entries == nullptr || !entries->is_array()) return tokens;
  for (const auto& entry : *entries) {
    if (!entry.is_array() || entry.size() < 2 || !entry[1].is_number_integer()) return {};
    tokens.logprobs.push_back(logprob_of(entry[0]));
    tokens.ids.push_back(entry[1].get<std::int64_t>());
  }
  return tokens;
}

[[nodiscard]] inline Json sglang_question(const ScoringSession& session, Json text) {
  Json question;
  question["text"] = std::move(text);
  question["sampling_params"] = {{"max_new_tokens", 0}, {"temperature", 0}};
  if (!session.options.adapter.empty()) question["lora_path"] = session.options.adapter;
  return question;
}

inline void count_sglang(ScoringSession& session, const Json& answer, std::size_t sent_bytes) {
  const auto* const meta = member(answer, "meta_info");
  if (meta == nullptr) return session.count(std::nullopt, 0, 0, sent_bytes);
  session.count(count_in(member(*meta, "prompt_tokens")),
                count_in(member(*meta, "completion_tokens")).value_or(0),
                count_in(member(*meta, "cached_tokens")).value_or(0), sent_bytes);
}

/// Tokens of the context that are compared with those of the whole, so that a merge at the boundary is seen.
inline constexpr std::int64_t sglang_overlap = 4;

/// One request: the context itself and some continuations of it, from token `start` on. Entry 0 is the
/// context.
[[nodiscard]] inline ScoredBatch ask_sglang(ScoringSession& session, const std::string& context,
                                            std::int64_t start, std::span<const std::string> part,
                                            std::vector<ScoredTokens>& tokens) {
  std::vector<std::string> texts{context};
  std::size_t sent = context.size();
  for (const auto& continuation : part) {
    texts.push_back(context + continuation);
    sent += texts.back().size();
  }
  auto question = sglang_question(session, Json(texts));
  question["return_logprob"] = true;
  question["logprob_start_len"] = start;
  question["return_text_in_logprobs"] = false;
  auto answer = session.ask("//generate", question);
  if (!answer.ok()) return ScoredBatch::failed(std::move(answer));
  if (!answer.body.is_array() || answer.body.size() != texts.size())
    return ScoredBatch::failed(ChatFailure::malformed, std::to_string(texts.size()) +
                                                           " texts were sent and " +
                                                           std::to_string(answer.body.size()) + " came back");
  tokens.clear();
  for (const auto& one : answer.body) {
    count_sglang(session, one, sent / texts.size());
    tokens.push_back(read_sglang_tokens(one));
    if (tokens.back().ids.empty())
      return ScoredBatch::failed(ChatFailure::malformed, "the answer holds no log-probabilities of tokens");
  }
  return {};
}

/// `sglang_generate`.
[[nodiscard]] inline ScoredBatch score_by_sglang(ScoringSession& session, const std::string& context,
                                                 std::span<const std::string> continuations) {
  // The context once, so that it is cached, and to learn how many tokens it has.
  auto first = session.ask("//generate", sglang_question(session, context));
  if (!first.ok()) return ScoredBatch::failed(std::move(first));
  const Json& told = first.body.is_array() && !first.body.empty() ? first.body.front() : first.body;
  count_sglang(session, told, context.size());
  const auto* const meta = member(told, "meta_info");
  const auto length = meta == nullptr ? std::nullopt : count_in(member(*meta, "prompt_tokens"));
  if (!length || *length < 1)
    return ScoredBatch::failed(ChatFailure::malformed,
                               "the answer does not say how many tokens the context has");

  ScoredBatch batch;
  const auto at_once = std::max<std::size_t>(session.options.max_at_once, 1);
  for (std::size_t begin = 0; begin < continuations.size();) {
    const auto part = continuations.subspan(begin, std::min(at_once, continuations.size() - begin));
    std::int64_t start = std::max<std::int64_t>(*length - sglang_overlap, 0);
    std::vector<ScoredTokens> tokens;
    // A merge that reaches further back than the overlap is looked at from the very first token.
    for (bool again = true; again;) {
      auto asked = ask_sglang(session, context, start, part, tokens);
      if (!asked.ok()) return asked;
      again = start > 0 && std::any_of(tokens.begin() + 1, tokens.end(), [&](const ScoredTokens& whole) {
                return whole.ids.front() != tokens.front().ids.front();
              });
      if (again) start = 0;
    }
    for (std::size_t i = 0; i < part.size(); ++i) {
      const ScoredTokens& whole = tokens[i + 1];
      const auto boundary = boundary_by_prefix(whole.ids, tokens.front().ids);
      batch.first_is_null &= !whole.logprobs.front().has_value();
      ScoredContinuation score;
      score.words = count_words(part[i]);
      score.boundary_merge = boundary.merged;
      // The first entry has no score whatever it is.
      for (std::size_t k = std::max<std::size_t>(boundary.first, 1); k < whole.ids.size(); ++k)
        add_token(score, whole.logprobs[k]);
      if (score.tokens == 0)
        return ScoredBatch::failed(ChatFailure::malformed, "a continuation has no token of its own");
      batch.scores.push_back(score);
    }
    begin += part.size();
  }
  return batch;
}

/// One prompt's tokens by TGI.
[[nodiscard]] inline ScoredBatch ask_tgi(ScoringSession& session, const std::string& text,
                                         ScoredTokens& tokens) {
  Json question;
  question["inputs"] = text;
  question["parameters"] = {{"decoder_input_details", true}, {"details", true}, {"max_new_tokens", 1}};
  if (!session.options.adapter.empty()) question["parameters"]["adapter_id"] = session.options.adapter;
  auto answer = session.ask("//generate", question);
  if (!answer.ok()) return ScoredBatch::failed(std::move(answer));
  const Json& told = answer.body.is_array() && !answer.body.empty() ? answer.body.front() : answer.body;
  const auto* const details = member(told, "details");
  const auto* const prefill = details == nullptr ? nullptr : member(*details, "prefill");
  if (prefill == nullptr || !prefill->is_array() || prefill->empty()) {
    session.count(std::nullopt, 1, 0, text.size());
    return ScoredBatch::failed(ChatFailure::malformed, "the answer holds no details of the prompt (the "
                                                       "server needs --enable-prefill-logprobs)");
  }
  session.count(static_cast<std::int64_t>(prefill->size()),
                count_in(member(*details, "generated_tokens")).value_or(1), 0, text.size());
  tokens = {};
  for (const auto& entry : *prefill) {
    const auto* const logprob = member(entry, "logprob");
    tokens.ids.push_back(count_in(member(entry, "id")).value_or(-1));
    tokens.logprobs.push_back(logprob == nullptr ? std::nullopt : logprob_of(*logprob));
  }
  return {};
}

/// `tgi_prefill`.
[[nodiscard]] inline ScoredBatch score_by_tgi(ScoringSession& session, const std::string& context,
                                              std::span<const std::string> continuations) {
  ScoredTokens alone;
  if (auto asked = ask_tgi(session, context, alone); !asked.ok()) return asked;
  ScoredBatch batch;
  for (const auto& continuation : continuations) {
    ScoredTokens whole;
    if (auto asked = ask_tgi(session, context + continuation, whole); !asked.ok()) return asked;
    const auto boundary = boundary_by_prefix(whole.ids, alone.ids);
    batch.first_is_null &= !whole.logprobs.front().has_value();
    ScoredContinuation score;
    score.words = count_words(continuation);
    score.boundary_merge = boundary.merged;
    for (std::size_t k = std::max<std::size_t>(boundary.first, 1); k < whole.ids.size(); ++k) {
      if (!whole.logprobs[k])
        return ScoredBatch::failed(ChatFailure::malformed,
                                   "token " + std::to_string(k) + " has no log-probability");
      add_token(score, whole.logprobs[k]);
    }
    if (score.tokens == 0)
      return ScoredBatch::failed(ChatFailure::malformed, "a continuation has no token of its own");
    batch.scores.push_back(score);
  }
  return batch;
}

} // namespace mtmc::detail
