#pragma once
/// Definitions of net/retry.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/retry.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return {};
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}
[[nodiscard]] inline std::string text_member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::string() : text_of(*found);
}

/// The title of a page, or the text without its tags.
[[nodiscard]] inline std::string text_of_html(std::string_view page) {
  if (const auto begin = page.find("<title>"); begin != std::string_view::npos) {
    const auto text = page.substr(begin + 7);
    const auto title = trim(text.substr(0, text.find('<')));
    if (!title.empty()) return std::string(title);
  }
  std::string text;
  bool tag = false;
  for (const char c : page) {
    if (c == '<') tag = true;
    if (!tag) text += c;
    if (c == '>') tag = false;
  }
  return text;
}

/// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT".
[[nodiscard]] inline std::optional<std::int64_t> read_http_date(const std::string& text) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm time{};
  std::array<char, 4> month{};
  int year = 0;
  if (std::sscanf(text.c_str(), "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &time.tm_mday, month.data(), &year,
                  &time.tm_hour, &time.tm_min, &time.tm_sec) != 6)
    return std::nullopt;
  const auto* const found = std::find(months.begin(), months.end(), std::string_view(month.data()));
  if (found == months.end()) return std::nullopt;
  time.tm_mon = static_cast<int>(found - months.begin());
  time.tm_year = year - 1900;
  return static_cast<std::int64_t>(::timegm(&time));
}

[[nodiscard]] inline std::optional<double> read_seconds(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What the server asks for, if anything.
[[nodiscard]] inline std::optional<double> asked_wait(const HttpResponse& response, std::int64_t now) {
  if (const auto* const text = find_header(response.headers, "retry-after-ms"))
    if (const auto milliseconds = read_seconds(*text)) return *milliseconds * 1e-3;
  const auto* const text = find_header(response.headers, "retry-after");
  if (text == nullptr) return std::nullopt;
  if (const auto seconds = read_seconds(*text)) return seconds;
  if (const auto date = read_http_date(*text)) return static_cast<double>(*date - now);
  return std::nullopt;
}

/// Whether another try might end otherwise.
[[nodiscard]] inline bool may_end_otherwise(const HttpResponse& response) {
  switch (response.failure) {
  case TransportFailure::name_not_found:
  case TransportFailure::no_connection:
  case TransportFailure::dropped:
  case TransportFailure::timeout:
    return true;
  case TransportFailure::none:
    break;
  default:
    return false;
  }
  if (const auto* const told = find_header(response.headers, "x-should-retry")) {
    if (*told == "true") return true;
    if (*told == "false") return false;
  }
  const int status = response.status;
  if (status == 408 || status == 409) return true;
  if (status != 429 && status < 500) return false;
  const auto error = read_endpoint_error(response);
  if (error.code == "insufficient_quota" || error.code == "billing_hard_limit_reached") return false;
  return !refuses_request(error);
}

} // namespace detail

MTMC_INLINE EndpointError read_endpoint_error(const HttpResponse& response) {
  using detail::text_member;
  EndpointError result;
  const auto text = trim(response.body);
  auto body = detail::parse_text(text, false);
  // Gemini's are in a list of one.
  if (body.is_array() && body.size() == 1) body = detail::Json(body.front());
  if (!body.is_object()) {
    result.message =
        detail::shortened(text.starts_with('<') ? detail::text_of_html(text) : std::string(text));
    return result;
  }
  // Nested by OpenAI and most others, flat by SGLang and older vLLM, a string by TGI and Ollama.
  const auto nested = body.find("error");
  const auto& error = nested != body.end() && nested->is_object() ? *nested : body;
  result.message = text_member(error, "message");
  if (result.message.empty() && nested != body.end() && nested->is_string()) result.message = *nested;
  if (result.message.empty()) result.message = text_member(body, "detail");
  if (result.message.empty()) result.message = std::string(text);
  result.message = detail::shortened(result.message);
  // Numbers repeat the status only.
  for (const char* const name : {"code", "type", "status"}) {
    const auto code = error.find(name);
    if (result.code.empty() && code != error.end() && code->is_string())
      result.code = code->get<std::string>();
  }
  if (result.code.empty()) result.code = text_member(body, "error_type");
  result.parameter = text_member(error, "param");
  return result;
}

MTMC_INLINE bool refuses_request(const EndpointError& error) {
  constexpr std::array<std::string_view, 6> complaints{
      // llama.cpp: `echo` (older versions), bodies that are no JSON, grammars that leave no token.
      "Only no echo is supported", "[json.exception.parse_error", "Unexpected empty grammar stack",
      // llama-cpp-python: log-probabilities without `logits_all`, fields of another type or value.
      "is not supported", "1 validation error:", " validation errors:"};
  return std::any_of(complaints.begin(), complaints.end(), [&error](std::string_view complaint) {
    return error.message.find(complaint) != std::string::npos;
  });
}

MTMC_INLINE std::optional<double> wait_before_retry(const RetryRules& rules, const HttpResponse& response,
                                                    int tries, double chance, std::int64_t now) {
  if (response.ok() || tries > rules.max_retries || !detail::may_end_otherwise(response)) return std::nullopt;
  if (const auto asked = detail::asked_wait(response, now); asked && *asked > 0)
    return *asked <= rules.max_asked_wait ? asked : std::nullopt;
  constexpr int max_doublings = 30;
  const double doubled =
      rules.first_wait * static_cast<double>(std::int64_t{1} << std::min(tries - 1, max_doublings));
  return std::min(doubled, rules.max_wait) * (1 - 0.25 * chance);
}

} // namespace mtmc
