#pragma once
/// Addresses of servers in their parts, as RFC 3986 has them.

#include <mtmc/core/error.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// A URL in its parts, each with the text as it stands there: nothing is decoded.
struct Url {
  /// In lower case, "http" or "https"; empty where a text that was only split has none.
  std::string scheme{};
  /// "user:password"; a secret.
  std::string user{};
  /// "localhost", "127.0.0.1", "[::1]".
  std::string host{};
  /// 1 to 65535; 0 where none is named, which is 80 for http and 443 for https.
  int port = 0;
  /// With its slash; empty where there is none.
  std::string path{};
  /// Without its question mark. There may be secrets in it.
  std::string query{};
  /// Without its hash mark; never sent.
  std::string fragment{};

  /// The same with another path, which begins with a slash or is empty; without the fragment.
  [[nodiscard]] Url with_path(std::string other) const {
    Url url = *this;
    url.path = std::move(other);
    url.fragment.clear();
    return url;
  }

  /// "http://host:8000": scheme, host in lower case, and the port unless it is the scheme's usual one. Equal
  /// for two URLs whose requests one connection can serve.
  [[nodiscard]] std::string origin() const {
    const int usual = scheme == "https" ? 443 : 80;
    std::string text = scheme + "://";
    for (const char c : host) text += detail::lower_case(c);
    if (port != 0 && port != usual) text += ':' + std::to_string(port);
    return text;
  }

  /// All parts are equal.
  friend bool operator==(const Url&, const Url&) = default;
};

/// The URL as one text.
[[nodiscard]] inline std::string to_string(const Url& url) {
  std::string text = url.scheme.empty() ? std::string() : url.scheme + "://";
  if (!url.user.empty()) text += url.user + '@';
  text += url.host;
  if (url.port != 0) text += ':' + std::to_string(url.port);
  text += url.path;
  if (!url.query.empty()) text += '?' + url.query;
  if (!url.fragment.empty()) text += '#' + url.fragment;
  return text;
}

namespace detail {

inline constexpr int largest_port = 65535;

/// The number of a port; 0 for what is none.
[[nodiscard]] inline int port_number(std::string_view text) noexcept {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || number > largest_port) return 0;
    number = 10 * number + (c - '0');
  }
  return number > largest_port ? 0 : number;
}

/// Takes scheme and "://" off the beginning; empty where there are none.
[[nodiscard]] inline std::string take_scheme(std::string_view& text) {
  const auto end = text.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  std::string scheme;
  for (const char c : text.substr(0, end)) {
    if (!is_name_character(c) && c != '+' && c != '-' && c != '.') return {};
    scheme += lower_case(c);
  }
  text.remove_prefix(end + 3);
  return scheme;
}

/// Takes what stands before the first of `marks` off the beginning.
[[nodiscard]] inline std::string_view take_until(std::string_view& text, std::string_view marks) noexcept {
  const auto part = text.substr(0, text.find_first_of(marks));
  text.remove_prefix(part.size());
  return part;
}

} // namespace detail

/// The parts of any text as of a URL, as far as it has them: for what is to be shown or hidden, right or not.
/// A port that is no number stays with the host.
[[nodiscard]] inline Url split_url(std::string_view text) {
  Url url;
  url.scheme = detail::take_scheme(text);
  auto authority = detail::take_until(text, "/?#");
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    url.user = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  // The colons of "[::1]" come before its bracket ends.
  const auto bracket = authority.rfind(']');
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) url.port = detail::port_number(authority.substr(colon + 1));
  const bool has_port = url.port != 0 || colon + 1 == authority.size();
  url.host = authority.substr(0, has_port ? colon : std::string_view::npos);
  url.path = detail::take_until(text, "?#");
  if (text.starts_with('?')) {
    url.query = detail::take_until(text, "#");
    url.query.erase(0, 1);
  }
  if (!text.empty()) url.fragment = text.substr(1);
  return url;
}

/// A URL of a server. Throws `Error` (`mtmc.net.001`), which repeats nothing of the text because there may be
/// secrets in it, unless that begins with http:// or https://, names a host, and is of printable characters.
[[nodiscard]] inline Url parse_url(std::string_view text) {
  const auto require = [](bool holds, const char* what, const char* remedy) {
    if (!holds) throw Error(error_id::net_options, what, remedy);
  };
  constexpr const char* whole_address = "Give the whole address, such as http://localhost:8000/v1";
  const auto blank = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  require(std::none_of(text.begin(), text.end(), blank), "the URL has a space or a control character in it",
          "Encode it, a space as %20, or take it out");
  auto url = split_url(text);
  require(url.scheme == "http" || url.scheme == "https", "the URL does not begin with http:// or https://",
          whole_address);
  require(!url.host.empty() && !url.host.starts_with(':'), "the URL names no host", whole_address);
  const bool bracketed = url.host.starts_with('[');
  const auto end = std::min(url.host.find(bracketed ? ']' : ':'), url.host.size());
  require(end + (bracketed ? 1 : 0) >= url.host.size(), "the URL's port is not a number from 1 to 65535",
          "Correct the number behind the host's name");
  const bool closed = !bracketed || end < url.host.size();
  require(closed && url.host.find_first_of("\\<>\"^`{|}") == std::string::npos,
          "the URL's host has a character that no host has", "Correct the host's name");
  return url;
}

} // namespace mtmc
