#pragma once
/// One exchange as a line of a cassette; for the definitions of net/cassette.hpp.

#include <mtmc/core/error.hpp>
#include <mtmc/net/line_file.hpp>
#include <mtmc/net/request_content.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view cassette_format = "mtmc-cassette";
inline constexpr int cassette_version = 1;

/// Bytes that are text mostly: a JSON string, or `{"hex":"..."}` where they are no UTF-8.
struct RecordedBytes {
  std::string bytes{};

  [[nodiscard]] bool empty() const noexcept { return bytes.empty(); }
};

inline void transfer(const JsonCursor& at, RecordedBytes& value) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (at.writing()) {
    if (find_malformed_utf8(value.bytes) == std::string_view::npos) return transfer(at, value.bytes);
    std::string hex;
    for (const char c : value.bytes) {
      const auto byte = static_cast<unsigned char>(c);
      (hex += digits[byte / 16]) += digits[byte % 16];
    }
    *at.out = Json::object();
    (*at.out)["hex"] = std::move(hex);
    return;
  }
  if (!at.in->is_object()) return transfer(at, value.bytes);
  std::string hex;
  JsonFields fields(at);
  fields.required("hex", hex);
  value.bytes.clear();
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto high = digits.find(hex[i]);
    const auto low = i + 1 < hex.size() ? digits.find(hex[i + 1]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos)
      json_error(at, "\"hex\" needs an even number of the digits 0-9a-f");
    value.bytes += static_cast<char>(16 * high + low);
  }
}

struct RecordedHeader {
  std::string name{};
  std::string value{};
};
inline void visit_fields(JsonFields& visit, RecordedHeader& header) {
  visit.required("name", header.name);
  visit.required("value", header.value);
}

/// JSON as it is.
struct RecordedJson {
  Json value{};

  [[nodiscard]] bool empty() const noexcept { return value.is_null(); }
};
inline void transfer(const JsonCursor& at, RecordedJson& value) {
  if (at.writing())
    *at.out = value.value;
  else if (!at.in->is_structured())
    json_type_error(at, "an object or an array");
  else
    value.value = *at.in;
}

struct RecordedAnswer {
  int status = 0;
  std::vector<RecordedHeader> headers{};
  /// What the sink was given, piece by piece.
  std::vector<RecordedBytes> pieces{};
  RecordedBytes body{};
  TransportFailure failure = TransportFailure::none;
  std::string message{};
  double seconds = 0;
};
inline void visit_fields(JsonFields& visit, RecordedAnswer& answer) {
  visit.optional("status", answer.status);
  visit.optional("headers", answer.headers);
  visit.optional("pieces", answer.pieces);
  visit.optional("body", answer.body);
  visit.optional("failure", answer.failure, TransportFailure::none);
  visit.optional("message", answer.message);
  visit.optional("seconds", answer.seconds);
}

struct RecordedExchange {
  std::string label{};
  std::string method{};
  std::string path{};
  std::vector<RecordedHeader> headers{};
  RecordedJson body{};
  RecordedBytes text{};
  RecordedAnswer answer{};

  [[nodiscard]] std::string canonical_body() const { return body.empty() ? text.bytes : dumped(body.value); }
  /// What makes it the same as another.
  [[nodiscard]] std::string key() const { return sha256_hex(method + ' ' + path + '\n' + canonical_body()); }
};
inline void visit_fields(JsonFields& visit, RecordedExchange& exchange) {
  visit.optional("label", exchange.label);
  visit.required("method", exchange.method);
  visit.required("path", exchange.path);
  visit.optional("headers", exchange.headers);
  visit.optional("body", exchange.body);
  visit.optional("text", exchange.text);
  visit.required("answer", exchange.answer);
}

[[nodiscard]] inline std::vector<RecordedHeader> recorded_headers(const std::vector<HttpHeader>& headers,
                                                                  const Secrets& secrets) {
  std::vector<RecordedHeader> result;
  for (const auto& header : headers)
    if (is_plain_header(header.name)) result.push_back({header.name, secrets.hide(header.value)});
  return result;
}

/// The side of an exchange that is known before it is sent.
[[nodiscard]] inline RecordedExchange recorded_request(const HttpRequest& request, const Secrets& secrets) {
  auto content = body_content(request.body, secrets);
  RecordedExchange exchange;
  exchange.label = secrets.hide(request.label);
  exchange.method = request.method;
  exchange.path = path_content(request.url, secrets);
  exchange.headers = recorded_headers(request.headers, secrets);
  exchange.body.value = std::move(content.json);
  exchange.text.bytes = std::move(content.text);
  return exchange;
}

/// `streamed` is what the sink was given, `ends` where each piece of it ends.
[[nodiscard]] inline RecordedAnswer recorded_answer(const HttpResponse& response, std::string_view streamed,
                                                    std::vector<std::size_t> ends, const Secrets& secrets) {
  RecordedAnswer answer;
  answer.status = response.status;
  answer.headers = recorded_headers(response.headers, secrets);
  const auto shown = secrets.hide(streamed, ends);
  std::size_t from = 0;
  for (const auto end : ends) {
    answer.pieces.push_back({shown.substr(from, end - from)});
    from = end;
  }
  answer.body.bytes = secrets.hide(response.body);
  answer.failure = response.failure;
  answer.message = secrets.hide(response.message);
  answer.seconds = response.seconds;
  return answer;
}

/// The answer as it came, but for what the sink took.
[[nodiscard]] inline HttpResponse response_of(const RecordedAnswer& answer) {
  HttpResponse response;
  response.status = answer.status;
  for (const auto& header : answer.headers) response.headers.push_back({header.name, header.value});
  response.body = answer.body.bytes;
  response.failure = answer.failure;
  response.message = answer.message;
  response.seconds = answer.seconds;
  return response;
}

[[nodiscard]] inline std::string first_cassette_line() {
  return R"({"format":")" + std::string(cassette_format) + R"(","version":)" +
         std::to_string(cassette_version) + '}';
}

/// Throws `Error` (`mtmc.net.002`) where the line does not begin a cassette that this library can read.
inline void check_first_cassette_line(std::string_view line, const std::string& place) {
  const auto head = parse_text(line, false);
  const auto member = [&head](const char* name) {
    return head.is_object() ? head.value(name, Json()) : Json();
  };
  if (member("format") != Json(std::string(cassette_format)))
    throw Error(error_id::net_record,
                "this is not a recording: its first line is not " + first_cassette_line(),
                "Name the file that a RecordingTransport wrote, or one that does not exist yet", place);
  if (member("version") != Json(cassette_version))
    throw Error(error_id::net_record,
                "the recording has version " + dumped(member("version")) + ", not " +
                    std::to_string(cassette_version),
                "Use the version of the library that wrote it, or record again", place);
}

/// Reads one line. Throws `Error` (`mtmc.net.002`).
[[nodiscard]] inline RecordedExchange read_exchange(std::string_view line, const std::string& place) {
  const auto refuse = [&place](const std::string& what, const std::string& field) {
    throw Error(error_id::net_record, "the line is not a recorded exchange: " + what,
                "Correct the line, or remove it", field.empty() ? place : place + ", " + field);
  };
  const auto json = parse_text(line, false);
  if (json.is_discarded()) refuse("it is not JSON", {});
  RecordedExchange exchange;
  try {
    read_value(json, exchange, std::string());
  } catch (const Error& error) {
    refuse(error.message(), error.place());
  }
  return exchange;
}

/// Where two texts differ first: `line 3: "foo" instead of "bar"`.
[[nodiscard]] inline std::string first_difference(std::string_view asked, std::string_view recorded) {
  std::size_t at = 0;
  while (at < asked.size() && at < recorded.size() && asked[at] == recorded[at]) ++at;
  constexpr std::size_t longest = 60;
  const auto line_of = [at](std::string_view text) {
    // The line from its start, or from a little before the difference where that is far into the line.
    auto begin = at == 0 ? 0 : text.substr(0, at).rfind('\n') + 1;
    if (at > begin + longest / 2) begin = at - longest / 2;
    while (begin > 0 && begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80)
      --begin;
    auto line = text.substr(begin, text.find('\n', at) - begin);
    bool shortened = line.size() > longest;
    if (shortened) line = line.substr(0, longest);
    if (const auto bad = find_malformed_utf8(line); bad != std::string_view::npos) line = line.substr(0, bad);
    return '"' + std::string(line) + (shortened ? "...\"" : "\"");
  };
  std::size_t number = 1;
  for (const char c : asked.substr(0, at)) number += c == '\n' ? 1 : 0;
  return "line " + std::to_string(number) + ": " + line_of(asked) + " instead of " + line_of(recorded);
}

/// Where two JSON values differ first: `messages[1].content, line 3: "foo" instead of "bar"`.
[[nodiscard]] inline std::string first_difference(const Json& asked, const Json& recorded,
                                                  const std::string& path) {
  const auto place = path.empty() ? std::string("the body") : path;
  if (asked.is_string() && recorded.is_string())
    return place + ", " +
           first_difference(asked.get_ref<const std::string&>(), recorded.get_ref<const std::string&>());
  if (asked.is_object() && recorded.is_object()) {
    for (auto item = asked.begin(); item != asked.end(); ++item) {
      const auto name = path.empty() ? item.key() : path + '.' + item.key();
      const auto other = recorded.find(item.key());
      if (other == recorded.end()) return name + ", which was not in the recorded request";
      if (*item != *other) return first_difference(*item, *other, name);
    }
    for (auto item = recorded.begin(); item != recorded.end(); ++item)
      if (!asked.contains(item.key()))
        return (path.empty() ? item.key() : path + '.' + item.key()) +
               ", which the recorded request has alone";
  }
  if (asked.is_array() && recorded.is_array())
    for (std::size_t i = 0; i < asked.size() && i < recorded.size(); ++i)
      if (asked[i] != recorded[i])
        return first_difference(asked[i], recorded[i], path + '[' + std::to_string(i) + ']');
  if (asked.is_array() && recorded.is_array())
    return place + ", which has " + std::to_string(asked.size()) + " elements instead of " +
           std::to_string(recorded.size());
  return place + ": " + first_difference(dumped(asked), dumped(recorded));
}

} // namespace mtmc::detail
