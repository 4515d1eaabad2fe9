#pragma once
/// Definitions of policy/chat.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/policy/chat.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// An answer's text after its reasoning.
[[nodiscard]] inline std::string_view without_reasoning(std::string_view text) {
  constexpr std::string_view end = "</think>";
  const auto at = text.rfind(end);
  return trim(at == std::string_view::npos ? text : text.substr(at + end.size()));
}

/// The last JSON object of a text that has the member `action`, which is a number; nothing if there is none.
[[nodiscard]] inline std::optional<std::int64_t> chosen_number(std::string_view text) {
  for (auto open = text.rfind('{'); open != std::string_view::npos;
       open = open == 0 ? std::string_view::npos : text.rfind('{', open - 1)) {
    const auto close = text.find('}', open);
    if (close == std::string_view::npos) continue;
    const auto object = parse_text(text.substr(open, close - open + 1), false);
    if (!object.is_object()) continue;
    const auto found = object.find("action");
    if (found != object.end() && found->is_number_integer()) return found->get<std::int64_t>();
  }
  return std::nullopt;
}

[[nodiscard]] inline ChatRequest policy_request(const ChatPolicyOptions& options, const Observation& seen,
                                                std::string system, std::string user) {
  ChatRequest request;
  request.messages = {{"system", std::move(system)}, {"user", std::move(user)}};
  request.max_tokens = options.max_tokens;
  request.temperature = options.temperature;
  request.reasoning_effort = options.reasoning_effort;
  request.cache_key = seen.task.name;
  request.label = seen.task.name + '-' + std::to_string(seen.step) + "-policy";
  return request;
}

/// The text of an answer, whose cost is added to `usage`. Throws `Error` (`mtmc.net.003`) where there is
/// none.
[[nodiscard]] inline std::string policy_answer(ChatClient& client, const ChatRequest& request,
                                               const ChatPolicyOptions& options, const std::stop_token& stop,
                                               Usage& usage) {
  auto answer = client.ask(request, deadline_in(options.seconds), stop);
  usage += answer.usage;
  const auto place =
      client.endpoint().options().model + " at " + url_without_secrets(client.endpoint().options().base_url);
  if (answer.failure == ChatFailure::none) return std::move(answer.choices.front().content);
  if (answer.failure == ChatFailure::pending)
    throw Error(error_id::net_endpoint, "the policy would have to wait for its answers",
                "A batch run needs a policy that answers at once: rules, random, or a served one", place);
  throw Error(error_id::net_endpoint, "the policy's model gave no answer: " + answer.message,
              "Check that the server runs, and what the account may use", place)
      .about(answer.option);
}

[[nodiscard]] inline std::string identity_of_model(const ChatClient& client, std::string_view kind) {
  const auto& endpoint = client.endpoint().options();
  return std::string(kind) + ", " + endpoint.model + " at " + url_without_secrets(endpoint.base_url);
}

} // namespace detail

MTMC_INLINE ChatRequest ChatPolicy::question(const Observation& seen, std::span<const Action> legal) const {
  auto text = describe(seen) + "\n## Actions\n";
  for (std::size_t i = 0; i < legal.size(); ++i) text += std::to_string(i) + ": " + legal[i].text() + '\n';
  text += "\nWhich one next? Answer with its number as JSON: {\"action\": 0}\n";
  auto request = detail::policy_request(
      options_, seen,
      "You plan the optimization of a compute kernel, one step at a time. You choose the action that gains "
      "most now or makes the next ones possible, and stop when nothing more is worth a try.",
      std::move(text));
  request.schema =
      R"({"type": "object", "properties": {"action": {"type": "integer", "minimum": 0, "maximum": )" +
      std::to_string(legal.size() - 1) + R"(}}, "required": ["action"], "additionalProperties": false})";
  return request;
}

MTMC_INLINE ActionDistribution ChatPolicy::distribution(const Observation& seen,
                                                        std::span<const Action> legal, std::stop_token stop) {
  ActionDistribution result;
  const auto count = static_cast<double>(legal.size());
  if (legal.size() == 1) {
    result.probabilities = {1};
    result.rationale = "the only legal action";
    return result;
  }
  const auto request = question(seen, legal);
  std::vector<int> votes(legal.size(), 0);
  int all = 0;
  std::string last;
  for (int vote = 0; vote < std::max(options_.votes, 1); ++vote)
    for (int attempt = 0; attempt < 2; ++attempt) {
      auto asked = request;
      asked.label += '-' + std::to_string(vote) + (attempt > 0 ? "-again" : "");
      last = detail::policy_answer(client_, asked, options_, stop, result.usage);
      const auto number = detail::chosen_number(detail::without_reasoning(last));
      if (!number || *number < 0 || *number >= static_cast<std::int64_t>(legal.size())) continue;
      ++votes[static_cast<std::size_t>(*number)];
      ++all;
      break;
    }
  unheard_ = all > 0 ? 0 : unheard_ + 1;
  if (unheard_ >= options_.max_unheard)
    throw Error(error_id::net_endpoint,
                "the policy's model named no legal action in " + std::to_string(unheard_) +
                    " decisions in a row; its last answer: " + detail::shortened(last),
                "Take a model that follows the format, or allow longer answers if its answers are cut",
                client_.endpoint().options().model)
        .about("ChatPolicyOptions::max_tokens");
  const double uniform = all == 0 ? 1 : options_.uniform;
  for (const int given : votes)
    result.probabilities.push_back(all > 1 ? (given + 0.5) / (all + 0.5 * count)
                                           : (1 - uniform) * given + uniform / count);
  result.rationale = all > 0 ? std::to_string(all) + (all == 1 ? " vote" : " votes") + " of the model"
                             : "the model named no legal action: all are equal";
  return result;
}

MTMC_INLINE std::string ChatPolicy::identity() const { return detail::identity_of_model(client_, "chat"); }

MTMC_INLINE ChatRequest FreeFormPolicy::question(const Observation& seen) const {
  return detail::policy_request(
      options_, seen, "You plan the optimization of a compute kernel, one step at a time.",
      describe(seen, {.regions = false}) +
          "\nWhich single optimization should be applied next, and where? Answer with one sentence that "
          "begins with a verb, or with the word stop if nothing more is worth a try.\n");
}

MTMC_INLINE std::vector<Action> FreeFormPolicy::propose(const Observation& seen, std::span<const Action>,
                                                        std::stop_token stop) {
  usage_ = {};
  const auto answer = detail::policy_answer(client_, question(seen), options_, stop, usage_);
  // One sentence was asked for, and it is repeated in each later prompt.
  constexpr std::size_t longest_action = 300;
  const auto text = detail::shortened(detail::without_reasoning(answer), longest_action);
  constexpr std::string_view word = "stop";
  const bool stops = text.empty() || (text.size() <= word.size() + 1 &&
                                      detail::equal_ignoring_case(text.substr(0, word.size()), word));
  if (stops) return {};
  Action action;
  action.kind = Action::Kind::free_text;
  action.free_text = text;
  return {std::move(action)};
}

MTMC_INLINE ActionDistribution FreeFormPolicy::distribution(const Observation&, std::span<const Action> legal,
                                                            std::stop_token) {
  ActionDistribution result;
  result.probabilities.assign(legal.size(), 0);
  result.probabilities.front() = 1;
  result.rationale = "in the model's own words";
  result.usage = std::exchange(usage_, {});
  return result;
}

MTMC_INLINE std::string FreeFormPolicy::identity() const {
  return detail::identity_of_model(client_, "free form");
}

} // namespace mtmc
