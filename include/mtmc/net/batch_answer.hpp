#pragma once
/// One line of a batch's output, and the ids that tie it to its request; for the definitions of
/// net/batch.hpp.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/json_member.hpp>
#include <mtmc/net/request_content.hpp>
#include <mtmc/net/retry.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/text.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// What a batch knows a request by: label and hash of the body make its id, `mtmc-<label>-<hash>`, in
/// [A-Za-z0-9_-] and at most 64 characters.
struct BatchId {
  std::string stem;
  /// SHA-256 of the canonical body, of which an id holds eight digits: the first ones, unless another body
  /// under the same label has the same.
  std::string hash;

  static constexpr std::size_t digits = 8;
  static constexpr std::size_t choices = 64 / digits;

  [[nodiscard]] std::string id(std::size_t choice) const {
    return stem + '-' + hash.substr(digits * choice, digits);
  }
  /// The id of the second, third, ... asking.
  [[nodiscard]] static std::string again(const std::string& id, int asking) {
    return asking == 1 ? id : id + '-' + std::to_string(asking);
  }
};

[[nodiscard]] inline BatchId batch_id(std::string_view label, std::string_view canonical_body) {
  // "mtmc-", "-", the digits and the number of the asking take the rest.
  constexpr std::size_t longest = 44;
  constexpr std::size_t hash_digits = 8;
  std::string name;
  for (const char c : label) name += is_name_character(c) || c == '-' ? c : '_';
  if (name.empty()) name = "request";
  // Labels that become the same, by their characters or their length, must not become the same request.
  if (name.size() > longest || (name != label && !label.empty()))
    name = name.substr(0, longest - hash_digits - 1) + '-' + sha256_hex(label).substr(0, hash_digits);
  return {"mtmc-" + name, sha256_hex(canonical_body)};
}

/// An id taken apart: "mtmc-gemm-3-0" and "0123abcd" of "mtmc-gemm-3-0-0123abcd-2". Both empty where it is no
/// id of a batch.
struct BatchIdParts {
  std::string_view stem{};
  std::string_view digits{};
};
[[nodiscard]] inline BatchIdParts parts_of_batch_id(std::string_view id) {
  const auto is_hash = [](std::string_view text) {
    return text.size() == BatchId::digits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  // The last part is the hash, or the number of the asking.
  for (int parts = 0; parts < 2; ++parts) {
    const auto dash = id.rfind('-');
    if (dash == std::string_view::npos) return {};
    const auto last = id.substr(dash + 1);
    id = id.substr(0, dash);
    if (is_hash(last)) return {id, last};
  }
  return {};
}

/// An answer that came back.
struct BatchAnswer {
  std::string id{};
  HttpResponse response{};
  /// The batch ended before the request was answered: it may be asked again.
  bool unasked = false;
};

/// The status that an error without one stands for.
[[nodiscard]] inline int status_of_batch_error(const EndpointError& error) {
  constexpr std::array<std::pair<std::string_view, int>, 9> known{{{"batch_expired", 504},
                                                                   {"request_timeout", 504},
                                                                   {"batch_cancelled", 503},
                                                                   {"rate_limit_exceeded", 429},
                                                                   {"insufficient_quota", 429},
                                                                   {"invalid_request_error", 400},
                                                                   {"context_length_exceeded", 400},
                                                                   {"invalid_api_key", 401},
                                                                   {"model_not_found", 404}}};
  for (const auto& [code, status] : known)
    if (error.code == code) return status;
  return 500;
}

/// A number that is a status of HTTP, at `object[name]`; 0 where there is none.
[[nodiscard]] inline int status_member(const Json& object, const char* name) {
  if (!object.is_object()) return 0;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return 0;
  const auto number = found->get<double>();
  return number >= 100 && number <= 599 ? static_cast<int>(number) : 0;
}

[[nodiscard]] inline const Json& member_or_null(const Json& object, const char* name) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

/// Reads a line of a batch's output: `response`, `error` or both, as OpenAI and vLLM write them. Where it is
/// none, `id` is empty and `response.message` says why.
[[nodiscard]] inline BatchAnswer read_batch_answer(std::string_view line) {
  BatchAnswer answer;
  const auto refused = [&answer](std::string_view why) {
    answer.id.clear();
    answer.response.message = why;
    return answer;
  };
  const auto json = parse_text(line, false);
  if (!json.is_object()) return refused("it is not a JSON object");
  answer.id = string_member(json, "custom_id");
  if (answer.id.empty()) return refused("it has no \"custom_id\"");

  const auto& response = member_or_null(json, "response");
  const auto& error = member_or_null(json, "error");
  const auto& body = member_or_null(response, "body");
  const bool failed = !error.empty() && error != Json("");
  if (!response.is_object() && !failed) return refused("it has neither \"response\" nor \"error\"");

  auto& told = answer.response;
  told.status = status_member(response, "status_code");
  told.headers.push_back({"content-type", "application/json"});
  if (auto request = string_member(response, "request_id"); !request.empty())
    told.headers.push_back({"x-request-id", std::move(request)});
  if (body.is_string())
    told.body = body.get<std::string>();
  else if (!body.is_null())
    told.body = dumped(body);
  else if (failed)
    // vLLM gives the whole of an error's body as "error", OpenAI what is within it.
    told.body = dumped(error.is_object() && error.contains("error") ? error : Json{{"error", error}});
  if (told.status == 0 && !failed) return refused("its \"status_code\" is not an HTTP status");
  if (told.body.empty() && told.status == 200) return refused("its answer has no \"body\"");
  if (told.status == 200 && !failed) return answer;

  const auto read = read_endpoint_error(told);
  const auto& inner = member_or_null(error, "error");
  if (told.status < 300) told.status = status_member(inner.is_object() ? inner : error, "code");
  const bool never_begun =
      read.code == "batch_expired" || read.code == "batch_cancelled" || read.code == "request_timeout";
  if (told.status < 300 || never_begun) told.status = status_of_batch_error(read);
  answer.unasked = never_begun || (told.status == 429 && read.code != "insufficient_quota");
  told.headers.push_back({"x-should-retry", "false"});
  return answer;
}

} // namespace mtmc::detail
