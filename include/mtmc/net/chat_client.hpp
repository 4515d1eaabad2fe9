#pragma once
/// Asks a model by chat completions: the part that coders and chat policies share.

#include <mtmc/net/chat.hpp>
#include <mtmc/net/endpoint.hpp>
#include <mtmc/net/spending.hpp>

#include <stop_token>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Settings of a `ChatClient`.
struct ChatClientOptions {
  /// What tokens cost; empty = nothing is said of money.
  PriceTable prices{};
  /// The account that all clients of a run share.
  Spending spending{};
  /// Tokens set aside for an answer whose request has no limit of its own, while there are caps.
  std::int64_t answer_tokens = 16384;
};

/// Asks one endpoint. Writes requests as the endpoint's profile has them and learns what it refuses, reads
/// answers whole or streamed, counts every token, and sends nothing that could pass a cap. Copies share the
/// endpoint and the account. May be used from several threads.
class ChatClient {
public:
  /// Throws `Error` (`mtmc.net.001`) where the account has a cap on money and no price fits the model: such a
  /// cap could not be kept.
  explicit ChatClient(Endpoint endpoint, ChatClientOptions options = {})
      : endpoint_(std::move(endpoint)), options_(std::move(options)) {
    demand_price();
  }

  /// Asks, with all tries. What goes wrong is in the answer; nothing is thrown for it. A prompt that the
  /// endpoint has cut (`EndpointProfile::cuts_prompts`) is `too_long`.
  [[nodiscard]] ChatAnswer ask(const ChatRequest& request, Deadline deadline, std::stop_token stop);

  /// The endpoint that is asked.
  [[nodiscard]] Endpoint& endpoint() noexcept { return endpoint_; }
  /// The endpoint that is asked.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  /// What all that share the account have spent.
  [[nodiscard]] Usage spent() const { return options_.spending.spent(); }
  /// The most one request may use: by its length (half a token a byte, more than any text of code was seen to
  /// take) and its largest answers, by `max_tokens` and `count` or by what `extra` has in their place.
  [[nodiscard]] Usage most_of(const ChatRequest& request) const;

private:
  void demand_price() const;

  Endpoint endpoint_;
  ChatClientOptions options_;
};

/// The body of a request, as JSON, in the terms that a profile allows. Throws `Error` (`mtmc.net.001`) where
/// `schema` or `extra` of the request are no JSON objects.
[[nodiscard]] std::string chat_body(const ChatRequest& request, const EndpointProfile& profile,
                                    const std::string& model);

/// Reads the body of an answer that came whole. A failure (`malformed`, or what an error in it says) is in
/// the answer; nothing is thrown.
[[nodiscard]] ChatAnswer read_chat_answer(const HttpResponse& response);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/chat_client_inl.hpp>
#endif
