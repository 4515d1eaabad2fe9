#pragma once
/// One request and what comes back of it, as libcurl hands it over.

#include <mtmc/net/curl_library.hpp>
#include <mtmc/net/curl_options.hpp>
#include <mtmc/net/http_text.hpp>
#include <mtmc/net/transport.hpp>
#include <mtmc/support/readable_bytes.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// `seconds` after a point of time; never if that is years away.
[[nodiscard]] inline Deadline seconds_after(Deadline start, double seconds) {
  constexpr double years = 1e9;
  if (!(seconds < years)) return Deadline::max();
  return start + std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

/// "5 s", "0.25 s": to the millisecond.
[[nodiscard]] inline std::string seconds_text(double seconds) {
  auto text = std::to_string(seconds);
  text.resize(text.size() - 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

/// The state of a request under way. What libcurl calls takes a pointer to it.
struct CurlExchange {
  using Clock = Deadline::clock;

  const HttpRequest& request;
  const BodySink& sink;
  const CurlOptions& options;
  Clock::time_point begun = Clock::now();

  AnswerHead head{};
  /// Without what the sink took.
  std::string body{};
  std::int64_t head_bytes = 0;
  std::int64_t body_bytes = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t moved_bytes = 0;
  Clock::time_point last_move = begun;
  /// Why we ended it ourselves.
  TransportFailure ended = TransportFailure::none;
  std::exception_ptr thrown{};
  std::array<char, curl_value::error_buffer_size> error_text{};

  /// When nothing has come or gone for too long; nothing if it may be silent.
  [[nodiscard]] std::optional<Deadline> end_of_patience() const {
    const bool thinking =
        !sink && head_bytes == 0 && sent_bytes >= static_cast<std::int64_t>(request.body.size());
    if (thinking || options.idle_seconds <= 0) return std::nullopt;
    return seconds_after(last_move, options.idle_seconds);
  }

  /// One line of a head. Fewer bytes than there are end the exchange.
  static std::size_t take_line(char* data, std::size_t size, std::size_t count, void* self) noexcept {
    return static_cast<CurlExchange*>(self)->guarded(size * count, [&](CurlExchange& exchange) {
      exchange.last_move = Clock::now();
      exchange.head_bytes += static_cast<std::int64_t>(size * count);
      if (exchange.head_bytes > exchange.options.max_headers)
        exchange.ended = TransportFailure::too_large;
      else
        exchange.head.take({data, size * count});
    });
  }

  /// One piece of the body.
  static std::size_t take_piece(char* data, std::size_t size, std::size_t count, void* self) noexcept {
    return static_cast<CurlExchange*>(self)->guarded(size * count, [&](CurlExchange& exchange) {
      exchange.take_body({data, size * count});
      // Afterwards: the time that a sink takes is not the server's.
      exchange.last_move = Clock::now();
    });
  }

  /// How much has come and gone, in bytes of bodies.
  static int take_progress(void* self, std::int64_t, std::int64_t received, std::int64_t,
                           std::int64_t sent) noexcept {
    auto& exchange = *static_cast<CurlExchange*>(self);
    exchange.sent_bytes = sent;
    if (const auto moved = received + sent; moved != exchange.moved_bytes) {
      exchange.moved_bytes = moved;
      exchange.last_move = Clock::now();
    }
    return 0;
  }

private:
  // Nothing may be thrown through libcurl.
  template <class Take> std::size_t guarded(std::size_t size, const Take& take) noexcept {
    try {
      take(*this);
    } catch (...) {
      thrown = std::current_exception();
      ended = TransportFailure::cancelled;
    }
    return ended == TransportFailure::none ? size : 0;
  }

  void take_body(std::string_view piece) {
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(options.max_body - body_bytes, 0));
    if (piece.size() > room) ended = TransportFailure::too_large;
    piece = piece.substr(0, room);
    body_bytes += static_cast<std::int64_t>(piece.size());
    if (!sink || head.status() < 200 || head.status() >= 300)
      body.append(piece);
    else if (!piece.empty() && !sink(piece) && ended == TransportFailure::none)
      ended = TransportFailure::cancelled;
  }
};

/// How a transfer ended, as libcurl tells it.
struct CurlEnd {
  CurlCode code = curl_code::ok;
  /// Status with which a proxy answered the wish for a tunnel; 0 = none was asked for.
  long tunnel_status = 0;
  /// Whether status line and headers came as a whole.
  bool head_complete = false;
  /// libcurl's message.
  std::string message{};
};

/// The end in the terms of `TransportFailure`. Of the codes, those that are left over mean a connection on
/// which something else came than HTTP, or not all of it.
[[nodiscard]] inline TransportFailure failure_of(const CurlEnd& end) {
  namespace code = curl_code;
  switch (end.code) {
  case code::ok:
    return TransportFailure::none;
  case code::malformed_url:
  case code::bad_argument:
    return TransportFailure::malformed_request;
  case code::failed_start:
  case code::not_built_in:
  case code::unknown_option:
  case code::recursive_call:
    return TransportFailure::unavailable;
  case code::proxy_not_found:
  case code::host_not_found:
    return TransportFailure::name_not_found;
  case code::no_connection:
  case code::interface_failed:
  case code::proxy_handshake:
    return TransportFailure::no_connection;
  case code::timed_out:
    // The only time that libcurl itself looks after is that for connecting.
    return TransportFailure::timeout;
  case code::file_too_large:
  case code::too_large:
    return TransportFailure::too_large;
  case code::out_of_memory:
    // So older versions call a line of more than 100 kB.
    return end.head_complete ? TransportFailure::dropped : TransportFailure::too_large;
  case code::handshake_failed: {
    // A connection that breaks in the middle of the handshake says nothing about trust.
    for (const std::string_view sign : {"SYSCALL", "reset by peer", "unexpected eof", "non-properly"})
      if (end.message.find(sign) != std::string::npos) return TransportFailure::dropped;
    return TransportFailure::tls;
  }
  default:
    break;
  }
  if (std::find(code::trust.begin(), code::trust.end(), end.code) != code::trust.end())
    return TransportFailure::tls;
  if (end.tunnel_status >= 300) return TransportFailure::no_connection;
  return TransportFailure::dropped;
}

/// What there is to say about a failure, as the end of "POST http://host/path: ".
[[nodiscard]] inline std::string failure_text(TransportFailure failure, const CurlEnd& end,
                                              const CurlExchange& exchange) {
  const auto message = end.message.empty() ? std::string() : " (" + end.message + ")";
  switch (failure) {
  case TransportFailure::name_not_found:
    return end.code == curl_code::proxy_not_found
               ? "the proxy's name is not known; correct it in the options or in the environment"
               : "the host's name is not known" + message;
  case TransportFailure::no_connection:
    if (end.tunnel_status >= 300)
      return "the proxy did not connect to the server; it answered " + std::to_string(end.tunnel_status);
    return "no connection to the server could be made" + message;
  case TransportFailure::tls:
    if (end.code == curl_code::no_authorities)
      return "no server can be trusted without certificates of authorities" + message +
             "; install the system's (the package ca-certificates), or name a file that holds some";
    if (end.message.find("wrong version number") != std::string::npos)
      return "the server does not speak TLS" + message +
             "; if it is meant to be without, write http:// in its address";
    return "the server is not trusted" + message +
           "; if you made its certificate yourself, name the file with your authority's";
  case TransportFailure::timeout:
    return "no connection was made within " + seconds_text(exchange.options.connect_seconds) +
           ", the look-up of the name and TLS included";
  case TransportFailure::too_large:
    return exchange.head.complete()
               ? "the answer is larger than " + readable_bytes(static_cast<double>(exchange.options.max_body))
               : "the head of the answer is larger than " +
                     readable_bytes(static_cast<double>(exchange.options.max_headers)) +
                     ", or one of its lines is larger than 100 kB";
  case TransportFailure::dropped:
    return "the connection ended before the answer did, after " +
           readable_bytes(static_cast<double>(exchange.body_bytes)) + " of its body" + message;
  case TransportFailure::malformed_request:
    return "the URL cannot be understood";
  default:
    return "libcurl cannot send it" + message;
  }
}

/// The option that may help after a failure; empty if none does.
[[nodiscard]] inline std::string failure_option(TransportFailure failure, const CurlEnd& end) {
  if (end.code == curl_code::proxy_not_found) return "CurlOptions::proxy";
  if (failure == TransportFailure::tls && end.message.find("wrong version number") == std::string::npos)
    return "CurlOptions::ca_file";
  if (failure == TransportFailure::timeout) return "CurlOptions::connect_seconds";
  if (failure == TransportFailure::too_large)
    return end.head_complete ? "CurlOptions::max_body" : "CurlOptions::max_headers";
  return {};
}

} // namespace mtmc::detail
