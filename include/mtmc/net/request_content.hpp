#pragma once
/// What makes two requests the same one: method, path below the host, and body, without secrets and however
/// the body's members are ordered. For the definitions of recordings and batches.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/net/transport.hpp>
#include <mtmc/net/url.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

[[nodiscard]] inline std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `value` without secrets in its texts and its names of members.
[[nodiscard]] inline Json without_secrets(const Json& value, const Secrets& secrets) {
  if (value.is_string()) return secrets.hide(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json hidden = value.is_array() ? Json::array() : Json::object();
  for (auto item = value.begin(); item != value.end(); ++item)
    if (value.is_array())
      hidden.push_back(without_secrets(*item, secrets));
    else
      hidden[secrets.hide(item.key())] = without_secrets(*item, secrets);
  return hidden;
}

/// A body: an object or array if it is one, else null and the text as it is.
struct BodyContent {
  Json json{};
  std::string text{};

  [[nodiscard]] std::string canonical() const { return json.is_null() ? text : dumped(json); }
};

[[nodiscard]] inline BodyContent body_content(std::string_view body, const Secrets& secrets) {
  auto json = parse_text(body, false);
  if (json.is_structured()) return {without_secrets(json, secrets), {}};
  return {{}, secrets.hide(body)};
}

/// The path of a URL with its query, without secrets: "/v1/chat/completions".
[[nodiscard]] inline std::string path_content(std::string_view url, const Secrets& secrets) {
  const auto shown = without_secrets(split_url(url));
  auto path = secrets.hide(to_string(Url{.path = shown.path, .query = shown.query}));
  return path.starts_with('/') ? path : '/' + path;
}

} // namespace mtmc::detail
