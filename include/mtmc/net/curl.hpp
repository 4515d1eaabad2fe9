#pragma once
/// The transport for real networks, on libcurl.

#include <mtmc/net/transport.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace mtmc {

struct CurlOptions {
  /// Path or name of the library; empty = libcurl.so.4, or its flavours with GnuTLS or NSS. Not used where
  /// the program is linked with it (`MTMC_LINK_CURL`).
  std::string library{};
  /// PEM file with the certificates to trust, in place of the system's file of them; empty = the system's.
  std::string ca_file{};
  /// "http://user:password@proxy:3128", "socks5h://proxy"; empty = the environment's (https_proxy,
  /// http_proxy, all_proxy, as libcurl reads them).
  std::string proxy{};
  /// Hosts reached without a proxy, separated by commas, "*" = all of them; empty = the environment's
  /// (no_proxy), which holds for `proxy`, too.
  std::string no_proxy{};
  /// Longest time until a connection stands, name and TLS included, in seconds.
  double connect_seconds = 5;
  /// Longest time in which nothing comes or goes, in seconds; 0 = none. An answer without a sink may keep
  /// silent until its first byte, because a model that does not stream thinks first.
  double idle_seconds = 120;
  /// Most bytes of the body of an answer, whether a sink takes them or not.
  std::int64_t largest_body = std::int64_t{64} << 20;
  /// Most bytes of its status line and headers.
  std::int64_t largest_headers = std::int64_t{256} << 10;
  /// HTTP/2 over TLS where library and server have it.
  bool http2 = true;
  /// Most connections kept open while no request uses them.
  int most_kept = 64;

  friend bool operator==(const CurlOptions&, const CurlOptions&) = default;
};

/// Sends requests over the network (`Transport`). Copies share connections.
///
/// TLS certificates and host names are always verified, redirects are not followed, only http and https are
/// spoken, nothing is decompressed (`Accept-Encoding: identity`), and a URL with a password is refused. Each
/// request under way has a connection of its own; connections are kept for the next request to the same
/// place. Where the server has closed a kept connection before it answered anything, libcurl makes a new one
/// and sends the request again there.
///
/// Where there is no libcurl, every request is answered with `unavailable` and what to install. Nothing is
/// read from the environment but the proxies, and those by libcurl. May be used from several threads, and
/// must outlive its requests.
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

#ifndef MTMC_COMPILED
#include <mtmc/net/curl_inl.hpp>
#endif
