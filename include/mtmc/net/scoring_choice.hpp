#pragma once
/// Where no continuation can be scored: the model is shown a list and asked to choose.

#include <mtmc/net/scoring_exchange.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// No endpoint reports more alternatives to a token than these.
inline constexpr std::size_t max_labels = 20;

/// The context, the list under its marks ("A: ..."), and what to answer.
[[nodiscard]] inline std::string choice_question(const std::string& context,
                                                 std::span<const std::string> continuations,
                                                 std::span<const std::string> marks,
                                                 std::string_view instruction) {
  std::string text = context + "\n\nWhich of these should come next?\n";
  for (std::size_t i = 0; i < continuations.size(); ++i)
    text.append(marks[i]).append(": ").append(trim(continuations[i])).append("\n");
  return text.append(instruction);
}

[[nodiscard]] inline Json chat_question(const ScoringSession& session, const std::string& text,
                                        std::int64_t max_tokens, double temperature) {
  Json question;
  session.name_model(question);
  question["messages"] = Json::array({{{"role", "user"}, {"content", text}}});
  question[session.profile.max_completion_tokens ? "max_completion_tokens" : "max_tokens"] = max_tokens;
  if (session.profile.temperature) question["temperature"] = temperature;
  return question;
}

/// "A" of " A", and of the marks that some servers write for a blank.
[[nodiscard]] inline std::string_view bare_token(std::string_view token) {
  for (const std::string_view blank : {"\xe2\x96\x81", "\xc4\xa0"}) // U+2581, U+0120
    if (token.starts_with(blank)) token.remove_prefix(blank.size());
  return trim(token);
}

/// The probabilities of the letters from "A" on as the first token, by either form of log-probabilities;
/// nothing where there are none.
[[nodiscard]] inline std::optional<std::vector<double>> read_labels(const Json& body, std::size_t count) {
  const auto* const choices = member(body, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return std::nullopt;
  const auto* const logprobs = member(choices->front(), "logprobs");
  if (logprobs == nullptr) return std::nullopt;
  std::vector<double> labels(count, 0.0);
  const auto add = [&](std::string_view token, const Json& logprob) {
    const auto label = bare_token(token);
    if (label.size() != 1 || label[0] < 'A' || !logprob.is_number()) return;
    const auto index = static_cast<std::size_t>(label[0] - 'A');
    if (index < count) labels[index] += std::exp(logprob.get<double>());
  };
  if (const auto* const content = member(*logprobs, "content"); content != nullptr && content->is_array()) {
    if (content->empty()) return std::nullopt;
    const auto* const top = member(content->front(), "top_logprobs");
    if (top == nullptr || !top->is_array()) return std::nullopt;
    for (const auto& entry : *top)
      if (member(entry, "token") != nullptr && entry["token"].is_string() && entry.contains("logprob"))
        add(entry["token"].get_ref<const std::string&>(), entry["logprob"]);
    return labels;
  }
  const auto* const top = member(*logprobs, "top_logprobs");
  if (top == nullptr || !top->is_array() || top->empty() || !top->front().is_object()) return std::nullopt;
  for (auto item = top->front().begin(); item != top->front().end(); ++item) add(item.key(), *item);
  return labels;
}

/// Shares of a list, which sum to 1, or why there are none.
struct ChoiceShares {
  std::vector<double> shares{};
  ChatFailure failure = ChatFailure::none;
  std::string message{};

  [[nodiscard]] bool ok() const noexcept { return failure == ChatFailure::none; }
};

/// One question with letters.
[[nodiscard]] inline ChoiceShares ask_for_label(ScoringSession& session, const std::string& context,
                                                std::span<const std::string> continuations) {
  std::vector<std::string> marks;
  for (std::size_t i = 0; i < continuations.size(); ++i) marks.emplace_back(1, static_cast<char>('A' + i));
  auto text = choice_question(context, continuations, marks, "Answer with its letter alone.");
  Json question;
  if (session.chat_labels) {
    question = chat_question(session, text, 1, 0);
    question["logprobs"] = true;
    question["top_logprobs"] = max_labels;
  } else {
    session.name_model(question);
    question["prompt"] = text += "\nAnswer:";
    question["max_tokens"] = 1;
    question["temperature"] = 0;
    question["logprobs"] = max_labels;
  }
  auto answer = session.ask(session.chat_labels ? "/chat/completions" : "/completions", question);
  if (!answer.ok()) return {{}, answer.failure, std::move(answer.message)};
  count_by_usage(session, answer.body, text.size());
  auto labels = read_labels(answer.body, continuations.size());
  if (!labels)
    return {{}, ChatFailure::malformed, "the answer holds no log-probabilities of its first token"};
  double mass = 0;
  for (const double label : *labels) mass += label;
  if (!(mass > 0) || mass < session.options.least_label_mass) {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.3g", mass);
    return {{}, ChatFailure::malformed, std::string("the letters have the probability ") + percent};
  }
  for (double& label : *labels) label /= mass;
  return {std::move(*labels)};
}

/// Shares of at most `max_labels`, averaged over rotations of the list.
[[nodiscard]] inline ChoiceShares shares_of_page(ScoringSession& session, const std::string& context,
                                                 std::span<const std::string> page) {
  if (page.size() == 1) return {{1.0}};
  const auto rotations = static_cast<std::size_t>(std::max(session.options.rotations, 1));
  std::vector<double> shares(page.size(), 0.0);
  for (std::size_t r = 0; r < rotations; ++r) {
    const auto shift = r * page.size() / rotations;
    std::vector<std::string> rotated(page.begin(), page.end());
    std::rotate(rotated.begin(), rotated.begin() + static_cast<std::ptrdiff_t>(shift), rotated.end());
    auto asked = ask_for_label(session, context, rotated);
    if (!asked.ok()) return asked;
    for (std::size_t i = 0; i < page.size(); ++i)
      shares[(i + shift) % page.size()] += asked.shares[i] / static_cast<double>(rotations);
  }
  return {std::move(shares)};
}

/// Shares of a list of any length: pages, then the first of each page against each other. A page's shares are
/// scaled to its first one's share among the firsts, which is exact for a model that prefers one thing over
/// another alike in whatever company (Luce's axiom).
[[nodiscard]] inline ChoiceShares shares_by_labels(ScoringSession& session, const std::string& context,
                                                   std::span<const std::string> continuations) {
  const auto count = continuations.size();
  if (count <= max_labels) return shares_of_page(session, context, continuations);
  const auto pages = (count + max_labels - 1) / max_labels;
  std::vector<double> shares;
  std::vector<std::string> firsts;
  for (std::size_t p = 0; p < pages; ++p) {
    const auto begin = p * count / pages;
    const auto page = continuations.subspan(begin, (p + 1) * count / pages - begin);
    auto asked = shares_of_page(session, context, page);
    if (!asked.ok()) return asked;
    const auto best = std::max_element(asked.shares.begin(), asked.shares.end());
    firsts.push_back(page[static_cast<std::size_t>(best - asked.shares.begin())]);
    const double top = *best;
    for (const double share : asked.shares) shares.push_back(share / top);
  }
  auto among_firsts = shares_by_labels(session, context, firsts);
  if (!among_firsts.ok()) return among_firsts;
  double sum = 0;
  for (std::size_t p = 0; p < pages; ++p)
    for (std::size_t i = p * count / pages; i < (p + 1) * count / pages; ++i)
      sum += shares[i] *= among_firsts.shares[p];
  for (double& share : shares) share /= sum;
  return {std::move(shares)};
}

/// The number that an answer chooses: the last `{"action": <number>}` in it, after what the model thought.
[[nodiscard]] inline std::optional<std::size_t> read_choice(std::string_view text, std::size_t count) {
  constexpr std::string_view end_of_thought = "</think>";
  if (const auto end = text.rfind(end_of_thought); end != std::string_view::npos)
    text.remove_prefix(end + end_of_thought.size());
  for (auto open = text.rfind('{'); open != std::string_view::npos;
       open = open == 0 ? std::string_view::npos : text.rfind('{', open - 1)) {
    const auto close = text.find('}', open);
    if (close == std::string_view::npos) continue;
    const auto object = parse_text(text.substr(open, close - open + 1), false);
    const auto* const action = member(object, "action");
    if (action == nullptr) continue;
    const auto number = action->is_string() ? action->get<std::string>() : action->dump();
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc{} && end == number.data() + number.size() && index < count) return index;
  }
  return std::nullopt;
}

/// `constrained` and `chat_json`.
[[nodiscard]] inline ChoiceShares shares_by_choice(ScoringSession& session, const std::string& context,
                                                   std::span<const std::string> continuations,
                                                   bool constrained) {
  const auto count = continuations.size();
  std::vector<std::string> marks;
  Json numbers = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    marks.push_back(std::to_string(i));
    numbers.push_back(i);
  }
  const auto text = choice_question(context, continuations, marks,
                                    "Answer with JSON alone, its number as in {\"action\": 0}.");
  const int wanted = constrained ? 1 : std::max(session.options.answers, 1);
  auto question = chat_question(session, text, session.options.answer_tokens, wanted > 1 ? 1 : 0);
  if (constrained) {
    const Json schema = {{"type", "object"},
                         {"properties", {{"action", {{"type", "integer"}, {"enum", numbers}}}}},
                         {"required", Json::array({"action"})},
                         {"additionalProperties", false}};
    question["response_format"] = {
        {"type", "json_schema"}, {"json_schema", {{"name", "choice"}, {"strict", true}, {"schema", schema}}}};
  }
  const bool at_once = wanted > 1 && session.profile.several_answers;
  if (at_once) question["n"] = wanted;

  std::vector<int> votes(count, 0);
  int valid = 0;
  for (int request = 0; request < (at_once ? 1 : wanted); ++request) {
    auto answer = session.ask("/chat/completions", question);
    if (!answer.ok()) return {{}, answer.failure, std::move(answer.message)};
    count_by_usage(session, answer.body, text.size());
    const auto* const choices = member(answer.body, "choices");
    if (choices == nullptr || !choices->is_array()) continue;
    for (const auto& choice : *choices) {
      const auto* const message = member(choice, "message");
      const auto* const content = message == nullptr ? nullptr : member(*message, "content");
      if (content == nullptr || !content->is_string()) continue;
      if (const auto index = read_choice(content->get_ref<const std::string&>(), count)) {
        ++votes[*index];
        ++valid;
      }
    }
  }
  if (valid == 0) return {{}, ChatFailure::malformed, "the answer chooses nothing of the list"};

  std::vector<double> shares;
  const auto all = static_cast<double>(count);
  const double rest = (1 - session.options.choice_share) / all;
  for (const int vote : votes)
    shares.push_back(wanted > 1 ? (vote + 0.5) / (valid + 0.5 * all)
                                : vote * session.options.choice_share + rest);
  return {std::move(shares)};
}

/// Shares as scores.
[[nodiscard]] inline ScoredBatch batch_of(ChoiceShares shares) {
  if (!shares.ok()) return ScoredBatch::failed(shares.failure, std::move(shares.message));
  ScoredBatch batch;
  for (const double share : shares.shares) {
    ScoredContinuation score;
    add_token(score, share > 0 ? std::optional(std::log(share)) : std::nullopt);
    score.words = 1;
    batch.scores.push_back(score);
  }
  return batch;
}

} // namespace mtmc::detail
