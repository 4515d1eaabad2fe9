#pragma once
/// Definitions of net/scoring.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/net/scoring.hpp>
#include <mtmc/net/scoring_choice.hpp>
#include <mtmc/net/scoring_echo.hpp>
#include <mtmc/net/scoring_exchange.hpp>
#include <mtmc/net/scoring_forced.hpp>
#include <mtmc/net/scoring_generate.hpp>
#include <mtmc/net/scoring_server.hpp>
#include <mtmc/support/sha256.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Whether a server takes an array of prompts. Others may take the first and drop the rest, or fail.
[[nodiscard]] inline bool takes_arrays(std::string_view server) {
  return server == "vllm" || server == "sglang" || server == "openai";
}

/// Why a method need not be tried with a server; empty = it may work.
[[nodiscard]] inline std::string unsuited_reason(const ScoringSession& session, ScoringMethod method) {
  const std::string_view server = session.server;
  const auto unless = [&](std::string_view wanted) {
    return server == wanted ? std::string() : "the server is not " + std::string(wanted);
  };
  switch (method) {
  case ScoringMethod::sglang_generate:
    return unless("sglang");
  case ScoringMethod::vllm_echo:
    return unless("vllm");
  case ScoringMethod::llama_cpp_forced:
    return unless("llama.cpp");
  case ScoringMethod::completions_forced:
    return unless("llama-cpp-python");
  case ScoringMethod::tgi_prefill:
    return unless("tgi");
  case ScoringMethod::completions_echo:
    for (const std::string_view without :
         {"sglang", "llama.cpp", "tgi", "ollama", "gemini", "anthropic", "deepseek", "transformers"})
      if (server == without) return std::string(without) + " does not score an echoed prompt";
    return {};
  case ScoringMethod::labels:
    if (server == "anthropic" || server == "transformers")
      return std::string(server) + " gives no log-probabilities";
    return {};
  case ScoringMethod::constrained:
    return session.profile.json_schema ? "" : "the endpoint's profile has no JSON schema";
  case ScoringMethod::chat_json:
    break;
  }
  return {};
}

[[nodiscard]] inline ScoredBatch score_by(ScoringMethod method, ScoringSession& session,
                                          const std::string& context,
                                          std::span<const std::string> continuations) {
  const auto at_once =
      takes_arrays(session.server) ? std::max<std::size_t>(session.options.max_at_once, 1) : 1;
  switch (method) {
  case ScoringMethod::sglang_generate:
    return score_by_sglang(session, context, continuations);
  case ScoringMethod::vllm_echo:
    return score_by_echo(session, context, continuations, false, at_once);
  case ScoringMethod::completions_echo:
    return score_by_echo(session, context, continuations, true, at_once);
  case ScoringMethod::llama_cpp_forced:
    return score_by_forcing(session, context, continuations);
  case ScoringMethod::completions_forced:
    return score_by_forced_completions(session, context, continuations);
  case ScoringMethod::tgi_prefill:
    return score_by_tgi(session, context, continuations);
  case ScoringMethod::labels:
    return batch_of(shares_by_labels(session, context, continuations));
  case ScoringMethod::constrained:
  case ScoringMethod::chat_json:
    break;
  }
  return batch_of(shares_by_choice(session, context, continuations, method == ScoringMethod::constrained));
}

/// Tries a method; why it is not to be used, or nothing.
[[nodiscard]] inline std::string probe_method(ScoringMethod method, ScoringSession& session,
                                              ScoringReport& report) {
  const std::string context = "The capital of France is";
  constexpr double largest_difference = 1e-2; // sums of bf16 vary with the batch
  // What goes one by one anyway is asked for again in the same call; an array twice, as it is computed as
  // one.
  const bool one_by_one = scores_continuations(method) && !takes_arrays(session.server);
  std::vector<std::string> words{" Paris", " banana"};
  if (one_by_one) words.push_back(words.front());

  if (method == ScoringMethod::completions_echo)
    if (auto reason = reason_against_echo(session); !reason.empty()) return reason;
  const auto first = score_by(method, session, context, words);
  if (!first.ok()) return first.message;
  report.likely = first.scores[0];
  report.unlikely = first.scores[1];
  if (!first.first_is_null) return "the very first token of a prompt has a log-probability";
  if (report.likely.logprob_sum > 0 || report.unlikely.logprob_sum > 0)
    return "a log-probability is positive";
  if (session.options.wants_paris) {
    if (report.likely.clamped) return "the log-probability of \" Paris\" is not finite";
    if (!(report.likely.logprob_sum > report.unlikely.logprob_sum))
      return "\" Paris\" is not likelier than \" banana\"";
  }
  report.repeat_difference = 0;
  if (method >= ScoringMethod::constrained) return {};
  auto repeated = one_by_one ? first : score_by(method, session, context, words);
  if (!repeated.ok()) return repeated.message;
  report.repeat_difference =
      std::abs(repeated.scores[one_by_one ? 2 : 0].logprob_sum - report.likely.logprob_sum);
  if (!(report.repeat_difference <= largest_difference)) {
    char text[64];
    std::snprintf(text, sizeof text, "asked again, the score moved by %.3g", report.repeat_difference);
    return text;
  }
  return {};
}

/// As `probe_method`; letters are read from chat completions first, then from plain ones.
[[nodiscard]] inline std::string probe_labels(ScoringSession& session, ScoringReport& report) {
  auto reason = probe_method(ScoringMethod::labels, session, report);
  if (reason.empty() || session.stop.stop_requested()) return reason;
  session.chat_labels = false;
  const auto other = probe_method(ScoringMethod::labels, session, report);
  return other.empty() ? "" : "chat: " + reason + "; completions: " + other;
}

inline void check_scoring_options(const ScoringOptions& options) {
  const auto require = [](bool holds, const std::string& option, const char* what, const char* remedy) {
    if (!holds) throw Error(error_id::net_options, what, remedy).about("ScoringOptions::" + option);
  };
  require(options.rotations >= 1, "rotations", "the number of rotations is less than 1", "Use 1 or more");
  require(options.answers >= 1, "answers", "the number of answers is less than 1", "Use 1 or more");
  require(options.answer_tokens >= 1, "answer_tokens", "an answer may have less than 1 token",
          "Use 1 or more");
  require(options.max_at_once >= 1, "max_at_once", "no prompt may be sent at a time", "Use 1 or more");
  require(options.least_label_mass >= 0 && options.least_label_mass <= 1, "least_label_mass",
          "the least share of the labels is not in [0, 1]", "Use a number from 0 to 1");
  require(options.choice_share > 0 && options.choice_share <= 1, "choice_share",
          "the share of the choice is not in (0, 1]", "Use a number above 0, up to 1");
}

/// All that was tried, for an error.
[[nodiscard]] inline std::string tried_text(const ScoringReport& report) {
  std::string text;
  for (const auto& rejected : report.rejected)
    text += (text.empty() ? "" : "; ") + std::string(to_string(rejected.method)) + ": " + rejected.reason;
  return text;
}

/// The letters or the list did not work this time, but asking in another way may.
[[nodiscard]] inline bool may_ask_otherwise(const ScoredBatch& batch) {
  return batch.failure == ChatFailure::malformed || batch.failure == ChatFailure::bad_request;
}

} // namespace detail

MTMC_INLINE std::string describe(const ScoringReport& report) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return std::string(text);
  };
  std::string text = "scoring by " + std::string(to_string(report.method)) + " (" +
                     (report.exact ? "log-probabilities of the continuations"
                                   : "a choice from a list, no log-probabilities of the continuations") +
                     ")\n";
  text += "  server: " + report.server + (report.model.empty() ? "" : ", model " + report.model) + '\n';
  text += "  continuations in one request: " + std::string(report.several_at_once ? "several" : "one") + '\n';
  text += "  probe: Paris " + number(report.likely.logprob_sum) + ", banana " +
          number(report.unlikely.logprob_sum) + ", asked again " + number(report.repeat_difference) +
          " apart; " + std::to_string(report.requests) + " requests\n";
  for (const auto& rejected : report.rejected)
    text += "  not " + std::string(to_string(rejected.method)) + ": " + rejected.reason + '\n';
  return text;
}

MTMC_INLINE ContinuationScorer::ContinuationScorer(Endpoint endpoint, ScoringOptions options,
                                                   std::stop_token stop)
    : endpoint_(std::move(endpoint)), options_(std::move(options)) {
  detail::check_scoring_options(options_);
  detail::ScoringSession session{.endpoint = endpoint_,
                                 .options = options_,
                                 .profile = endpoint_.profile(),
                                 .server = options_.server,
                                 .model = options_.model.empty() ? endpoint_.options().model : options_.model,
                                 .label = "score-probe",
                                 .stop = std::move(stop)};
  const auto address = url_without_secrets(endpoint_.options().base_url);
  if (const auto found = detail::identify_server(session); !found.ok())
    throw Error(error_id::net_endpoint, "the policy's server does not answer: " + found.message,
                "Start it, or correct the address and the key", address)
        .about(found.option.empty() ? "EndpointOptions::base_url" : found.option);
  if (session.server == "llama.cpp") {
    if (const auto told = session.ask("//props", nullptr); told.ok())
      if (const auto hashed = detail::string_member(told.body, "chat_template"); !hashed.empty())
        report_.chat_template_hash = sha256_hex(hashed);
    if (!options_.adapter.empty()) {
      session.adapter_id = detail::find_adapter(session);
      if (session.adapter_id < 0)
        throw Error(error_id::net_endpoint,
                    "the server has no adapter \"" + options_.adapter + "\" in /lora-adapters",
                    "Start it with --lora, or name the adapter as it is there", address);
    }
  }

  bool found = false;
  for (const auto& [method, name] : enum_names(ScoringMethod{})) {
    if (options_.method && *options_.method != method) continue;
    auto reason = options_.method ? std::string() : detail::unsuited_reason(session, method);
    if (reason.empty())
      reason = method == ScoringMethod::labels ? detail::probe_labels(session, report_)
                                               : detail::probe_method(method, session, report_);
    if (session.stop.stop_requested()) reason = "cancelled";
    found = reason.empty();
    if (found) report_.method = method;
    if (found) break;
    report_.rejected.push_back({method, std::move(reason)});
    if (session.unanswered) break; // the others would wait for nothing
  }
  report_.server = session.server;
  report_.model = session.model;
  report_.models = session.models;
  report_.requests = session.requests;
  report_.usage = session.usage;
  if (!found)
    throw Error(
        error_id::net_endpoint,
        "no way to score continuations works with this server (" + report_.server +
            "): " + detail::tried_text(report_),
        "Serve the policy's model with vLLM, SGLang or llama.cpp, or say which of them it is where the "
        "server hides it",
        address)
        .about("ScoringOptions::server");
  report_.exact = scores_continuations(report_.method);
  report_.several_at_once = report_.exact && report_.method <= ScoringMethod::completions_echo &&
                            detail::takes_arrays(report_.server);
  chat_labels_ = session.chat_labels;
  adapter_id_ = session.adapter_id;
}

MTMC_INLINE ScoringAnswer ContinuationScorer::score(const std::string& context,
                                                    std::span<const std::string> continuations,
                                                    std::stop_token stop, const std::string& label) {
  ScoringAnswer answer;
  answer.method = report_.method;
  answer.exact = report_.exact;
  if (continuations.empty()) return answer;
  detail::ScoringSession session{.endpoint = endpoint_,
                                 .options = options_,
                                 .profile = endpoint_.profile(),
                                 .server = report_.server,
                                 .model = report_.model,
                                 .label = label,
                                 .stop = std::move(stop),
                                 .chat_labels = chat_labels_,
                                 .adapter_id = adapter_id_};
  if (session.profile.name == "unknown") session.profile = endpoint_profile(report_.server);

  auto batch = detail::score_by(answer.method, session, context, continuations);
  if (!answer.exact && !options_.method) {
    for (const auto& [method, name] : enum_names(ScoringMethod{})) {
      if (!detail::may_ask_otherwise(batch)) break;
      if (method <= answer.method || !detail::unsuited_reason(session, method).empty()) continue;
      answer.message += std::string(to_string(answer.method)) + ": " + batch.message + "; ";
      answer.method = method;
      batch = detail::score_by(method, session, context, continuations);
    }
  }
  answer.failure = batch.failure;
  if (!batch.ok()) answer.message += std::string(to_string(answer.method)) + ": " + batch.message;
  if (batch.ok()) answer.message.clear();
  answer.continuations = std::move(batch.scores);
  answer.usage = session.usage;
  answer.requests = session.requests;
  answer.counted = session.counted;
  return answer;
}

} // namespace mtmc
