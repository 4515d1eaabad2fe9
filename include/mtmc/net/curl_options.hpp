#pragma once

#include <mtmc/requirements.hpp>

#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// How requests go over the network, and what is too long or too large.
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
  std::int64_t max_body = std::int64_t{64} << 20;
  /// Most bytes of its status line and headers.
  std::int64_t max_headers = std::int64_t{256} << 10;
  /// HTTP/2 over TLS where library and server have it.
  bool http2 = true;
  /// Most connections kept open while no request uses them.
  int max_kept = 64;

  friend bool operator==(const CurlOptions&, const CurlOptions&) = default; ///< member by member
};

} // namespace mtmc
