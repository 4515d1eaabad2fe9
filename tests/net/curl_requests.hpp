#pragma once
/// What the tests of `CurlTransport` share.

#include <mtmc/net/curl.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace curl_requests {

/// Whether there is a libcurl; says so if not, which skips the test file.
inline bool can_run() {
  static const std::string problem = mtmc::CurlTransport{}.problem();
  if (!problem.empty()) MESSAGE("SKIPPED: ", problem);
  return problem.empty();
}

/// Without the proxies of the machine on which the tests run.
inline mtmc::CurlTransport direct(mtmc::CurlOptions options = {}) {
  options.no_proxy = "*";
  return mtmc::CurlTransport(std::move(options));
}

inline mtmc::Deadline in_seconds(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

inline mtmc::HttpRequest post(std::string url, std::string body = "{}") {
  return {.method = "POST",
          .url = std::move(url),
          .headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer sk-secret"}},
          .body = std::move(body)};
}
inline mtmc::HttpRequest get(std::string url) { return {.method = "GET", .url = std::move(url)}; }

/// With a deadline that only a broken test meets.
inline mtmc::HttpResponse send(mtmc::CurlTransport& transport, const mtmc::HttpRequest& request,
                               const mtmc::BodySink& sink = {}, std::stop_token stop = {}) {
  return transport.send(request, sink, in_seconds(30), std::move(stop));
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether a message gives nothing away and is one line.
inline bool is_harmless(std::string_view message) {
  for (const auto* const secret : {"sk-secret", "hunter2", "key=", "\n", "the body"})
    if (contains(message, secret)) return false;
  return !message.empty();
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace curl_requests
