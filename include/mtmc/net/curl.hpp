#pragma once
/// The transport for real networks, on libcurl.

#include <mtmc/net/curl_options.hpp>
#include <mtmc/net/transport.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Sends requests over the network (`Transport`). Copies share connections.
///
/// TLS certificates and host names are always verified, redirects are not followed, only http and https are
/// spoken, nothing is decompressed (`Accept-Encoding: identity`), and a URL with a password is refused. Each
/// request under way has a connection of its own; connections are kept for the next request to the same
/// place. Where the server has closed a kept connection before it answered anything, libcurl makes a new one
/// and sends the request again there.
///
/// Where there is no libcurl, every request is answered with `unavailable` and what to install. Of the
/// environment nothing is read here; libcurl reads the proxies (`proxy`, `no_proxy`), and it and its
/// libraries what they have for searching faults (SSLKEYLOGFILE). May be used from several threads, and must
/// outlive its requests.
class CurlTransport {
public:
  /// Does not throw for a library that is not there; see `problem`.
  explicit CurlTransport(CurlOptions options = {});

  /// As the concept `Transport` says. What a sink throws is handed on.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const BodySink& sink, Deadline deadline,
                                  std::stop_token stop);

  /// Why every request will be `unavailable`, and what to do about it; empty if it will not.
  [[nodiscard]] const std::string& problem() const noexcept;
  /// "7.88.1 with OpenSSL/3.0.19"; empty where there is no library.
  [[nodiscard]] std::string version() const;

private:
  struct State;
  std::shared_ptr<State> state_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/net/curl_inl.hpp>
#endif
