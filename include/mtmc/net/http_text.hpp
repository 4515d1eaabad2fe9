#pragma once
/// What is checked before a request is sent, and how the lines of an answer's head are read.

#include <mtmc/net/transport.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a text is a token of RFC 9110 (methods, names of headers).
[[nodiscard]] inline bool is_http_token(std::string_view text) noexcept {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  const auto allowed = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           marks.find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

[[nodiscard]] inline bool is_control_character(char c) noexcept {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

[[nodiscard]] inline bool has_scheme(std::string_view url, std::string_view scheme) noexcept {
  return url.size() > scheme.size() && equal_ignoring_case(url.substr(0, scheme.size()), scheme);
}
[[nodiscard]] inline bool is_https(std::string_view url) noexcept { return has_scheme(url, "https://"); }

/// "http://host:8000" of "http://host:8000/v1?key=1"; empty without scheme.
[[nodiscard]] inline std::string_view origin_of_url(std::string_view url) noexcept {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  return url.substr(0, url.find_first_of("/?#\\", scheme + 3));
}

/// The URL as it may be shown: without query and fragment, in which keys are handed over.
[[nodiscard]] inline std::string_view url_to_show(std::string_view url) noexcept {
  return url.substr(0, url.find_first_of("?#"));
}

/// What of a request cannot be sent, as the end of "the request was not sent: "; empty if all of it can.
/// Repeats nothing of the request, because what is malformed may be a secret in the wrong place.
[[nodiscard]] inline std::string malformed_part(const HttpRequest& request) {
  if (!is_http_token(request.method) || request.method == "CONNECT" || request.method == "TRACE")
    return "its method is not a valid HTTP method; use one such as POST or GET";
  const std::string_view url = request.url;
  const auto blank = [](char c) { return is_control_character(c) || c == ' ' || c == '\t'; };
  if (std::any_of(url.begin(), url.end(), blank))
    return "its URL has a space or control character in it; encode it as %20 or take it out";
  if (!has_scheme(url, "http://") && !is_https(url))
    return "its URL does not begin with http:// or https://; give the whole address";
  const auto origin = origin_of_url(url);
  if (origin.find('@') != std::string_view::npos)
    return "its URL has a user or password in it; hand secrets over in a header";
  const auto host = origin.substr(origin.find("://") + 3);
  if (host.empty() || host.starts_with(':')) return "its URL names no host; give the whole address";
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto& header = request.headers[i];
    const auto which = "header " + std::to_string(i + 1);
    if (!is_http_token(header.name))
      return which + " has a name that is none; use letters, digits and dashes";
    if (std::any_of(header.value.begin(), header.value.end(), is_control_character))
      return which + " has a line end or another control character in its value; take it out";
  }
  return {};
}

/// What is read from the head of an answer, line by line. Interim answers (1xx) and what comes after the
/// head (trailers) are left out.
class AnswerHead {
public:
  /// Takes one line, with or without its end.
  void take(std::string_view line) {
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    if (complete_) return;
    if (!open_) {
      begin(line);
    } else if (line.empty()) {
      open_ = false;
      complete_ = status_ >= 200;
    } else if (line.front() == ' ' || line.front() == '\t') {
      if (!headers_.empty()) headers_.back().value += ' ' + std::string(trim(line));
    } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
      headers_.push_back(
          {std::string(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1)))});
    }
  }

  /// Whether the head of the answer proper has come as a whole.
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  /// 0 as long as no status line of an answer proper has come.
  [[nodiscard]] int status() const noexcept { return status_ >= 200 ? status_ : 0; }
  /// Those that came so far.
  [[nodiscard]] std::vector<HttpHeader>& headers() noexcept { return headers_; }

private:
  void begin(std::string_view line) {
    if (!line.starts_with("HTTP/")) return;
    open_ = true;
    status_ = 0;
    headers_.clear();
    const auto code = line.substr(std::min(line.find(' '), line.size()));
    for (const char c : trim(code).substr(0, 3))
      status_ = c >= '0' && c <= '9' ? status_ * 10 + (c - '0') : 0;
  }

  std::vector<HttpHeader> headers_{};
  int status_ = 0;
  bool open_ = false;
  bool complete_ = false;
};

} // namespace mtmc::detail
