#pragma once
/// What a scorer of continuations is told, finds out and answers: see net/scoring.hpp.

#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/step.hpp>
#include <mtmc/net/chat.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How continuations are scored, in the order of preference. The list is closed. The first six give the
/// log-probabilities of the continuations themselves; the others ask the model to choose from a list.
enum class ScoringMethod {
  /// SGLang's own `/generate`: the common context is computed once.
  sglang_generate,
  /// vLLM's completions with `echo` and no new token.
  vllm_echo,
  /// Completions with `echo` and one new token, which is dropped: OpenAI's legacy models, the server of
  /// llama-cpp-python (run with `logits_all`), and others.
  completions_echo,
  /// llama.cpp's own `/completion`, made to write the tokens of each continuation by a grammar of their ids.
  llama_cpp_forced,
  /// The same by the completions of llama-cpp-python's server (run with `logits_all`), whose echo is wrong
  /// for models without a begin token. ASCII only.
  completions_forced,
  /// TGI's `/generate` with the details of the prompt (`--enable-prefill-logprobs`).
  tgi_prefill,
  /// The continuations are listed under letters, and the probabilities of the letters are read.
  labels,
  /// They are listed under numbers, and the answer can only be one of these. Tells a choice, no
  /// probabilities.
  constrained,
  /// The same, and the answer is hoped to be one of these.
  chat_json
};

namespace detail {
inline constexpr EnumName<ScoringMethod> scoring_method_names[] = {
    {ScoringMethod::sglang_generate, "sglang_generate"},
    {ScoringMethod::vllm_echo, "vllm_echo"},
    {ScoringMethod::completions_echo, "completions_echo"},
    {ScoringMethod::llama_cpp_forced, "llama_cpp_forced"},
    {ScoringMethod::completions_forced, "completions_forced"},
    {ScoringMethod::tgi_prefill, "tgi_prefill"},
    {ScoringMethod::labels, "labels"},
    {ScoringMethod::constrained, "constrained"},
    {ScoringMethod::chat_json, "chat_json"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ScoringMethod>> enum_names(ScoringMethod) noexcept {
  return detail::scoring_method_names;
}

/// Whether a method gives the log-probabilities of the continuations themselves.
[[nodiscard]] constexpr bool scores_continuations(ScoringMethod method) noexcept {
  return method <= ScoringMethod::tgi_prefill;
}

/// Log-probabilities of single tokens are not taken to be lower than this.
inline constexpr double least_token_logprob = -50;

/// One continuation's score.
struct ScoredContinuation {
  /// Sum of the natural logarithms of its tokens' probabilities. Where a model was asked to choose: the
  /// logarithm of the choice's share.
  double logprob_sum = 0;
  /// Tokens that were summed, and words between blanks; both 1 where a model was asked to choose.
  int tokens = 0;
  /// Words between blanks.
  int words = 0;
  /// Some token was given a lower log-probability than `least_token_logprob`, or none.
  bool clamped = false;
  /// The tokens of the context are no prefix of those of the whole: the sum starts at the first token that
  /// differs, which holds the end of the context.
  bool boundary_merge = false;

  /// Member by member.
  friend bool operator==(const ScoredContinuation&, const ScoredContinuation&) = default;
};

/// How a scorer works.
struct ScoringOptions {
  /// Only this method; by default the best one that works.
  std::optional<ScoringMethod> method{};
  /// What the server is, where it hides it: "vllm", "sglang", "llama.cpp", "llama-cpp-python", "tgi",
  /// "ollama", "openai". Empty = found out.
  std::string server{};
  /// Empty = the endpoint's; where that is empty too, the first that the server has.
  std::string model{};
  /// The endpoint's name of a fine-tuned adapter (LoRA), empty = none: SGLang's `lora_path`, a model's name
  /// for vLLM and completions, TGI's `adapter_id`, the path or number of `/lora-adapters` for llama.cpp.
  std::string adapter{};
  /// Whether the probe wants " Paris" to be likelier than " banana": false for models that know no English.
  bool wants_paris = true;
  /// Most continuations in one request, where a server takes several.
  std::size_t max_at_once = 256;
  /// Most bytes of prompts in one request to a server that repeats them: its answer is some twenty times as
  /// large.
  std::size_t max_echoed_bytes = std::size_t{1} << 20U;
  /// `labels`: each question is asked so often, with the list rotated, against a preference for places.
  int rotations = 2;
  /// `labels`: smallest probability, in [0, 1], that the letters must have together.
  double least_label_mass = 0.5;
  /// `constrained`, `chat_json`: what the choice gets of the probability, the rest is shared by all alike.
  double choice_share = 0.9;
  /// `chat_json`: answers asked for; with more than one, the share is the frequency (with half an answer
  /// added to each).
  int answers = 1;
  /// `chat_json`: largest number of tokens of one answer, reasoning included.
  std::int64_t answer_tokens = 2048;

  friend bool operator==(const ScoringOptions&, const ScoringOptions&) = default; ///< member by member
};

/// A better method that was not taken, and why.
struct RejectedMethod {
  ScoringMethod method{}; ///< the method
  std::string reason{};   ///< one sentence

  friend bool operator==(const RejectedMethod&, const RejectedMethod&) = default; ///< member by member
};

/// What was found out about an endpoint before the first question.
struct ScoringReport {
  /// The method that is used.
  ScoringMethod method{};
  /// As in `ScoringOptions::server`; "unknown" where it does not say.
  std::string server{};
  /// The model as the server calls it; empty where it does not say and none was named.
  std::string model{};
  /// All models that the server says it has.
  std::vector<std::string> models{};
  /// SHA-256 of the chat template, where the server shows it.
  std::string chat_template_hash{};
  /// Whether log-probabilities of the continuations themselves come back.
  bool exact = false;
  /// Whether one request takes several continuations.
  bool several_at_once = false;
  /// The probe's scores of " Paris" and " banana" after "The capital of France is". The first is higher.
  ScoredContinuation likely{};
  /// The score of " banana".
  ScoredContinuation unlikely{};
  /// How far the score of " Paris" moved when it was asked for again; at most 0.01. 0 where a model is asked
  /// to choose and was asked once.
  double repeat_difference = 0;
  /// Best first.
  std::vector<RejectedMethod> rejected{};
  /// Requests that were sent to find out, and what they cost.
  int requests = 0;
  Usage usage{}; ///< what they cost

  friend bool operator==(const ScoringReport&, const ScoringReport&) = default; ///< member by member
};

/// What came of a question.
struct ScoringAnswer {
  /// One for each continuation, in their order; empty on a failure.
  std::vector<ScoredContinuation> continuations{};
  /// The method that was used at last: labels that do not work give way to what comes after them.
  ScoringMethod method{};
  /// Whether all scores are log-probabilities of the continuations themselves.
  bool exact = false;
  /// `none` if there are scores.
  ChatFailure failure = ChatFailure::none;
  /// One sentence on the failure, without secrets.
  std::string message{};
  /// Tokens as the endpoint counts them (where it does not: four bytes each); seconds with all tries.
  Usage usage{};
  /// Requests that were sent, and whether the endpoint counted the tokens of all of them.
  int requests = 0;
  bool counted = true; ///< whether the endpoint counted the tokens of all requests

  friend bool operator==(const ScoringAnswer&, const ScoringAnswer&) = default; ///< member by member
};

} // namespace mtmc
