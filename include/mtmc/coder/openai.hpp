#pragma once
/// The coder that asks a language model, through any endpoint that speaks chat completions.

#include <mtmc/coder/example_library.hpp>
#include <mtmc/coder/prompt.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/net/chat_client.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Settings of an `OpenAiCoder`.
struct OpenAiCoderOptions {
  /// How the prompt is written.
  PromptOptions prompt{};
  /// Where examples come from, and how many of them a prompt shows; an empty library shows none.
  ExampleLibrary examples = ExampleLibrary::built_in();
  /// How many examples a prompt shows at most.
  std::size_t shown_examples = 1;
  /// Largest answer, reasoning included.
  std::int64_t max_tokens = 16384;
  /// Nothing = the endpoint's default.
  std::optional<double> temperature = 0.7;
  /// Nothing = the endpoint's default.
  std::optional<double> top_p{};
  /// Of the first sample; each further one has the next. Endpoints promise no more than to try.
  std::optional<std::int64_t> seed{};
  /// "low", "medium", "high", ... as the endpoint names it; empty = its default.
  std::string reasoning_effort{};
  /// As `ChatRequest::extra`.
  std::string extra{};
  /// Asks for the answer in pieces as they are written.
  bool stream = false;
  /// Longest time of one draft, with all that is asked for it, in seconds.
  double seconds = 1800;
  /// So many drafts in a row without an answer end the run with an error instead of one more failed draft.
  int max_silent_drafts = 3;
  /// Called with each prompt before it is sent, to redact or replace pieces. May be called from several
  /// threads.
  std::function<void(Prompt&, const CodingRequest&)> revise{};
};

/// Has one step written by a language model: builds the prompt, asks, takes the kernel out of the answer. An
/// answer that was cut is continued once, one whose tokens all went into reasoning is asked for once more
/// with twice as many, a prompt that is too long for the model is shortened once. Drafts may be asked for at
/// once.
///
/// `implement` throws `Error` (`mtmc.net.003`) where no draft will succeed: the endpoint refuses the key or
/// the request, or was silent for `max_silent_drafts` drafts. All else is in the draft: `endpoint` (no
/// answer), `refused`, `truncated`, `no_kernel`, `unchanged`, `budget`, `declined` (too long), `cancelled`,
/// or `pending`.
class OpenAiCoder {
public:
  /// Takes over the client, and with it the endpoint.
  explicit OpenAiCoder(ChatClient client, OpenAiCoderOptions options = {});

  /// Asks for one draft. See above for what is thrown and what stands in the draft.
  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token stop);

  /// What would be sent first for a request.
  [[nodiscard]] Prompt prompt(const CodingRequest& request) const;
  /// The most that asking it once could use.
  [[nodiscard]] Usage most_of(const CodingRequest& request) const;
  /// The most that a draft of it could use: an answer that went into reasoning alone, asked for again with
  /// twice the tokens, cut, and its rest asked for.
  [[nodiscard]] Usage most_of_draft(const CodingRequest& request) const;
  /// Model and settings, for cache keys and reports.
  [[nodiscard]] std::string identity() const;
  /// The client that is asked.
  [[nodiscard]] const ChatClient& client() const noexcept { return client_; }

private:
  [[nodiscard]] ChatRequest chat_request(const CodingRequest& request, const Prompt& prompt) const;

  ChatClient client_;
  OpenAiCoderOptions options_;
  /// Drafts without an answer since the last one with one.
  std::shared_ptr<std::atomic<int>> silent_ = std::make_shared<std::atomic<int>>(0);
};

static_assert(check_coder<OpenAiCoder>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/coder/openai_inl.hpp>
#endif
