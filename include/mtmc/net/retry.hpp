#pragma once
/// Whether and when a request is sent again.

#include <mtmc/net/transport.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// The rules of the providers' own clients, with more tries, because a search of hours should outlive a
/// server's minute.
struct RetryRules {
  /// Tries after the first.
  int max_retries = 5;
  /// Seconds before the second try; doubled each time.
  double first_wait = 0.5;
  /// Seconds, at most, where the server names none.
  double max_wait = 8;
  /// Longest wait in seconds that a server may ask for (`Retry-After`); one that asks for more is not asked
  /// again.
  double max_asked_wait = 120;

  friend bool operator==(const RetryRules&, const RetryRules&) = default; ///< member by member
};

/// What an endpoint says of an error, in whichever of the forms that are in use.
struct EndpointError {
  /// The server's own words, shortened; of an HTML page its title.
  std::string message{};
  /// "insufficient_quota", "context_length_exceeded", "unavailable_error", ...; empty if it names none.
  std::string code{};
  /// The field of the request it blames; empty if it names none.
  std::string parameter{};

  friend bool operator==(const EndpointError&, const EndpointError&) = default; ///< member by member
};

/// Reads the body of an error: nested, flat, `detail`, plain text or HTML.
[[nodiscard]] EndpointError read_endpoint_error(const HttpResponse& response);

/// Whether an error of 500 and above is about the request, which would be refused again: what llama.cpp's
/// server and the one of llama-cpp-python do not take, where others answer 400.
[[nodiscard]] bool refuses_request(const EndpointError& error);

/// Seconds to wait before a request is sent again; nothing if it is not to be.
///
/// Sent again: lost connections and timeouts, 408, 409, 429, 500 and above; `x-should-retry` overrides.
/// Never: other 4xx, what `refuses_request`, a quota that is used up, a certificate that is not trusted, what
/// the caller ended. `tries`: how often it has been sent, at least 1. `chance` in [0, 1) shortens the wait by
/// up to a quarter, so that not all clients come back at once. `now`: seconds since 1970, for a `Retry-After`
/// that is a date.
[[nodiscard]] std::optional<double> wait_before_retry(const RetryRules& rules, const HttpResponse& response,
                                                      int tries, double chance, std::int64_t now);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/retry_inl.hpp>
#endif
