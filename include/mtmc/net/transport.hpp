#pragma once
/// How a request gets to a server and its answer back: a concept, so that a host can use its own HTTP client,
/// a recording, or a file that somebody carries across an air gap.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/support/text.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One header line, without line ends.
struct HttpHeader {
  std::string name;  ///< as sent; compare without regard to case
  std::string value; ///< the text after the colon

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default; ///< member by member
};

namespace detail {
[[nodiscard]] inline bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower_case(a[i]) != lower_case(b[i])) return false;
  return true;
}
} // namespace detail

/// The value of the first header of that name, in whatever case; null where there is none.
[[nodiscard]] inline const std::string* find_header(std::span<const HttpHeader> headers,
                                                    std::string_view name) noexcept {
  for (const auto& header : headers)
    if (detail::equal_ignoring_case(header.name, name)) return &header.value;
  return nullptr;
}

/// What is sent.
struct HttpRequest {
  /// The HTTP method.
  std::string method = "POST";
  /// Absolute, with scheme: "https://host:port/path".
  std::string url;
  /// Secrets (`Authorization`, `api-key`, ...) are among them: what logs or records a request leaves them
  /// out.
  std::vector<HttpHeader> headers{};
  /// What is sent after the headers; may be empty.
  std::string body{};
  /// What the request is called in records and batches, such as "gemm-3-0"; never sent.
  std::string label{};

  friend bool operator==(const HttpRequest&, const HttpRequest&) = default; ///< member by member
};

/// Why no whole answer came. The list is closed.
enum class TransportFailure {
  none,
  /// The request itself is malformed: no scheme, line ends in a header. Nothing was sent.
  malformed_request,
  /// There is nothing to send with: no HTTP library, no recording that holds the request.
  unavailable,
  /// The host's name (or the proxy's) is not known.
  name_not_found,
  /// The server (or the proxy) does not accept a connection.
  no_connection,
  /// No trust: certificate, host name, or a handshake that failed.
  tls,
  /// The connection ended before the answer did.
  dropped,
  /// The deadline passed, or nothing came for longer than is allowed.
  timeout,
  /// The answer is larger than is allowed.
  too_large,
  /// The stop token, or the sink, ended it.
  cancelled,
  /// The answer comes later: the request was written down, under the id in `message`.
  pending
};

namespace detail {
inline constexpr EnumName<TransportFailure> transport_failure_names[] = {
    {TransportFailure::none, "none"},
    {TransportFailure::malformed_request, "malformed_request"},
    {TransportFailure::unavailable, "unavailable"},
    {TransportFailure::name_not_found, "name_not_found"},
    {TransportFailure::no_connection, "no_connection"},
    {TransportFailure::tls, "tls"},
    {TransportFailure::dropped, "dropped"},
    {TransportFailure::timeout, "timeout"},
    {TransportFailure::too_large, "too_large"},
    {TransportFailure::cancelled, "cancelled"},
    {TransportFailure::pending, "pending"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<TransportFailure>> enum_names(TransportFailure) noexcept {
  return detail::transport_failure_names;
}

/// What came back.
struct HttpResponse {
  /// 0 where no status line came.
  int status = 0;
  /// In the order they came.
  std::vector<HttpHeader> headers{};
  /// Without what a sink took; what came before a failure is kept.
  std::string body{};
  /// Why there is no answer; `none` if there is one.
  TransportFailure failure = TransportFailure::none;
  /// On a failure: one sentence, without secrets. `pending`: the id alone.
  std::string message{};
  /// Wall-clock seconds.
  double seconds = 0;
  /// The option that may help after a failure, such as "CurlOptions::ca_file"; empty if none does.
  std::string option{};

  /// A whole answer of any status.
  [[nodiscard]] bool arrived() const noexcept { return failure == TransportFailure::none; }
  /// A whole answer of status 2xx.
  [[nodiscard]] bool ok() const noexcept { return arrived() && status >= 200 && status < 300; }

  friend bool operator==(const HttpResponse&, const HttpResponse&) = default; ///< member by member
};

/// Takes the body of a 2xx answer piece by piece, as it comes. False ends the exchange as `cancelled`.
using BodySink = std::function<bool(std::string_view)>;

/// Sends a request and waits for its answer, until `deadline` at the latest and for only a moment (0.1 s)
/// after a stop request. `sink` may be empty: then the whole body is in the response, as it always is for
/// other statuses than 2xx. Does not throw for what may happen on a network, does not try again, does not
/// follow redirects. May be called from several threads unless the type declares `max_concurrency`.
template <class T>
concept Transport = requires(T& transport, const HttpRequest& request, const BodySink& sink,
                             Deadline deadline, std::stop_token stop) {
  { transport.send(request, sink, deadline, stop) } -> std::same_as<HttpResponse>;
};

/// Any transport; copies share it.
class AnyTransport {
public:
  /// Holds any transport.
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, AnyTransport> && Transport<std::remove_cvref_t<T>>)
  AnyTransport(T&& transport) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(std::make_shared<std::remove_cvref_t<T>>(std::forward<T>(transport))),
        send_([](void* held, const HttpRequest& request, const BodySink& sink, Deadline deadline,
                 std::stop_token stop) {
          return static_cast<std::remove_cvref_t<T>*>(held)->send(request, sink, deadline, std::move(stop));
        }) {}

  /// `Transport::send` of what is held.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const BodySink& sink, Deadline deadline,
                                  std::stop_token stop) {
    return send_(held_.get(), request, sink, deadline, std::move(stop));
  }

private:
  std::shared_ptr<void> held_;
  HttpResponse (*send_)(void*, const HttpRequest&, const BodySink&, Deadline, std::stop_token);
};

/// True if `T` models `Transport`; otherwise the compiler says in one sentence what is missing.
template <class T> consteval bool check_transport() {
  static_assert(Transport<T>, "a Transport needs `HttpResponse send(const HttpRequest&, const BodySink&, "
                              "Deadline, std::stop_token)`");
  return Transport<T>;
}

} // namespace mtmc
