#pragma once
/// A server of models: where it is, who asks, what it understands; requests to it are retried here and only
/// here.

#include <mtmc/net/endpoint_profile.hpp>
#include <mtmc/net/retry.hpp>
#include <mtmc/net/transport.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Where an endpoint is and how it is spoken to.
struct EndpointOptions {
  /// With the version, such as "http://localhost:8000/v1".
  std::string base_url;
  /// Sent as bearer token; empty = none. Never logged, recorded or put into a message.
  std::string api_key{};
  /// As the endpoint names it.
  std::string model;
  /// By default the one that `base_url` belongs to.
  std::optional<EndpointProfile> profile{};
  /// More headers for each request (gateways, organisations). They count as secrets.
  std::vector<HttpHeader> headers{};
  /// When a request is sent again.
  RetryRules retries{};
  /// Longest time of one try, in seconds.
  double try_seconds = 600;
  /// Longest time of one request with all its tries and waits, in seconds.
  double all_seconds = 1800;
};

/// `base_url`, `api_key` and `model` from OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL, as far as they
/// are set; OpenAI's own place where no URL is.
[[nodiscard]] EndpointOptions endpoint_from_environment();

/// Watches the tries of one request and takes a streamed answer.
struct AnswerReader {
  /// Called before each try: what an earlier one gave is void.
  std::function<void()> begin{};
  /// Called with each piece of the body.
  BodySink take{};
  /// Asked before another try, with what came of the last one; false ends the request. Empty = yes.
  std::function<bool(const HttpResponse&)> again{};
};

/// One endpoint, its quirks as they are learnt, and a transport. Copies share what was learnt. May be used
/// from several threads.
class Endpoint {
public:
  /// Throws `Error` (`mtmc.net.001`) where the URL has no scheme or host.
  Endpoint(AnyTransport transport, EndpointOptions options);

  /// The settings it was made with.
  [[nodiscard]] const EndpointOptions& options() const noexcept;
  /// The profile with what has been learnt.
  [[nodiscard]] EndpointProfile profile() const;
  /// Changes it, for this endpoint and from now on.
  void learn(const std::function<void(EndpointProfile&)>& change);

  /// A text with `redacted` in the place of the key and of what the options' headers hold: servers quote
  /// what they are sent.
  [[nodiscard]] std::string without_secrets(std::string_view text) const;

  /// What came of a request after all tries, and how many there were.
  struct Outcome {
    HttpResponse response; ///< what came back last
    int tries = 0;         ///< how often it was sent
  };
  /// Sends to a path below the base URL ("/chat/completions") or, with a path that begins with "//", below
  /// the server's root ("//tokenize"). `body`: JSON, or empty for GET. Does not throw for what may happen on
  /// a network. An address that was never reached is tried three times at most.
  [[nodiscard]] Outcome send(std::string_view path, std::string body, Deadline deadline, std::stop_token stop,
                             const AnswerReader& reader = {}, std::string label = {});

private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/endpoint_inl.hpp>
#endif
