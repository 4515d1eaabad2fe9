#pragma once
/// Definitions of net/curl.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/net/curl_exchange.hpp>
#include <mtmc/net/curl_library.hpp>
#include <mtmc/net/curl_options.hpp>
#include <mtmc/net/curl_transfer.hpp>
#include <mtmc/net/http_text.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/net/url.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::string curl_remedy(const std::string& reason) {
  return "libcurl cannot be used: " + reason +
         "; install it (Debian, Ubuntu: apt-get install libcurl4; Fedora, RHEL: dnf install libcurl) or name "
         "its file";
}

} // namespace detail

struct CurlTransport::State {
  CurlOptions options;
  std::optional<detail::CurlLibrary> library{};
  std::string problem{};
  detail::CurlHandles handles{};
};

MTMC_INLINE CurlTransport::CurlTransport(CurlOptions options) : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
  try {
    state_->library.emplace(state_->options.library);
  } catch (const SharedLibraryError& error) {
    state_->problem = detail::curl_remedy(error.what());
  }
}

MTMC_INLINE const std::string& CurlTransport::problem() const noexcept { return state_->problem; }

MTMC_INLINE std::string CurlTransport::version() const {
  return state_->library ? state_->library->version() : std::string();
}

MTMC_INLINE HttpResponse CurlTransport::send(const HttpRequest& request, const BodySink& sink,
                                             Deadline deadline, std::stop_token stop) {
  HttpResponse response;
  const auto refuse = [&](TransportFailure failure, std::string message) {
    response.failure = failure;
    if (failure == TransportFailure::unavailable) response.option = "CurlOptions::library";
    response.message = "the request was not sent: " + std::move(message);
    return response;
  };
  if (auto part = detail::malformed_part(request); !part.empty())
    return refuse(TransportFailure::malformed_request, std::move(part));
  if (!state_->library) return refuse(TransportFailure::unavailable, state_->problem);
  const auto& library = *state_->library;
  auto url = parse_url(request.url);
  if (url.scheme == "https" && !library.has(detail::curl_value::feature_tls))
    return refuse(TransportFailure::unavailable, detail::curl_remedy("it was built without TLS"));
  if (stop.stop_requested()) return refuse(TransportFailure::cancelled, "cancelled by the caller");
  if (Deadline::clock::now() >= deadline)
    return refuse(TransportFailure::timeout, "the deadline had passed before");

  detail::CurlExchange exchange{request, sink, state_->options};
  auto handle = state_->handles.take(library, url.origin());
  detail::run_exchange(library, handle, exchange, deadline, stop, response);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  // What failed may have left something behind; a new handle costs less than to find out.
  if (response.arrived()) {
    library.easy_reset(handle.easy());
    state_->handles.keep(std::move(handle), state_->options.max_kept);
  }

  response.status = exchange.head.status();
  response.headers = std::move(exchange.head.headers());
  if (response.status == 0) response.headers.clear();
  response.body = std::move(exchange.body);
  response.seconds = std::chrono::duration<double>(Deadline::clock::now() - exchange.begun).count();
  if (!response.arrived()) {
    url.query.clear(); // in which keys are handed over
    response.message = request.method + ' ' + to_string(without_secrets(url)) + ": " + response.message;
  }
  return response;
}

} // namespace mtmc
