#pragma once
/// What is checked before a request is sent, and how the lines of an answer's head are read.

#include <mtmc/core/error.hpp>
#include <mtmc/net/transport.hpp>
#include <mtmc/net/url.hpp>
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

/// What of a request cannot be sent, as the end of "the request was not sent: "; empty if all of it can.
/// Repeats nothing of the request, because what is malformed may be a secret in the wrong place.
[[nodiscard]] inline std::string malformed_part(const HttpRequest& request) {
  if (!is_http_token(request.method) || request.method == "CONNECT" || request.method == "TRACE")
    return "its method is not one that can be sent. Use one such as POST or GET";
  try {
    if (!parse_url(request.url).user.empty())
      return "its URL has a user or password in it. Send secrets in a header";
  } catch (const Error& error) {
    return error.message() + ". " + error.remedy();
  }
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto& header = request.headers[i];
    const auto which = "header " + std::to_string(i + 1);
    if (!is_http_token(header.name))
      return which + " has a name that no header can have. Use letters, digits and dashes";
    if (std::any_of(header.value.begin(), header.value.end(), is_control_character))
      return which + " has a line end or another control character in its value. Take it out";
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
