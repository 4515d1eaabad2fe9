#pragma once
/// What of a request and its answer is a secret, and how it is taken out of whatever is recorded or shown.

#include <mtmc/net/transport.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What stands in the place of a secret.
inline constexpr std::string_view redacted = "[redacted]";

/// Texts shorter than this (bytes) are not looked for in bodies: local servers are given keys such as "EMPTY"
/// or "none", and taking these words out of kernels would spoil the record without hiding anything.
inline constexpr std::size_t shortest_secret = 6;

namespace detail {

[[nodiscard]] inline bool starts_with_ignoring_case(std::string_view text, std::string_view start) noexcept {
  return text.size() >= start.size() && equal_ignoring_case(text.substr(0, start.size()), start);
}

/// Whether `word` stands somewhere in `text`, in whatever case.
[[nodiscard]] inline bool contains_ignoring_case(std::string_view text, std::string_view word) noexcept {
  for (; text.size() >= word.size(); text.remove_prefix(1))
    if (starts_with_ignoring_case(text, word)) return true;
  return false;
}

/// Where user and host of a URL begin: behind its scheme, if it has one. Its query may hold another URL.
[[nodiscard]] inline std::size_t host_of_url(std::string_view url) noexcept {
  const auto colon = url.find("://");
  return colon != std::string_view::npos && url.find_first_of("/?#") == colon + 1 ? colon + 3 : 0;
}

/// Where the path of a URL begins, or its end.
[[nodiscard]] inline std::size_t path_of_url(std::string_view url) noexcept {
  return std::min(url.find_first_of("/?#", host_of_url(url)), url.size());
}

/// "user:password" of "https://user:password@host/path"; empty if there is none.
[[nodiscard]] inline std::string_view user_of_url(std::string_view url) noexcept {
  const auto begin = host_of_url(url);
  const auto authority = url.substr(begin, path_of_url(url) - begin);
  const auto at = authority.rfind('@');
  return at == std::string_view::npos ? std::string_view() : authority.substr(0, at);
}

/// Calls `take(name, value)` for each parameter of the query of a URL, with the text as it stands there.
template <class Take> void for_each_parameter(std::string_view url, Take&& take) {
  const auto query = url.find('?');
  if (query == std::string_view::npos) return;
  auto rest = url.substr(query + 1, url.find('#', query) - query - 1);
  while (!rest.empty()) {
    const auto one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const auto sign = one.find('=');
    take(one.substr(0, sign), sign == std::string_view::npos ? std::string_view() : one.substr(sign + 1));
  }
}

[[nodiscard]] inline std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    decoded += escape ? static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

[[nodiscard]] inline std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_name_character(c) || c == '-' || c == '.' || c == '~')
      encoded += c;
    else
      ((encoded += '%') += digits[byte / 16]) += digits[byte % 16];
  }
  return encoded;
}

/// `text` with a backslash before each of `characters`.
[[nodiscard]] inline std::string escaped(std::string_view text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

} // namespace detail

/// Whether a header may be recorded and shown. Only those that are known to tell nothing about who asks may:
/// a gateway's own header can be a key under any name.
[[nodiscard]] inline bool is_plain_header(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 17> plain{"accept",
                                                   "accept-encoding",
                                                   "connection",
                                                   "content-encoding",
                                                   "content-length",
                                                   "content-type",
                                                   "date",
                                                   "host",
                                                   "retry-after",
                                                   "retry-after-ms",
                                                   "server",
                                                   "transfer-encoding",
                                                   "user-agent",
                                                   "x-request-id",
                                                   "x-should-retry",
                                                   "request-id",
                                                   "openai-processing-ms"};
  return detail::starts_with_ignoring_case(name, "x-ratelimit-") ||
         std::any_of(plain.begin(), plain.end(),
                     [name](std::string_view known) { return detail::equal_ignoring_case(name, known); });
}

/// Whether a parameter of a URL's query ("?key=...") is a secret, by its name.
[[nodiscard]] inline bool is_secret_parameter(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 9> words{"key",     "token",      "secret",    "auth",  "pass",
                                                  "session", "credential", "signature", "cookie"};
  return detail::equal_ignoring_case(name, "sig") || detail::equal_ignoring_case(name, "code") ||
         std::any_of(words.begin(), words.end(),
                     [name](std::string_view word) { return detail::contains_ignoring_case(name, word); });
}

/// Texts that may appear nowhere, and what takes them out of others.
class Secrets {
public:
  Secrets() = default;
  /// Those of a request: the values of all its headers that are not plain, alone and after the scheme
  /// ("Bearer ..."), each cookie, user and password of the URL, its secret parameters; and `more`.
  explicit Secrets(const HttpRequest& request, std::span<const std::string> more = {}) {
    for (const auto& header : request.headers)
      if (!is_plain_header(header.name)) add_header(header);
    const auto user = detail::user_of_url(request.url);
    add_with_decoded(user);
    if (const auto colon = user.find(':'); colon != std::string_view::npos)
      add_with_decoded(user.substr(colon + 1));
    detail::for_each_parameter(request.url, [this](std::string_view name, std::string_view value) {
      if (is_secret_parameter(name)) add_with_decoded(value);
    });
    for (const auto& secret : more) add(secret);
  }

  /// One more, with its forms in JSON and in URLs. Texts shorter than `shortest_secret` are passed over.
  void add(std::string_view secret) {
    secret = trim(secret);
    if (secret.size() < shortest_secret) return;
    for (auto& form : {std::string(secret), detail::escaped(secret, "\"\\"), detail::escaped(secret, "\"\\/"),
                       detail::percent_encoded(secret)})
      if (std::find(texts_.begin(), texts_.end(), form) == texts_.end()) texts_.push_back(form);
  }

  /// `text` with `redacted` in the place of each secret.
  [[nodiscard]] std::string hide(std::string_view text) const {
    std::vector<std::size_t> none;
    return hide(text, none);
  }
  /// As above. `cuts`, ascending offsets into `text`, become offsets into the result; one within a secret
  /// goes to its end.
  [[nodiscard]] std::string hide(std::string_view text, std::vector<std::size_t>& cuts) const {
    std::string result;
    std::size_t from = 0;
    auto cut = cuts.begin();
    const auto keep_until = [&](std::size_t end) {
      for (; cut != cuts.end() && *cut <= end; ++cut) *cut = result.size() + *cut - from;
      result += text.substr(from, end - from);
    };
    for (const auto& [begin, end] : places_in(text)) {
      keep_until(begin);
      result += redacted;
      for (; cut != cuts.end() && *cut < end; ++cut) *cut = result.size();
      from = end;
    }
    keep_until(text.size());
    return result;
  }

private:
  using Place = std::pair<std::size_t, std::size_t>;

  void add_with_decoded(std::string_view text) {
    add(text);
    add(detail::percent_decoded(text));
  }

  void add_header(const HttpHeader& header) {
    const auto value = trim(header.value);
    add(value);
    if (const auto blank = value.find(' '); blank != std::string_view::npos) add(value.substr(blank + 1));
    if (!detail::contains_ignoring_case(header.name, "cookie")) return;
    for (auto rest = value; !rest.empty();) {
      const auto one = rest.substr(0, rest.find(';'));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      if (const auto sign = one.find('='); sign != std::string_view::npos) add(one.substr(sign + 1));
    }
  }

  /// Where secrets stand: apart from each other, in order. Those that overlap are one.
  [[nodiscard]] std::vector<Place> places_in(std::string_view text) const {
    std::vector<Place> places;
    for (const auto& secret : texts_)
      for (auto at = text.find(secret); at != std::string_view::npos; at = text.find(secret, at + 1))
        places.emplace_back(at, at + secret.size());
    std::sort(places.begin(), places.end());
    std::vector<Place> merged;
    for (const auto& place : places)
      if (!merged.empty() && place.first < merged.back().second)
        merged.back().second = std::max(merged.back().second, place.second);
      else
        merged.push_back(place);
    return merged;
  }

  std::vector<std::string> texts_;
};

/// A URL that may be shown: without user and password, with `redacted` as value of its secret parameters.
[[nodiscard]] inline std::string url_without_secrets(std::string_view url) {
  const auto user = detail::user_of_url(url);
  std::string shown(url.substr(0, url.find('?')));
  if (!user.empty()) shown.erase(static_cast<std::size_t>(user.data() - url.data()), user.size() + 1);
  char separator = '?';
  detail::for_each_parameter(url, [&](std::string_view name, std::string_view value) {
    ((shown += separator) += name);
    if (!value.empty()) (shown += '=') += is_secret_parameter(name) ? redacted : value;
    separator = '&';
  });
  return shown;
}

/// A request that may be shown: plain headers alone, no secret in URL, body or label.
[[nodiscard]] inline HttpRequest without_secrets(HttpRequest request,
                                                 std::span<const std::string> more = {}) {
  const Secrets secrets(request, more);
  std::erase_if(request.headers, [](const HttpHeader& header) { return !is_plain_header(header.name); });
  for (auto& header : request.headers) header.value = secrets.hide(header.value);
  request.url = secrets.hide(url_without_secrets(request.url));
  request.body = secrets.hide(request.body);
  request.label = secrets.hide(request.label);
  return request;
}

} // namespace mtmc
